//! An overlay in a store: its changes, and a commit that is under way.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, Version, VfsPath, WriteMode, WriteRequest};

use super::commit::{Planned, Seen as SeenInBase, changed_since, remove_emptied, seen, set};
use super::merged::{Before, Merged, fetch, fetch_if_there};
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
    seen: Arc<Mutex<Seen>>,
    /// The contents that are kept, so that each is put there once.
    known: Arc<Mutex<HashMap<VfsPath, (Version, ObjectId)>>>,
}

/// What is known of the note in the store.
#[derive(Debug, Default)]
struct Seen {
    version: Option<Version>,
    /// What was to be written last, whose answer may have been lost.
    attempt: Option<Bytes>,
    /// Whether a commit is noted that was not ended.
    is_committing: bool,
}

/// What is written down. Contents are objects.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    files: BTreeMap<VfsPath, ObjectId>,
    touched: BTreeMap<VfsPath, Before>,
    gone: BTreeSet<VfsPath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<Vec<Step>>,
}

/// One file of a commit.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    path: VfsPath,
    before: Before,
    after: Option<ObjectId>,
}

impl Kept {
    pub(super) fn new(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        let objects = Objects::new(Arc::clone(&backend), directory.clone());
        Self { backend, directory, objects, extent: Extent::Changes, seen: Arc::default(), known: Arc::default() }
    }

    pub(super) fn for_commits(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self { extent: Extent::Commits, ..Self::new(backend, directory) }
    }

    /// `empty` with the changes that are kept, after a commit that was cut short is finished.
    pub(super) async fn load(&self, cx: &OpContext, mut empty: Merged) -> Result<Merged> {
        if self.finish(cx, &*empty.base).await? {
            return Ok(empty);
        }
        let note = self.adopt(cx).await?;
        for (path, object) in note.files {
            let content = self.objects.get(cx, &object).await?;
            let request = WriteRequest::new(path, content).mode(WriteMode::Overwrite);
            empty.upper.write(cx, request).await?;
        }
        empty.touched = note.touched.into_iter().collect();
        empty.gone = note.gone.into_iter().collect();
        Ok(empty)
    }

    /// Keeps `state`.
    pub(super) async fn save(&self, cx: &OpContext, state: &Merged) -> Result<()> {
        if self.extent == Extent::Commits {
            return Ok(());
        }
        if self.seen().is_committing {
            let message = "a commit was not finished; finish it before anything else is changed";
            return Err(Error::new(ErrorKind::Conflict, message).with_path(&self.directory));
        }
        let note = self.note(cx, state).await?;
        self.write(cx, &note).await?;
        self.sweep(cx, &note).await
    }

    /// Notes that a commit of `planned` is about to begin.
    pub(super) async fn begin(&self, cx: &OpContext, state: &Merged, planned: &[Planned]) -> Result<()> {
        if self.reread(cx).await?.commit.is_some() {
            let message = "a commit that was cut short is noted here; finish it before the next begins";
            return Err(Error::new(ErrorKind::Conflict, message).with_path(&self.directory));
        }
        let mut note = match self.extent {
            Extent::Changes => self.note(cx, state).await?,
            Extent::Commits => Note { gone: state.gone.iter().cloned().collect(), ..Note::default() },
        };
        let mut steps = Vec::with_capacity(planned.len());
        for change in planned {
            let after = match &change.after {
                Some(content) => Some(self.objects.put(cx, content).await?),
                None => None,
            };
            steps.push(Step { path: change.path.clone(), before: change.before.as_before(), after });
        }
        note.commit = Some(steps);
        self.write(cx, &note).await
    }

    /// Notes that the commit is over, and keeps `state`.
    pub(super) async fn end(&self, cx: &OpContext, state: &Merged) -> Result<()> {
        let note = match self.extent {
            Extent::Changes => self.note(cx, state).await?,
            Extent::Commits => Note::default(),
        };
        self.write(cx, &note).await?;
        self.sweep(cx, &note).await
    }

    /// Removes contents that nobody names, once that is all of them: each change would cost a listing else.
    async fn sweep(&self, cx: &OpContext, note: &Note) -> Result<()> {
        if note.files.is_empty() && note.commit.is_none() {
            self.known().clear();
            self.objects.retain(cx, &HashSet::new()).await?;
        }
        Ok(())
    }

