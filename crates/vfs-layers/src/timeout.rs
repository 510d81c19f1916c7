//! Interceptor that limits the duration of operations.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream;
use tokio::time::{Instant, sleep_until};
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, Error, ErrorKind, Interceptor, Layer, OpContext, Operation, Result, VfsPath};

use crate::outcome::Outcome;
use crate::per_operation_setting::PerOperationSetting;

/// Limits the duration of each operation.
///
/// # Behaviour
///
/// * The operation gets a deadline: that of its caller or the given duration from now, whichever is earlier. A
///   backend that observes its context ends by itself.
/// * An operation that does not end is dropped [`Timeout::GRACE`] after the deadline. A change that is dropped has
///   happened as a whole or not at all. Work that blocks its thread cannot be dropped.
/// * The time of a stream runs from its first poll to its last item. After the deadline the stream yields an error
///   and ends.
/// * A [`Watch`](vfs_core::Watch) never ends by itself, so it has no limit unless one is set for it.
/// * The commit of a writer is an operation of its own; the chunks before it have no limit but the deadline of the caller.
/// * Opening a tree is limited here; a search over that tree is limited by its own caller.
/// * Needs a tokio runtime with its timer, and follows a paused clock.
///
/// # Errors
///
/// `timeout` at the operation's first path, or at the root if it has none.
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
    durations: PerOperationSetting<Duration>,
}

impl Timeout {
    /// Time after its deadline in which an operation may still end by itself: 100 milliseconds.
    pub const GRACE: Duration = Duration::from_millis(100);

    /// Returns a limit of `duration` for each operation. A duration beyond the range of the clock is no limit.
    pub fn new(duration: Duration) -> Self {
        Self { durations: PerOperationSetting::new(duration) }
    }

    /// Sets the limit of `operation`, in place of the one for all operations.
    #[must_use]
    pub fn for_operation(mut self, operation: Operation, duration: Duration) -> Self {
        self.durations.set(operation, duration);
        self
    }

    fn duration_of(&self, operation: Operation) -> Option<Duration> {
        match operation {
            Operation::Watch => self.durations.override_for(operation),
            _ => Some(self.durations.get(operation)),
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
        let (limited, end) = self.limit(cx, Q::OPERATION);
        // The context that opens a writer applies to the chunks and the commit, too, which have times of their own.
        let cx = if Q::OPERATION == Operation::OpenWriter { Cow::Borrowed(cx) } else { limited };
        let Some(end) = end else { return request.send(inner, &cx).await };
        let path = request.as_request_ref().primary_path();
        match select(request.send(inner, &cx), pin!(sleep_until(end))).await {
            Either::Left((answer, _)) => answer.map_err(|error| error.or_path(&path)),
            Either::Right(_) => Err(timeout_error(&path)),
        }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let (cx, end) = self.limit(&cx, Q::OPERATION);
        let Some(end) = end else { return call.start(cx.into_owned()) };
        let path = call.request().as_request_ref().primary_path();
        until_deadline::<Q>(call.start(cx.into_owned()), end, path)
    }
}

impl Timeout {
    /// Returns the context with the deadline of `operation`, and the moment after which it is abandoned.
    fn limit<'a>(&self, cx: &'a OpContext, operation: Operation) -> (Cow<'a, OpContext>, Option<Instant>) {
        let deadline = self.duration_of(operation).and_then(|time| Instant::now().checked_add(time));
        let cx = match deadline {
            Some(deadline) => Cow::Owned(cx.clone().with_deadline(deadline.into_std())),
            None => Cow::Borrowed(cx),
        };
        let end = cx.deadline().and_then(|deadline| Instant::from_std(deadline).checked_add(Self::GRACE));
        (cx, end)
    }
}

fn timeout_error(path: &VfsPath) -> Error {
    let message = "the operation took longer than its limit; narrow the request, or allow more time";
    Error::new(ErrorKind::Timeout, message).with_path(path)
}

/// Returns `items` until `end`, and then an error.
fn until_deadline<Q: StreamRequest>(
    items: ResultStream<Q::Output>,
    end: Instant,
    path: VfsPath,
) -> ResultStream<Q::Output> {
    let state = Some((items, Box::pin(sleep_until(end)), path));
    stream::unfold(state, |state| async move {
        let (mut items, mut end, path) = state?;
        let next = async {
            // If an item is always ready, `select` never polls the timer.
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
                // The last item ends the stream, so that a late poll must not yield a timeout.
                let is_last = Outcome::of_last_item::<Q>(&item).is_some();
                Some((item, (!is_last).then_some((items, end, path))))
            }
            None => Some((Err(timeout_error(&path)), None)),
        }
    })
    .fuse()
    .boxed()
}
