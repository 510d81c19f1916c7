//! File of the record of an overlay, under optimistic concurrency control: each write expects the version last read or written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest};

use super::generations::Generations;
use super::record::{CommitPhase, OverlayRecord, random_id};
use crate::content_store::ContentStore;
use crate::entry::{fetch, fetch_if_exists};

/// Scope of the persistence of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PersistenceScope {
    /// All changes, saved after each one.
    Changes,
    /// Commits in progress only: a journal.
    Commits,
}

/// Record of an overlay in a directory of a backend.
#[derive(Debug)]
pub(super) struct RecordFile {
    backend: Arc<dyn Backend>,
    directory: VfsPath,
    generations: Generations,
    pub(super) scope: PersistenceScope,
    state: Mutex<RecordState>,
}

/// Last known state of the record in the store.
#[derive(Debug, Default)]
pub(super) struct RecordState {
    pub(super) version: Option<Version>,
    /// Generation of contents that the record names.
    pub(super) generation: u64,
    /// Text of the last write, if its response may have been lost.
    unconfirmed_write: Option<Bytes>,
    /// Record of a commit that did not begin, since the write of the record was not acknowledged.
    unconfirmed_commit: Option<Bytes>,
    /// The recorded commit that has not ended.
    pub(super) commit: Option<CommitPhase>,
    /// Id of the commit that this overlay began, until its end is known.
    pub(super) own_commit: Option<u64>,
}

impl RecordState {
    pub(super) fn is_own(&self) -> bool {
        self.own_commit.is_some() && self.own_commit == self.commit.map(|commit| commit.id)
    }
}

