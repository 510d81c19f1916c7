//! Interceptor that records every operation in a tamper-evident log.

mod audit_log_files;
mod audit_operation;
mod audit_record;
mod audit_sinks;
mod backend_sink;
mod hash_chain;
mod record_queue;

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use tokio::time::Instant;
use vfs_core::operation::{
    Intercepted, OperationClass, OutputRef, ResultStream, StreamCall, StreamRequest, UnaryRequest, deferred_stream,
};
use vfs_core::{Backend, Error, ErrorKind, GrepEvent, Interceptor, Layer, OpContext, Result, StatRequest, VfsPath};

pub use self::audit_log_files::{AuditLogPart, AuditLogReader};
pub use self::audit_operation::AuditOperation;
pub use self::audit_record::{AuditFileState, AuditRecord};
pub use self::audit_sinks::{AuditSink, MemorySink, TracingSink};
pub use self::backend_sink::BackendSink;
pub use self::hash_chain::{AuditHead, ChainBreak, ChainFault, verify, verify_until};

use self::record_queue::AuditRecordQueue;
use crate::outcome::Outcome;

/// The operations that are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditScope {
    /// Every operation.
    #[default]
    All,
    /// Changes and commands; neither reads nor dry runs.
    Changes,
}

/// The behaviour after a record could not be written, or its operation was dropped before it was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnSinkFailure {
    /// No operation of the scope begins before the sink is prepared for its record and all pending records are
    /// written.
    #[default]
    Refuse,
    /// Operations go on, and up to 10,000 records wait in memory. Further records are lost; the next record that is
    /// written, an [`AuditOperation::Gap`], has their number. Records that still wait when the process ends are lost
    /// without one.
    Continue,
}

/// Writes a record of every operation to a sink, each chained to the previous one by its hash.
///
/// # Behaviour
///
/// * A record is created when its operation has ended, and is in the sink before the caller gets the result. The
///   order of records and their sequence numbers follow the ends of operations, also of concurrent ones.
/// * An operation or stream that is dropped has a record, too. It is passed to the sink before the next one, or by
///   [`flush`](Self::flush); under [`OnSinkFailure::Refuse`] before the next operation of the scope begins.
/// * The record of a change has the state at its paths before and after it, from a `stat` of the inner backend on
///   either side. No lock is held: changes by others in between are included.
/// * The begin of an operation is not recorded. Under [`OnSinkFailure::Refuse`] the sink is prepared before the first
///   operation of the scope ([`AuditSink::prepare`]), and no operation begins if that fails. If writing a record
///   fails nevertheless, the operation has happened, and its caller gets its result; each further operation of the
///   scope first tries to write the pending records, and is refused if that fails. Operations that are running then
///   still end. Refused operations have no record.
/// * An operation on a layer below, such as a commit of an overlay, is no operation of a backend:
///   [`record`](Self::record) records it.
/// * One value has one log: all backends that it and its clones are put around share it.
///
/// # Errors
///
/// `unavailable` at the operation's first path, or at the root if it has none, if the operation is refused because of
/// the sink.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, Layer};
/// use vfs_layers::{Audit, AuditScope, MemorySink};
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let sink = MemorySink::new();
/// let audit = Audit::new(sink.clone()).scope(AuditScope::Changes);
/// let files = audit.layer(Arc::new(MemoryBackend::new()));
/// files.create_text("/a", "text").await?;
/// files.read_text("/a").await?;
/// let [record] = &sink.records()[..] else { panic!("one change") };
/// assert_eq!((record.operation.code(), record.outcome.code()), ("write", "ok"));
/// assert_eq!((record.before.is_none(), record.after.as_ref().map(|file| file.size)), (true, Some(4)));
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct Audit {
    queue: Arc<AuditRecordQueue>,
    scope: AuditScope,
    on_failure: OnSinkFailure,
}

impl Audit {
    /// Begins a new log in `sink`.
    pub fn new(sink: impl AuditSink) -> Self {
        Self::resuming(sink, AuditHead::start())
    }

    /// Continues the log whose end is `head`.
    pub fn resuming(sink: impl AuditSink, head: AuditHead) -> Self {
        let queue = Arc::new(AuditRecordQueue::new(Box::new(sink), head));
        Self { queue, scope: AuditScope::default(), on_failure: OnSinkFailure::default() }
    }

    /// Sets the operations that are recorded. Default: all.
    #[must_use]
    pub fn scope(mut self, scope: AuditScope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the behaviour after a record could not be written. Default: operations are refused.
    #[must_use]
    pub fn on_sink_failure(mut self, policy: OnSinkFailure) -> Self {
        self.on_failure = policy;
        self
    }

    /// Returns the end of the log in the sink. A copy of it elsewhere later proves that no record was cut off.
    pub fn head(&self) -> AuditHead {
        self.queue.head()
    }

    /// Writes all pending records to the sink, including those of dropped operations.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub async fn flush(&self) -> Result<()> {
        self.queue.flush().await
    }

    /// Performs `work`, which is `operation` on a layer at `path`, and records it like other changes. `describe`
    /// returns its outcome and a detail for the record.
    ///
    /// # Errors
    ///
    /// Those of `work`; `unavailable` if it is refused because of the sink.
    pub async fn record<T>(
        &self,
        cx: &OpContext,
        operation: AuditOperation,
        path: &VfsPath,
        work: impl Future<Output = Result<T>> + Send,
        describe: impl FnOnce(&T) -> (Outcome, String) + Send,
    ) -> Result<T> {
        self.check_sink(path).await?;
        let mut entry = PendingAuditRecord::begin(&self.queue, AuditRecord::begin_layer_operation(cx, operation, path));
        let result = work.await;
        entry.set_duration();
        entry.record.outcome = Outcome::of(&result);
        if let Ok(done) = &result {
            let (outcome, detail) = describe(done);
            entry.record.outcome = outcome;
            entry.record.describe(&detail);
        }
        entry.end().await;
        result
    }

