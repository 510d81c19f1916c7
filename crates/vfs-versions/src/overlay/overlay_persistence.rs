//! Persistence of an overlay in a store: its changes, and the commit in progress.

pub(super) mod commit_recovery;
mod content_generations;
mod overlay_manifest;
pub(super) mod overlay_manifest_file;

use std::collections::HashMap;
use std::sync::Arc;

use vfs_core::{Backend, ErrorKind, OpContext, Result, Version, VfsPath, WriteMode, WriteRequest};

use self::overlay_manifest::{CommitHeader, CommitStep, OngoingCommit, OverlayManifest, random_id};
use self::overlay_manifest_file::{OverlayManifestFile, PersistenceScope};
use super::commit_plan::PlannedChange;
use super::overlay_state::OverlayState;
use crate::content_store::ObjectId;
use crate::versioned_entry::fetch_if_exists;

/// Persistent side of an overlay: its record and contents in a directory of a backend.
#[derive(Debug)]
pub(super) struct OverlayPersistence {
    pub(super) file: OverlayManifestFile,
    stored: StoredObjectIds,
}

/// Names of contents that are stored already in one generation, so that each is put only once.
#[derive(Debug, Default)]
struct StoredObjectIds {
    generation: u64,
    objects: HashMap<VfsPath, (Version, ObjectId)>,
}

impl OverlayPersistence {
    /// Returns the persistence of all changes.
    pub(super) fn new(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self::with_scope(backend, directory, PersistenceScope::Changes)
    }

    /// Returns the persistence of commits in progress: a journal.
    pub(super) fn for_commits(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self::with_scope(backend, directory, PersistenceScope::Commits)
    }

    fn with_scope(backend: Arc<dyn Backend>, directory: VfsPath, scope: PersistenceScope) -> Self {
        Self { file: OverlayManifestFile::new(backend, directory, scope), stored: StoredObjectIds::default() }
    }

    pub(super) fn is_journal(&self) -> bool {
        self.file.scope == PersistenceScope::Commits
    }

