//! The bridge from async code to what waits for the disk.

use vfs_core::{CancelToken, OpContext, Result};
use vfs_search::run_blocking;

/// Cancels what runs on behalf of a future when that is dropped.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs `work` on the runtime's blocking pool: one hop for a whole operation, however many system calls it takes.
///
/// The context that `work` gets is cancelled, too, when the returned future is dropped, since the pool's own tasks
/// cannot be. Without a runtime the work is done in place; where the pool cannot start a thread, it is `busy`.
pub(crate) async fn blocking<T: Send + 'static>(
    cx: &OpContext,
    work: impl FnOnce(&OpContext) -> Result<T> + Send + 'static,
) -> Result<T> {
    cx.check()?;
    let guard = CancelOnDrop(cx.cancel_token().child());
    let cx = cx.clone().with_cancel_token(guard.0.clone());
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
