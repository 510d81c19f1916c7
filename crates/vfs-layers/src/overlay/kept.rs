//! An overlay in a store: its changes, and a commit that is under way.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, Version, VfsPath, WriteMode, WriteRequest};

use super::commit::{changed_since, make_room, remove_emptied, set};
use super::merged::{Before, Merged, fetch, fetch_if_there};
use super::plan::{Planned, Seen as SeenInBase, seen};
use crate::objects::{ObjectId, Objects};

/// What of an overlay is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All its changes, after each.
    Changes,
    /// Commits that are under way.
    Commits,
}

/// The commit that was noted and is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finished {
    Nothing,
    /// The one that this overlay began.
    Own,
    /// One that another process began.
    Other,
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
    /// The note of a commit that went no further, as nobody said that it was written.
    unbegun: Option<Bytes>,
    /// Whether a commit is noted that was not ended.
    is_committing: bool,
    /// Whether this overlay began it: the note is the one that was written here.
    is_own: bool,
}

/// What is written down. Contents are objects.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    /// Another one in each note, so that no two are the same, nor have one version.
    #[serde(default)]
    mark: u64,
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
    /// The content of a file before, which is another version where it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    was: Option<ObjectId>,
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
        let note = self.adopt(cx).await?;
        if note.commit.is_some() && self.finish(cx, &*empty.base).await? != Finished::Nothing {
            self.settle(cx).await?;
            return Ok(empty);
        }
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
        self.check_finished()?;
        if self.extent == Extent::Commits {
            return self.withdraw(cx).await;
        }
        let note = self.note(cx, state).await?;
        let is_last = note.files.is_empty();
        self.write(cx, note).await?;
        // Each change would cost a listing else.
        if is_last {
            self.sweep(cx).await;
        }
        Ok(())
    }

    /// Refuses to go on while a commit is to be finished.
    pub(super) fn check_finished(&self) -> Result<()> {
        if self.seen().is_committing {
            let message = "a commit was not finished; finish it before anything else is changed";
            return Err(Error::new(ErrorKind::Conflict, message).with_path(&self.directory));
        }
        Ok(())
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
            let was = change.before.content().map(|content| ObjectId::of(content));
            steps.push(Step { path: change.path.clone(), before: change.before.as_before(), was, after });
        }
        note.commit = Some(steps);
        self.write(cx, note).await
    }

    /// Takes back the note of a commit that went no further. What is changed later is no part of it, and would be lost where
    /// it is finished.
    async fn withdraw(&self, cx: &OpContext) -> Result<()> {
        let Some(unbegun) = self.seen().unbegun.clone() else { return Ok(()) };
        let path = self.path()?;
        self.catch_up(cx, &path).await?;
        let there = fetch_if_there(&*self.backend, cx, &path).await?;
        if there.is_some_and(|there| there.content == unbegun) {
            let note = match self.extent {
                Extent::Changes => Note { commit: None, ..self.decode(&unbegun)? },
                Extent::Commits => Note::default(),
            };
            self.write(cx, note).await?;
        }
        self.seen().unbegun = None;
        Ok(())
    }

    /// Notes that the commit was taken back, and keeps `state`.
    pub(super) async fn end(&self, cx: &OpContext, state: &Merged) -> Result<()> {
        let note = match self.extent {
            Extent::Changes => self.note(cx, state).await?,
            Extent::Commits => Note::default(),
        };
        self.write(cx, note).await
    }

    /// Notes that all of the commit is in the base.
    pub(super) async fn settle(&self, cx: &OpContext) -> Result<()> {
        // As long as the commit is noted, no other one can begin, whose contents would go, too.
        let (_, version) = self.read(cx).await?;
        let is_noted = self.seen().version == version;
        if is_noted {
            self.sweep(cx).await;
        }
        self.write(cx, Note::default()).await
    }

    /// Notes that the commit is still to be finished, from what `state` expects of the base.
    pub(super) async fn note_expected(&self, cx: &OpContext, state: &Merged) -> Result<()> {
        let mut note = self.reread(cx).await?;
        if !self.seen().is_own {
            return Err(changed_elsewhere(&self.path()?));
        }
        let steps = note.commit.iter_mut().flatten().map(|step| (&step.path, &mut step.before));
        for (path, before) in note.touched.iter_mut().chain(steps) {
            if let Some(expected) = state.touched.get(path) {
                *before = expected.clone();
            }
        }
        self.write(cx, note).await
    }

    /// Removes all contents. What names them is settled, so that contents which stay are no failure.
    async fn sweep(&self, cx: &OpContext) {
        self.known().clear();
        if let Err(error) = self.objects.retain(cx, &HashSet::new()).await {
            tracing::warn!(%error, "contents that are needed no more stay in the store of an overlay");
        }
    }

    /// Applies what is left of the commit that is noted, and says which that was. It is noted until it is
    /// [settled](Self::settle).
    pub(super) async fn finish(&self, cx: &OpContext, base: &dyn Backend) -> Result<Finished> {
        let Note { commit: Some(steps), gone, .. } = self.reread(cx).await.map_err(of_store)? else {
            return Ok(Finished::Nothing);
        };
        let finished = if self.seen().is_own { Finished::Own } else { Finished::Other };
        let gone = gone.into_iter().collect();
        for Step { path, before, was, after } in steps {
            let there = seen(base, cx, &path).await?;
            let now = there.as_before();
            // A link that was removed already may be followed by the file that takes its place.
            let is_under_way = before == Before::Link && now == Before::Nothing;
            let is_done = match &there {
                SeenInBase::Link => false,
                SeenInBase::Nothing => after.is_none(),
                // The content itself may be gone, where only the end could not be noted.
                SeenInBase::File(whole) => after.as_ref().is_some_and(|after| ObjectId::of(&whole.content) == *after),
            };
            if is_done {
                continue;
            }
            let is_taken_back = there.content().map(|content| ObjectId::of(content)).is_some_and(|is| Some(is) == was);
            if now != before && !is_under_way && !is_taken_back {
                return Err(changed_since(&path, now.version().cloned()));
            }
            let after = match after {
                Some(object) => Some(self.objects.get(cx, &object).await.map_err(of_store)?),
                None => None,
            };
            if now == Before::Nothing {
                make_room(cx, base, &gone, &path).await;
            }
            set(cx, base, &path, &now, after).await?;
        }
        remove_emptied(&cx.unhurried(), base, &gone).await;
        Ok(finished)
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
        *self.seen() = Seen { version, is_committing, ..Seen::default() };
        Ok(note)
    }

    /// The note that is there, which has to be the one that this process left, where the changes of others matter.
    async fn reread(&self, cx: &OpContext) -> Result<Note> {
        let path = self.path()?;
        self.withdraw(cx).await?;
        self.catch_up(cx, &path).await?;
        let (note, version) = self.read(cx).await?;
        let expected = self.seen().version.clone();
        if self.extent == Extent::Changes && expected != version {
            return Err(changed_elsewhere(&path));
        }
        self.saw(version, &note);
        Ok(note)
    }

    async fn read(&self, cx: &OpContext) -> Result<(Note, Option<Version>)> {
        let path = self.path()?;
        let whole = match fetch(&*self.backend, cx, &path).await {
            Ok(whole) => whole,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Note::default(), None)),
            Err(error) => return Err(error),
        };
        Ok((self.decode(&whole.content)?, Some(whole.version)))
    }

    fn decode(&self, text: &[u8]) -> Result<Note> {
        let path = self.path()?;
        serde_json::from_slice(text).map_err(|source| {
            Error::invalid_argument("this is not the note of an overlay; another program wrote it")
                .with_path(&path)
                .with_source(source)
        })
    }

    fn encode(&self, note: &Note) -> Result<Bytes> {
        let path = self.path()?;
        let text = serde_json::to_vec(note).map_err(|source| {
            Error::new(ErrorKind::Internal, "the overlay cannot be noted").with_path(&path).with_source(source)
        })?;
        Ok(Bytes::from(text))
    }

    async fn write(&self, cx: &OpContext, mut note: Note) -> Result<()> {
        note.mark = fastrand::u64(..);
        let (path, text) = (self.path()?, self.encode(&note)?);
        self.catch_up(cx, &path).await?;
        let is_committing = note.commit.is_some();
        let mode = {
            let mut seen = self.seen();
            seen.attempt = Some(text.clone());
            if is_committing && !seen.is_committing {
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
        let version = Some(written.version);
        *self.seen() = Seen { version, is_committing, is_own: is_committing, ..Seen::default() };
        Ok(())
    }

    /// Remembers that `note` is there in this version.
    fn saw(&self, version: Option<Version>, note: &Note) {
        let mut seen = self.seen();
        let is_committing = note.commit.is_some();
        let is_own = seen.is_own && is_committing && seen.version == version;
        *seen = Seen { version, is_committing, is_own, ..Seen::default() };
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

/// `error` of the store, for a caller who knows none of its paths.
pub(super) fn of_store(error: Error) -> Error {
    error.with_path(&VfsPath::root())
}

fn changed_elsewhere(path: &VfsPath) -> Error {
    let message = "another process changed the overlay; open it again, and let one process at a time change it";
    Error::new(ErrorKind::Conflict, message).with_path(path)
}
