//! An end to every operation.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream;
use tokio::time::{Instant, sleep_until};
use vfs_core::{Around, Backend, Error, ErrorKind, Layer, OpContext, Operation, Request, Result, VfsPath, Wrapped};

use crate::outputs::{Items, OnStream, end_with, on_stream};
use crate::per_operation::PerOperation;

/// Ends each operation after a time.
///
/// # Behaviour
///
/// * The operation gets a deadline: that of its caller or the given time from now, whichever is earlier. A backend that
///   looks at its context ends by itself.
/// * One that does not is dropped [`Timeout::GRACE`] after the deadline. A change that is dropped has happened as a whole or
///   not at all. Work that blocks its thread cannot be dropped.
/// * The time of a stream runs from its first poll to its last item. What comes after the deadline is an error, and the end.
/// * A [`Watch`](vfs_core::Watch) never ends by itself, so it has no time unless it is given one of its own.
/// * A search over a tree that was lent is the borrower's: only the lending has a time here.
/// * It needs a tokio runtime with its timer, and follows a paused clock.
///
/// # Errors
///
/// `timeout` at the operation's first path, the root where it has none.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use vfs_core::{Layer, Operation};
/// use vfs_layers::Timeout;
/// use vfs_memory::MemoryBackend;
///
/// let timeout = Timeout::new(Duration::from_secs(5)).for_operation(Operation::Grep, Duration::from_secs(60));
/// let files = timeout.layer(Arc::new(MemoryBackend::new()));
/// # let _ = files;
/// ```
#[derive(Debug, Clone)]
pub struct Timeout {
    times: PerOperation<Duration>,
}

impl Timeout {
    /// 100 milliseconds: how long after its deadline an operation may still end by itself.
    pub const GRACE: Duration = Duration::from_millis(100);

    /// Ends each operation after `time`. A time that is out of the clock's range is none.
    pub fn new(time: Duration) -> Self {
        Self { times: PerOperation::new(time) }
    }

    /// Ends `operation` after `time` instead.
    #[must_use]
    pub fn for_operation(mut self, operation: Operation, time: Duration) -> Self {
        self.times.set(operation, time);
        self
    }

    fn time_of(&self, operation: Operation) -> Option<Duration> {
        match operation {
            Operation::Watch => self.times.only_of(operation),
            _ => Some(self.times.of(operation)),
        }
    }
}

impl Layer for Timeout {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Wrapped::new(inner, Arc::new(self.clone())))
    }
}

impl Around for Timeout {
    fn name(&self) -> &'static str {
        "timeout"
    }

    async fn around<Q: Request>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let time = self.time_of(Q::OPERATION);
        let own = time.and_then(|time| Instant::now().checked_add(time));
        let cx = match own {
            Some(own) => &cx.clone().with_deadline(own.into_std()),
            None => cx,
        };
        let end = cx.deadline().and_then(|deadline| Instant::from_std(deadline).checked_add(Self::GRACE));
        let path = request.action().primary_path();
        let Some(end) = end else { return request.send(inner, cx).await };
        let output = match select(request.send(inner, cx), pin!(sleep_until(end))).await {
            Either::Left((answer, _)) => answer.map_err(|error| error.or_path(&path))?,
            Either::Right(_) => return Err(late(&path)),
        };
        Ok(on_stream(output, Until { end, path }))
    }
}

fn late(path: &VfsPath) -> Error {
    let message = "it took longer than it may; narrow the request, or allow more time";
    Error::new(ErrorKind::Timeout, message).with_path(path)
}

/// Ends a stream at a moment.
struct Until {
    end: Instant,
    path: VfsPath,
}

impl OnStream for Until {
    fn wrap<T: Send + 'static>(self, items: Items<T>) -> Items<T> {
        let state = Some((items, Box::pin(sleep_until(self.end)), self.path));
        stream::unfold(state, |state| async move {
            let (mut items, mut end, path) = state?;
            let next = async {
                // A stream that always has an item would never let the timer be looked at.
                if Instant::now() >= end.deadline() {
                    return None;
                }
                match select(items.next(), end.as_mut()).await {
                    Either::Left((item, _)) => Some(item),
                    Either::Right(_) => None,
                }
            }
            .await;
            match next {
                Some(item) => {
                    let item = item?;
                    // Nothing comes after the last item, however late it is asked for.
                    let is_last = end_with(&item).is_some();
                    Some((item, (!is_last).then_some((items, end, path))))
                }
                None => Some((Err(late(&path)), None)),
            }
        })
        .fuse()
        .boxed()
    }
}
