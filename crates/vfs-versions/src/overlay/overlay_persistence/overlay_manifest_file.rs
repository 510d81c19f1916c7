//! Record file of an overlay, with optimistic concurrency control.

use std::sync::Arc;

use bytes::Bytes;
use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest};

use super::content_generations::ContentGenerations;
use super::overlay_manifest::{CommitHeader, OverlayManifest, random_id};
use crate::content_store::ContentStore;
use crate::versioned_entry::{fetch, fetch_if_exists};

/// Scope of the persistence of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PersistenceScope {
    /// All changes, saved after each one.
    Changes,
    /// Commits in progress only: a journal.
    Commits,
}

/// Record of an overlay in a directory of a backend, with its last known state. Each write expects the version that was read or
/// written last.
#[derive(Debug)]
pub(crate) struct OverlayManifestFile {
    backend: Arc<dyn Backend>,
    directory: VfsPath,
    generations: ContentGenerations,
    pub(super) scope: PersistenceScope,
    version: Option<Version>,
    /// Generation of contents that the record names.
    generation: u64,
    /// Text of the last write, if its response may have been lost.
    unconfirmed_write: Option<Bytes>,
    /// Record of a commit that did not begin, since the write of the record was not acknowledged.
    unconfirmed_commit: Option<Bytes>,
    /// The recorded commit that has not ended.
    pub(super) commit: Option<CommitHeader>,
    /// Id of the commit that this overlay began, until its end is known.
    pub(super) own_commit: Option<u64>,
}

impl OverlayManifestFile {
    pub(super) fn new(backend: Arc<dyn Backend>, directory: VfsPath, scope: PersistenceScope) -> Self {
        Self {
            generations: ContentGenerations::new(Arc::clone(&backend), directory.clone()),
            backend,
            directory,
            scope,
            version: None,
            generation: 0,
            unconfirmed_write: None,
            unconfirmed_commit: None,
            commit: None,
            own_commit: None,
        }
    }

    /// Returns the content store of the current generation, and the id of that generation.
    pub(super) fn contents(&self) -> Result<(u64, ContentStore)> {
        Ok((self.generation, self.generations.get(self.generation)?))
    }

    /// Returns whether this overlay began the recorded commit.
    pub(super) fn is_own_commit(&self) -> bool {
        self.own_commit.is_some() && self.own_commit == self.commit.map(|commit| commit.id)
    }

    /// Reads the record, and makes it the last known one.
    pub(super) async fn load(&mut self, cx: &OpContext) -> Result<OverlayManifest> {
        let (record, version) = self.read(cx).await?;
        self.update(version, &record);
        Ok(record)
    }

    /// Reads the record again. If all changes are persistent, a record that another process wrote is a `conflict`, unless it is of
    /// the same commit.
    pub(super) async fn reload(&mut self, cx: &OpContext) -> Result<OverlayManifest> {
        self.withdraw_commit(cx).await?;
        self.confirm_write(cx).await?;
        let (record, version) = self.read(cx).await?;
        if self.scope == PersistenceScope::Changes && self.version != version && !self.is_same_commit(&record) {
            return Err(self.changed_elsewhere());
        }
        self.update(version, &record);
        Ok(record)
    }

