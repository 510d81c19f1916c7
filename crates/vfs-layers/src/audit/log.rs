//! Records on their way into a sink, in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vfs_core::Result;

use super::chain::AuditHead;
use super::record::AuditRecord;
use super::sinks::AuditSink;

/// Most records that wait for a sink that fails.
pub(super) const MAX_WAITING: usize = 10_000;

/// A chain of records, and the sink that they go to.
///
/// A record gets its place in the chain and in the queue in one step, without waiting, so that one whose caller goes away
/// is not lost. Whoever waits for its record takes all before it to the sink, too; a record leaves the queue when the sink
/// has it. One that nobody waits for any more, as its caller went away or the sink refused it, is abandoned: somebody else
/// has to take it there.
#[derive(Debug)]
pub(super) struct Log {
    sink: Box<dyn AuditSink>,
    state: Mutex<State>,
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    /// The end of the chain, those that wait included.
    made: AuditHead,
    /// The last record that the sink has.
    kept: AuditHead,
    waiting: VecDeque<Arc<AuditRecord>>,
    /// The sequence of the last record that was abandoned; 0 where none was.
    abandoned: u64,
}

impl Log {
    pub(super) fn new(sink: Box<dyn AuditSink>, head: AuditHead) -> Self {
        let state = State { made: head.clone(), kept: head, waiting: VecDeque::new(), abandoned: 0 };
        Self { sink, state: Mutex::new(state), turn: tokio::sync::Mutex::new(()) }
    }

    /// The last record that the sink has.
    pub(super) fn head(&self) -> AuditHead {
        self.state().kept.clone()
    }

    /// Gives `record` its place and says which. Where too many wait already it is lost, and its place stays empty, which
    /// [`verify`](super::verify) finds.
    pub(super) fn add(&self, record: AuditRecord) -> Result<u64> {
        let mut state = self.state();
        let record = state.made.seal(record)?;
        state.made = AuditHead::of(&record);
        let sequence = record.sequence;
        if state.waiting.len() < MAX_WAITING {
            state.waiting.push_back(Arc::new(record));
        } else {
            tracing::error!(sequence, "an audit record is lost: too many wait for the sink");
        }
        Ok(sequence)
    }

    /// Says that nobody waits for the record `sequence`.
    pub(super) fn abandon(&self, sequence: u64) {
        let mut state = self.state();
        state.abandoned = state.abandoned.max(sequence);
    }

    /// Takes the records up to `sequence`, which the caller has made, to the sink.
    pub(super) async fn keep(&self, sequence: u64) -> Result<()> {
        let mut carried = Carried { log: self, sequence, is_kept: false };
        self.keep_until(sequence).await?;
        carried.is_kept = true;
        Ok(())
    }

    /// Takes the records that were abandoned to the sink, and those before them.
    pub(super) async fn keep_abandoned(&self) -> Result<()> {
        let last = self.state().abandoned;
        if self.next_until(last).is_some() { self.keep_until(last).await } else { Ok(()) }
    }

    async fn keep_until(&self, sequence: u64) -> Result<()> {
        let _turn = self.turn.lock().await;
        while let Some(next) = self.next_until(sequence) {
            self.sink.append(&next).await?;
            let mut state = self.state();
            state.waiting.pop_front();
            state.kept = AuditHead::of(&next);
        }
        Ok(())
    }

    /// Takes all records that there are now to the sink.
    pub(super) async fn flush(&self) -> Result<()> {
        let last = self.state().made.sequence;
        self.keep_until(last).await
    }

    fn next_until(&self, sequence: u64) -> Option<Arc<AuditRecord>> {
        self.state().waiting.front().filter(|record| record.sequence <= sequence).cloned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A record that its caller takes to the sink, and abandons where it does not get there.
struct Carried<'a> {
    log: &'a Log,
    sequence: u64,
    is_kept: bool,
}

impl Drop for Carried<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.log.abandon(self.sequence);
        }
    }
}
