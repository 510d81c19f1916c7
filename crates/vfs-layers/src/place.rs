//! What layers need of every operation: the path that an error names, and waiting that the caller can end.

use tokio::time::sleep_until;
use vfs_core::{Action, OpContext, Result, VfsPath};

/// The path that an error about `action` names: its first, or the root where it has none.
pub(crate) fn place(action: Action<'_>) -> VfsPath {
    action.paths().next().cloned().unwrap_or_else(VfsPath::root)
}

/// The path at which `action` puts something: its last, or the root where it has none.
pub(crate) fn target(action: Action<'_>) -> VfsPath {
    action.paths().last().cloned().unwrap_or_else(VfsPath::root)
}

/// What `work` gives, unless the caller cancels or its deadline passes first; both end in an error at `path`.
///
/// Needs a tokio timer where the context has a deadline.
pub(crate) async fn while_wanted<T>(cx: &OpContext, path: &VfsPath, work: impl Future<Output = T>) -> Result<T> {
    cx.while_wanted(|deadline| sleep_until(deadline.into()), work).await.map_err(|error| error.or_path(path))
}
