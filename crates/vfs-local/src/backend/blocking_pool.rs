//! The bridge from async callers to blocking file system work.

use vfs_core::{OpContext, Result};
use vfs_search::run_blocking;

/// Runs `work` on the runtime's blocking pool: one hop for a whole operation with all its system calls.
///
/// Dropping the returned future also cancels the context that `work` gets, since tasks of the pool themselves cannot be
/// cancelled. Without a runtime, `work` runs on the calling thread; if the pool cannot start a thread, the error is
/// `busy`.
pub(crate) async fn run_on_blocking_pool<T: Send + 'static>(
    cx: &OpContext,
    work: impl FnOnce(&OpContext) -> Result<T> + Send + 'static,
) -> Result<T> {
    cx.check()?;
    let (cx, _guard) = cx.cancel_on_drop();
    let run = move || {
        // The call may have waited for a thread, and been cancelled meanwhile.
        cx.check()?;
        cx.span().clone().in_scope(|| work(&cx))
    };
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => run_blocking(&runtime, run).await?,
        Err(_) => run(),
    }
}
