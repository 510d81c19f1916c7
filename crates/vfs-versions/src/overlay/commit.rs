//! Commit of an overlay: its changes applied to the base, with conflict detection.

use vfs_core::snapshots::SnapshotDiffResult;
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};

use super::backend::OverlayBackend;
use super::commit_executor::CommitExecutor;
use super::commit_plan::{CommitConflict, PlannedChange, file_change, plan};
use super::overlay_persistence::commit_recovery::CommitOwner;
use super::overlay_persistence::overlay_manifest_file::at_root;
use super::overlay_state::OverlayState;

/// Result of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommitResult {
    /// The base has all changes now, and the overlay none.
    Applied(SnapshotDiffResult),
    /// The base was changed at these paths since they were changed in the overlay; nothing was applied.
    Conflicts(Vec<CommitConflict>),
}

impl OverlayBackend {
    /// Applies all changes to the base.
    ///
    /// # Behaviour
    ///
    /// * Every file is checked first: if the base has another version than at the first change in the overlay, and not the
    ///   content to be written, the file is a [conflict](CommitResult::Conflicts), and nothing is applied.
    /// * Then each file is written or deleted under the condition that it still has the checked version: first, entries in the
    ///   way of a write are removed (a file where a directory is to be, or the other way round), then all files are written, and
    ///   then the others are deleted. So the base needs room for the written files before deletions free any.
    /// * If a step fails, all steps are rolled back, and the commit can be repeated. A file that was removed, because it was in the
    ///   way or before another could not be deleted, comes back with the permissions of a new file. New directories stay, a
    ///   removed empty directory does not come back, and a removed link is named in the error.
    /// * If a step cannot be rolled back, the error names the file. With a journal or a store, further changes are refused until
    ///   the commit is [finished](Self::finish_commit). The same holds if all steps were applied but that could not be recorded:
    ///   the overlay has no changes then.
    /// * A crash in the middle leaves some files changed. With a [journal](Self::with_journal), and in a
    ///   [persistent](Self::open) overlay, the rest follows when the commit is [finished](Self::finish_commit).
    /// * Another process that finds the commit in the store finishes it as well, also while it runs here. The steps that the
    ///   other process applied count: either all are applied, or all are rolled back. If it finished the commit while a step
    ///   failed here, the error says so, and the overlay has no changes. If it continues a commit that is rolled back here, the
    ///   error says so, too.
    /// * A rollback is recorded before it begins. If it cannot be recorded, files are restored all the same, and another process
    ///   that finishes the commit at that moment may miss one.
    /// * Directories that were deleted in the overlay and have no file left are removed, too. Links that were deleted in the
    ///   overlay are removed last, since they cannot be restored; links in the way of a write are removed right before the first
    ///   write.
    /// * During the commit, the old contents of all changed files are buffered in memory for a rollback.
    ///
    /// # Errors
    ///
    /// The errors of the base, and at the root those of the journal or store. Nothing is changed then, or the error
    /// names what was changed.
    pub async fn commit(&self, cx: &OpContext) -> Result<CommitResult> {
        let this = self.clone();
        vfs_search::run_to_completion(cx, |cx| async move { this.commit_whole(&cx).await }).await
    }

    async fn commit_whole(&self, cx: &OpContext) -> Result<CommitResult> {
        let cx = &cx.without_operation_id();
        cx.check()?;
        let mut persistence = self.lock(cx, &VfsPath::root()).await?;
        let mut persistence = persistence.as_mut();
        let state = self.state();
        if state.is_unchanged() {
            if let Some(persistence) = persistence {
                persistence.file.check_finished().map_err(at_root)?;
            }
            return Ok(CommitResult::Applied(SnapshotDiffResult::default()));
        }
        let (planned, conflicts) = plan(cx, &state).await?;
        if !conflicts.is_empty() {
            return Ok(CommitResult::Conflicts(conflicts));
        }
        if let Some(persistence) = &mut persistence {
            persistence.begin(cx, &state, &planned).await.map_err(at_root)?;
        }
        let mut steps = CommitExecutor::new(&state, persistence, planned);
        if let Err(error) = steps.apply(cx).await {
            // A caller that has given up must not leave a half-applied commit.
            return Err(self.roll_back(&cx.for_cleanup(), steps, error).await);
        }
        let changes = steps.applied.iter().filter_map(|(PlannedChange { path, before, after }, version)| {
            file_change(path, before, after.as_deref().zip(version.clone()))
        });
        let mut changes: Vec<_> = changes.collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        // The changes are applied, whether or not that can be recorded.
        self.clear_state();
        if let Some(persistence) = steps.persistence {
            persistence.end_applied(&cx.for_cleanup()).await.map_err(unrecorded)?;
        }
        Ok(CommitResult::Applied(SnapshotDiffResult::new(changes)))
    }

