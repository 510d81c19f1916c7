//! Failure on purpose.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use futures::stream;
use vfs_core::{
    Backend, Error, ErrorKind, Intercepted, Interceptor, Layer, OpContext, Operation, Result, ResultStream, StreamCall,
    StreamRequest, UnaryRequest, VfsPath,
};

/// Fails operations, for tests of what happens then.
///
/// # Behaviour
///
/// * Without further settings every call of every operation fails, and does nothing.
/// * [`next`](Self::next), [`every`](Self::every) and [`randomly`](Self::randomly) choose among the calls of the operations
///   that [`only`](Self::only) names; the last of the three that was set counts.
/// * [`after`](Self::after) does the operation and loses its answer, whatever that was. A stream gives its items and has
///   the error in the place of the last one.
/// * What was counted and drawn belongs to the layered backend and its clones: the same value around two backends fails
///   each on its own.
///
/// # Errors
///
/// The chosen one, at the operation's first path, the root where it has none.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, ErrorKind, Layer, Operation};
/// use vfs_layers::Fault;
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let fault = Fault::new(ErrorKind::Unavailable).only(Operation::Write).next(1).after();
/// let files = fault.layer(Arc::new(MemoryBackend::new()));
/// assert!(files.create_text("/a", "text").await.is_err());
/// assert_eq!(files.read_text("/a").await?, "text");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct Fault {
    kind: ErrorKind,
    operations: BTreeSet<Operation>,
    schedule: Schedule,
    point: Point,
}

#[derive(Debug, Clone, Copy)]
enum Schedule {
    Next(u64),
    Every(u64),
    Randomly { probability: f64, seed: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    Before,
    After,
}

impl Fault {
    /// Fails every call with `kind`, before anything is done.
    pub fn new(kind: ErrorKind) -> Self {
        Self { kind, operations: BTreeSet::new(), schedule: Schedule::Every(1), point: Point::Before }
    }

    /// Fails `operation` only; called again, that one too. Default: every operation.
    #[must_use]
    pub fn only(mut self, operation: Operation) -> Self {
        self.operations.insert(operation);
        self
    }

    /// Fails the first `calls`, and then no more.
    #[must_use]
    pub fn next(mut self, calls: u64) -> Self {
        self.schedule = Schedule::Next(calls);
        self
    }

    /// Fails every `n`th call, beginning with the `n`th. 0 fails none. Default: 1, every call.
    #[must_use]
    pub fn every(mut self, n: u64) -> Self {
        self.schedule = Schedule::Every(n);
        self
    }

    /// Fails each call with `probability`, from 0 (none) to 1 (all); the same `seed` fails the same calls of a sequence.
    #[must_use]
    pub fn randomly(mut self, probability: f64, seed: u64) -> Self {
        self.schedule = Schedule::Randomly { probability, seed };
        self
    }

    /// Fails after the operation is done, as where the connection is lost before the answer arrives.
    #[must_use]
    pub fn after(mut self) -> Self {
        self.point = Point::After;
        self
    }
}

impl Layer for Fault {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let seed = if let Schedule::Randomly { seed, .. } = self.schedule { seed } else { 0 };
        let faults =
            Faults { fault: self.clone(), calls: AtomicU64::new(0), draws: Mutex::new(fastrand::Rng::with_seed(seed)) };
        Arc::new(Intercepted::new(inner, Arc::new(faults)))
    }
}

#[derive(Debug)]
struct Faults {
    fault: Fault,
    calls: AtomicU64,
    draws: Mutex<fastrand::Rng>,
}

impl Faults {
    /// Counts a call of `operation` and says whether it fails.
    fn strikes(&self, operation: Operation) -> bool {
        if !self.fault.operations.is_empty() && !self.fault.operations.contains(&operation) {
            return false;
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        match self.fault.schedule {
            Schedule::Next(calls) => call <= calls,
            Schedule::Every(n) => n != 0 && call.is_multiple_of(n),
            Schedule::Randomly { probability, .. } => {
                self.draws.lock().unwrap_or_else(PoisonError::into_inner).f64() < probability
            }
        }
    }

    fn error(&self, path: &VfsPath) -> Error {
        Error::new(self.fault.kind, "a fault that was put here on purpose").with_path(path)
    }
}

impl Interceptor for Faults {
    fn name(&self) -> &'static str {
        "fault"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if !self.strikes(Q::OPERATION) {
            return request.send(inner, cx).await;
        }
        let error = self.error(&request.as_request_ref().primary_path());
        if self.fault.point == Point::After {
            drop(request.send(inner, cx).await);
        }
        Err(error)
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        if !self.strikes(Q::OPERATION) {
            return call.start(cx);
        }
        let error = self.error(&call.request().as_request_ref().primary_path());
        match self.fault.point {
            Point::Before => error.into_stream(),
            Point::After => lose_last(call.start(cx), error),
        }
    }
}

/// Returns `items`, with `error` in place of the last one.
fn lose_last<T: Send + 'static>(items: ResultStream<T>, error: Error) -> ResultStream<T> {
    let state = (items.peekable(), Some(error));
    stream::unfold(state, |(mut items, mut error)| async move {
        error.as_ref()?;
        let item = items.next().await;
        let is_last = item.is_none() || std::pin::Pin::new(&mut items).peek().await.is_none();
        let item = if is_last { Err(error.take()?) } else { item? };
        Some((item, (items, error)))
    })
    .fuse()
    .boxed()
}
