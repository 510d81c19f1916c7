//! Execution of the steps of a commit on the base, with rollback.

use std::collections::VecDeque;

use bytes::Bytes;
use vfs_core::transfer::remove_empty_dirs;
use vfs_core::{Error, ErrorKind, OpContext, Result, Version, VfsPath};

use super::base_access::{BaseEntry, base_entry, is_behind_link, make_room, remove_emptied, replace_in_base};
use super::commit_plan::PlannedChange;
use super::overlay_persistence::OverlayPersistence;
use super::overlay_state::OverlayState;
use crate::versioned_entry::VersionedEntry;

/// An applied step of a commit, with the resulting version of the file.
type AppliedCommitStep = (PlannedChange, Option<Version>);

/// Steps and progress of a commit.
pub(super) struct CommitExecutor<'a> {
    state: &'a OverlayState,
    /// Record of the commit. Another process that finds the record finishes the commit as well, and the files that it applied
    /// count as applied.
    pub(super) persistence: Option<&'a mut OverlayPersistence>,
    pending: VecDeque<PlannedChange>,
    pub(super) applied: Vec<AppliedCommitStep>,
    /// Files that may have been changed and could not be restored.
    pub(super) unrestored: Vec<VfsPath>,
    /// Files that were restored and could not be changed again for another process that finishes the commit.
    pub(super) unapplied: Vec<VfsPath>,
}

impl<'a> CommitExecutor<'a> {
    pub(super) fn new(
        state: &'a OverlayState,
        persistence: Option<&'a mut OverlayPersistence>,
        planned: Vec<PlannedChange>,
    ) -> Self {
        let (applied, unrestored, unapplied) = (Vec::new(), Vec::new(), Vec::new());
        Self { state, persistence, pending: planned.into(), applied, unrestored, unapplied }
    }

    /// Applies every step.
    pub(super) async fn apply(&mut self, cx: &OpContext) -> Result<()> {
        let base = &*self.state.base;
        while let Some(step) = self.pending.front() {
            cx.check()?;
            if !is_current(&mut self.persistence, cx).await {
                // Another process recorded the end of the commit, after which the base may be changed again.
                self.add_foreign_steps(&cx.for_cleanup()).await;
                return Ok(());
            }
            let before = step.before.to_version();
            if before == VersionedEntry::Nothing {
                make_room(base, cx, &self.state.hidden, &step.path).await;
            }
            match replace_in_base(base, cx, &step.path, &before, step.after.clone()).await {
                Ok(version) => self.advance(version),
                Err(error) => self.resume(&cx.for_cleanup(), error).await?,
            }
        }
        // All steps are applied, so a cancellation does not stop the rest.
        remove_emptied(base, &cx.for_cleanup(), &self.state.hidden).await;
        Ok(())
    }

    /// Continues after the next step ended in `error`, if another process applied that step.
    async fn resume(&mut self, cx: &OpContext, error: Error) -> Result<()> {
        let Some(step) = self.pending.front() else { return Err(error) };
        match base_entry(&*self.state.base, cx, &step.path).await {
            Ok(present) if self.persistence.is_some() && self.is_applied(cx, step, &present).await => {
                self.advance(present.version().cloned());
                return Ok(());
            }
            Ok(present) if was_applied(step, &present, &error) => self.advance(present.version().cloned()),
            Err(_) if may_be_applied(step, &error) => {
                let path = step.path.clone();
                self.pending.pop_front();
                self.unrestored.push(path);
            }
            _ => {}
        }
        Err(error)
    }

    fn advance(&mut self, version: Option<Version>) {
        self.applied.extend(self.pending.pop_front().map(|step| (step, version)));
    }

    /// Returns whether the entry `present` is the result of `step`.
    async fn is_applied(&self, cx: &OpContext, step: &PlannedChange, present: &BaseEntry) -> bool {
        !matches!(present, VersionedEntry::Link)
            && present.content() == step.after.as_ref()
            && !is_behind_link(&*self.state.base, cx, &step.path).await.unwrap_or(true)
    }