    /// Rolls back `steps` after `error`. The returned error names what could not be restored or recorded.
    async fn roll_back(&self, cx: &OpContext, mut steps: CommitExecutor<'_>, error: Error) -> Error {
        let mut error = error.or_path(&VfsPath::root());
        let mut recorded = match &mut steps.persistence {
            Some(persistence) => persistence.begin_rollback(cx).await,
            None => Ok(()),
        };
        if recorded.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict) {
            // The base has all changes.
            self.clear_state();
            return error.with_consequence("another process has finished the commit");
        }
        let state = steps.roll_back(cx, recorded.is_ok()).await;
        if let (Some(persistence), Ok(())) = (&mut steps.persistence, &recorded) {
            // A file that could not be restored is still to be committed.
            recorded = if steps.unrestored.is_empty() {
                persistence.end_rolled_back(cx, &state).await
            } else {
                persistence.record_expected(cx, &state).await
            };
        }
        self.set_state(state);
        for (problem, paths) in [
            ("these files could not be restored", &steps.unrestored),
            ("these files were restored though another process finishes the commit", &steps.unapplied),
        ] {
            if !paths.is_empty() {
                let paths: Vec<_> = paths.iter().map(VfsPath::as_str).collect();
                error = error.with_consequence(format_args!("{problem}: {}", paths.join(", ")));
            }
        }
        match recorded {
            Ok(()) => error,
            Err(cause) if cause.kind() == ErrorKind::Conflict => {
                error.with_consequence("another process continues the commit; finish it before any other change")
            }
            Err(cause) => error
                .with_consequence("the rollback could not be recorded; finish the commit before any other change")
                .with_source(cause),
        }
    }

    /// Finishes a commit that a crash interrupted, as it is recorded in the [journal](Self::with_journal) or store, and returns
    /// whether there was one.
    ///
    /// If this overlay began the commit, it has no changes afterwards. If another process began it, the changes of this overlay
    /// stay, also if another process finished it: a later commit skips files that the base has already.
    ///
    /// # Errors
    ///
    /// `conflict` if a file that was still to be written was changed since, those of the base, and at the root those of the
    /// journal or store. The record of the commit stays then.
    pub async fn finish_commit(&self, cx: &OpContext) -> Result<bool> {
        let this = self.clone();
        vfs_search::run_to_completion(cx, |cx| async move { this.finish_whole(&cx).await }).await
    }

    async fn finish_whole(&self, cx: &OpContext) -> Result<bool> {
        let cx = &cx.without_operation_id();
        let mut persistence = self.lock(cx, &VfsPath::root()).await?;
        let Some(persistence) = persistence.as_mut() else { return Ok(false) };
        let mut was_recorded = false;
        loop {
            let origin = match persistence.finish(cx, &*self.base()).await {
                Ok(origin) => origin,
                // The journal says that another process has finished the commit, or rolls it back.
                Err(_) if persistence.is_journal() && !persistence.file.is_current(cx).await => {
                    was_recorded = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Some(origin) = origin else { return Ok(was_recorded) };
            if origin == CommitOwner::Own {
                // The base has the changes of this overlay now.
                self.clear_state();
            }
            persistence.end_applied(&cx.for_cleanup()).await.map_err(unrecorded)?;
            return Ok(true);
        }
    }

    /// Replaces the state by one without changes.
    fn clear_state(&self) {
        self.set_state(OverlayState::new(self.base(), self.budget()));
    }
}

/// Returns `error` of recording the end of a commit, with the information that all changes were applied.
fn unrecorded(error: Error) -> Error {
    let consequence =
        "all changes were applied, but that could not be recorded; finish the commit before any other change";
    at_root(error.with_consequence(consequence))
}
