//! Slowness on purpose.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use vfs_core::{Around, Backend, Layer, OpContext, Operation, Request, Result, Wrapped};
use vfs_search::run_until_cancelled;

use crate::per_operation::PerOperation;
use crate::place::place;

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
        Arc::new(Wrapped::new(inner, Arc::new(self.clone())))
    }
}

impl Around for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    async fn around<Q: Request>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let wait = self.waits.of(Q::OPERATION);
        if !wait.is_zero() {
            run_until_cancelled(cx, &place(request.action()), sleep(wait)).await?;
        }
        request.send(inner, cx).await
    }
}
