//! Interceptors that inject faults, delays or changes of other callers at chosen calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::DateTime;
use tokio::sync::Semaphore;
use vfs_core::operation::{AnyOutput, ResultStream, StreamCall, StreamRequest, UnaryRequest, deferred_stream};
use vfs_core::state::{FileData, FilesUpdate};
use vfs_core::{Backend, Error, ErrorKind, Interceptor, OpContext, Operation, Result, VfsPath, WriteRequest};

/// The calls at which a fault is injected, counted from 1 among those of the operations.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FaultSchedule {
    Every,
    Only(u64),
    From(u64),
}

/// The fault.
#[derive(Debug, Clone)]
pub(crate) enum InjectedFault {
    /// The call fails and has done nothing.
    FailBefore,
    /// The call is made, and its response is lost.
    FailAfter,
    /// Another caller writes first.
    Write(WriteRequest),
    /// The call waits at a gate first.
    Wait(Arc<CallGate>),
}

/// Blocks calls until it is opened.
#[derive(Debug)]
pub(crate) struct CallGate {
    reached: Semaphore,
    open: Semaphore,
}

impl CallGate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { reached: Semaphore::new(0), open: Semaphore::new(0) })
    }

    /// Waits until a call reaches the gate.
    pub(crate) async fn reached(&self) {
        drop(self.reached.acquire().await);
    }

    /// Lets all calls through.
    pub(crate) fn open(&self) {
        self.open.add_permits(Semaphore::MAX_PERMITS / 2);
    }
}

/// Injects a fault at the chosen calls of the chosen operations, and forwards all calls.
#[derive(Debug)]
pub(crate) struct FaultInjector {
    operations: fn(Operation) -> bool,
    calls: FaultSchedule,
    fault: InjectedFault,
    seen: AtomicU64,
}

impl FaultInjector {
    pub(crate) fn new(operations: fn(Operation) -> bool, calls: FaultSchedule, fault: InjectedFault) -> Arc<Self> {
        Arc::new(Self { operations, calls, fault, seen: AtomicU64::new(0) })
    }

    /// Returns whether a fault was injected.
    pub(crate) fn has_fired(&self) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        match self.calls {
            FaultSchedule::Every => seen > 0,
            FaultSchedule::Only(number) | FaultSchedule::From(number) => seen >= number,
        }
    }

    fn is_chosen(&self, operation: Operation) -> bool {
        if !(self.operations)(operation) {
            return false;
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        match self.calls {
            FaultSchedule::Every => true,
            FaultSchedule::Only(chosen) => number == chosen,
            FaultSchedule::From(first) => number >= first,
        }
    }
}

impl Interceptor for FaultInjector {
    fn name(&self) -> &'static str {
        "fault-injector"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if !self.is_chosen(Q::OPERATION) {
            return request.send(inner, cx).await;
        }
        let path = request.as_request_ref().paths().next().cloned().unwrap_or_default();
        self.inject(inner, &path).await?;
        let output = request.send(inner, cx).await?;
        if matches!(self.fault, InjectedFault::FailAfter) { Err(lost(&path)) } else { Ok(output) }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        if !self.is_chosen(Q::OPERATION) {
            return call.start(cx);
        }
        deferred_stream(async move {
            let path = call.request().as_request_ref().paths().next().cloned().unwrap_or_default();
            self.inject(&**call.inner(), &path).await?;
            if matches!(self.fault, InjectedFault::FailAfter) { Err(lost(&path)) } else { Ok(call.start(cx)) }
        })
    }
}

impl FaultInjector {
    /// Injects the part of the fault that precedes the operation.
    async fn inject(&self, inner: &dyn Backend, path: &VfsPath) -> Result<()> {
        match &self.fault {
            InjectedFault::FailBefore => return Err(lost(path)),
            InjectedFault::FailAfter => {}
            InjectedFault::Write(write) => drop(inner.write(&OpContext::new(), write.clone()).await?),
            InjectedFault::Wait(gate) => {
                gate.reached.add_permits(1);
                drop(gate.open.acquire().await);
            }
        }
        Ok(())
    }
}

fn lost(path: &VfsPath) -> Error {
    Error::at(ErrorKind::Unavailable, path)
}

/// Adds the update of a state to the results of a backend that changes files in place. Only its paths are right.
#[derive(Debug)]
pub(crate) struct FakeUpdateInterceptor;

impl Interceptor for FakeUpdateInterceptor {
    fn name(&self) -> &'static str {
        "update-reporter"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let (paths, operation): (Vec<VfsPath>, _) = (request.as_request_ref().paths().cloned().collect(), Q::OPERATION);
        let mut output = Q::into_any_output(request.send(inner, cx).await?);
        if let Some(update) = update_of(&mut output) {
            let is_gone = |place| operation == Operation::Delete || operation == Operation::Rename && place == 0;
            let file = || FileData::text(b"", DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH);
            let first = usize::from(operation == Operation::Copy);
            let changed = paths.into_iter().enumerate().skip(first);
            *update = Some(changed.map(|(place, path)| (path, (!is_gone(place)).then(file))).collect());
        }
        Q::from_any_output(output).ok_or_else(|| Error::of(ErrorKind::Internal))
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// Returns where the result of a mutation has its change of the state.
fn update_of(output: &mut AnyOutput) -> Option<&mut Option<FilesUpdate>> {
    match output {
        AnyOutput::Write(result) => Some(&mut result.files_update),
        AnyOutput::Edit(result) => Some(&mut result.files_update),
        AnyOutput::Delete(result) => Some(&mut result.files_update),
        AnyOutput::Rename(result) => Some(&mut result.files_update),
        AnyOutput::Copy(result) => Some(&mut result.files_update),
        AnyOutput::Upload(result) => Some(&mut result.files_update),
        _ => None,
    }
}
