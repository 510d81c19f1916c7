//! An end to every operation.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream;
use tokio::time::{Instant, sleep_until};
use vfs_core::{
    Backend, Error, ErrorKind, Intercepted, Interceptor, Layer, OpContext, Operation, Result, ResultStream, StreamCall,
    StreamRequest, UnaryRequest, VfsPath,
};

use crate::outcome::Outcome;
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
        Arc::new(Intercepted::new(inner, Arc::new(self.clone())))
    }
}

impl Interceptor for Timeout {
    fn name(&self) -> &'static str {
        "timeout"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let (cx, end) = self.limit(cx, Q::OPERATION);
        let Some(end) = end else { return request.send(inner, &cx).await };
        let path = request.as_request_ref().primary_path();
        match select(request.send(inner, &cx), pin!(sleep_until(end))).await {
            Either::Left((answer, _)) => answer.map_err(|error| error.or_path(&path)),
            Either::Right(_) => Err(late(&path)),
        }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let (cx, end) = self.limit(&cx, Q::OPERATION);
        let Some(end) = end else { return call.start(cx.into_owned()) };
        let path = call.request().as_request_ref().primary_path();
        until::<Q>(call.start(cx.into_owned()), end, path)
    }
}

impl Timeout {
    /// Returns the context with the deadline of `operation`, and the moment after which it is abandoned.
    fn limit<'a>(&self, cx: &'a OpContext, operation: Operation) -> (Cow<'a, OpContext>, Option<Instant>) {
        let own = self.time_of(operation).and_then(|time| Instant::now().checked_add(time));
        let cx = match own {
            Some(own) => Cow::Owned(cx.clone().with_deadline(own.into_std())),
            None => Cow::Borrowed(cx),
        };
        let end = cx.deadline().and_then(|deadline| Instant::from_std(deadline).checked_add(Self::GRACE));
        (cx, end)
    }
}

fn late(path: &VfsPath) -> Error {
    let message = "it took longer than it may; narrow the request, or allow more time";
    Error::new(ErrorKind::Timeout, message).with_path(path)
}

/// Returns `items` until `end`, and then an error.
fn until<Q: StreamRequest>(items: ResultStream<Q::Output>, end: Instant, path: VfsPath) -> ResultStream<Q::Output> {
    let state = Some((items, Box::pin(sleep_until(end)), path));
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
                let is_last = Outcome::of_last::<Q>(&item).is_some();
                Some((item, (!is_last).then_some((items, end, path))))
            }
            None => Some((Err(late(&path)), None)),
        }
    })
    .fuse()
    .boxed()
}
