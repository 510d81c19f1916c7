//! A record of every operation that nobody can change unseen.

mod backend_sink;
mod chain;
mod log;
mod log_files;
mod operation;
mod record;
mod sinks;

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use tokio::time::Instant;
use vfs_core::{
    Backend, Error, ErrorKind, GrepEvent, Intercepted, Interceptor, Layer, OpContext, OperationClass, OutputRef,
    Result, ResultStream, StatRequest, StreamCall, StreamRequest, UnaryRequest, VfsPath, deferred_stream,
};

pub use self::backend_sink::BackendSink;
pub use self::chain::{AuditHead, ChainBreak, ChainFault, verify, verify_until};
pub use self::log_files::{AuditPart, AuditParts};
pub use self::operation::AuditOperation;
pub use self::record::{AuditRecord, FileState};
pub use self::sinks::{AuditSink, MemorySink, TracingSink};

use self::log::Log;
use crate::outcome::Outcome;

/// Which operations are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditScope {
    /// Every one.
    #[default]
    All,
    /// Changes and commands; neither looks nor dry runs.
    Changes,
}

/// What happens after a record could not be kept, or its operation was dropped before it was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnSinkFailure {
    /// No operation of the scope begins before the sink is prepared for its record and the records that wait are kept.
    #[default]
    Refuse,
    /// Operations go on, and records wait in memory, up to 10,000. Those beyond are lost; the next record that is kept, an
    /// [`AuditOperation::Gap`], says how many. Records that still wait when the process ends are lost without one.
    Continue,
}

/// Writes a record of every operation to a sink, each tied to the one before.
///
/// # Behaviour
///
/// * A record is made when its operation has ended, and is in the sink before the caller has the answer. The order of
///   records is that in which operations ended, and so are their sequence numbers, also of many at once.
/// * An operation or stream that is dropped has a record, too. It is handed to the sink before the next one, or by
///   [`flush`](Self::flush); under [`OnSinkFailure::Refuse`] before the next operation of the scope begins.
/// * Of a change the record says what was at its paths before and afterwards, by a `stat` of the inner backend on either
///   side. That is what the layer saw and no lock: what others did in between is in it.
/// * That an operation is about to begin is not written down. Under [`OnSinkFailure::Refuse`] the sink is asked before the
///   first operation of the scope whether it can keep records ([`AuditSink::prepare`]), and no operation begins where it
///   cannot. Where it fails all the same, the operation has happened, and its caller gets its answer; each further operation
///   of the scope first tries to bring the records that wait into the sink, and is refused where that fails. What was under
///   way already still ends. Refused operations have no record.
/// * What people do to the layers below, such as a commit of an overlay, goes by no operation of a backend:
///   [`record`](Self::record) records it.
/// * One value has one log: all backends that it and its clones are put around share it.
///
/// # Errors
///
/// `unavailable` at the operation's first path, the root where it has none, where it is refused because of the sink.
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
    log: Arc<Log>,
    scope: AuditScope,
    on_failure: OnSinkFailure,
}

impl Audit {
    /// Begins a new log in `sink`.
    pub fn new(sink: impl AuditSink) -> Self {
        Self::resuming(sink, AuditHead::start())
    }

    /// Goes on with the log whose end is `head`.
    pub fn resuming(sink: impl AuditSink, head: AuditHead) -> Self {
        let log = Arc::new(Log::new(Box::new(sink), head));
        Self { log, scope: AuditScope::default(), on_failure: OnSinkFailure::default() }
    }

    /// Sets which operations are recorded. Default: all.
    #[must_use]
    pub fn scope(mut self, scope: AuditScope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets what happens after a record could not be kept. Default: operations are refused.
    #[must_use]
    pub fn on_sink_failure(mut self, then: OnSinkFailure) -> Self {
        self.on_failure = then;
        self
    }

    /// The end of the log, as far as it is in the sink. Kept elsewhere, it shows later that nothing was cut off.
    pub fn head(&self) -> AuditHead {
        self.log.head()
    }

    /// Brings all records that there are into the sink, those of dropped operations too.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub async fn flush(&self) -> Result<()> {
        self.log.flush().await
    }

