//! Queue of chained records on their way to a sink.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vfs_core::{ErrorKind, Result};

use super::audit_record::AuditRecord;
use super::audit_sinks::AuditSink;
use super::hash_chain::AuditHead;

/// Maximum number of records that wait for a failing sink.
pub(super) const QUEUE_CAPACITY: usize = 10_000;

/// A chain of records, and the sink that they are written to.
///
/// A record gets its place in the chain and in the queue in one step, without waiting, so that it is not lost if its
/// caller is dropped. A caller that waits for its record writes all records before it, too; a record leaves the queue
/// when the sink has it. A record that no caller waits for any more, because the caller was dropped or the sink
/// refused the record, is abandoned: a later caller has to write it.
#[derive(Debug)]
pub(super) struct AuditRecordQueue {
    sink: Box<dyn AuditSink>,
    state: Mutex<AuditRecordQueueState>,
    writer: tokio::sync::Mutex<()>,
}

/// State of an [`AuditRecordQueue`].
#[derive(Debug)]
struct AuditRecordQueueState {
    /// The end of the chain, including records in the queue.
    sealed_head: AuditHead,
    /// The last record that the sink has.
    written_head: AuditHead,
    records: VecDeque<Arc<AuditRecord>>,
    /// Sequence number of the last abandoned record; 0 if there is none.
    last_abandoned: u64,
    /// Number of records lost because the queue was full, since the last one that was not.
    lost: u64,
    /// Kind of the last error of the sink.
    last_error: Option<ErrorKind>,
    /// Whether the sink has not accepted a record since.
    is_refusing: bool,
    preparation: SinkPreparation,
}

/// State of the preparation of the sink for the next record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SinkPreparation {
    /// Not prepared since the start, or since the sink refused a record.
    Needed,
    Done,
    /// Failed, and the sink has not accepted a refused record since.
    Failed,
}

impl AuditRecordQueueState {
    fn has_room(&self) -> bool {
        self.records.len() < QUEUE_CAPACITY
    }

    fn push(&mut self, record: AuditRecord) -> Result<()> {
        let record = self.sealed_head.seal(record)?;
        self.sealed_head = AuditHead::of(&record);
        self.records.push_back(Arc::new(record));
        Ok(())
    }

    /// Enqueues the record of a gap if records were lost and the queue has room.
    fn push_gap(&mut self) -> Result<()> {
        if self.lost > 0 && self.has_room() {
            self.push(AuditRecord::gap(self.lost, self.last_error.unwrap_or(ErrorKind::Unavailable)))?;
            self.lost = 0;
        }
        Ok(())
    }
}

impl AuditRecordQueue {
    pub(super) fn new(sink: Box<dyn AuditSink>, head: AuditHead) -> Self {
        let state = AuditRecordQueueState {
            sealed_head: head.clone(),
            written_head: head,
            records: VecDeque::new(),
            last_abandoned: 0,
            lost: 0,
            last_error: None,
            is_refusing: false,
            preparation: SinkPreparation::Needed,
        };
        Self { sink, state: Mutex::new(state), writer: tokio::sync::Mutex::new(()) }
    }

    /// Returns the last record that the sink has.
    pub(super) fn head(&self) -> AuditHead {
        self.state().written_head.clone()
    }

    /// Enqueues `record`, and returns the sequence number up to which its caller has to write. If the queue is full
    /// the record is lost, and a gap is recorded as soon as there is room.
    pub(super) fn push(&self, record: AuditRecord) -> Result<u64> {
        let mut state = self.state();
        state.push_gap()?;
        if state.has_room() {
            state.push(record)?;
        } else {
            state.lost += 1;
            tracing::error!(operation = %record.operation, "an audit record is lost: the queue of the sink is full");
        }
        Ok(state.sealed_head.sequence)
    }

    /// Marks the record `sequence` as abandoned by its caller.
    pub(super) fn abandon(&self, sequence: u64) {
        let mut state = self.state();
        state.last_abandoned = state.last_abandoned.max(sequence);
    }

    /// Writes the records up to `sequence`, which the caller has enqueued, to the sink.
    pub(super) async fn write(&self, sequence: u64) -> Result<()> {
        let mut guard = UnwrittenRecordGuard { queue: self, sequence, is_written: false };
        self.write_until(sequence).await?;
        guard.is_written = true;
        Ok(())
    }

    /// Writes abandoned records, and those before them, to the sink.
    pub(super) async fn write_abandoned(&self) -> Result<()> {
        let last = self.state().last_abandoned;
        if self.next_until(last).is_some() { self.write_until(last).await } else { Ok(()) }
    }

    /// Prepares the sink, unless it is prepared.
    pub(super) async fn prepare(&self) -> Result<()> {
        self.prepare_unless(|| self.is_prepared()).await
    }

    async fn prepare_unless(&self, is_ready: impl Fn() -> bool) -> Result<()> {
        if is_ready() {
            return Ok(());
        }
        let _writer = self.writer.lock().await;
        // Another task may have prepared the sink meanwhile.
        if is_ready() {
            return Ok(());
        }
        let prepared = self.sink.prepare(&self.head()).await;
        self.state().preparation = if prepared.is_ok() { SinkPreparation::Done } else { SinkPreparation::Failed };
        prepared
    }

    /// Prepares the sink like [`prepare`](Self::prepare), but logs a failure, and does not retry until the sink
    /// accepts a record that it had refused.
    pub(super) async fn prepare_if_possible(&self) {
        let has_failed = || self.state().preparation == SinkPreparation::Failed;
        if let Err(error) = self.prepare_unless(|| has_failed() || self.is_prepared()).await {
            tracing::warn!(%error, "the audit log has no room reserved for the record of a gap");
        }
    }

    fn is_prepared(&self) -> bool {
        self.state().preparation == SinkPreparation::Done && self.sink.is_prepared()
    }

    async fn write_until(&self, sequence: u64) -> Result<()> {
        let _writer = self.writer.lock().await;
        while let Some(next) = self.next_until(sequence) {
            let appended = self.sink.append(&next).await;
            let mut state = self.state();
            match appended {
                Ok(()) => {
                    state.records.pop_front();
                    state.written_head = AuditHead::of(&next);
                    // A sink that accepts records but cannot be prepared, for example because only small ones fit, is prepared again
                    // only after it has refused one.
                    if std::mem::take(&mut state.is_refusing) && state.preparation == SinkPreparation::Failed {
                        state.preparation = SinkPreparation::Needed;
                    }
                }
                Err(error) => {
                    state.last_error = Some(error.kind());
                    state.is_refusing = true;
                    if state.preparation == SinkPreparation::Done {
                        state.preparation = SinkPreparation::Needed;
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Writes all records of the queue to the sink.
    pub(super) async fn flush(&self) -> Result<()> {
        loop {
            let last = self.state().sealed_head.sequence;
            self.write_until(last).await?;
            let mut state = self.state();
            if state.lost == 0 {
                return Ok(());
            }
            state.push_gap()?;
        }
    }

    fn next_until(&self, sequence: u64) -> Option<Arc<AuditRecord>> {
        self.state().records.front().filter(|record| record.sequence <= sequence).cloned()
    }

    fn state(&self) -> MutexGuard<'_, AuditRecordQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of a record that its caller writes, which marks it as abandoned if it is not written.
struct UnwrittenRecordGuard<'a> {
    queue: &'a AuditRecordQueue,
    sequence: u64,
    is_written: bool,
}

impl Drop for UnwrittenRecordGuard<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            self.queue.abandon(self.sequence);
        }
    }
}