    /// Reads the record, or returns an empty one if there is none.
    pub(super) async fn read(&self, cx: &OpContext) -> Result<(OverlayManifest, Option<Version>)> {
        match self.read_existing(cx).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok((OverlayManifest::default(), None)),
            read => read,
        }
    }

    pub(super) async fn read_existing(&self, cx: &OpContext) -> Result<(OverlayManifest, Option<Version>)> {
        let path = self.path()?;
        let file = fetch(&*self.backend, cx, &path).await?;
        Ok((OverlayManifest::decode(&file.content, &path)?, Some(file.version)))
    }

    pub(super) async fn write(&mut self, cx: &OpContext, mut record: OverlayManifest) -> Result<()> {
        record.mark = random_id();
        let path = self.path()?;
        self.confirm_write(cx).await?;
        // Another process may still put contents into the current generation. A record without contents therefore begins a new one,
        // after which the directories that were listed before are unused.
        let (generation, outdated) = if record.is_without_contents() {
            (random_id(), self.generations.list(cx).await)
        } else {
            (self.generation, Vec::new())
        };
        record.generation = generation;
        let text = record.encode(&path)?;
        self.unconfirmed_write = Some(text.clone());
        if record.commit.is_some() && self.commit.is_none() {
            self.unconfirmed_commit = Some(text.clone());
        }
        let mode = self.version.clone().map_or(WriteMode::CreateNew, WriteMode::IfVersion);
        match self.backend.write(cx, WriteRequest::new(path, text).mode(mode)).await {
            Ok(written) => self.update_written(written.version, &record),
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::Conflict) => {
                (self.unconfirmed_write, self.unconfirmed_commit) = (None, None);
                return Err(self.changed_elsewhere().with_source(error));
            }
            Err(error) => return Err(error),
        }
        self.unconfirmed_commit = None;
        self.generations.remove(cx, outdated).await;
        Ok(())
    }

    /// Makes `record` in `version` the last known one.
    pub(super) fn update(&mut self, version: Option<Version>, record: &OverlayManifest) {
        (self.version, self.generation, self.commit) = (version, record.generation, record.phase());
        self.unconfirmed_write = None;
    }

    /// Makes `record`, written by this process in `version`, the last known one.
    fn update_written(&mut self, version: Version, record: &OverlayManifest) {
        self.update(Some(version), record);
        if record.commit.is_none() {
            self.own_commit = None;
        }
    }

    /// Checks whether a write whose response was lost has happened.
    pub(super) async fn confirm_write(&mut self, cx: &OpContext) -> Result<()> {
        let Some(text) = self.unconfirmed_write.clone() else { return Ok(()) };
        let path = self.path()?;
        if let Some(present) = fetch_if_exists(&*self.backend, cx, &path).await?
            && present.content == text
        {
            self.update_written(present.version, &OverlayManifest::decode(&text, &path)?);
        }
        self.unconfirmed_write = None;
        Ok(())
    }

    /// Withdraws the record of a commit that did not begin. Later changes are not part of that commit, and would be lost if it
    /// were finished.
    pub(super) async fn withdraw_commit(&mut self, cx: &OpContext) -> Result<()> {
        let Some(text) = self.unconfirmed_commit.clone() else { return Ok(()) };
        let path = self.path()?;
        self.confirm_write(cx).await?;
        let present = fetch_if_exists(&*self.backend, cx, &path).await?;
        if present.is_some_and(|present| present.content == text) {
            let record = match self.scope {
                PersistenceScope::Changes => OverlayManifest { commit: None, ..OverlayManifest::decode(&text, &path)? },
                PersistenceScope::Commits => OverlayManifest::default(),
            };
            self.write(cx, record).await?;
        }
        (self.unconfirmed_commit, self.commit) = (None, None);
        Ok(())
    }

    /// Checks that no commit is to be finished.
    pub(crate) fn check_finished(&self) -> Result<()> {
        if self.commit.is_some() && self.unconfirmed_commit.is_none() {
            return Err(self.conflict("a commit was not finished; finish it before any other change"));
        }
        Ok(())
    }

    /// Returns whether the record is the one that was read or written last. A record that is missing or cannot be read counts as
    /// the same, since another process did not write it.
    pub(crate) async fn is_current(&mut self, cx: &OpContext) -> bool {
        self.check_current(cx).await.unwrap_or(true)
    }

    async fn check_current(&mut self, cx: &OpContext) -> Result<bool> {
        let version = self.backend.stat(cx, StatRequest::new(self.path()?)).await?.version;
        if version.is_none() || version == self.version {
            return Ok(true);
        }
        // The record may be one whose response was lost, or one of the same commit with another version, since it was copied.
        self.confirm_write(cx).await?;
        let (record, version) = self.read(cx).await?;
        if self.is_same_commit(&record) {
            self.update(version, &record);
            return Ok(true);
        }
        Ok(version.is_none() || version == self.version)
    }

    /// Drops the commit that another process ended, and makes `record` in `version` the last known one.
    pub(super) fn release_commit(&mut self, version: Option<Version>, record: &OverlayManifest) {
        let expected = self.version.clone();
        self.update(version, record);
        (self.commit, self.own_commit) = (None, None);
        if self.scope == PersistenceScope::Changes && !record.is_empty() {
            // This overlay does not have the changes of the other process, so its next change has to be a conflict.
            self.version = expected;
        }
    }

    fn is_same_commit(&self, record: &OverlayManifest) -> bool {
        record.commit.is_some() && record.phase() == self.commit
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