    /// Moves the pending steps that another process applied to the applied ones.
    async fn add_foreign_steps(&mut self, cx: &OpContext) {
        for step in std::mem::take(&mut self.pending) {
            match base_entry(&*self.state.base, cx, &step.path).await {
                Ok(present) => {
                    let is_unlinked =
                        matches!((&step.before, &present), (VersionedEntry::Link, VersionedEntry::Nothing));
                    if is_unlinked || self.is_applied(cx, &step, &present).await {
                        self.applied.push((step, present.version().cloned()));
                    }
                }
                Err(_) => self.unrestored.push(step.path),
            }
        }
    }

    /// Restores every file that was changed, and if the rollback is recorded (`is_recorded`), those that another process changed
    /// as well. Returns the state that expects the versions of the restored files, which on a disk are new versions of the same
    /// content.
    ///
    /// Stops if another process continues the commit, and applies the restored steps again.
    pub(super) async fn roll_back(&mut self, cx: &OpContext, is_recorded: bool) -> OverlayState {
        if is_recorded && self.persistence.is_some() {
            self.add_foreign_steps(cx).await;
        }
        let base = &*self.state.base;
        let (mut next, mut restored) = (self.state.clone(), Vec::new());
        for (PlannedChange { path, before, after }, version) in std::mem::take(&mut self.applied).into_iter().rev() {
            let present = VersionedEntry::from(version);
            if present == VersionedEntry::Nothing {
                // The directories that took the place of the file have no file left. If one stays, the file cannot be restored,
                // which is reported below.
                let _ = remove_empty_dirs(base, cx, &path).await;
            }
            let outcome = match &before {
                BaseEntry::Link => Err(Error::at(ErrorKind::Unsupported, &path)),
                before => replace_in_base(base, cx, &path, &present, before.content().cloned()).await,
            };
            match outcome {
                Ok(version) => {
                    if let Some(version) = &version {
                        next.originals.insert_mut(path.clone(), VersionedEntry::File(version.clone()));
                    }
                    restored.push((path, VersionedEntry::from(version), after));
                }
                Err(error) => {
                    tracing::warn!(%path, %error, "failed to restore a file that a failed commit changed");
                    next.originals.insert_mut(path.clone(), present);
                    self.unrestored.push(path);
                }
            }
            if !is_current(&mut self.persistence, cx).await {
                self.apply_again(cx, restored).await;
                break;
            }
        }
        next
    }

    /// Applies the `restored` steps again, since another process may have applied them before and does not repeat them.
    async fn apply_again(&mut self, cx: &OpContext, restored: Vec<(VfsPath, VersionedEntry<Version>, Option<Bytes>)>) {
        use ErrorKind::{AlreadyExists, Conflict, NotFound};
        for (path, present, after) in restored {
            match replace_in_base(&*self.state.base, cx, &path, &present, after).await {
                // If that process has written the file as well, its version is another one.
                Err(error) if !matches!(error.kind(), Conflict | AlreadyExists | NotFound) => self.unapplied.push(path),
                _ => {}
            }
        }
    }
}

/// Returns whether the record of the commit is unchanged, or cannot be read.
async fn is_current(persistence: &mut Option<&mut OverlayPersistence>, cx: &OpContext) -> bool {
    match persistence {
        Some(persistence) => persistence.file.is_current(cx).await,
        None => true,
    }
}

/// Returns whether `step`, which ended in `error` and left the entry `present`, was applied nevertheless.
fn was_applied(step: &PlannedChange, present: &BaseEntry, error: &Error) -> bool {
    match (&step.before, present) {
        // The link was removed, and the file that should take its place may be missing.
        (VersionedEntry::Link, VersionedEntry::Nothing) => true,
        // Only the response may have been lost.
        (before, present) => {
            may_be_applied(step, error)
                && present.to_version() != before.to_version()
                && present.content() == step.after.as_ref()
        }
    }
}

/// Returns whether `step`, which ended in `error`, may have been applied nevertheless.
fn may_be_applied(step: &PlannedChange, error: &Error) -> bool {
    let may_be_halved = matches!(step.before, VersionedEntry::Link) && step.after.is_some();
    may_be_halved || error.is_temporary() || error.kind() == ErrorKind::Cancelled
}
