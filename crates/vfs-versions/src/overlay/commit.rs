//! Commit of an overlay: its changes applied to the base, with conflict detection.

use std::sync::Arc;

use bytes::Bytes;
use rpds::RedBlackTreeSetSync;
use serde::{Deserialize, Serialize};
use vfs_core::links::is_link;
use vfs_core::{
    Backend, ChangeSet, DeleteRequest, Error, ErrorKind, LsRequest, OpContext, Result, Version, VfsPath, WriteMode,
    WriteRequest, prune,
};

use super::OverlayBackend;
use super::merged::{Before, Merged, is_hidden};
use super::persistence::{Finished, Persistence, of_store};
use super::plan::{Planned, file_change, is_elsewhere, plan};
use super::steps::Steps;

/// Outcome of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Commit {
    /// The base has all changes now, and the overlay none.
    Applied(ChangeSet),
    /// The base was changed at these paths since they were changed here; nothing was applied.
    Conflicts(Vec<CommitConflict>),
}

/// A file of the base that has changed since its first change in an overlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommitConflict {
    /// Path of the file.
    pub path: VfsPath,
    /// Version that the base had at the first change; `None` if it had no such file.
    pub expected: Option<Version>,
    /// Version that the base has now.
    pub actual: Option<Version>,
}

impl OverlayBackend {
    /// Applies all changes to the base.
    ///
    /// # Behaviour
    ///
    /// * Every file is checked first: if the base has another version than at the first change in the overlay, and not the
    ///   content to be written, the file is a [conflict](Commit::Conflicts), and nothing is applied.
    /// * Then each file is written or deleted under the condition that it still has the checked version: first, entries in the
    ///   way of a write are removed (a file where a directory is to be, or the other way round), then all files are written, and
    ///   then the others are deleted. So the base needs room for the written files before deletions free any.
    /// * If a step fails, all is rolled back, and can be committed again. A file that was removed, because it was in the way or
    ///   before another could not be deleted, comes back with the permissions of a new file. New directories stay, a removed empty
    ///   directory does not come back, and a removed link is named in the error.
    /// * If a step cannot be rolled back, the error names the file. With a journal or a store nothing is changed then before
    ///   the commit is [finished](Self::finish_commit), nor where all was applied and only that could not be recorded: the
    ///   overlay is without changes then.
    /// * A crash in the middle leaves some files changed. With a [journal](Self::with_journal), and in an overlay that is
    ///   [kept](Self::open), the rest follows when the commit is [finished](Self::finish_commit).
    /// * Another process that finds the commit in the store finishes it as well, also while it is made here. What that process
    ///   applied counts: either all is applied, or all is rolled back. If it finished the commit where a file failed here, the
    ///   error says so, and the overlay is without changes. If it goes on with what is rolled back here, the error says so, too.
    /// * A rollback is recorded before it begins. If it cannot be, files are restored all the same, and another process that
    ///   finishes the commit at that moment may pass over one.
    /// * Directories that were deleted here and have no file left go too. Links that were deleted here are removed last, as
    ///   they cannot be put back; those that stand in the way of a write, right before the first one.
    /// * During the commit, the old contents of all changed files are held in memory, for a rollback.
    ///
    /// # Errors
    ///
    /// Those of the base, and at the root those of the journal or store; all is as it was then, or the error says what is
    /// not.
    pub async fn commit(&self, cx: &OpContext) -> Result<Commit> {
        let this = self.clone();
        vfs_search::run_to_completion(cx, |cx| async move { this.commit_whole(&cx).await }).await
    }

