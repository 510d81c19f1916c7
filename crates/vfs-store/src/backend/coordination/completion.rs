//! Completion of changes in several steps after their caller was cancelled or dropped.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, pending, select};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};
use vfs_search::run_until_cancelled;

/// Time that a change may still take after its caller's context has ended, before the caller gets an error.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs `work` until it has completed or rolled back, even if the caller is dropped. In that case the context of `work`
/// is cancelled.
///
/// If the store does not answer, a caller whose context has ended waits for [`COMPLETION_TIMEOUT`] at most, and `work`
/// continues in the background. Errors name `path` unless they name another one.
pub(crate) async fn finish_or_roll_back<T, F>(
    cx: &OpContext,
    path: &VfsPath,
    work: impl FnOnce(OpContext) -> F,
) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let (inner, _guard) = cx.cancel_on_drop();
    let work = work(inner);
    let Ok(runtime) = Handle::try_current() else { return work.await };
    let expired = async {
        let ended = run_until_cancelled(cx, path, pending::<Infallible>()).await;
        sleep(COMPLETION_TIMEOUT).await;
        ended
    };
    match select(runtime.spawn(work), pin!(expired)).await {
        Either::Left((output, _)) => output.unwrap_or_else(|error| {
            let message = "internal: the task of a change ended without a result; check the files at its paths";
            Err(Error::new(ErrorKind::Internal, message).with_path(path).with_source(error))
        }),
        Either::Right((Err(error), _)) => {
            let message = format!(
                "{}; the change waits for the store, and is completed or rolled back once the store answers",
                error.message()
            );
            Err(Error::new(error.kind(), message).with_path(path))
        }
    }
}

/// Returns the output of `work`, or `None` if it takes longer than `limit`. Without a tokio timer there is no limit.
pub(crate) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    match Handle::try_current() {
        Ok(_) => timeout(limit, work).await.ok(),
        Err(_) => Some(work.await),
    }
}
