//! Optimistic concurrency for the record: reads, and writes conditional on the last known version.

use std::sync::{MutexGuard, PoisonError};

use bytes::Bytes;
use vfs_core::{ErrorKind, OpContext, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest};

use super::note::{Note, Phase, random_id};
use super::{Extent, Kept, changed_elsewhere};
use crate::overlay::merged::{fetch, fetch_if_there};

/// What is known of the note in the store.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) version: Option<Version>,
    /// The generation of contents that the note names.
    pub(super) generation: u64,
    /// What was to be written last, whose answer may have been lost.
    attempt: Option<Bytes>,
    /// The note of a commit that went no further, as nobody said that it was written.
    pub(super) unbegun: Option<Bytes>,
    /// The commit that is noted, and was not ended.
    pub(super) commit: Option<Phase>,
    /// The commit that this overlay began, as long as it is not known to be ended.
    pub(super) own: Option<u64>,
}

impl Seen {
    pub(super) fn is_own(&self) -> bool {
        self.own.is_some() && self.own == self.commit.map(|commit| commit.id)
    }
}

impl Kept {
    /// The note that is there, from which this process goes on.
    pub(super) async fn adopt(&self, cx: &OpContext) -> Result<Note> {
        let (note, version) = self.read(cx).await?;
        self.known().clear();
        *self.seen() = Seen::default();
        self.saw(version, &note);
        Ok(note)
    }

    /// The note that is there, which has to be the one that this process left, where the changes of others matter.
    pub(super) async fn reread(&self, cx: &OpContext) -> Result<Note> {
        let path = self.path()?;
        self.withdraw(cx).await?;
        self.catch_up(cx, &path).await?;
        let (note, version) = self.read(cx).await?;
        let expected = self.seen().version.clone();
        let is_same_commit = note.commit.is_some() && note.phase() == self.seen().commit;
        if self.extent == Extent::Changes && expected != version && !is_same_commit {
            return Err(changed_elsewhere(&path));
        }
        self.saw(version, &note);
        Ok(note)
    }

    pub(super) async fn read(&self, cx: &OpContext) -> Result<(Note, Option<Version>)> {
        let path = self.path()?;
        let whole = match fetch(&*self.backend, cx, &path).await {
            Ok(whole) => whole,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Note::default(), None)),
            Err(error) => return Err(error),
        };
        Ok((Note::decode(&whole.content, &path)?, Some(whole.version)))
    }

    pub(super) async fn write(&self, cx: &OpContext, mut note: Note) -> Result<()> {
        note.mark = random_id();
        let path = self.path()?;
        self.catch_up(cx, &path).await?;
        // Another process may still put contents into the current generation. A note without contents therefore begins a new one,
        // after which the directories that were listed before are unused.
        let (generation, outdated) = if note.is_without_contents() {
            (random_id(), self.generations.list(cx).await)
        } else {
            (self.seen().generation, Vec::new())
        };
        note.generation = generation;
        let text = note.encode(&path)?;
        let is_committing = note.commit.is_some();
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
        self.wrote(written.version, &note);
        self.seen().unbegun = None;
        self.generations.remove(cx, outdated).await;
        Ok(())
    }

    /// Remembers that `note` is there in this version.
    pub(super) fn saw(&self, version: Option<Version>, note: &Note) {
        let mut seen = self.seen();
        if seen.generation != note.generation {
            self.known().clear();
        }
        let (generation, commit) = (note.generation, note.phase());
        *seen = Seen { version, generation, commit, attempt: None, own: seen.own, unbegun: seen.unbegun.take() };
    }

    /// Remembers that `note` was written here, and is there in this version.
    fn wrote(&self, version: Version, note: &Note) {
        self.saw(Some(version), note);
        if note.commit.is_none() {
            self.seen().own = None;
        }
    }

    /// Finds out what became of a note whose answer was lost: it may have been written all the same.
    pub(super) async fn catch_up(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        let Some(attempt) = self.seen().attempt.clone() else { return Ok(()) };
        if let Some(there) = fetch_if_there(&*self.backend, cx, path).await?
            && there.content == attempt
        {
            self.wrote(there.version, &Note::decode(&attempt, path)?);
        }
        self.seen().attempt = None;
        Ok(())
    }

    /// Whether the note is the one that was read or written last, as far as that can be seen: one that is missing, or cannot be
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
        let (note, version) = self.read(cx).await?;
        let is_same = version.is_none() || version == self.seen().version;
        let is_same_commit = note.commit.is_some() && note.phase() == self.seen().commit;
        if is_same_commit {
            self.saw(version, &note);
        }
        Ok(!(is_same || is_same_commit))
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