    async fn commit_whole(&self, cx: &OpContext) -> Result<Commit> {
        cx.check()?;
        let _turn = self.turn(cx, &VfsPath::root()).await?;
        let state = self.state();
        if state.is_unchanged() {
            self.inner.persistence.as_ref().map_or(Ok(()), Persistence::check_finished).map_err(of_store)?;
            return Ok(Commit::Applied(ChangeSet::default()));
        }
        let (planned, conflicts) = plan(cx, &state).await?;
        if !conflicts.is_empty() {
            return Ok(Commit::Conflicts(conflicts));
        }
        let persistence = self.inner.persistence.as_ref();
        if let Some(persistence) = persistence {
            persistence.begin(cx, &state, &planned).await.map_err(of_store)?;
        }
        let mut steps = Steps::new(&state, persistence, planned);
        if let Err(error) = steps.apply(cx).await {
            // A caller that has given up must not leave a half-applied commit.
            return Err(self.roll_back(&cx.for_cleanup(), steps, error).await);
        }
        let changes = steps.applied.iter().filter_map(|(Planned { path, before, after }, version)| {
            file_change(path, before, after.as_deref().zip(version.clone()))
        });
        let mut changes: Vec<_> = changes.collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        // All is applied, whether or not that can be recorded.
        self.inner.state.store(Arc::new(Merged::new(self.base(), self.inner.budget)));
        if let Some(persistence) = persistence {
            persistence.settle(&cx.for_cleanup()).await.map_err(unsettled)?;
        }
        Ok(Commit::Applied(ChangeSet::new(changes)))
    }

    /// Rolls back `steps` after `error`. The returned error names what could not be restored or recorded.
    async fn roll_back(&self, cx: &OpContext, mut steps: Steps<'_>, error: Error) -> Error {
        let mut error = error.or_path(&VfsPath::root());
        let persistence = self.inner.persistence.as_ref();
        let mut recorded = match persistence {
            Some(persistence) => persistence.begin_rollback(cx).await,
            None => Ok(()),
        };
        if is_conflict(&recorded) {
            // The base has all changes.
            self.inner.state.store(Arc::new(Merged::new(self.base(), self.inner.budget)));
            return error.with_consequence("another process has finished the commit");
        }
        let state = steps.roll_back(cx, recorded.is_ok()).await;
        if let (Some(persistence), Ok(())) = (persistence, &recorded) {
            // What could not be restored is still to be finished.
            recorded = if steps.left.is_empty() {
                persistence.end(cx, &state).await
            } else {
                persistence.record_expected(cx, &state).await
            };
        }
        self.inner.state.store(Arc::new(state));
        for (what, paths) in [
            ("these files could not be made what they were", &steps.left),
            ("these files were restored though another process finishes the commit", &steps.unapplied),
        ] {
            if !paths.is_empty() {
                let paths: Vec<_> = paths.iter().map(VfsPath::as_str).collect();
                error = error.with_consequence(format_args!("{what}: {}", paths.join(", ")));
            }
        }
        match recorded {
            Ok(()) => error,
            Err(cause) if cause.kind() == ErrorKind::Conflict => {
                error.with_consequence("another process goes on with the commit, so finish it before anything else")
            }
            Err(cause) => error
                .with_consequence("nor could that be noted, so finish the commit before anything else")
                .with_source(cause),
        }
    }

    /// Finishes a commit that a crash cut short, as it is recorded in the [journal](Self::with_journal), and says whether
    /// there was one. Where it was this overlay's own, no change is left; where another process began it, the changes that
    /// were made here stay. So they do where another process finished it: a commit passes over what the base has.
    ///
    /// # Errors
    ///
    /// `conflict` where a file that was still to be written was changed since, and those of the base, and at the root
    /// those of the journal or store. The record then stays.
    pub async fn finish_commit(&self, cx: &OpContext) -> Result<bool> {
        let this = self.clone();
        vfs_search::run_to_completion(cx, |cx| async move { this.finish_whole(&cx).await }).await
    }

