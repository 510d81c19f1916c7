//! Slowness on purpose.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use vfs_core::{
    Backend, Intercepted, Interceptor, Layer, OpContext, Operation, RequestRef, Result, ResultStream, StreamCall,
    StreamRequest, UnaryRequest,
};
use vfs_search::run_until_cancelled;

use crate::per_operation::PerOperation;

/// Waits before every operation, for tests of what is slow.
///
/// # Behaviour
///
/// * The wait is before the operation, and once: the items of a stream follow each other at their own speed.
/// * It needs a tokio runtime with its timer, and follows a paused clock.
///
/// # Errors
///
/// `cancelled` or `timeout` at the operation's path, at once, where the caller cancels or its deadline passes during the
/// wait; the operation is then not begun.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use vfs_core::{Layer, Operation};
/// use vfs_layers::Latency;
/// use vfs_memory::MemoryBackend;
///
/// let far_away = Latency::new(Duration::from_millis(80)).for_operation(Operation::Stat, Duration::from_millis(5));
/// let files = far_away.layer(Arc::new(MemoryBackend::new()));
/// # let _ = files;
/// ```
#[derive(Debug, Clone)]
pub struct Latency {
    waits: PerOperation<Duration>,
}

impl Latency {
    /// Waits `wait` before each operation. Zero is no wait.
    pub fn new(wait: Duration) -> Self {
        Self { waits: PerOperation::new(wait) }
    }

    /// Waits `wait` before `operation` instead.
    #[must_use]
    pub fn for_operation(mut self, operation: Operation, wait: Duration) -> Self {
        self.waits.set(operation, wait);
        self
    }
}

impl Layer for Latency {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Intercepted::new(inner, Arc::new(self.clone())))
    }
}

impl Interceptor for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        self.wait(cx, request.as_request_ref()).await?;
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let (waiting, request) = (cx.clone(), call.request().clone());
        call.start_after(cx, async move { self.wait(&waiting, request.as_request_ref()).await })
    }
}

impl Latency {
    async fn wait(&self, cx: &OpContext, request: RequestRef<'_>) -> Result<()> {
        let delay = self.waits.of(request.operation());
        if delay.is_zero() {
            return Ok(());
        }
        run_until_cancelled(cx, &request.primary_path(), sleep(delay)).await
    }
}