    /// Finishes the commit that is noted, and says whether there was one.
    pub(super) async fn finish(&self, cx: &OpContext, base: &dyn Backend) -> Result<bool> {
        let Note { commit: Some(steps), gone, .. } = self.reread(cx).await? else { return Ok(false) };
        let mut has_made_room = false;
        for Step { path, before, after } in steps {
            if !has_made_room && after.is_some() {
                remove_emptied(cx, base, gone.iter()).await;
                has_made_room = true;
            }
            let there = seen(base, cx, &path).await?;
            let after = match after {
                Some(object) => Some(self.objects.get(cx, &object).await?),
                None => None,
            };
            let now = there.as_before();
            // A link that was removed already may be followed by the file that takes its place.
            let is_under_way = before == Before::Link && now == Before::Nothing;
            let is_done = match &there {
                SeenInBase::Link => false,
                SeenInBase::Nothing => after.is_none(),
                SeenInBase::File(whole) => Some(&whole.content) == after.as_ref(),
            };
            if is_done {
                continue;
            }
            if now != before && !is_under_way {
                return Err(changed_since(&path, now.version().cloned()));
            }
            set(cx, base, &path, &now, after).await?;
        }
        remove_emptied(cx, base, gone.iter()).await;
        self.write(cx, &Note::default()).await?;
        self.sweep(cx, &Note::default()).await?;
        Ok(true)
    }

    async fn note(&self, cx: &OpContext, state: &Merged) -> Result<Note> {
        let mut note = Note {
            touched: state.touched.iter().map(|(path, before)| (path.clone(), before.clone())).collect(),
            gone: state.gone.iter().cloned().collect(),
            ..Note::default()
        };
        for path in state.touched.keys() {
            let Some(whole) = fetch_if_there(&state.upper, cx, path).await? else { continue };
            let known = self.known().get(path).filter(|(version, _)| *version == whole.version).cloned();
            let object = match known {
                Some((_, object)) => object,
                None => self.objects.put(cx, &whole.content).await?,
            };
            self.known().insert(path.clone(), (whole.version, object.clone()));
            note.files.insert(path.clone(), object);
        }
        Ok(note)
    }

    fn path(&self) -> Result<VfsPath> {
        self.directory.child("overlay.json")
    }

    /// The note that is there, from which this process goes on.
    async fn adopt(&self, cx: &OpContext) -> Result<Note> {
        let (note, version) = self.read(cx).await?;
        let is_committing = note.commit.is_some();
        *self.seen() = Seen { version, attempt: None, is_committing };
        Ok(note)
    }

    /// The note that is there, which has to be the one that this process left, where the changes of others matter.
    async fn reread(&self, cx: &OpContext) -> Result<Note> {
        let path = self.path()?;
        self.catch_up(cx, &path).await?;
        let (note, version) = self.read(cx).await?;
        let expected = self.seen().version.clone();
        if self.extent == Extent::Changes && expected.is_some() && expected != version {
            return Err(changed_elsewhere(&path));
        }
        let is_committing = note.commit.is_some();
        *self.seen() = Seen { version, attempt: None, is_committing };
        Ok(note)
    }

    async fn read(&self, cx: &OpContext) -> Result<(Note, Option<Version>)> {
        let path = self.path()?;
        let whole = match fetch(&*self.backend, cx, &path).await {
            Ok(whole) => whole,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Note::default(), None)),
            Err(error) => return Err(error),
        };
        let note: Note = serde_json::from_slice(&whole.content).map_err(|source| {
            Error::invalid_argument("this is not the note of an overlay; another program wrote it")
                .with_path(&path)
                .with_source(source)
        })?;
        Ok((note, Some(whole.version)))
    }

    async fn write(&self, cx: &OpContext, note: &Note) -> Result<()> {
        let path = self.path()?;
        let text = serde_json::to_vec(note).map_err(|source| {
            Error::new(ErrorKind::Internal, "the overlay cannot be noted").with_path(&path).with_source(source)
        })?;
        let text = Bytes::from(text);
        self.catch_up(cx, &path).await?;
        let seen = self.seen().version.clone();
        let mode = seen.map_or(WriteMode::CreateNew, WriteMode::IfVersion);
        self.seen().attempt = Some(text.clone());
        let written = self.backend.write(cx, WriteRequest::new(path.clone(), text).mode(mode)).await;
        let written = written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::Conflict => {
                self.seen().attempt = None;
                changed_elsewhere(&path).with_source(error)
            }
            _ => error,
        })?;
        let is_committing = note.commit.is_some();
        *self.seen() = Seen { version: Some(written.version), attempt: None, is_committing };
        Ok(())
    }

    /// Finds out what became of a note whose answer was lost: it may have been written all the same.
    async fn catch_up(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        let Some(attempt) = self.seen().attempt.clone() else { return Ok(()) };
        if let Some(there) = fetch_if_there(&*self.backend, cx, path).await?
            && there.content == attempt
        {
            self.seen().version = Some(there.version);
        }
        self.seen().attempt = None;
        Ok(())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<VfsPath, (Version, ObjectId)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn changed_elsewhere(path: &VfsPath) -> Error {
    let message = "another process changed the overlay; open it again";
    Error::new(ErrorKind::Conflict, message).with_path(path)
}