    /// Performs `work`, which does `operation` to a layer at `path`, and records it as other changes are recorded. What it
    /// came to is `describe`d: how it ended, and what was done.
    ///
    /// # Errors
    ///
    /// Those of `work`; `unavailable` where it is refused because of the sink.
    pub async fn record<T>(
        &self,
        cx: &OpContext,
        operation: AuditOperation,
        path: &VfsPath,
        work: impl Future<Output = Result<T>> + Send,
        describe: impl FnOnce(&T) -> (Outcome, String) + Send,
    ) -> Result<T> {
        self.check_sink(path).await?;
        let mut entry = Entry::begin(&self.log, AuditRecord::begin_other(cx, operation, path));
        let answer = work.await;
        entry.took();
        entry.record.outcome = Outcome::of(&answer);
        if let Ok(done) = &answer {
            let (outcome, detail) = describe(done);
            entry.record.outcome = outcome;
            entry.record.describe(&detail);
        }
        entry.end().await;
        answer
    }

    fn covers(&self, class: OperationClass) -> bool {
        self.scope == AuditScope::All || class != OperationClass::Read
    }

    async fn check_sink(&self, path: &VfsPath) -> Result<()> {
        if self.on_failure == OnSinkFailure::Continue {
            // What a prepared sink has set aside keeps the record of a gap. Where it cannot be prepared, the gap is recorded
            // before the next record that is kept.
            self.log.prepare_if_possible().await;
            return Ok(());
        }
        self.log.keep_abandoned().await.map_err(|error| unwritable(error, path))?;
        self.log.prepare().await.map_err(|error| unwritable(error, path))
    }
}

fn unwritable(error: Error, path: &VfsPath) -> Error {
    let message = "the audit log cannot be written, and nothing is done unrecorded; try again later";
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
        let mut entry = Entry::begin(&self.log, record);
        let answer = request.send(inner, cx).await;
        entry.took();
        entry.record.outcome = Outcome::of(&answer);
        if class == OperationClass::Write {
            // The caller may have gone or be late, and what it did is looked at all the same.
            let path = entry.record.to.as_ref().or(entry.record.path.as_ref());
            entry.record.after = state(inner, &cx.for_cleanup(), path).await;
        }
        entry.end().await;
        answer
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        if !self.covers(call.request().as_request_ref().class()) {
            return call.start(cx);
        }
        deferred_stream(async move {
            let request = call.request().as_request_ref();
            self.check_sink(&request.primary_path()).await?;
            let entry = Entry::begin(&self.log, AuditRecord::begin(&cx, request));
            Ok(entry.watch::<Q>(call.start(cx)))
        })
    }
}

/// What is at `path`, as far as it can be looked at.
async fn state(inner: &dyn Backend, cx: &OpContext, path: Option<&VfsPath>) -> Option<FileState> {
    let info = inner.stat(cx, StatRequest::new(path?.clone())).await;
    info.ok().map(FileState::from)
}

/// An operation under way. Its record is made when it goes, at the latest.
struct Entry {
    log: Arc<Log>,
    record: AuditRecord,
    begun: Instant,
    is_done: bool,
}

impl Entry {
    fn begin(log: &Arc<Log>, record: AuditRecord) -> Self {
        Self { log: Arc::clone(log), record, begun: Instant::now(), is_done: false }
    }

    fn took(&mut self) {
        self.record.duration_us = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    }

    /// Puts the record into the queue.
    fn add(&mut self) -> Result<u64> {
        self.is_done = true;
        self.log.add(self.record.clone())
    }

    /// Makes the record, and waits until the sink has it.
    async fn end(mut self) {
        let kept = match self.add() {
            Ok(sequence) => self.log.keep(sequence).await,
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            tracing::error!(%error, "an audit record could not be kept");
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.is_done {
            if self.record.duration_us == 0 {
                self.took();
            }
            match self.add() {
                Ok(sequence) => self.log.abandon(sequence),
                Err(error) => tracing::error!(%error, "an audit record could not be made"),
            }
        }
    }
}

impl Entry {
    /// Returns `items`, and makes the record when they end.
    fn watch<Q: StreamRequest>(self, items: ResultStream<Q::Output>) -> ResultStream<Q::Output> {
        stream::unfold((items, Some(self)), |(mut items, mut entry)| async move {
            let item = items.next().await;
            if let Some(open) = &mut entry {
                open.took();
                match &item {
                    Some(item) => open.note::<Q>(item),
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

    fn note<Q: StreamRequest>(&mut self, item: &Result<Q::Output>) {
        if let Some(outcome) = Outcome::of_last::<Q>(item) {
            self.record.outcome = outcome;
        }
        if let Ok(OutputRef::GrepStream(GrepEvent::End(summary))) = item.as_ref().map(Q::output_ref) {
            self.record.matches = Some(summary.matches);
        }
    }
}