impl RecordFile {
    pub(super) fn new(backend: Arc<dyn Backend>, directory: VfsPath, scope: PersistenceScope) -> Self {
        let generations = Generations::new(Arc::clone(&backend), directory.clone());
        Self { backend, directory, generations, scope, state: Mutex::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, RecordState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the content store of the current generation, and the id of that generation.
    pub(super) fn contents(&self) -> Result<(u64, ContentStore)> {
        let generation = self.state().generation;
        Ok((generation, self.generations.get(generation)?))
    }

    /// Reads the record for the first time.
    pub(super) async fn load(&self, cx: &OpContext) -> Result<OverlayRecord> {
        let (record, version) = self.read(cx).await?;
        *self.state() = RecordState::default();
        self.update(version, &record);
        Ok(record)
    }

    /// Reads the record again. If all changes are persistent, a record that another process wrote is a `conflict`, unless it is of
    /// the same commit.
    pub(super) async fn reload(&self, cx: &OpContext) -> Result<OverlayRecord> {
        self.withdraw_commit(cx).await?;
        self.confirm_write(cx).await?;
        let (record, version) = self.read(cx).await?;
        let expected = self.state().version.clone();
        if self.scope == PersistenceScope::Changes && expected != version && !self.is_same_commit(&record) {
            return Err(self.changed_elsewhere());
        }
        self.update(version, &record);
        Ok(record)
    }

    pub(super) async fn read(&self, cx: &OpContext) -> Result<(OverlayRecord, Option<Version>)> {
        let path = self.path()?;
        match fetch(&*self.backend, cx, &path).await {
            Ok(file) => Ok((OverlayRecord::decode(&file.content, &path)?, Some(file.version))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok((OverlayRecord::default(), None)),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn write(&self, cx: &OpContext, mut record: OverlayRecord) -> Result<()> {
        record.mark = random_id();
        let path = self.path()?;
        self.confirm_write(cx).await?;
        // Another process may still put contents into the current generation. A record without contents therefore begins a new one,
        // after which the directories that were listed before are unused.
        let (generation, outdated) = if record.is_without_contents() {
            (random_id(), self.generations.list(cx).await)
        } else {
            (self.state().generation, Vec::new())
        };
        record.generation = generation;
        let text = record.encode(&path)?;
        let mode = {
            let mut state = self.state();
            state.unconfirmed_write = Some(text.clone());
            if record.commit.is_some() && state.commit.is_none() {
                state.unconfirmed_commit = Some(text.clone());
            }
            state.version.clone().map_or(WriteMode::CreateNew, WriteMode::IfVersion)
        };
        let written = self.backend.write(cx, WriteRequest::new(path, text).mode(mode)).await;
        let written = written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::Conflict => {
                let mut state = self.state();
                (state.unconfirmed_write, state.unconfirmed_commit) = (None, None);
                self.changed_elsewhere().with_source(error)
            }
            _ => error,
        })?;
        self.update_written(written.version, &record);
        self.state().unconfirmed_commit = None;
        self.generations.remove(cx, outdated).await;
        Ok(())
    }

    /// Makes `record` in `version` the last known one.
    pub(super) fn update(&self, version: Option<Version>, record: &OverlayRecord) {
        let mut state = self.state();
        *state = RecordState {
            version,
            generation: record.generation,
            commit: record.phase(),
            unconfirmed_write: None,
            own_commit: state.own_commit,
            unconfirmed_commit: state.unconfirmed_commit.take(),
        };
    }

    /// Makes `record`, written by this process in `version`, the last known one.
    fn update_written(&self, version: Version, record: &OverlayRecord) {
        self.update(Some(version), record);
        if record.commit.is_none() {
            self.state().own_commit = None;
        }
    }

    /// Checks whether a write whose response was lost has happened.
    pub(super) async fn confirm_write(&self, cx: &OpContext) -> Result<()> {
        let Some(text) = self.state().unconfirmed_write.clone() else { return Ok(()) };
        let path = self.path()?;
        if let Some(present) = fetch_if_exists(&*self.backend, cx, &path).await?
            && present.content == text
        {
            self.update_written(present.version, &OverlayRecord::decode(&text, &path)?);
        }
        self.state().unconfirmed_write = None;
        Ok(())
    }

    /// Withdraws the record of a commit that did not begin. Later changes are not part of that commit, and would be lost if it
    /// were finished.
    pub(super) async fn withdraw_commit(&self, cx: &OpContext) -> Result<()> {
        let Some(text) = self.state().unconfirmed_commit.clone() else { return Ok(()) };
        let path = self.path()?;
        self.confirm_write(cx).await?;
        let present = fetch_if_exists(&*self.backend, cx, &path).await?;
        if present.is_some_and(|present| present.content == text) {
            let record = match self.scope {
                PersistenceScope::Changes => OverlayRecord { commit: None, ..OverlayRecord::decode(&text, &path)? },
                PersistenceScope::Commits => OverlayRecord::default(),
            };
            self.write(cx, record).await?;
        }
        let mut state = self.state();
        (state.unconfirmed_commit, state.commit) = (None, None);
        Ok(())
    }

    /// Checks that no commit is to be finished.
    pub(super) fn check_finished(&self) -> Result<()> {
        let state = self.state();
        if state.commit.is_some() && state.unconfirmed_commit.is_none() {
            return Err(self.conflict("a commit was not finished; finish it before any other change"));
        }
        Ok(())
    }

    /// Returns whether the record is the one that was read or written last. A record that is missing or cannot be read counts as
    /// the same, since another process did not write it.
    pub(super) async fn is_current(&self, cx: &OpContext) -> bool {
        self.check_current(cx).await.unwrap_or(true)
    }

    async fn check_current(&self, cx: &OpContext) -> Result<bool> {
        let version = self.backend.stat(cx, StatRequest::new(self.path()?)).await?.version;
        if version.is_none() || version == self.state().version {
            return Ok(true);
        }
        // The record may be one whose response was lost, or one of the same commit with another version, since it was copied.
        self.confirm_write(cx).await?;
        let (record, version) = self.read(cx).await?;
        if self.is_same_commit(&record) {
            self.update(version, &record);
            return Ok(true);
        }
        Ok(version.is_none() || version == self.state().version)
    }

    fn is_same_commit(&self, record: &OverlayRecord) -> bool {
        record.commit.is_some() && record.phase() == self.state().commit
    }

    pub(super) fn path(&self) -> Result<VfsPath> {
        self.directory.child("overlay.json")
    }

    pub(super) fn changed_elsewhere(&self) -> Error {
        self.conflict("another process changed the overlay; open it again, and let one process at a time change it")
    }

    pub(super) fn conflict(&self, message: &'static str) -> Error {
        Error::new(ErrorKind::Conflict, message).with_path(&self.directory)
    }
}

/// Returns `error` of the store at the root, since the caller knows no path of the store.
pub(crate) fn at_root(error: Error) -> Error {
    error.with_path(&VfsPath::root())
}
