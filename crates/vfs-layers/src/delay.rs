//! Interceptor that delays operations, for tests.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use vfs_core::operation::{Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, Interceptor, Layer, OpContext, Operation, Result};
use vfs_search::run_until_cancelled;

use crate::per_operation_setting::PerOperationSetting;

/// Waits before every operation, for tests of slow backends.
///
/// # Behaviour
///
/// * The wait comes once, before the operation: the items of a stream are not delayed.
/// * Needs a tokio runtime with its timer, and follows a paused clock.
///
/// # Errors
///
/// `cancelled` or `timeout` at the operation's path as soon as the caller cancels or its deadline passes during the
/// wait; the operation then does not begin.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use vfs_core::{Layer, Operation};
/// use vfs_layers::Delay;
/// use vfs_memory::MemoryBackend;
///
/// let distant = Delay::new(Duration::from_millis(80)).for_operation(Operation::Stat, Duration::from_millis(5));
/// let files = distant.layer(Arc::new(MemoryBackend::new()));
/// # let _ = files;
/// ```
#[derive(Debug, Clone)]
pub struct Delay {
    delays: PerOperationSetting<Duration>,
}

impl Delay {
    /// Returns an interceptor that waits `delay` before each operation. Zero means no wait.
    pub fn new(delay: Duration) -> Self {
        Self { delays: PerOperationSetting::new(delay) }
    }

    /// Sets the delay before `operation`, in place of the one for all operations.
    #[must_use]
    pub fn for_operation(mut self, operation: Operation, delay: Duration) -> Self {
        self.delays.set(operation, delay);
        self
    }
}

impl Layer for Delay {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Intercepted::new(inner, Arc::new(self.clone())))
    }
}

impl Interceptor for Delay {
    fn name(&self) -> &'static str {
        "delay"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        self.wait(cx, request.as_request_ref()).await?;
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let (wait_cx, request) = (cx.clone(), call.request().clone());
        call.start_after(cx, async move { self.wait(&wait_cx, request.as_request_ref()).await })
    }
}

impl Delay {
    async fn wait(&self, cx: &OpContext, request: RequestRef<'_>) -> Result<()> {
        let delay = self.delays.get(request.operation());
        if delay.is_zero() {
            return Ok(());
        }
        run_until_cancelled(cx, &request.primary_path(), sleep(delay)).await
    }
}
