//! Execution of the steps of a commit on the base, with rollback.

use std::collections::VecDeque;

use bytes::Bytes;
use vfs_core::{Error, ErrorKind, OpContext, Result, Version, VfsPath, prune};

use super::commit::{make_room, remove_emptied, set};
use super::merged::{Before, Merged};
use super::persistence::Persistence;
use super::plan::{BaseEntry, Planned, is_elsewhere, seen};

/// An applied step, with the resulting version of the file.
type Applied = (Planned, Option<Version>);

/// Steps and progress of a commit.
pub(super) struct Steps<'a> {
    state: &'a Merged,
    /// Record of the commit. Another process that finds the record finishes the commit as well, and the files that it applied
    /// count as applied.
    persistence: Option<&'a Persistence>,
    pending: VecDeque<Planned>,
    pub(super) applied: Vec<Applied>,
    /// The files that may have been changed, and could not be restored.
    pub(super) left: Vec<VfsPath>,
    /// The files that were restored, and could not be changed again for another process that finishes the commit.
    pub(super) unapplied: Vec<VfsPath>,
}

impl<'a> Steps<'a> {
    pub(super) fn new(state: &'a Merged, persistence: Option<&'a Persistence>, planned: Vec<Planned>) -> Self {
        Self {
            state,
            persistence,
            pending: planned.into(),
            applied: Vec::new(),
            left: Vec::new(),
            unapplied: Vec::new(),
        }
    }

    /// Applies every step.
    pub(super) async fn apply(&mut self, cx: &OpContext) -> Result<()> {
        let base = &*self.state.base;
        while let Some(step) = self.pending.front() {
            cx.check()?;
            if !self.is_noted(cx).await {
                // Another process recorded the end, after which what is in the base may be changed again.
                self.add_steps_of_others(&cx.for_cleanup()).await;
                return Ok(());
            }
            let before = step.before.as_before();
            if before == Before::Nothing {
                make_room(cx, base, &self.state.gone, &step.path).await;
            }
            match set(cx, base, &step.path, &before, step.after.clone()).await {
                Ok(version) => self.advance(version),
                Err(error) => self.resume(&cx.for_cleanup(), error).await?,
            }
        }
        // All is applied, whatever the caller's context says by now.
        remove_emptied(&cx.for_cleanup(), base, &self.state.gone).await;
        Ok(())
    }

    /// Goes on after the next step ended in `error`, if another process applied that step.
    async fn resume(&mut self, cx: &OpContext, error: Error) -> Result<()> {
        let Some(step) = self.pending.front() else { return Err(error) };
        match seen(&*self.state.base, cx, &step.path).await {
            Ok(there) if self.persistence.is_some() && self.is_applied(cx, step, &there).await => {
                self.advance(there.version().cloned());
                return Ok(());
            }
            Ok(there) if is_made(step, &there, &error) => self.advance(there.version().cloned()),
            Err(_) if may_be_made(step, &error) => {
                let path = step.path.clone();
                self.pending.pop_front();
                self.left.push(path);
            }
            _ => {}
        }
        Err(error)
    }

    fn advance(&mut self, version: Option<Version>) {
        self.applied.extend(self.pending.pop_front().map(|step| (step, version)));
    }

    /// Whether the commit is still recorded as it was, as far as that can be seen.
    async fn is_noted(&self, cx: &OpContext) -> bool {
        match self.persistence {
            Some(persistence) => persistence.is_current(cx).await,
            None => true,
        }
    }

    /// Whether what is `there` is what `step` makes.
    async fn is_applied(&self, cx: &OpContext, step: &Planned, there: &BaseEntry) -> bool {
        !matches!(there, BaseEntry::Link)
            && there.content() == step.after.as_ref()
            && !is_elsewhere(&*self.state.base, cx, &step.path).await.unwrap_or(true)
    }

    /// Moves the pending steps that another process applied to the applied ones.
    async fn add_steps_of_others(&mut self, cx: &OpContext) {
        for step in std::mem::take(&mut self.pending) {
            match seen(&*self.state.base, cx, &step.path).await {
                Ok(there) => {
                    let is_unlinked = matches!((&step.before, &there), (BaseEntry::Link, BaseEntry::Nothing));
                    if is_unlinked || self.is_applied(cx, &step, &there).await {
                        self.applied.push((step, there.version().cloned()));
                    }
                }
                Err(_) => self.left.push(step.path),
            }
        }
    }

    /// Makes every file that was changed what it was; if the commit is `claimed`, those that another process changed as well.
    /// Returns the state that expects what the base has then, which on a disk is another version even of the same content.
    ///
    /// Stops if another process goes on with the commit, and changes again what was restored until then.
    pub(super) async fn roll_back(&mut self, cx: &OpContext, is_claimed: bool) -> Merged {
        if is_claimed && self.persistence.is_some() {
            self.add_steps_of_others(cx).await;
        }
        let base = &*self.state.base;
        let (mut next, mut restored) = (self.state.clone(), Vec::new());
        for (Planned { path, before, after }, version) in std::mem::take(&mut self.applied).into_iter().rev() {
            let now = version.map_or(Before::Nothing, Before::File);
            if now == Before::Nothing {
                // Directories that were made in its place have no file left. One that stays keeps the file from being restored,
                // which is reported below.
                let _ = prune(base, cx, &path).await;
            }
            let outcome = match &before {
                BaseEntry::Link => Err(Error::at(ErrorKind::Unsupported, &path)),
                before => set(cx, base, &path, &now, before.content().cloned()).await,
            };
            match outcome {
                Ok(version) => {
                    let is = version.map_or(Before::Nothing, Before::File);
                    if is != Before::Nothing {
                        next.touched.insert_mut(path.clone(), is.clone());
                    }
                    restored.push((path, is, after));
                }
                Err(error) => {
                    tracing::warn!(%path, %error, "a file that a failed commit changed was not restored");
                    next.touched.insert_mut(path.clone(), now);
                    self.left.push(path);
                }
            }
            if !self.is_noted(cx).await {
                self.apply_again(cx, restored).await;
                break;
            }
        }
        next
    }

    /// Changes what was `restored` again, as another process may have passed these files already.
    async fn apply_again(&mut self, cx: &OpContext, restored: Vec<(VfsPath, Before, Option<Bytes>)>) {
        for (path, is, after) in restored {
            match set(cx, &*self.state.base, &path, &is, after).await {
                // If that process has written the file as well, its version is another one.
                Err(error)
                    if !matches!(
                        error.kind(),
                        ErrorKind::Conflict | ErrorKind::AlreadyExists | ErrorKind::NotFound
                    ) =>
                {
                    self.unapplied.push(path);
                }
                _ => {}
            }
        }
    }
}

/// Whether `step`, which ended in `error` and left what is `there`, was made all the same.
fn is_made(step: &Planned, there: &BaseEntry, error: &Error) -> bool {
    match (&step.before, there) {
        // The link went, and the file that should take its place may not have come.
        (BaseEntry::Link, BaseEntry::Nothing) => true,
        // Only the answer may have been lost.
        (before, there) => {
            may_be_made(step, error)
                && there.as_before() != before.as_before()
                && there.content() == step.after.as_ref()
        }
    }
}

/// Whether `step`, which ended in `error`, may have been made all the same.
fn may_be_made(step: &Planned, error: &Error) -> bool {
    let is_halved = matches!(step.before, BaseEntry::Link) && step.after.is_some();
    is_halved || error.is_temporary() || error.kind() == ErrorKind::Cancelled
}
