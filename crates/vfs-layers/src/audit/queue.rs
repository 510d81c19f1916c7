//! Records on their way into a sink, in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vfs_core::{ErrorKind, Result};

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
    /// How many records found no place in the queue since the last that did.
    lost: u64,
    /// Why the sink refused a record the last time.
    refused: Option<ErrorKind>,
    /// Whether the sink has not accepted a record since.
    is_refusing: bool,
    preparation: Preparation,
}

/// Whether the sink is prepared for the next record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preparation {
    /// It was not since it began, or since it refused a record.
    Needed,
    Done,
    /// It failed, and the sink has not accepted a refused record since.
    Failed,
}

impl State {
    fn has_room(&self) -> bool {
        self.waiting.len() < MAX_WAITING
    }

    fn push(&mut self, record: AuditRecord) -> Result<()> {
        let record = self.made.seal(record)?;
        self.made = AuditHead::of(&record);
        self.waiting.push_back(Arc::new(record));
        Ok(())
    }

    /// Puts a record of those that were lost into the queue, where there is room for it.
    fn push_gap(&mut self) -> Result<()> {
        if self.lost > 0 && self.has_room() {
            self.push(AuditRecord::gap(self.lost, self.refused.unwrap_or(ErrorKind::Unavailable)))?;
            self.lost = 0;
        }
        Ok(())
    }
}

impl Log {
    pub(super) fn new(sink: Box<dyn AuditSink>, head: AuditHead) -> Self {
        let state = State {
            made: head.clone(),
            kept: head,
            waiting: VecDeque::new(),
            abandoned: 0,
            lost: 0,
            refused: None,
            is_refusing: false,
            preparation: Preparation::Needed,
        };
        Self { sink, state: Mutex::new(state), turn: tokio::sync::Mutex::new(()) }
    }

    /// The last record that the sink has.
    pub(super) fn head(&self) -> AuditHead {
        self.state().kept.clone()
    }

    /// Gives `record` its place, and returns the number up to which its caller has to take records to the sink. Where too
    /// many wait already it is lost; a record of how many are lost is made as soon as there is room for one.
    pub(super) fn add(&self, record: AuditRecord) -> Result<u64> {
        let mut state = self.state();
        state.push_gap()?;
        if state.has_room() {
            state.push(record)?;
        } else {
            state.lost += 1;
            tracing::error!(operation = %record.operation, "an audit record is lost: too many wait for the sink");
        }
        Ok(state.made.sequence)
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

    /// Has the sink prepared, unless it is.
    pub(super) async fn prepare(&self) -> Result<()> {
        self.prepare_unless(|| self.is_prepared()).await
    }

    async fn prepare_unless(&self, is_done: impl Fn() -> bool) -> Result<()> {
        if is_done() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        // Another task may have prepared the sink meanwhile.
        if is_done() {
            return Ok(());
        }
        let prepared = self.sink.prepare(&self.head()).await;
        self.state().preparation = if prepared.is_ok() { Preparation::Done } else { Preparation::Failed };
        prepared
    }

    /// As [`prepare`](Self::prepare), but a failure is logged, and not repeated until the sink accepts a record that it refused
    /// before.
    pub(super) async fn prepare_if_possible(&self) {
        let has_failed = || self.state().preparation == Preparation::Failed;
        if let Err(error) = self.prepare_unless(|| has_failed() || self.is_prepared()).await {
            tracing::warn!(%error, "the audit log has no room set aside for the record of a gap");
        }
    }

    fn is_prepared(&self) -> bool {
        self.state().preparation == Preparation::Done && self.sink.is_prepared()
    }

    async fn keep_until(&self, sequence: u64) -> Result<()> {
        let _turn = self.turn.lock().await;
        while let Some(next) = self.next_until(sequence) {
            let appended = self.sink.append(&next).await;
            let mut state = self.state();
            match appended {
                Ok(()) => {
                    state.waiting.pop_front();
                    state.kept = AuditHead::of(&next);
                    // A sink that accepts records but cannot be prepared, for example because only small ones fit, is not prepared
                    // again.
                    if std::mem::take(&mut state.is_refusing) && state.preparation == Preparation::Failed {
                        state.preparation = Preparation::Needed;
                    }
                }
                Err(error) => {
                    state.refused = Some(error.kind());
                    state.is_refusing = true;
                    if state.preparation == Preparation::Done {
                        state.preparation = Preparation::Needed;
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Takes all records that there are now to the sink.
    pub(super) async fn flush(&self) -> Result<()> {
        loop {
            let last = self.state().made.sequence;
            self.keep_until(last).await?;
            let mut state = self.state();
            if state.lost == 0 {
                return Ok(());
            }
            state.push_gap()?;
        }
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
