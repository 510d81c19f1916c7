//! So many at once, and the others one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use futures::stream;
use tokio::sync::{Semaphore, SemaphorePermit};
use vfs_core::{
    Backend, Error, ErrorKind, Intercepted, Interceptor, Layer, OpContext, Operation, RequestRef, Result, ResultStream,
    StreamCall, StreamRequest, UnaryRequest, VfsPath, deferred_stream,
};
use vfs_search::run_until_cancelled;

/// Lets at most so many operations run at once.
///
/// # Behaviour
///
/// * Those that wait begin in the order in which they came. Waiting ends at the caller's deadline and when it cancels.
/// * The limit belongs to the layered backend and its clones: the same value around two backends limits each on its own.
/// * A stream runs until it has ended or is dropped, from its first poll. Who holds as many streams as may run and asks
///   for something else, waits for itself: drop the stream first, or give a deadline.
/// * A [`Watch`](vfs_core::Watch) never ends, and mostly waits: it does not count. Neither does a search over a tree that
///   was lent, apart from the lending.
/// * It needs a tokio runtime with its timer for callers that have a deadline.
///
/// # Errors
///
/// At the operation's first path, the root where it has none: `busy` where as many wait as may, and `timeout` or
/// `cancelled` while it waits. The operation is then not begun.
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
    running: usize,
    waiting: Option<usize>,
}

impl ConcurrencyLimit {
    /// At most `operations` at once; 0 means 1. Any number may wait.
    pub fn new(operations: usize) -> Self {
        Self { running: operations.clamp(1, Semaphore::MAX_PERMITS), waiting: None }
    }

    /// Lets at most `operations` wait, and refuses the others; 0 lets none wait. Default: any number.
    #[must_use]
    pub fn queue(mut self, operations: usize) -> Self {
        self.waiting = Some(operations);
        self
    }
}

impl Layer for ConcurrencyLimit {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let slots = Slots { limit: *self, free: Arc::new(Semaphore::new(self.running)), waiting: AtomicUsize::new(0) };
        Arc::new(Intercepted::new(inner, Arc::new(slots)))
    }
}

#[derive(Debug)]
struct Slots {
    limit: ConcurrencyLimit,
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Slots {
    async fn take(&self, cx: &OpContext, action: RequestRef<'_>) -> Result<SemaphorePermit<'_>> {
        match self.free.try_acquire() {
            Ok(slot) => Ok(slot),
            // Boxed, as waiting takes more room than all the rest, and hardly anybody does.
            Err(_) => Box::pin(self.wait(cx, action.primary_path())).await,
        }
    }

    async fn wait(&self, cx: &OpContext, path: VfsPath) -> Result<SemaphorePermit<'_>> {
        let _place = self.queue(&path)?;
        let slot = run_until_cancelled(cx, &path, self.free.acquire()).await?;
        // It is never closed; were it, there would be no order to wait in.
        slot.map_err(|_| Error::at(ErrorKind::Internal, &path))
    }

    /// A place among those that wait, until it is dropped.
    fn queue(&self, path: &VfsPath) -> Result<Waiting<'_>> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Waiting(&self.waiting);
        match self.limit.waiting {
            Some(most) if before >= most => {
                let running = self.limit.running;
                let message = format!("{running} operations run and {most} wait, which is the most; try again later");
                Err(Error::new(ErrorKind::Busy, message).with_path(path))
            }
            _ => Ok(place),
        }
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Interceptor for Slots {
    fn name(&self) -> &'static str {
        "concurrency"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let _slot = self.take(cx, request.as_request_ref()).await?;
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        if Q::OPERATION == Operation::Watch {
            return call.start(cx);
        }
        deferred_stream(async move {
            self.take(&cx, call.request().as_request_ref()).await?.forget();
            let slot = OwnedSlot(Arc::clone(&self.free));
            Ok(holding(call.start(cx), slot))
        })
    }
}

/// A slot that is free again when this is dropped.
struct OwnedSlot(Arc<Semaphore>);

impl Drop for OwnedSlot {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

/// Returns `items`, and drops `slot` once they have ended.
fn holding<T: Send + 'static>(items: ResultStream<T>, slot: OwnedSlot) -> ResultStream<T> {
    stream::unfold(Some((items, slot)), |state| async move {
        let (mut items, slot) = state?;
        let item = items.next().await?;
        Some((item, Some((items, slot))))
    })
    .fuse()
    .boxed()
}
