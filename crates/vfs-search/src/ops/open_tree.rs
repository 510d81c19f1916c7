//! Trees that one backend lends to another, and searches of them.

use std::future::Future;
use std::sync::Arc;

use futures::stream::BoxStream;
use vfs_core::operation::{UnaryRequest as _, deferred_stream};
use vfs_core::tree::{OpenTreeRequest, Tree};
use vfs_core::{Backend, GrepEvent, GrepRequest, OpContext, Result};

use crate::engine::pool::Pool;
use crate::ops::backend_tree::BackendTree;
use crate::ops::grep_stream::grep_stream_on;

/// Returns the tree of `backend`. A [`TreeProvider`](vfs_core::TreeProvider) lends its own tree; for other backends the
/// returned tree calls the backend for listings and whole files as the search needs them.
///
/// # Errors
///
/// The errors of lending.
pub async fn open_tree(backend: &Arc<dyn Backend>, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
    if backend.as_tree_provider().is_some() {
        return req.send(&**backend, cx).await;
    }
    cx.check()?;
    Ok(Arc::new(BackendTree::new(Arc::clone(backend), cx.clone())))
}

/// Finds text in a tree that `tree` resolves to, and returns the matches as they are found, like [`grep_stream_on`].
///
/// # Errors
///
/// The error of `tree`, as the first and last item; otherwise those of [`grep_stream_on`].
pub fn grep_stream_in_tree(
    pool: Pool,
    tree: impl Future<Output = Result<Arc<dyn Tree>>> + Send + 'static,
    cx: OpContext,
    req: GrepRequest,
) -> BoxStream<'static, Result<GrepEvent>> {
    deferred_stream(async move { Ok(grep_stream_on(&pool, tree.await?, cx, req)) })
}
