//! Waiting for the store, which the caller can end.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, pending, select};
use tokio::runtime::Handle;
use tokio::time::{sleep, sleep_until, timeout};
use vfs_core::{CancelToken, Error, ErrorKind, OpContext, Result, VfsPath};

/// What `work` gives, unless the caller cancels or its deadline passes first. Errors name `path` unless they name another.
///
/// Needs a tokio timer where the context has a deadline.
pub(super) async fn while_wanted<T>(
    cx: &OpContext,
    path: &VfsPath,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let done = cx.while_wanted(|deadline| sleep_until(deadline.into()), work).await;
    done.and_then(|done| done).map_err(|error| error.or_path(path))
}

/// The most that is waited between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Lets others go first after `attempts` attempts that they overtook: a short time, a random part of one that doubles.
pub(super) async fn make_way(cx: &OpContext, path: &VfsPath, attempts: u32) -> Result<()> {
    let most = Duration::from_millis(1).saturating_mul(1 << attempts.min(6)).min(LONGEST_PAUSE);
    let pause = most.mul_f64(fastrand::f64());
    while_wanted(cx, path, async {
        sleep(pause).await;
        Ok(())
    })
    .await
}

/// Cancels a token when it is dropped: whoever waits for the work has given it up.
#[derive(Debug)]
pub(super) struct CancelOnDrop(CancelToken);

impl CancelOnDrop {
    /// Of a token that ends with this.
    pub(super) fn of(token: CancelToken) -> Self {
        Self(token)
    }

    /// A context of the caller's that ends with this, too.
    pub(super) fn new(cx: &OpContext) -> (Self, OpContext) {
        let token = cx.cancel_token().child();
        (Self(token.clone()), cx.clone().with_cancel_token(token))
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
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
    let (_guard, inner) = CancelOnDrop::new(cx);
    let work = work(inner);
    let Ok(runtime) = Handle::try_current() else { return work.await };
    let late = async {
        let ended: Result<Infallible> = while_wanted(cx, path, pending()).await;
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
