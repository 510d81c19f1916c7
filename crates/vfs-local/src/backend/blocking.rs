//! The bridge from async code to what waits for the disk.

use vfs_core::{OpContext, Result};
use vfs_search::run_blocking;

/// Runs `work` on the runtime's blocking pool: one hop for a whole operation, however many system calls it takes.
///
/// The context that `work` gets is cancelled, too, when the returned future is dropped, since the pool's own tasks
/// cannot be. Without a runtime the work is done in place; where the pool cannot start a thread, it is `busy`.
pub(crate) async fn run_on_blocking_pool<T: Send + 'static>(
    cx: &OpContext,
    work: impl FnOnce(&OpContext) -> Result<T> + Send + 'static,
) -> Result<T> {
    cx.check()?;
    let (cx, _guard) = cx.cancel_on_drop();
    let run = move || {
        // The call may have waited for a thread.
        cx.check()?;
        cx.span().clone().in_scope(|| work(&cx))
    };
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => run_blocking(&runtime, run).await?,
        Err(_) => run(),
    }
}