    fn covers(&self, class: OperationClass) -> bool {
        self.scope == AuditScope::All || class != OperationClass::Read
    }

    async fn check_sink(&self, path: &VfsPath) -> Result<()> {
        if self.on_failure == OnSinkFailure::Continue {
            // A prepared sink has reserved room for the record of a gap. Otherwise the gap is recorded before the next record
            // that is written.
            self.queue.prepare_if_possible().await;
            return Ok(());
        }
        self.queue.write_abandoned().await.map_err(|error| unwritable(error, path))?;
        self.queue.prepare().await.map_err(|error| unwritable(error, path))
    }
}

fn unwritable(error: Error, path: &VfsPath) -> Error {
    let message = "the audit log cannot be written, and no operation runs without a record; try again later";
    Error::new(ErrorKind::Unavailable, message).with_path(path).with_source(error)
}

impl Layer for Audit {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Intercepted::new(inner, Arc::new(self.clone())))
    }
}

impl Interceptor for Audit {
    fn name(&self) -> &'static str {
        "audit"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let class = request.as_request_ref().class();
        if !self.covers(class) {
            return request.send(inner, cx).await;
        }
        self.check_sink(&request.as_request_ref().primary_path()).await?;
        let mut record = AuditRecord::begin(cx, request.as_request_ref());
        if class == OperationClass::Write {
            record.before = state(inner, cx, record.path.as_ref()).await;
            record.replaced = state(inner, cx, record.to.as_ref()).await;
        }
        let mut entry = PendingAuditRecord::begin(&self.queue, record);
        let result = request.send(inner, cx).await;
        entry.set_duration();
        entry.record.outcome = Outcome::of(&result);
        if class == OperationClass::Write {
            // The state after the change is recorded even if the caller has cancelled or its deadline has passed.
            let path = entry.record.to.as_ref().or(entry.record.path.as_ref());
            entry.record.after = state(inner, &cx.for_cleanup(), path).await;
        }
        entry.end().await;
        result
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        if !self.covers(call.request().as_request_ref().class()) {
            return call.start(cx);
        }
        deferred_stream(async move {
            let request = call.request().as_request_ref();
            self.check_sink(&request.primary_path()).await?;
            let entry = PendingAuditRecord::begin(&self.queue, AuditRecord::begin(&cx, request));
            Ok(entry.watch::<Q>(call.start(cx)))
        })
    }
}

/// Returns the state at `path`, if a `stat` succeeds.
async fn state(inner: &dyn Backend, cx: &OpContext, path: Option<&VfsPath>) -> Option<AuditFileState> {
    let info = inner.stat(cx, StatRequest::new(path?.clone())).await;
    info.ok().map(AuditFileState::from)
}

/// The record of a running operation. Dropping it enqueues the record.
struct PendingAuditRecord {
    queue: Arc<AuditRecordQueue>,
    record: AuditRecord,
    started_at: Instant,
    is_done: bool,
}

impl PendingAuditRecord {
    fn begin(queue: &Arc<AuditRecordQueue>, record: AuditRecord) -> Self {
        Self { queue: Arc::clone(queue), record, started_at: Instant::now(), is_done: false }
    }

    fn set_duration(&mut self) {
        self.record.duration_us = u64::try_from(self.started_at.elapsed().as_micros()).unwrap_or(u64::MAX);
    }

    /// Enqueues the record.
    fn push(&mut self) -> Result<u64> {
        self.is_done = true;
        self.queue.push(self.record.clone())
    }

    /// Enqueues the record, and waits until the sink has it.
    async fn end(mut self) {
        let written = match self.push() {
            Ok(sequence) => self.queue.write(sequence).await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            tracing::error!(%error, "an audit record could not be written");
        }
    }
}

impl Drop for PendingAuditRecord {
    fn drop(&mut self) {
        if !self.is_done {
            if self.record.duration_us == 0 {
                self.set_duration();
            }
            match self.push() {
                Ok(sequence) => self.queue.abandon(sequence),
                Err(error) => tracing::error!(%error, "an audit record could not be encoded"),
            }
        }
    }
}

impl PendingAuditRecord {
    /// Returns `items`, and enqueues the record when they end.
    fn watch<Q: StreamRequest>(self, items: ResultStream<Q::Output>) -> ResultStream<Q::Output> {
        stream::unfold((items, Some(self)), |(mut items, mut entry)| async move {
            let item = items.next().await;
            if let Some(open) = &mut entry {
                open.set_duration();
                match &item {
                    Some(item) => open.observe::<Q>(item),
                    None if open.record.outcome == Outcome::Dropped => open.record.outcome = Outcome::Ok,
                    None => {}
                }
            }
            let Some(item) = item else {
                if let Some(entry) = entry {
                    entry.end().await;
                }
                return None;
            };
            Some((item, (items, entry)))
        })
        .fuse()
        .boxed()
    }

    fn observe<Q: StreamRequest>(&mut self, item: &Result<Q::Output>) {
        if let Some(outcome) = Outcome::of_last_item::<Q>(item) {
            self.record.outcome = outcome;
        }
        if let Ok(OutputRef::GrepStream(GrepEvent::End(summary))) = item.as_ref().map(Q::output_ref) {
            self.record.matches = Some(summary.matches);
        }
    }
}
