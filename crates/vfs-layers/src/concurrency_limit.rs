//! Interceptor that limits the number of concurrent operations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use futures::stream;
use tokio::sync::{Semaphore, SemaphorePermit};
use vfs_core::operation::{
    Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest, deferred_stream,
};
use vfs_core::{Backend, Error, ErrorKind, Interceptor, Layer, OpContext, Operation, Result, VfsPath};
use vfs_search::run_until_cancelled;

/// Limits the number of operations that run at once.
///
/// # Behaviour
///
/// * Operations that wait begin in the order of their arrival. Waiting ends at the caller's deadline and when the
///   caller cancels.
/// * The limit belongs to the layered backend and its clones: the same value around two backends limits each
///   independently.
/// * A stream holds its permit from its first poll until it ends or is dropped. A caller that holds all permits in
///   streams and starts another operation waits for itself: drop a stream first, or set a deadline.
/// * A [`Watch`](vfs_core::Watch) does not count, as it never ends and mostly waits. A search over an opened tree
///   does not count either, apart from opening the tree.
/// * Needs a tokio runtime with its timer for callers that have a deadline.
///
/// # Errors
///
/// At the operation's first path, or at the root if it has none: `busy` if the queue is full, and `timeout` or
/// `cancelled` during the wait. The operation then does not begin.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::Layer;
/// use vfs_layers::ConcurrencyLimit;
/// use vfs_memory::MemoryBackend;
///
/// let files = ConcurrencyLimit::new(8).queue(100).layer(Arc::new(MemoryBackend::new()));
/// # let _ = files;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyLimit {
    max_running: usize,
    max_waiting: Option<usize>,
}

impl ConcurrencyLimit {
    /// Returns a limit of `operations` at once; 0 means 1. Any number may wait.
    pub fn new(operations: usize) -> Self {
        Self { max_running: operations.clamp(1, Semaphore::MAX_PERMITS), max_waiting: None }
    }

    /// Limits the number of operations that wait to `operations`, and refuses the others; 0 lets none wait. Default:
    /// no limit.
    #[must_use]
    pub fn queue(mut self, operations: usize) -> Self {
        self.max_waiting = Some(operations);
        self
    }
}

impl Layer for ConcurrencyLimit {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let limiter = ConcurrencyLimiter {
            limit: *self,
            permits: Arc::new(Semaphore::new(self.max_running)),
            waiting: AtomicUsize::new(0),
        };
        Arc::new(Intercepted::new(inner, Arc::new(limiter)))
    }
}

/// Interceptor that enforces a [`ConcurrencyLimit`].
#[derive(Debug)]
struct ConcurrencyLimiter {
    limit: ConcurrencyLimit,
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl ConcurrencyLimiter {
    async fn acquire(&self, cx: &OpContext, request: RequestRef<'_>) -> Result<SemaphorePermit<'_>> {
        match self.permits.try_acquire() {
            Ok(permit) => Ok(permit),
            // Boxed, because the future of a wait is large and rarely needed.
            Err(_) => Box::pin(self.wait(cx, request.primary_path())).await,
        }
    }

    async fn wait(&self, cx: &OpContext, path: VfsPath) -> Result<SemaphorePermit<'_>> {
        let _ticket = self.queue(&path)?;
        let permit = run_until_cancelled(cx, &path, self.permits.acquire()).await?;
        // The semaphore is never closed.
        permit.map_err(|_| Error::at(ErrorKind::Internal, &path))
    }

    /// Enters the queue, and returns the ticket that leaves it when dropped.
    fn queue(&self, path: &VfsPath) -> Result<PermitQueueTicket<'_>> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let ticket = PermitQueueTicket(&self.waiting);
        match self.limit.max_waiting {
            Some(max) if before >= max => {
                let running = self.limit.max_running;
                let message = format!("{running} operations run and {max} wait already; try again later");
                Err(Error::new(ErrorKind::Busy, message).with_path(path))
            }
            _ => Ok(ticket),
        }
    }
}

/// Place in the queue of waiting operations. Dropping it leaves the queue.
struct PermitQueueTicket<'a>(&'a AtomicUsize);

impl Drop for PermitQueueTicket<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Interceptor for ConcurrencyLimiter {
    fn name(&self) -> &'static str {
        "concurrency_limit"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let _permit = self.acquire(cx, request.as_request_ref()).await?;
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        if Q::OPERATION == Operation::Watch {
            return call.start(cx);
        }
        deferred_stream(async move {
            self.acquire(&cx, call.request().as_request_ref()).await?.forget();
            let permit = ConcurrencyPermit(Arc::clone(&self.permits));
            Ok(with_permit(call.start(cx), permit))
        })
    }
}

/// Permit of a running operation, released when this is dropped.
struct ConcurrencyPermit(Arc<Semaphore>);

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

/// Returns `items`, and drops `permit` once they have ended.
fn with_permit<T: Send + 'static>(items: ResultStream<T>, permit: ConcurrencyPermit) -> ResultStream<T> {
    stream::unfold(Some((items, permit)), |state| async move {
        let (mut items, permit) = state?;
        let item = items.next().await?;
        Some((item, Some((items, permit))))
    })
    .fuse()
    .boxed()
}
