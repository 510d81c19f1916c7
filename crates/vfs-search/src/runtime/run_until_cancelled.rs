//! Cancellation: awaits work within the deadline of an operation's context, by tokio's clock.

use tokio::time::sleep_until;
use vfs_core::{OpContext, Result, VfsPath};

/// Returns the output of `work`, unless `cx` is cancelled or its deadline passes first: then `work` is dropped.
///
/// A context with a deadline needs a tokio runtime with a timer.
///
/// # Errors
///
/// `cancelled` or `timeout`, at `path`.
///
/// ```
/// use vfs_core::{OpContext, VfsPath};
/// use vfs_search::run_until_cancelled;
///
/// # futures::executor::block_on(async {
/// let cx = OpContext::new();
/// assert_eq!(run_until_cancelled(&cx, &VfsPath::root(), async { 7 }).await?, 7);
/// cx.cancel_token().cancel();
/// assert!(run_until_cancelled(&cx, &VfsPath::root(), async { 7 }).await.is_err());
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("it is not cancelled yet");
/// ```
pub async fn run_until_cancelled<T>(cx: &OpContext, path: &VfsPath, work: impl Future<Output = T>) -> Result<T> {
    let done = cx.run_until_cancelled(|deadline| sleep_until(deadline.into()), work).await;
    done.map_err(|error| error.or_path(path))
}
