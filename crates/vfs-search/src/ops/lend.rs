//! Searching what a backend lends.

use std::future::Future;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use vfs_core::tree::SharedTree;
use vfs_core::{Backend, GrepEvent, GrepRequest, LendRequest, OpContext, Request as _, Result};

use crate::engine::pool::Pool;
use crate::ops::backend_tree::BackendTree;
use crate::ops::grep_stream::grep_stream_on;

/// The tree of `backend`: lent, where it is [`Searchable`](vfs_core::Searchable), else put together by asking it for
/// listings and whole files as the search needs them.
///
/// # Errors
///
/// Those of lending.
pub async fn lend(backend: &Arc<dyn Backend>, cx: &OpContext, req: LendRequest) -> Result<SharedTree> {
    if backend.as_searchable().is_some() {
        return req.send(&**backend, cx).await;
    }
    cx.check()?;
    Ok(SharedTree::of(Arc::new(BackendTree::new(Arc::clone(backend), cx.clone()))))
}

/// Finds text in a tree that is still to be lent, and gives it out as it is found, as [`grep_stream_on`] does.
///
/// # Errors
///
/// As its first and last item: what `tree` gives. Then as [`grep_stream_on`].
pub fn grep_stream_lent(
    pool: Pool,
    tree: impl Future<Output = Result<SharedTree>> + Send + 'static,
    cx: OpContext,
    req: GrepRequest,
) -> BoxStream<'static, Result<GrepEvent>> {
    let begin = async move {
        match tree.await {
            Ok(tree) => grep_stream_on(&pool, Arc::new(tree), cx, req),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    };
    stream::once(begin).flatten().boxed()
}
