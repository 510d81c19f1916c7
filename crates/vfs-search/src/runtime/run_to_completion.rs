//! Completion of work in several steps, which must not be left half done.

use std::future::Future;

use tokio::runtime::Handle;
use vfs_core::{CancelToken, Error, ErrorKind, OpContext, Result};

/// Runs `work` to completion even if the caller stops waiting. In that case the context passed to `work` is cancelled,
/// and the work ends by itself, for example by undoing its steps.
///
/// Outside a tokio runtime nothing could continue the work, so dropping the future ends it.
///
/// # Errors
///
/// The errors of the work, and `internal` if it panicked.
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
        Err(Error::new(ErrorKind::Internal, "the operation panicked or the runtime is shutting down")
            .with_source(failure))
    });
    drop(guard);
    result
}

/// Cancels the token on drop.
struct CancelGuard(CancelToken);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
