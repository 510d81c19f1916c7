//! Optimistic concurrency for the record: reads, and writes conditional on the last known version.

use std::sync::{MutexGuard, PoisonError};

use bytes::Bytes;
use vfs_core::{ErrorKind, OpContext, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest};

use super::record::{CommitPhase, OverlayRecord, random_id};
use super::{Extent, Persistence, changed_elsewhere};
use crate::overlay::merged::{fetch, fetch_if_there};

/// Last known state of the record in the store.
#[derive(Debug, Default)]
pub(super) struct RecordState {
    pub(super) version: Option<Version>,
    /// The generation of contents that the record names.
    pub(super) generation: u64,
    /// Text of the last write, if its answer may have been lost.
    attempt: Option<Bytes>,
    /// Record of a commit that did not begin, since the write of the record was not acknowledged.
    pub(super) unbegun: Option<Bytes>,
    /// The recorded commit that has not ended.
    pub(super) commit: Option<CommitPhase>,
    /// Id of the commit that this overlay began, until its end is known.
    pub(super) own: Option<u64>,
}

impl RecordState {
    pub(super) fn is_own(&self) -> bool {
        self.own.is_some() && self.own == self.commit.map(|commit| commit.id)
    }
}

impl Persistence {
    /// Reads the record and makes it the last known one.
    pub(super) async fn adopt(&self, cx: &OpContext) -> Result<OverlayRecord> {
        let (record, version) = self.read(cx).await?;
        self.known().clear();
        *self.seen() = RecordState::default();
        self.saw(version, &record);
        Ok(record)
    }

    /// Reads the record again. If all changes are persisted, a record that another process wrote is a `conflict`,
    /// unless it is of the same commit.
    pub(super) async fn reread(&self, cx: &OpContext) -> Result<OverlayRecord> {
        let path = self.path()?;
        self.withdraw(cx).await?;
        self.catch_up(cx, &path).await?;
        let (record, version) = self.read(cx).await?;
        let expected = self.seen().version.clone();
        let is_same_commit = record.commit.is_some() && record.phase() == self.seen().commit;
        if self.extent == Extent::Changes && expected != version && !is_same_commit {
            return Err(changed_elsewhere(&path));
        }
        self.saw(version, &record);
        Ok(record)
    }

    pub(super) async fn read(&self, cx: &OpContext) -> Result<(OverlayRecord, Option<Version>)> {
        let path = self.path()?;
        let whole = match fetch(&*self.backend, cx, &path).await {
            Ok(whole) => whole,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((OverlayRecord::default(), None)),
            Err(error) => return Err(error),
        };
        Ok((OverlayRecord::decode(&whole.content, &path)?, Some(whole.version)))
    }

    pub(super) async fn write(&self, cx: &OpContext, mut record: OverlayRecord) -> Result<()> {
        record.mark = random_id();
        let path = self.path()?;
        self.catch_up(cx, &path).await?;
        // Another process may still put contents into the current generation. A record without contents therefore begins a new one,
        // after which the directories that were listed before are unused.
        let (generation, outdated) = if record.is_without_contents() {
            (random_id(), self.generations.list(cx).await)
        } else {
            (self.seen().generation, Vec::new())
        };
        record.generation = generation;
        let text = record.encode(&path)?;
        let is_committing = record.commit.is_some();
        let mode = {
            let mut seen = self.seen();
            seen.attempt = Some(text.clone());
            if is_committing && seen.commit.is_none() {
                seen.unbegun = Some(text.clone());
            }
            seen.version.clone().map_or(WriteMode::CreateNew, WriteMode::IfVersion)
        };
        let written = self.backend.write(cx, WriteRequest::new(path.clone(), text).mode(mode)).await;
        let written = written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::Conflict => {
                let mut seen = self.seen();
                (seen.attempt, seen.unbegun) = (None, None);
                changed_elsewhere(&path).with_source(error)
            }
            _ => error,
        })?;
        self.wrote(written.version, &record);
        self.seen().unbegun = None;
        self.generations.remove(cx, outdated).await;
        Ok(())
    }

    /// Makes `record` in `version` the last known one.
    pub(super) fn saw(&self, version: Option<Version>, record: &OverlayRecord) {
        let mut seen = self.seen();
        if seen.generation != record.generation {
            self.known().clear();
        }
        let (generation, commit) = (record.generation, record.phase());
        *seen = RecordState { version, generation, commit, attempt: None, own: seen.own, unbegun: seen.unbegun.take() };
    }

    /// Makes `record`, written by this process in `version`, the last known one.
    fn wrote(&self, version: Version, record: &OverlayRecord) {
        self.saw(Some(version), record);
        if record.commit.is_none() {
            self.seen().own = None;
        }
    }

    /// Checks whether a write whose answer was lost has happened.
    pub(super) async fn catch_up(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        let Some(attempt) = self.seen().attempt.clone() else { return Ok(()) };
        if let Some(there) = fetch_if_there(&*self.backend, cx, path).await?
            && there.content == attempt
        {
            self.wrote(there.version, &OverlayRecord::decode(&attempt, path)?);
        }
        self.seen().attempt = None;
        Ok(())
    }

    /// Whether the record is the one that was read or written last, as far as that can be seen: one that is missing, or cannot be
    /// read, was not written by another process.
    pub(in crate::overlay) async fn is_current(&self, cx: &OpContext) -> bool {
        self.differs(cx).await.map_or(true, |differs| !differs)
    }

    async fn differs(&self, cx: &OpContext) -> Result<bool> {
        let path = self.path()?;
        let there = self.backend.stat(cx, StatRequest::new(path.clone())).await?.version;
        if there.is_none() || there == self.seen().version {
            return Ok(false);
        }
        // It may be the one whose answer was lost, or the same commit in a file that has another version since it was copied.
        self.catch_up(cx, &path).await?;
        let (record, version) = self.read(cx).await?;
        let is_same = version.is_none() || version == self.seen().version;
        let is_same_commit = record.commit.is_some() && record.phase() == self.seen().commit;
        if is_same_commit {
            self.saw(version, &record);
        }
        Ok(!(is_same || is_same_commit))
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, RecordState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
