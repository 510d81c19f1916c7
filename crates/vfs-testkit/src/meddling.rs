//! A layer that does something of its own at chosen calls: what goes wrong between two operations.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::DateTime;
use tokio::sync::Semaphore;
use vfs_core::{
    Around, Backend, CopyResult, DeleteResult, EditResult, Error, ErrorKind, FileData, FileUploadResponse, FilesUpdate,
    OpContext, Operation, RenameResult, Request, Result, VfsPath, WriteRequest, WriteResult,
};

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

impl Around for Meddling {
    fn name(&self) -> &'static str {
        "meddling"
    }

    async fn around<Q: Request>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if !self.is_chosen(Q::OPERATION) {
            return request.send(inner, cx).await;
        }
        let path = request.action().paths().next().cloned().unwrap_or_default();
        let lost = || Error::at(ErrorKind::Unavailable, &path);
        match &self.deed {
            Deed::FailBefore => return Err(lost()),
            Deed::FailAfter => return request.send(inner, cx).await.and_then(|_| Err(lost())),
            Deed::Write(write) => drop(inner.write(&OpContext::new(), write.clone()).await?),
            Deed::Wait(gate) => {
                gate.reached.add_permits(1);
                drop(gate.open.acquire().await);
            }
        }
        request.send(inner, cx).await
    }
}

/// Tells the changes of a backend that makes them in place, as one that returns them does. Only the paths are right.
#[derive(Debug)]
pub(crate) struct Telling;

impl Around for Telling {
    fn name(&self) -> &'static str {
        "telling"
    }

    async fn around<Q: Request>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let (paths, operation): (Vec<VfsPath>, _) = (request.action().paths().cloned().collect(), Q::OPERATION);
        let mut output = request.send(inner, cx).await?;
        if let Some(update) = update_of(&mut output) {
            let is_gone = |place| operation == Operation::Delete || operation == Operation::Rename && place == 0;
            let file = || FileData::text(b"", DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH);
            let first = usize::from(operation == Operation::Copy);
            let told = paths.into_iter().enumerate().skip(first);
            *update = Some(told.map(|(place, path)| (path, (!is_gone(place)).then(file))).collect());
        }
        Ok(output)
    }
}

/// Where the result of a mutation tells its change.
fn update_of(output: &mut dyn Any) -> Option<&mut Option<FilesUpdate>> {
    macro_rules! one_of {
        ($($result:ty),+) => {$(
            if output.is::<$result>() {
                return output.downcast_mut::<$result>().map(|result| &mut result.files_update);
            }
        )+};
    }
    one_of!(WriteResult, EditResult, DeleteResult, RenameResult, CopyResult, FileUploadResponse);
    None
}
