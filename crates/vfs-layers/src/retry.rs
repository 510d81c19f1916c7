//! Interceptor that retries operations with exponential backoff.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use tokio::time::{Instant, sleep};
use vfs_core::backend::OperationIdSupport;
use vfs_core::operation::{
    Intercepted, OperationClass, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest, deferred_stream,
};
use vfs_core::{Backend, Error, ErrorKind, Interceptor, Layer, OpContext, Operation, Result};
use vfs_search::run_until_cancelled;

/// Retries operations that are safe to repeat, with exponential backoff and jitter.
///
/// # Behaviour
///
/// * Only temporary errors are retried. After `busy` nothing has happened, so every operation is retried. After
///   `timeout` and `unavailable` the outcome is unknown, so only idempotent operations are: see
///   [`RequestRef::is_idempotent`]; and mutations with an [operation id](OpContext::with_operation_id) that the backend
///   [stores](OperationIdSupport::Stored), except renames, copies and commits of a writer.
/// * The delay before an attempt is drawn evenly from zero to a bound, which doubles from attempt to attempt.
/// * Nothing is retried after the caller has cancelled, or if the delay would end after the caller's deadline: the
///   last error is returned. Cancelling ends a delay at once.
/// * A stream of a search or of a command is retried only from its beginning, if its very first item is an error. The
///   first item is awaited before it is passed on. A watch is never retried.
/// * Needs a tokio runtime with its timer, and follows a paused clock.
///
/// Put a [`Timeout`](crate::Timeout) inside it to bound each attempt, and outside it to bound all attempts together.
///
/// # Errors
///
/// Those of the last attempt; `cancelled` at the operation's path if the caller cancels during a delay.
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
    /// Default number of attempts, including the first: 4.
    pub const DEFAULT_ATTEMPTS: u32 = 4;

    /// Default bound of the first delay: 50 milliseconds.
    pub const DEFAULT_MIN_DELAY: Duration = Duration::from_millis(50);

    /// Default bound of every delay: 5 seconds.
    pub const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(5);

    /// Returns the default settings.
    pub fn new() -> Self {
        Self {
            attempts: Self::DEFAULT_ATTEMPTS,
            min_delay: Self::DEFAULT_MIN_DELAY,
            max_delay: Self::DEFAULT_MAX_DELAY,
        }
    }

    /// Sets the maximum number of attempts, including the first; 0 means 1. Default [`Retry::DEFAULT_ATTEMPTS`].
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the bound of the first delay, which doubles with each attempt. Default [`Retry::DEFAULT_MIN_DELAY`].
    #[must_use]
    pub fn min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// Sets the bound of every delay. Default [`Retry::DEFAULT_MAX_DELAY`].
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Returns a random delay before the attempt that follows `attempt`.
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
                Err(error) => self.back_off(inner, cx, request.as_request_ref(), attempt, error).await?,
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
                        self.back_off(&**call.inner(), &cx, call.request().as_request_ref(), attempt, error).await?;
                    }
                    first => return Ok(stream::iter(first).chain(items).boxed()),
                }
                attempt += 1;
            }
        })
    }
}

impl Retry {
    /// Waits before the attempt after `attempt`, or returns `error` if the operation is not retried.
    async fn back_off(
        &self,
        inner: &dyn Backend,
        cx: &OpContext,
        request: RequestRef<'_>,
        attempt: u32,
        error: Error,
    ) -> Result<()> {
        let delay = self.delay(attempt);
        let is_repeatable = may_repeat(&error, request) || (error.is_temporary() && is_made_once(inner, cx, request));
        if attempt >= self.attempts || !is_repeatable || !fits(cx, delay) {
            return Err(error);
        }
        run_until_cancelled(cx, &request.primary_path(), sleep(delay)).await
    }
}

fn may_repeat(error: &Error, request: RequestRef<'_>) -> bool {
    match error.kind() {
        ErrorKind::Busy => true,
        kind => kind.is_temporary() && request.is_idempotent(),
    }
}

/// Returns whether the backend makes the mutation once, however often it is sent.
fn is_made_once(inner: &dyn Backend, cx: &OpContext, request: RequestRef<'_>) -> bool {
    // The writer of a failed commit cannot be used again, and a rename or copy may be between two mounts.
    request.class() == OperationClass::Write
        && !matches!(request, RequestRef::CommitWriter(_) | RequestRef::Rename(_) | RequestRef::Copy(_))
        && cx.operation_id().is_some()
        && inner.capabilities(&request.primary_path()).operation_ids == OperationIdSupport::Stored
}

/// Returns whether `delay` ends before the caller cancels or its deadline passes.
fn fits(cx: &OpContext, delay: Duration) -> bool {
    let is_in_time = |deadline| Instant::now().checked_add(delay).is_some_and(|end| end < Instant::from_std(deadline));
    cx.check().is_ok() && cx.deadline().is_none_or(is_in_time)
}
