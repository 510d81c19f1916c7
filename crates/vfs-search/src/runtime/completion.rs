//! Work of several steps that is not left half done.

use std::future::Future;

use tokio::runtime::Handle;
use vfs_core::{CancelToken, Error, ErrorKind, OpContext, Result};

/// Runs `work` so that whoever waits for it may go: it is cancelled then, by the context that it is given, and comes to an
/// end of its own, which may be to take back what it did.
///
/// Outside a tokio runtime there is nothing that would go on with it, and it ends where it is dropped.
///
/// # Errors
///
/// Those of the work, and `internal` where it panicked.
pub async fn run_to_completion<T, F>(cx: &OpContext, work: impl FnOnce(OpContext) -> F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let token = cx.cancel_token().child();
    let work = work(cx.clone().with_cancel_token(token.clone()));
    let Ok(runtime) = Handle::try_current() else { return work.await };
    let guard = CancelGuard(token);
    let result = runtime.spawn(work).await.unwrap_or_else(|failure| {
        Err(Error::new(ErrorKind::Internal, "the work did not come to its end").with_source(failure))
    });
    drop(guard);
    result
}

/// Cancels when it goes.
struct CancelGuard(CancelToken);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
