//! Trying again.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use tokio::time::{Instant, sleep};
use vfs_core::{
    Backend, Error, ErrorKind, Intercepted, Interceptor, Layer, OpContext, Operation, RequestRef, Result, ResultStream,
    StreamCall, StreamRequest, UnaryRequest, deferred_stream,
};
use vfs_search::run_until_cancelled;

/// Tries an operation again where that may help and cannot harm.
///
/// # Behaviour
///
/// * Only temporary errors are tried again. After `busy` nothing has happened, so every operation is. After `timeout` and
///   `unavailable` nobody knows, so only an operation for which twice is the same as once is: see
///   [`RequestRef::is_idempotent`].
/// * The wait before an attempt is drawn evenly from zero to a bound, which doubles from attempt to attempt.
/// * Nothing is tried again once the caller has cancelled, or where the wait would end after its deadline: the last error
///   is the answer. Cancelling ends a wait at once.
/// * Of a search or a command as a stream only the beginning is tried again: an error that is the very first item. Its
///   first item is waited for before it is handed on. A watch is never tried again.
/// * It needs a tokio runtime with its timer, and follows a paused clock.
///
/// Put a [`Timeout`](crate::Timeout) inside of it to bound each attempt, and outside of it to bound all together.
///
/// # Errors
///
/// That of the last attempt; `cancelled` at the operation's path where the caller cancels during a wait.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use vfs_core::Layer;
/// use vfs_layers::Retry;
/// use vfs_memory::MemoryBackend;
///
/// let retry = Retry::new().attempts(6).min_delay(Duration::from_millis(20)).max_delay(Duration::from_secs(2));
/// let files = retry.layer(Arc::new(MemoryBackend::new()));
/// # let _ = files;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    attempts: u32,
    min_delay: Duration,
    max_delay: Duration,
}

impl Retry {
    /// 4 attempts, the first one included.
    pub const DEFAULT_ATTEMPTS: u32 = 4;

    /// 50 milliseconds.
    pub const DEFAULT_MIN_DELAY: Duration = Duration::from_millis(50);

    /// 5 seconds.
    pub const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(5);

    /// The defaults.
    pub fn new() -> Self {
        Self {
            attempts: Self::DEFAULT_ATTEMPTS,
            min_delay: Self::DEFAULT_MIN_DELAY,
            max_delay: Self::DEFAULT_MAX_DELAY,
        }
    }

    /// Sets the most attempts, the first one included; 0 means 1. Default [`Retry::DEFAULT_ATTEMPTS`].
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the bound of the first wait, from which the others double. Default [`Retry::DEFAULT_MIN_DELAY`].
    #[must_use]
    pub fn min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// Sets the bound of every wait. Default [`Retry::DEFAULT_MAX_DELAY`].
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// A wait before the attempt that follows `attempt`.
    fn delay(&self, attempt: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        self.min_delay.saturating_mul(doubled).min(self.max_delay).mul_f64(fastrand::f64())
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::new()
    }
}

impl Layer for Retry {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Intercepted::new(inner, Arc::new(*self)))
    }
}

impl Interceptor for Retry {
    fn name(&self) -> &'static str {
        "retry"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let mut attempt = 1;
        loop {
            match request.clone().send(inner, cx).await {
                Ok(output) => return Ok(output),
                Err(error) => self.back_off(cx, request.as_request_ref(), attempt, error).await?,
            }
            attempt += 1;
        }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, mut call: StreamCall<Q>) -> ResultStream<Q::Output> {
        if Q::OPERATION == Operation::Watch {
            return call.start(cx);
        }
        deferred_stream(async move {
            let mut attempt = 1;
            loop {
                let mut items = call.restart(cx.clone());
                match items.next().await {
                    Some(Err(error)) => {
                        self.back_off(&cx, call.request().as_request_ref(), attempt, error).await?;
                    }
                    first => return Ok(stream::iter(first).chain(items).boxed()),
                }
                attempt += 1;
            }
        })
    }
}

impl Retry {
    /// Waits before the attempt after `attempt`, or returns `error` if there is to be none.
    async fn back_off(&self, cx: &OpContext, request: RequestRef<'_>, attempt: u32, error: Error) -> Result<()> {
        let delay = self.delay(attempt);
        if attempt >= self.attempts || !may_repeat(&error, request) || !fits(cx, delay) {
            return Err(error);
        }
        run_until_cancelled(cx, &request.primary_path(), sleep(delay)).await
    }
}

fn may_repeat(error: &Error, action: RequestRef<'_>) -> bool {
    match error.kind() {
        ErrorKind::Busy => true,
        kind => kind.is_temporary() && action.is_idempotent(),
    }
}

/// Whether the caller still waits when `delay` is over.
fn fits(cx: &OpContext, delay: Duration) -> bool {
    let is_in_time = |deadline| Instant::now().checked_add(delay).is_some_and(|end| end < Instant::from_std(deadline));
    cx.check().is_ok() && cx.deadline().is_none_or(is_in_time)
}
