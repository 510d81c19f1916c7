//! Persistence of an overlay in a store: its changes, and the commit in progress.

mod contents;
mod record;
mod record_state;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, Version, VfsPath, WriteMode, WriteRequest};

use self::contents::Generations;
use self::record::{CommitPhase, CommitRecord, CommitStep, OverlayRecord, random_id};
use self::record_state::RecordState;
use super::commit::{changed_since, make_room, remove_emptied, set};
use super::merged::{Before, Merged, fetch, fetch_if_there};
use super::plan::{BaseEntry, Planned, seen};
use crate::content_store::{ContentStore, ObjectId};

/// Extent of the persistence of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All changes, saved after each one.
    Changes,
    /// Commits in progress only: a journal.
    Commits,
}

/// Origin of the recorded commit that was finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finished {
    Nothing,
    /// Begun by this overlay.
    Own,
    /// Begun by another process.
    Other,
}

/// Persistent side of an overlay: its record and contents in a directory of a backend.
#[derive(Debug, Clone)]
pub(super) struct Persistence {
    backend: Arc<dyn Backend>,
    directory: VfsPath,
    generations: Generations,
    extent: Extent,
    /// The version of the record that was read or written last: what another process wrote meanwhile is not written over.
    seen: Arc<Mutex<RecordState>>,
    /// Objects of contents that are stored already, so that each is put only once.
    known: Arc<Mutex<HashMap<VfsPath, (Version, ObjectId)>>>,
}

impl Persistence {
    pub(super) fn new(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        let generations = Generations::new(Arc::clone(&backend), directory.clone());
        Self { backend, directory, generations, extent: Extent::Changes, seen: Arc::default(), known: Arc::default() }
    }

    pub(super) fn for_commits(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self { extent: Extent::Commits, ..Self::new(backend, directory) }
    }