    /// Returns `empty` with the stored changes. An interrupted commit is finished first.
    pub(super) async fn load(&mut self, cx: &OpContext, empty: OverlayState) -> Result<OverlayState> {
        loop {
            let record = self.file.load(cx).await?;
            let loaded = match record.commit {
                None => self.restore(cx, empty.draft(), record).await.map(Some),
                Some(_) => match self.finish(cx, &*empty.base).await {
                    Ok(_) => self.end_applied(cx).await.map(|()| None),
                    Err(error) => Err(error),
                },
            };
            match loaded {
                Ok(Some(state)) => return Ok(state),
                // Another process may have finished the commit, or removed these contents, meanwhile.
                Err(error) if self.file.is_current(cx).await => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
    }

    /// Returns `state` with the changes of `record`.
    async fn restore(&self, cx: &OpContext, mut state: OverlayState, record: OverlayManifest) -> Result<OverlayState> {
        let (_, contents) = self.file.contents()?;
        for (path, object) in record.files {
            let content = contents.get(cx, &object).await?;
            let request = WriteRequest::new(path, content).mode(WriteMode::Overwrite);
            state.upper.write(cx, request).await?;
        }
        state.originals = record.originals.into_iter().collect();
        state.hidden = record.hidden.into_iter().collect();
        Ok(state)
    }

    /// Saves `state`.
    pub(super) async fn save(&mut self, cx: &OpContext, state: &OverlayState) -> Result<()> {
        self.file.check_finished()?;
        if self.is_journal() {
            return self.file.withdraw_commit(cx).await;
        }
        let record = self.record(cx, state).await?;
        self.file.write(cx, record).await
    }

    /// Records that a commit of `planned` is about to begin.
    pub(super) async fn begin(
        &mut self,
        cx: &OpContext,
        state: &OverlayState,
        planned: &[PlannedChange],
    ) -> Result<()> {
        if self.file.reload(cx).await?.commit.is_some() {
            return Err(self.file.conflict("an interrupted commit is recorded here; finish it before the next begins"));
        }
        let mut record = self.record(cx, state).await?;
        record.hidden = state.hidden.iter().cloned().collect();
        let (_, contents) = self.file.contents()?;
        let mut steps = Vec::with_capacity(planned.len());
        for change in planned {
            let after = match &change.after {
                Some(content) => Some(contents.put(cx, content).await?),
                None => None,
            };
            let (path, before) = (change.path.clone(), change.before.to_version());
            let before_content = change.before.content().map(|content| ObjectId::of(content));
            steps.push(CommitStep { path, before, before_content, after });
        }
        let id = random_id();
        record.commit = Some(OngoingCommit { phase: CommitHeader { id, is_rolling_back: false }, steps });
        self.file.write(cx, record).await?;
        self.file.own_commit = Some(id);
        Ok(())
    }

    /// Records that the commit was rolled back, and saves `state`.
    pub(super) async fn end_rolled_back(&mut self, cx: &OpContext, state: &OverlayState) -> Result<()> {
        let record = self.record(cx, state).await?;
        self.file.write(cx, record).await
    }

    /// Records that the base has all changes of the commit, unless another process recorded that already.
    pub(super) async fn end_applied(&mut self, cx: &OpContext) -> Result<()> {
        let phase = self.file.commit;
        loop {
            let Err(error) = self.file.write(cx, OverlayManifest::default()).await else { return Ok(()) };
            if error.kind() != ErrorKind::Conflict {
                return Err(error);
            }
            let (record, version) = self.file.read(cx).await?;
            if record.phase().map(|recorded| recorded.id) != phase.map(|ended| ended.id) {
                self.file.release_commit(version, &record);
                return Ok(());
            }
            if record.phase() != phase {
                return Err(error);
            }
            // The record has the same commit but another version, for example since its file was copied.
            self.file.update(version, &record);
        }
    }

    /// Claims the commit for a rollback: another process that finishes it stops at its next step. If one has finished it
    /// already, this is a `conflict`, and this overlay drops the commit.
    pub(super) async fn begin_rollback(&mut self, cx: &OpContext) -> Result<()> {
        loop {
            let (record, version) = self.file.read_existing(cx).await?;
            if record.commit.is_none() || record.phase() != self.file.commit {
                self.file.release_commit(version, &record);
                return Err(self.file.changed_elsewhere());
            }
            self.file.update(version, &record);
            match self.file.write(cx, record.with_rollback(true)).await {
                // The record is read again to find out what happened.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                written => return written,
            }
        }
    }

    /// Records that the commit is still to be finished, with the entries of the base that `state` expects.
    pub(super) async fn record_expected(&mut self, cx: &OpContext, state: &OverlayState) -> Result<()> {
        let mut record = self.file.reload(cx).await?;
        if !self.file.is_own_commit() {
            return Err(self.file.changed_elsewhere());
        }
        let steps = record.commit.iter_mut().flat_map(|commit| &mut commit.steps);
        let steps = steps.map(|step| (&step.path, &mut step.before));
        for (path, before) in record.originals.iter_mut().chain(steps) {
            if let Some(expected) = state.originals.get(path) {
                *before = expected.clone();
            }
        }
        self.file.write(cx, record.with_rollback(false)).await
    }

    /// Stores the contents of `state`, and returns its record. The record of a journal is empty.
    async fn record(&mut self, cx: &OpContext, state: &OverlayState) -> Result<OverlayManifest> {
        if self.is_journal() {
            return Ok(OverlayManifest::default());
        }
        let mut record = OverlayManifest {
            originals: state.originals.iter().map(|(path, before)| (path.clone(), before.clone())).collect(),
            hidden: state.hidden.iter().cloned().collect(),
            ..OverlayManifest::default()
        };
        self.file.confirm_write(cx).await?;
        let (generation, contents) = self.file.contents()?;
        if self.stored.generation != generation {
            self.stored = StoredObjectIds { generation, ..StoredObjectIds::default() };
        }
        for path in state.originals.keys() {
            let Some(file) = fetch_if_exists(&state.upper, cx, path).await? else { continue };
            let stored = self.stored.objects.get(path).filter(|(version, _)| *version == file.version).cloned();
            let object = match stored {
                Some((_, object)) => object,
                None => contents.put(cx, &file.content).await?,
            };
            self.stored.objects.insert(path.clone(), (file.version, object.clone()));
            record.files.insert(path.clone(), object);
        }
        Ok(record)
    }
}
