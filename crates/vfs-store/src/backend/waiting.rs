//! Waiting for the store, which the caller can end.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, pending, select};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};
use vfs_search::run_until_cancelled;

/// The most that is waited between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Lets others go first after `attempts` attempts that they overtook: a short time, a random part of one that doubles.
pub(super) async fn make_way(cx: &OpContext, path: &VfsPath, attempts: u32) -> Result<()> {
    let most = Duration::from_millis(1).saturating_mul(1 << attempts.min(6)).min(LONGEST_PAUSE);
    let pause = most.mul_f64(fastrand::f64());
    run_until_cancelled(cx, path, sleep(pause)).await
}

/// How long a caller who has given up is kept, so that what was begun is settled when it is told.
const SETTLING: Duration = Duration::from_secs(5);

/// Does work of several steps to its end, or until it has taken them back, even where the caller is dropped on the way. It
/// gets a context that is cancelled then. Errors name `path` unless they name another.
///
/// Where the store does not answer, a caller whose context has ended is kept for [`SETTLING`] at most, and the work goes on
/// without it.
pub(super) async fn settled<T, F>(cx: &OpContext, path: &VfsPath, work: impl FnOnce(OpContext) -> F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let (inner, _guard) = cx.cancel_on_drop();
    let work = work(inner);
    let Ok(runtime) = Handle::try_current() else { return work.await };
    let late = async {
        let ended = run_until_cancelled(cx, path, pending::<Infallible>()).await;
        sleep(SETTLING).await;
        ended
    };
    match select(runtime.spawn(work), pin!(late)).await {
        Either::Left((done, _)) => done.unwrap_or_else(|error| {
            let message = "a change ended in the middle; look at what it left";
            Err(Error::new(ErrorKind::Internal, message).with_path(path).with_source(error))
        }),
        Either::Right((Err(error), _)) => {
            let message = format!(
                "{}; the store has not answered to what was begun, which is finished or taken back once it does",
                error.message()
            );
            Err(Error::new(error.kind(), message).with_path(path))
        }
    }
}

/// The outcome of `work`; `None` where it takes longer than `limit`, if there is a tokio timer to tell.
pub(super) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    match Handle::try_current() {
        Ok(_) => timeout(limit, work).await.ok(),
        Err(_) => Some(work.await),
    }
}
