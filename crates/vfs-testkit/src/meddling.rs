//! A layer that does something of its own at chosen calls: what goes wrong between two operations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::DateTime;
use tokio::sync::Semaphore;
use vfs_core::operation::{AnyOutput, ResultStream, StreamCall, StreamRequest, UnaryRequest, deferred_stream};
use vfs_core::state::{FileData, FilesUpdate};
use vfs_core::{Backend, Error, ErrorKind, Interceptor, OpContext, Operation, Result, VfsPath, WriteRequest};

/// Which calls are meddled with, counted from 1 among those of the operations.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Calls {
    Every,
    Only(u64),
    From(u64),
}

/// What is done at such a call.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// It fails and has done nothing.
    FailBefore,
    /// It is done, and its answer is lost.
    FailAfter,
    /// Somebody else writes first.
    Write(WriteRequest),
    /// It waits at a gate first.
    Wait(Arc<Gate>),
}

/// Stops a call until it is let through.
#[derive(Debug)]
pub(crate) struct Gate {
    reached: Semaphore,
    open: Semaphore,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { reached: Semaphore::new(0), open: Semaphore::new(0) })
    }

    /// Waits until a call stands before the gate.
    pub(crate) async fn reached(&self) {
        drop(self.reached.acquire().await);
    }

    /// Lets that call through, and all others.
    pub(crate) fn open(&self) {
        self.open.add_permits(Semaphore::MAX_PERMITS / 2);
    }
}

/// Does a deed at the chosen calls of the chosen operations, and sends everything on.
#[derive(Debug)]
pub(crate) struct Meddling {
    operations: fn(Operation) -> bool,
    calls: Calls,
    deed: Deed,
    seen: AtomicU64,
}

impl Meddling {
    pub(crate) fn new(operations: fn(Operation) -> bool, calls: Calls, deed: Deed) -> Arc<Self> {
        Arc::new(Self { operations, calls, deed, seen: AtomicU64::new(0) })
    }

    /// Whether a call that was chosen has come.
    pub(crate) fn has_struck(&self) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        match self.calls {
            Calls::Every => seen > 0,
            Calls::Only(number) | Calls::From(number) => seen >= number,
        }
    }

    fn is_chosen(&self, operation: Operation) -> bool {
        if !(self.operations)(operation) {
            return false;
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        match self.calls {
            Calls::Every => true,
            Calls::Only(chosen) => number == chosen,
            Calls::From(first) => number >= first,
        }
    }
}

impl Interceptor for Meddling {
    fn name(&self) -> &'static str {
        "meddling"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if !self.is_chosen(Q::OPERATION) {
            return request.send(inner, cx).await;
        }
        let path = request.as_request_ref().paths().next().cloned().unwrap_or_default();
        self.interfere(inner, &path).await?;
        let output = request.send(inner, cx).await?;
        if matches!(self.deed, Deed::FailAfter) { Err(lost(&path)) } else { Ok(output) }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        if !self.is_chosen(Q::OPERATION) {
            return call.start(cx);
        }
        deferred_stream(async move {
            let path = call.request().as_request_ref().paths().next().cloned().unwrap_or_default();
            self.interfere(&**call.inner(), &path).await?;
            if matches!(self.deed, Deed::FailAfter) { Err(lost(&path)) } else { Ok(call.start(cx)) }
        })
    }
}

impl Meddling {
    /// Does what comes before the operation.
    async fn interfere(&self, inner: &dyn Backend, path: &VfsPath) -> Result<()> {
        match &self.deed {
            Deed::FailBefore => return Err(lost(path)),
            Deed::FailAfter => {}
            Deed::Write(write) => drop(inner.write(&OpContext::new(), write.clone()).await?),
            Deed::Wait(gate) => {
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

/// Tells the changes of a backend that makes them in place, as one that returns them does. Only the paths are right.
#[derive(Debug)]
pub(crate) struct Telling;

impl Interceptor for Telling {
    fn name(&self) -> &'static str {
        "telling"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let (paths, operation): (Vec<VfsPath>, _) = (request.as_request_ref().paths().cloned().collect(), Q::OPERATION);
        let mut output = Q::into_any_output(request.send(inner, cx).await?);
        if let Some(update) = update_of(&mut output) {
            let is_gone = |place| operation == Operation::Delete || operation == Operation::Rename && place == 0;
            let file = || FileData::text(b"", DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH);
            let first = usize::from(operation == Operation::Copy);
            let told = paths.into_iter().enumerate().skip(first);
            *update = Some(told.map(|(place, path)| (path, (!is_gone(place)).then(file))).collect());
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
