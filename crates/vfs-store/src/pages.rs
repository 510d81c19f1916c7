//! Listings as streams of their pages.

use futures::stream::{self, BoxStream, StreamExt as _};
use vfs_core::{Result, VfsPath};

use crate::key::Namespace;
use crate::store::{ListRequest, Page, Store};

/// All values of a namespace, page by page.
pub(crate) fn all<'a>(store: &'a dyn Store, namespace: &'a Namespace) -> BoxStream<'a, Result<Page>> {
    let first = ListRequest::all(VfsPath::root());
    let pages = stream::try_unfold(Some(first), move |request| async move {
        let Some(request) = request else { return Ok(None) };
        let page = store.list(namespace, &request).await?;
        let next = page.next.clone().map(|token| ListRequest { from: Some(token), ..request });
        Ok(Some((page, next)))
    });
    pages.boxed()
}