    async fn finish_whole(&self, cx: &OpContext) -> Result<bool> {
        let _turn = self.turn(cx, &VfsPath::root()).await?;
        let Some(persistence) = &self.inner.persistence else { return Ok(false) };
        let mut was_noted = false;
        loop {
            let finished = match persistence.finish(cx, &*self.base()).await {
                Ok(finished) => finished,
                // Another process has finished it, or rolls it back, which the journal says.
                Err(_) if persistence.is_journal() && !persistence.is_current(cx).await => {
                    was_noted = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if finished == Finished::Nothing {
                return Ok(was_noted);
            }
            if finished == Finished::Own {
                // What was changed here is in the base by now.
                self.inner.state.store(Arc::new(Merged::new(self.base(), self.inner.budget)));
            }
            persistence.settle(&cx.for_cleanup()).await.map_err(unsettled)?;
            return Ok(true);
        }
    }
}

/// Returns `error` of recording the end of a commit, with the information that all was applied.
fn unsettled(error: Error) -> Error {
    let consequence = "all was applied, but that could not be noted, so finish the commit before anything else";
    of_store(error.with_consequence(consequence))
}

fn is_conflict<T>(outcome: &Result<T>) -> bool {
    outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict)
}

/// Changes the file at `path` from `before` to `after`, and returns its new version.
pub(super) async fn set(
    cx: &OpContext,
    base: &dyn Backend,
    path: &VfsPath,
    before: &Before,
    after: Option<Bytes>,
) -> Result<Option<Version>> {
    if is_elsewhere(base, cx, path).await? {
        return Err(Error::at(ErrorKind::Conflict, path));
    }
    let delete = || DeleteRequest::new(path.clone());
    let mode = match (before, &after) {
        (Before::Nothing, None) => return Ok(None),
        (Before::File(version), None) => {
            return base.delete(cx, delete().expected_version(version.clone())).await.map(|_| None);
        }
        (Before::Link, _) => {
            // What was a link may be a file by now, which nobody asked to be removed.
            if !is_link(base, cx, path).await? {
                return Err(Error::at(ErrorKind::Conflict, path));
            }
            base.delete(cx, delete()).await?;
            WriteMode::CreateNew
        }
        (Before::Nothing, Some(_)) => WriteMode::CreateNew,
        (Before::File(version), Some(_)) => WriteMode::IfVersion(version.clone()),
    };
    let Some(content) = after else { return Ok(None) };
    let written = base.write(cx, WriteRequest::new(path.clone(), content).mode(mode)).await?;
    Ok(Some(written.version))
}

/// Returns whether nothing may be removed at `path`, since a directory above it is a link by now, or may be one.
async fn leads_elsewhere(cx: &OpContext, base: &dyn Backend, path: &VfsPath) -> bool {
    is_elsewhere(base, cx, path).await.unwrap_or(true)
}

/// Makes room in the base for a file at `path`: a directory there that is `gone` here goes, if no file is left in it.
pub(super) async fn make_room(cx: &OpContext, base: &dyn Backend, gone: &RedBlackTreeSetSync<VfsPath>, path: &VfsPath) {
    if is_hidden(gone, path) && !leads_elsewhere(cx, base, path).await {
        // One that stays keeps the file from being written, which says so.
        let _ = prune(base, cx, path).await;
    }
}

/// Removes the directories at and below those of `gone` that have no file left in the base.
pub(super) async fn remove_emptied(cx: &OpContext, base: &dyn Backend, gone: &RedBlackTreeSetSync<VfsPath>) {
    for path in gone {
        if leads_elsewhere(cx, base, path).await {
            continue;
        }
        // A directory that stays is no reason to take files back, and a link is a step of its own.
        if prune(base, cx, path).await.is_err_and(|error| error.kind() == ErrorKind::NotEmpty) {
            remove_empty_below(cx, base, path).await;
        }
    }
}

/// Removes the directories below `path` that are empty, and those that are so then.
async fn remove_empty_below(cx: &OpContext, base: &dyn Backend, path: &VfsPath) {
    let Ok(listed) = base.ls(cx, LsRequest::new(path.clone()).recursive()).await else { return };
    // In the order of paths, what is below a directory comes after it.
    for directory in listed.entries.into_iter().rev().filter(|entry| entry.is_dir) {
        let _ = base.delete(cx, DeleteRequest::new(directory.path).only_empty()).await;
    }
}

/// Refuses to go on with a file that is neither what it was nor what it should be.
pub(super) fn changed_since(path: &VfsPath, actual: Option<Version>) -> Error {
    let message = "a commit that was cut short would write this file, which was changed since; make it what it was, or \
                   what it should be, and try again";
    let detail = vfs_core::ErrorDetail::Conflict { actual };
    Error::new(ErrorKind::Conflict, message).with_path(path).with_detail(detail)
}