    /// Returns `empty` with the stored changes. A commit that was cut short is finished first.
    pub(super) async fn load(&self, cx: &OpContext, empty: Merged) -> Result<Merged> {
        loop {
            let record = self.adopt(cx).await?;
            let loaded = if record.commit.is_none() {
                self.restore(cx, empty.draft(), record).await.map(Some)
            } else {
                self.finish_and_settle(cx, &*empty.base).await.map(|()| None)
            };
            match loaded {
                Ok(Some(state)) => return Ok(state),
                // Another process may have finished the commit, or removed these contents, meanwhile.
                Err(error) if self.is_current(cx).await => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
    }

    /// Returns `state` with the changes of `record`.
    async fn restore(&self, cx: &OpContext, mut state: Merged, record: OverlayRecord) -> Result<Merged> {
        let contents = self.contents()?;
        for (path, object) in record.files {
            let content = contents.get(cx, &object).await?;
            let request = WriteRequest::new(path, content).mode(WriteMode::Overwrite);
            state.upper.write(cx, request).await?;
        }
        state.touched = record.touched.into_iter().collect();
        state.gone = record.gone.into_iter().collect();
        Ok(state)
    }

    async fn finish_and_settle(&self, cx: &OpContext, base: &dyn Backend) -> Result<()> {
        self.finish(cx, base).await?;
        self.settle(cx).await
    }

    /// Saves `state`.
    pub(super) async fn save(&self, cx: &OpContext, state: &Merged) -> Result<()> {
        self.check_finished()?;
        if self.extent == Extent::Commits {
            return self.withdraw(cx).await;
        }
        let record = self.record(cx, state).await?;
        self.write(cx, record).await
    }

    /// Refuses to go on while a commit is to be finished.
    pub(super) fn check_finished(&self) -> Result<()> {
        let is_begun = {
            let seen = self.seen();
            seen.commit.is_some() && seen.unbegun.is_none()
        };
        if is_begun {
            let message = "a commit was not finished; finish it before anything else is changed";
            return Err(Error::new(ErrorKind::Conflict, message).with_path(&self.directory));
        }
        Ok(())
    }

    /// Records that a commit of `planned` is about to begin.
    pub(super) async fn begin(&self, cx: &OpContext, state: &Merged, planned: &[Planned]) -> Result<()> {
        if self.reread(cx).await?.commit.is_some() {
            let message = "a commit that was cut short is noted here; finish it before the next begins";
            return Err(Error::new(ErrorKind::Conflict, message).with_path(&self.directory));
        }
        let mut record = match self.extent {
            Extent::Changes => self.record(cx, state).await?,
            Extent::Commits => OverlayRecord { gone: state.gone.iter().cloned().collect(), ..OverlayRecord::default() },
        };
        let contents = self.contents()?;
        let mut steps = Vec::with_capacity(planned.len());
        for change in planned {
            let after = match &change.after {
                Some(content) => Some(contents.put(cx, content).await?),
                None => None,
            };
            let was = change.before.content().map(|content| ObjectId::of(content));
            steps.push(CommitStep { path: change.path.clone(), before: change.before.as_before(), was, after });
        }
        let id = random_id();
        record.commit = Some(CommitRecord { phase: CommitPhase { id, is_rolling_back: false }, steps });
        self.write(cx, record).await?;
        self.seen().own = Some(id);
        Ok(())
    }

    /// Withdraws the record of a commit that did not begin. Later changes are not part of that commit, and would be lost if it
    /// were finished.
    async fn withdraw(&self, cx: &OpContext) -> Result<()> {
        let Some(unbegun) = self.seen().unbegun.clone() else { return Ok(()) };
        let path = self.path()?;
        self.catch_up(cx, &path).await?;
        let there = fetch_if_there(&*self.backend, cx, &path).await?;
        if there.is_some_and(|there| there.content == unbegun) {
            let record = match self.extent {
                Extent::Changes => OverlayRecord { commit: None, ..OverlayRecord::decode(&unbegun, &path)? },
                Extent::Commits => OverlayRecord::default(),
            };
            self.write(cx, record).await?;
        }
        let mut seen = self.seen();
        (seen.unbegun, seen.commit) = (None, None);
        Ok(())
    }

    /// Records that the commit was rolled back, and saves `state`.
    pub(super) async fn end(&self, cx: &OpContext, state: &Merged) -> Result<()> {
        let record = match self.extent {
            Extent::Changes => self.record(cx, state).await?,
            Extent::Commits => OverlayRecord::default(),
        };
        self.write(cx, record).await
    }

    /// Records that all of the commit is in the base, unless another process recorded that already.
    pub(super) async fn settle(&self, cx: &OpContext) -> Result<()> {
        let phase = self.seen().commit;
        loop {
            let Err(error) = self.write(cx, OverlayRecord::default()).await else { return Ok(()) };
            if error.kind() != ErrorKind::Conflict {
                return Err(error);
            }
            let (record, version) = self.read(cx).await?;
            if record.phase().map(|recorded| recorded.id) != phase.map(|settled| settled.id) {
                self.release(version, &record);
                return Ok(());
            }
            if record.phase() != phase {
                return Err(error);
            }
            // It is the same record with another version, such as that of a file that was copied.
            self.saw(version, &record);
        }
    }

    /// Leaves a commit that another process ended.
    fn release(&self, version: Option<Version>, record: &OverlayRecord) {
        let expected = self.seen().version.clone();
        self.saw(version, record);
        let mut seen = self.seen();
        (seen.commit, seen.own) = (None, None);
        if !self.is_journal() && !record.is_empty() {
            // The changes of another process are not those of this overlay, whose next one is a conflict.
            seen.version = expected;
        }
    }

    /// Claims the commit for a rollback: another process that finishes it stops at its next step. If one has finished it
    /// already, that is a `conflict`, and this overlay is done with it.
    pub(super) async fn begin_rollback(&self, cx: &OpContext) -> Result<()> {
        let path = self.path()?;
        loop {
            let whole = fetch(&*self.backend, cx, &path).await?;
            let (version, record) = (Some(whole.version), OverlayRecord::decode(&whole.content, &path)?);
            if record.commit.is_none() || record.phase() != self.seen().commit {
                self.release(version, &record);
                return Err(changed_elsewhere(&path));
            }
            self.saw(version, &record);
            match self.write(cx, record.with_rollback(true)).await {
                // The next look at it decides.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                written => return written,
            }
        }
    }

    pub(super) fn is_journal(&self) -> bool {
        self.extent == Extent::Commits
    }

    /// Records that the commit is still to be finished, from what `state` expects of the base.
    pub(super) async fn record_expected(&self, cx: &OpContext, state: &Merged) -> Result<()> {
        let mut record = self.reread(cx).await?;
        if !self.seen().is_own() {
            return Err(changed_elsewhere(&self.path()?));
        }
        let steps =
            record.commit.iter_mut().flat_map(|commit| &mut commit.steps).map(|step| (&step.path, &mut step.before));
        for (path, before) in record.touched.iter_mut().chain(steps) {
            if let Some(expected) = state.touched.get(path) {
                *before = expected.clone();
            }
        }
        self.write(cx, record.with_rollback(false)).await
    }

    /// Applies what is left of the commit that is recorded, and says which that was. It is recorded until it is
    /// [settled](Self::settle).
    pub(super) async fn finish(&self, cx: &OpContext, base: &dyn Backend) -> Result<Finished> {
        let mut record = self.reread(cx).await.map_err(of_store)?;
        if record.phase().is_some_and(|commit| commit.is_rolling_back) {
            // The process that rolls it back stops then, where it still runs.
            record = record.with_rollback(false);
            self.write(cx, record.clone()).await.map_err(of_store)?;
        }
        let OverlayRecord { commit: Some(CommitRecord { steps, .. }), gone, .. } = record else {
            return Ok(Finished::Nothing);
        };
        let contents = self.contents()?;
        let finished = if self.seen().is_own() { Finished::Own } else { Finished::Other };
        let gone = gone.into_iter().collect();
        for CommitStep { path, before, was, after } in steps {
            if !self.is_current(cx).await {
                // Another process recorded the end, after which what is in the base may be changed again, or rolls it back.
                return Err(of_store(changed_elsewhere(&self.path()?)));
            }
            let there = seen(base, cx, &path).await?;
            let now = there.as_before();
            // A link that was removed already may be followed by the file that takes its place.
            let is_under_way = before == Before::Link && now == Before::Nothing;
            if is_done(&there, after.as_ref()) {
                continue;
            }
            let is_restored = there.content().map(|content| ObjectId::of(content)).is_some_and(|is| Some(is) == was);
            if now != before && !is_under_way && !is_restored {
                return Err(changed_since(&path, now.version().cloned()));
            }
            let content = match &after {
                Some(object) => Some(contents.get(cx, object).await.map_err(of_store)?),
                None => None,
            };
            if now == Before::Nothing {
                make_room(cx, base, &gone, &path).await;
            }
            if let Err(error) = set(cx, base, &path, &now, content).await {
                // The process that began the commit may still run, or another one finish it, too.
                let is_made = seen(base, cx, &path).await.is_ok_and(|there| is_done(&there, after.as_ref()));
                if !is_made {
                    return Err(error);
                }
            }
        }
        remove_emptied(&cx.for_cleanup(), base, &gone).await;
        Ok(finished)
    }

    async fn record(&self, cx: &OpContext, state: &Merged) -> Result<OverlayRecord> {
        let mut record = OverlayRecord {
            touched: state.touched.iter().map(|(path, before)| (path.clone(), before.clone())).collect(),
            gone: state.gone.iter().cloned().collect(),
            ..OverlayRecord::default()
        };
        self.catch_up(cx, &self.path()?).await?;
        let contents = self.contents()?;
        for path in state.touched.keys() {
            let Some(whole) = fetch_if_there(&state.upper, cx, path).await? else { continue };
            let known = self.known().get(path).filter(|(version, _)| *version == whole.version).cloned();
            let object = match known {
                Some((_, object)) => object,
                None => contents.put(cx, &whole.content).await?,
            };
            self.known().insert(path.clone(), (whole.version, object.clone()));
            record.files.insert(path.clone(), object);
        }
        Ok(record)
    }

    fn path(&self) -> Result<VfsPath> {
        self.directory.child("overlay.json")
    }

    /// The contents of the current generation.
    fn contents(&self) -> Result<ContentStore> {
        self.generations.get(self.seen().generation)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<VfsPath, (Version, ObjectId)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether what is `there` is the content `after`, or nothing where that is `None`. The content itself may be gone from the
/// store, where only the end could not be recorded.
fn is_done(there: &BaseEntry, after: Option<&ObjectId>) -> bool {
    match there {
        BaseEntry::Link => false,
        BaseEntry::Nothing => after.is_none(),
        BaseEntry::File(whole) => after.is_some_and(|after| ObjectId::of(&whole.content) == *after),
    }
}

/// Returns `error` of the store at the root, since the caller knows no path of the store.
pub(super) fn of_store(error: Error) -> Error {
    error.with_path(&VfsPath::root())
}

fn changed_elsewhere(path: &VfsPath) -> Error {
    let message = "another process changed the overlay; open it again, and let one process at a time change it";
    Error::new(ErrorKind::Conflict, message).with_path(path)
}
