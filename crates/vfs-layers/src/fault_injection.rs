//! Interceptor that fails operations, for tests.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use futures::stream;
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, Error, ErrorKind, Interceptor, Layer, OpContext, Operation, Result, VfsPath};

/// Fails operations, for tests of error handling.
///
/// # Behaviour
///
/// * Without further settings every call of every operation fails, and does nothing.
/// * [`next`](Self::next), [`every`](Self::every) and [`randomly`](Self::randomly) choose among the calls of the
///   operations that [`only`](Self::only) names; the last of the three that was set counts.
/// * [`after`](Self::after) performs the operation and discards its result, whatever it was. A stream yields its
///   items, with the error in place of the last one.
/// * Counters and random numbers belong to the layered backend and its clones: the same value around two backends
///   fails each independently.
///
/// # Errors
///
/// The chosen kind, at the operation's first path, or at the root if it has none.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, ErrorKind, Layer, Operation};
/// use vfs_layers::FaultInjection;
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let fault = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Write).next(1).after();
/// let files = fault.layer(Arc::new(MemoryBackend::new()));
/// assert!(files.create_text("/a", "text").await.is_err());
/// assert_eq!(files.read_text("/a").await?, "text");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct FaultInjection {
    kind: ErrorKind,
    operations: BTreeSet<Operation>,
    schedule: FaultSchedule,
    point: InjectionPoint,
}

/// Which calls fail.
#[derive(Debug, Clone, Copy)]
enum FaultSchedule {
    Next(u64),
    Every(u64),
    Randomly { probability: f64, seed: u64 },
}

/// Whether a call fails before or after its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InjectionPoint {
    Before,
    After,
}

impl FaultInjection {
    /// Returns an interceptor that fails every call with `kind`, before the operation is performed.
    pub fn new(kind: ErrorKind) -> Self {
        Self { kind, operations: BTreeSet::new(), schedule: FaultSchedule::Every(1), point: InjectionPoint::Before }
    }

    /// Fails only calls of `operation`; each further call adds an operation. Default: every operation.
    #[must_use]
    pub fn only(mut self, operation: Operation) -> Self {
        self.operations.insert(operation);
        self
    }

    /// Fails the first `calls` calls, and none after them.
    #[must_use]
    pub fn next(mut self, calls: u64) -> Self {
        self.schedule = FaultSchedule::Next(calls);
        self
    }

    /// Fails every `n`th call, beginning with the `n`th. 0 fails none. Default: 1, every call.
    #[must_use]
    pub fn every(mut self, n: u64) -> Self {
        self.schedule = FaultSchedule::Every(n);
        self
    }

    /// Fails each call with `probability`, from 0 (none) to 1 (all); equal seeds fail the same calls of a sequence.
    #[must_use]
    pub fn randomly(mut self, probability: f64, seed: u64) -> Self {
        self.schedule = FaultSchedule::Randomly { probability, seed };
        self
    }

    /// Fails after the operation was performed, like a connection that is lost before the response arrives.
    #[must_use]
    pub fn after(mut self) -> Self {
        self.point = InjectionPoint::After;
        self
    }
}

impl Layer for FaultInjection {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let seed = if let FaultSchedule::Randomly { seed, .. } = self.schedule { seed } else { 0 };
        let injector = FaultInjector {
            config: self.clone(),
            calls: AtomicU64::new(0),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
        };
        Arc::new(Intercepted::new(inner, Arc::new(injector)))
    }
}

/// Interceptor that fails calls by the schedule of a [`FaultInjection`].
#[derive(Debug)]
struct FaultInjector {
    config: FaultInjection,
    calls: AtomicU64,
    random: Mutex<fastrand::Rng>,
}

impl FaultInjector {
    /// Counts a call of `operation`, and returns whether it fails.
    fn should_fail(&self, operation: Operation) -> bool {
        if !self.config.operations.is_empty() && !self.config.operations.contains(&operation) {
            return false;
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        match self.config.schedule {
            FaultSchedule::Next(calls) => call <= calls,
            FaultSchedule::Every(n) => n != 0 && call.is_multiple_of(n),
            FaultSchedule::Randomly { probability, .. } => {
                self.random.lock().unwrap_or_else(PoisonError::into_inner).f64() < probability
            }
        }
    }

    fn error(&self, path: &VfsPath) -> Error {
        Error::new(self.config.kind, "a fault was injected for a test").with_path(path)
    }
}

impl Interceptor for FaultInjector {
    fn name(&self) -> &'static str {
        "fault"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if !self.should_fail(Q::OPERATION) {
            return request.send(inner, cx).await;
        }
        let error = self.error(&request.as_request_ref().primary_path());
        if self.config.point == InjectionPoint::After {
            drop(request.send(inner, cx).await);
        }
        Err(error)
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        if !self.should_fail(Q::OPERATION) {
            return call.start(cx);
        }
        let error = self.error(&call.request().as_request_ref().primary_path());
        match self.config.point {
            InjectionPoint::Before => error.into_stream(),
            InjectionPoint::After => replace_last(call.start(cx), error),
        }
    }
}

/// Returns `items`, with `error` in place of the last one.
fn replace_last<T: Send + 'static>(items: ResultStream<T>, error: Error) -> ResultStream<T> {
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
