//! An overlay in a store: its changes, and a commit that is under way.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, Version, VfsPath, WriteMode, WriteRequest};

use super::commit::{changed_since, set};
use super::merged::{Merged, fetch, fetch_if_there};
use crate::objects::{ObjectId, Objects};

/// What of an overlay is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All its changes, after each.
    Changes,
    /// Commits that are under way.
    Commits,
}

/// Where an overlay is kept.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    backend: Arc<dyn Backend>,
    directory: VfsPath,
    objects: Objects,
    extent: Extent,
    /// The version of the note that was read or written last: what another process wrote meanwhile is not written over.
    seen: Arc<Mutex<Option<Version>>>,
}

/// What is written down. Contents are objects.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    files: BTreeMap<VfsPath, ObjectId>,
    touched: BTreeMap<VfsPath, Option<Version>>,
    gone: BTreeSet<VfsPath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<Vec<Step>>,
}

/// One file of a commit.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    path: VfsPath,
    before: Option<Version>,
    after: Option<ObjectId>,
}

/// A commit that is about to begin.
pub(super) struct NotedCommit {
    pub(super) changes: Vec<NotedChange>,
}

/// One file of it: the version that is replaced, and what replaces it.
pub(super) struct NotedChange {
    pub(super) path: VfsPath,
    pub(super) before: Option<Version>,
    pub(super) after: Option<Bytes>,
}

impl Kept {
    pub(super) fn new(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        let objects = Objects::new(Arc::clone(&backend), directory.clone());
        Self { backend, directory, objects, extent: Extent::Changes, seen: Arc::default() }
    }

    pub(super) fn for_commits(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self { extent: Extent::Commits, ..Self::new(backend, directory) }
    }

    /// `empty` with the changes that are kept, after a commit that was cut short is finished.
    pub(super) async fn load(&self, cx: &OpContext, mut empty: Merged) -> Result<Merged> {
        if self.finish(cx, &*empty.base).await? {
            return Ok(empty);
        }
        let note = self.read(cx).await?;
        for (path, object) in note.files {
            let content = self.objects.get(cx, &object).await?;
            let request = WriteRequest::new(path, content).mode(WriteMode::Overwrite);
            empty.upper.write(cx, request).await?;
        }
        empty.touched = note.touched.into_iter().collect();
        empty.gone = note.gone.into_iter().collect();
        Ok(empty)
    }

    /// Keeps `state`, and no commit.
    pub(super) async fn save(&self, cx: &OpContext, state: &Merged) -> Result<()> {
        let note = match self.extent {
            Extent::Changes => self.note(cx, state).await?,
            Extent::Commits => Note::default(),
        };
        let is_empty = note.files.is_empty();
        self.write(cx, &note).await?;
        if is_empty {
            // Nothing names a content any more.
            self.objects.retain(cx, &HashSet::new()).await?;
        }
        Ok(())
    }

    /// Notes that `commit` is about to begin.
    pub(super) async fn begin(&self, cx: &OpContext, state: &Merged, commit: &NotedCommit) -> Result<()> {
        let mut steps = Vec::with_capacity(commit.changes.len());
        for change in &commit.changes {
            let after = match &change.after {
                Some(content) => Some(self.objects.put(cx, content).await?),
                None => None,
            };
            steps.push(Step { path: change.path.clone(), before: change.before.clone(), after });
        }
        if self.extent == Extent::Commits {
            // Nobody but a commit writes here, so the note may be new.
            self.read(cx).await?;
        }
        let mut note = match self.extent {
            Extent::Changes => self.note(cx, state).await?,
            Extent::Commits => Note::default(),
        };
        note.commit = Some(steps);
        self.write(cx, &note).await
    }

    /// Finishes the commit that is noted, and says whether there was one.
    pub(super) async fn finish(&self, cx: &OpContext, base: &dyn Backend) -> Result<bool> {
        let Some(steps) = self.read(cx).await?.commit else { return Ok(false) };
        for Step { path, before, after } in steps {
            let there = fetch_if_there(base, cx, &path).await?;
            let after = match after {
                Some(object) => Some(self.objects.get(cx, &object).await?),
                None => None,
            };
            if there.as_ref().map(|whole| &whole.content) == after.as_ref() {
                continue;
            }
            let version = there.map(|whole| whole.version);
            if version != before {
                return Err(changed_since(&path, version));
            }
            set(cx, base, &path, version.as_ref(), after).await?;
        }
        self.write(cx, &Note::default()).await?;
        self.objects.retain(cx, &HashSet::new()).await?;
        Ok(true)
    }

    async fn note(&self, cx: &OpContext, state: &Merged) -> Result<Note> {
        let mut note = Note {
            touched: state.touched.iter().map(|(path, version)| (path.clone(), version.clone())).collect(),
            gone: state.gone.iter().cloned().collect(),
            ..Note::default()
        };
        for path in state.touched.keys() {
            if let Some(whole) = fetch_if_there(&state.upper, cx, path).await? {
                note.files.insert(path.clone(), self.objects.put(cx, &whole.content).await?);
            }
        }
        Ok(note)
    }

    fn path(&self) -> Result<VfsPath> {
        self.directory.child("overlay.json")
    }

    async fn read(&self, cx: &OpContext) -> Result<Note> {
        let path = self.path()?;
        let whole = match fetch(&*self.backend, cx, &path).await {
            Ok(whole) => whole,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Note::default()),
            Err(error) => return Err(error),
        };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(whole.version);
        serde_json::from_slice(&whole.content).map_err(|source| {
            Error::invalid_argument("this is not the note of an overlay; another program wrote it")
                .with_path(&path)
                .with_source(source)
        })
    }

    async fn write(&self, cx: &OpContext, note: &Note) -> Result<()> {
        let path = self.path()?;
        let text = serde_json::to_vec(note).map_err(|source| {
            Error::new(ErrorKind::Internal, "the overlay cannot be noted").with_path(&path).with_source(source)
        })?;
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mode = seen.map_or(WriteMode::CreateNew, WriteMode::IfVersion);
        let written = self.backend.write(cx, WriteRequest::new(path.clone(), text).mode(mode)).await;
        let written = written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::Conflict => {
                let message = "another process changed the overlay; open it again";
                Error::new(ErrorKind::Conflict, message).with_path(&path).with_source(error)
            }
            _ => error,
        })?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(written.version);
        Ok(())
    }
}
