//! New files, renames and copies over a store without batches.
//!
//! A recursive delete is in `delete`, and is not compensated. Each step is atomic, but not all of them together: other
//! clients can observe a rename half done. A failure is compensated as long as the process lives. A step that was started is
//! awaited even if the caller is gone, as its outcome would be unknown otherwise. Concurrent writers of `/a` and `/a/b` may
//! both be refused; both files exist only if a process ends between its steps, or the removal of one of them fails.

mod compensation;
mod load;
mod transfer_step_error;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use tokio::sync::Semaphore;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use self::compensation::{SentValue, TransferSourceState, TransferredFile};
use self::load::{discard_loaded, load, load_current};
use self::transfer_step_error::TransferStepError;
use super::coordination::backoff::{backoff, contended};
use super::coordination::completion::within;
use super::transfer::transfer_plan::{FileTransfer, TransferKind, TransferPlan};
use super::view::namespace_view::NamespaceView;
use crate::store::{NewValue, Precondition, PutOutcome, Store, StoredMeta, ValueContent};

/// Upper bound on the size of the files that a transfer holds in memory, in mebibytes. A single file may be larger.
const MAX_TRANSFERRED_MIB: u32 = 64;

/// Timeout of the check after a failed change; the store has had its own timeout before.
const AFTERMATH_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of consecutive files whose rollback fails because the store is unavailable, after which the rollback ends.
const MAX_CONSECUTIVE_FAILURES: usize = 3;

/// Outcome of a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RollbackOutcome {
    /// Everything was rolled back.
    Complete,
    /// Other writers changed transferred files, whose changes are kept.
    Partial,
}

/// Returns a view that is not cancelled, for a change of `path`, or an error if the caller has already given up.
fn steady<S: Store>(view: &NamespaceView<S>, path: &VfsPath) -> Result<NamespaceView<S>> {
    view.cx.check().map_err(|error| error.or_path(path))?;
    Ok(for_cleanup(view))
}

fn for_cleanup<S: Store>(view: &NamespaceView<S>) -> NamespaceView<S> {
    view.with_context(view.cx.for_cleanup())
}

/// Returns `true` if a file can be created at `path`: no parent is a file, and nothing is below it.
async fn has_room<S: Store>(view: &NamespaceView<S>, path: &VfsPath) -> Result<bool> {
    let (has_below, is_below_file) = futures::join!(view.has_below(path), view.is_below_file(path));
    Ok(!has_below? && !is_below_file?)
}

/// Returns `error` for a change of `path` of which a part may remain applied: `unavailable` in place of `busy`, after which a caller
/// may assume that nothing was changed.
pub(super) fn of_partial_change(error: Error, path: &VfsPath) -> Error {
    if error.kind() != ErrorKind::Busy {
        return error.or_path(path);
    }
    Error::new(ErrorKind::Unavailable, "other writers changed or locked the files at this path meanwhile")
        .with_path(path)
        .with_source(error)
}

/// Creates a file, and removes it again if a file above it or below it was created meanwhile.
pub(super) async fn put_new<S: Store>(view: &NamespaceView<S>, path: &VfsPath, value: NewValue) -> Result<PutOutcome> {
    if !has_room(view, path).await? {
        return Ok(PutOutcome::PreconditionFailed(None));
    }
    let is_staged = matches!(value.content, ValueContent::Staged(_));
    let (sent, steady) = (SentValue::new(&value), steady(view, path)?);
    let put = steady.put(path, value, &Precondition::Absent).await;
    if let Ok(PutOutcome::PreconditionFailed(found)) = put {
        return Ok(PutOutcome::PreconditionFailed(found));
    }
    // Another writer may have checked for room before this put. The later of the two checks sees the other file.
    let is_alone = match &put {
        Ok(_) => has_room(&steady, path).await,
        // The store may be unavailable, and the put has waited for it already.
        Err(error) => match within(AFTERMATH_TIMEOUT, has_room(&steady, path)).await {
            Some(is_alone) => is_alone,
            None => return Err(error.clone()),
        },
    };
    match (put, is_alone) {
        (Ok(put), Ok(true)) => Ok(put),
        (Ok(PutOutcome::Applied(stored)), is_alone) => {
            let removed = steady.delete(path, &Precondition::Version(stored.version)).await;
            let _removed = removed.map_err(|error| of_partial_change(error, path))?;
            // The put has consumed the staged content, so that it cannot be put again if the other file is gone by now.
            if is_alone.is_ok() && is_staged && has_room(&steady, path).await? {
                return Err(withdrawal_conflict(path));
            }
            is_alone.map(|_| PutOutcome::PreconditionFailed(None))
        }
        (Err(error), Ok(false)) => {
            if let Err(cause) = remove_if_sent(&steady, path, &sent).await {
                tracing::warn!(%cause, "failed to remove a file whose put has an unknown outcome");
            }
            Err(error)
        }
        (put, _) => put,
    }
}

/// Returns the error for a staged content that was withdrawn for another file, which is gone by now.
fn withdrawal_conflict(path: &VfsPath) -> Error {
    let message = "another writer created a file above or below this path meanwhile; write the content again";
    Error::new(ErrorKind::Conflict, message).with_path(path)
}

/// Removes the value at `path` if it is the one that was sent.
async fn remove_if_sent<S: Store>(view: &NamespaceView<S>, path: &VfsPath, sent: &SentValue) -> Result<()> {
    if let Some(found) = view.head(path).await?
        && sent.is(view, path, &found).await?
    {
        let _removed = view.delete(path, &Precondition::Version(found.version)).await?;
    }
    Ok(())
}

/// Copies each file to its new place, then removes the sources as they were copied.
///
/// Rolls back on failure. Returns `None` if other writers invalidated the plan and everything was rolled back.
pub(super) async fn transfer<S: Store>(
    view: &NamespaceView<S>,
    plan: &TransferPlan,
    kind: TransferKind,
) -> Result<Option<Vec<StoredMeta>>> {
    let replaced = match &plan.replaced {
        Some(stored) => match load(view, (&plan.to, stored), &plan.to, TransferKind::Rename).await {
            Ok(value) => Some(value),
            Err(TransferStepError::Conflict) => return Ok(None),
            Err(TransferStepError::Failed(error)) => return Err(error),
        },
        None => None,
    };
    let outcome = transfer_or_roll_back(view, plan, kind, replaced.as_ref()).await;
    if let Some(value) = &replaced {
        discard_loaded(view, value).await;
    }
    outcome
}

async fn transfer_or_roll_back<S: Store>(
    view: &NamespaceView<S>,
    plan: &TransferPlan,
    kind: TransferKind,
    replaced: Option<&NewValue>,
) -> Result<Option<Vec<StoredMeta>>> {
    let mut transferred = Vec::with_capacity(plan.files.len());
    let failure = match transfer_files(view, plan, kind, replaced, &mut transferred).await {
        Ok(()) => return Ok(Some(transferred.into_iter().filter_map(|transferred| transferred.target).collect())),
        Err(failure) => failure,
    };
    let rollback = roll_back(&for_cleanup(view), &transferred, replaced).await;
    let error = match (failure, &rollback) {
        (TransferStepError::Conflict, Ok(RollbackOutcome::Complete)) => return Ok(None),
        (TransferStepError::Failed(error), Ok(RollbackOutcome::Complete)) => return Err(error),
        (TransferStepError::Conflict, _) => contended(&plan.to),
        (TransferStepError::Failed(error), _) => error,
    };
    if let Err(cause) = rollback {
        tracing::warn!(%cause, "failed to roll back a rename or copy");
    }
    Err(of_partial_change(error, &plan.to)
        .with_consequence("a part of the transfer could not be rolled back: check source and target"))
}

async fn transfer_files<S: Store>(
    view: &NamespaceView<S>,
    plan: &TransferPlan,
    kind: TransferKind,
    replaced: Option<&NewValue>,
    transferred: &mut Vec<TransferredFile>,
) -> Result<(), TransferStepError> {
    let expected = match &plan.replaced {
        Some(stored) => Precondition::Version(stored.version.clone()),
        None => Precondition::Absent,
    };
    copy_all(view, plan, kind, &expected, transferred).await?;
    if transferred.is_empty() {
        return Err(Error::not_found(&plan.from).into());
    }
    if conflicts_with_others(view, plan, transferred).await? {
        return Err(TransferStepError::Conflict);
    }
    if kind == TransferKind::Rename {
        remove_sources(view, replaced, transferred).await?;
        if transferred.is_empty() {
            return Err(Error::not_found(&plan.from).into());
        }
    }
    Ok(())
}

/// Copies each file that still exists. After a failure no copy is started, and running ones are awaited, so that a rollback knows all
/// of them.
async fn copy_all<S: Store>(
    view: &NamespaceView<S>,
    plan: &TransferPlan,
    kind: TransferKind,
    expected: &Precondition,
    transferred: &mut Vec<TransferredFile>,
) -> Result<(), TransferStepError> {
    let has_failed = AtomicBool::new(false);
    let room = Semaphore::new(MAX_TRANSFERRED_MIB as usize);
    let copy = async |file: &FileTransfer| {
        let needed = u32::try_from(file.size >> 20).unwrap_or(u32::MAX).clamp(1, MAX_TRANSFERRED_MIB);
        // The semaphore is never closed.
        let _permit = room.acquire_many(needed).await.ok();
        let mut transferred = None;
        if has_failed.load(Ordering::Relaxed) {
            return (transferred, Ok(()));
        }
        let copied = copy_one(view, file, kind, expected, &mut transferred).await;
        has_failed.fetch_or(copied.is_err(), Ordering::Relaxed);
        (transferred, copied)
    };
    let mut outcome = Ok(());
    let copies: Vec<_> = plan.files.iter().map(copy).collect();
    for (file, copied) in stream::iter(copies).buffered(view.fetches()).collect::<Vec<_>>().await {
        transferred.extend(file);
        outcome = outcome.and(copied);
    }
    outcome
}

/// Copies one file. A file that no longer exists leaves `transferred` empty.
async fn copy_one<S: Store>(
    view: &NamespaceView<S>,
    file: &FileTransfer,
    kind: TransferKind,
    expected: &Precondition,
    transferred: &mut Option<TransferredFile>,
) -> Result<(), TransferStepError> {
    let Some((stored, copy)) = load_current(view, (&file.from, file.size), &file.to, kind).await? else {
        return Ok(());
    };
    transferred.insert(TransferredFile::new(file.clone(), stored)).put(view, copy, expected).await
}

/// Returns `true` if another writer created a file that conflicts with the transfer: in place of a parent of the target, or in the
/// target.
async fn conflicts_with_others<S: Store>(
    view: &NamespaceView<S>,
    plan: &TransferPlan,
    transferred: &[TransferredFile],
) -> Result<bool> {
    let to = &plan.to;
    // An existing file remains accessible even if another writer creates one above or below it.
    if plan.replaced.is_some() {
        return Ok(false);
    }
    if view.is_below_file(to).await? {
        return Ok(true);
    }
    if plan.files.iter().any(|file| file.to == *to) {
        return view.has_below(to).await;
    }
    if view.head(to).await?.is_some() {
        return Ok(true);
    }
    let own: HashSet<_> = transferred.iter().map(|transferred| &transferred.file.to).collect();
    let found = view.subtree(to).await?;
    Ok(!found.problems.is_empty() || found.entries.iter().any(|entry| !own.contains(&entry.path)))
}

/// Removes the sources in the versions that were copied. If another writer removed a source first, its copy is removed too.
async fn remove_sources<S: Store>(
    view: &NamespaceView<S>,
    replaced: Option<&NewValue>,
    transferred: &mut Vec<TransferredFile>,
) -> Result<(), TransferStepError> {
    for file in transferred.iter_mut() {
        remove_source(view, file).await?;
    }
    let cleanup = for_cleanup(view);
    for removed in
        transferred.iter().filter(|transferred| transferred.source_state == TransferSourceState::RemovedByOther)
    {
        removed.clear_target(&cleanup, replaced).await?;
    }
    transferred.retain(|transferred| transferred.source_state == TransferSourceState::Removed);
    Ok(())
}

/// Removes a source in the version that was copied. If the source was changed since, it is copied again first.
async fn remove_source<S: Store>(
    view: &NamespaceView<S>,
    transferred: &mut TransferredFile,
) -> Result<(), TransferStepError> {
    let from = transferred.file.from.clone();
    for attempt in 0..view.shared.config.edit_attempts {
        let steady = steady(view, &from)?;
        // If the answer is lost, the source may have been removed.
        transferred.source_state = TransferSourceState::Removed;
        match steady.delete(&from, &Precondition::Version(transferred.source.version.clone())).await? {
            PutOutcome::Applied(_) => return Ok(()),
            PutOutcome::PreconditionFailed(None) => {
                transferred.source_state = TransferSourceState::RemovedByOther;
                return Ok(());
            }
            PutOutcome::PreconditionFailed(Some(current)) => {
                transferred.source_state = TransferSourceState::Present;
                copy_again(view, transferred, current).await?;
            }
        }
        backoff(&view.cx, &from, attempt).await?;
    }
    Err(contended(&from).into())
}

/// Copies a source that was changed since it was copied. If it changes again meanwhile, the next attempt copies it.
async fn copy_again<S: Store>(
    view: &NamespaceView<S>,
    transferred: &mut TransferredFile,
    current: StoredMeta,
) -> Result<(), TransferStepError> {
    let Some(target) = &transferred.target else { return Ok(()) };
    let expected = Precondition::Version(target.version.clone());
    let copy = match load(view, (&transferred.file.from, &current), &transferred.file.to, TransferKind::Rename).await {
        Err(TransferStepError::Conflict) => return Ok(()),
        loaded => loaded?,
    };
    transferred.source = current;
    transferred.put(view, copy, &expected).await
}

/// Rolls back every transferred file, even if the rollback of another one fails, unless the store is unavailable.
async fn roll_back<S: Store>(
    view: &NamespaceView<S>,
    transferred: &[TransferredFile],
    replaced: Option<&NewValue>,
) -> Result<RollbackOutcome> {
    let mut outcome = Ok(RollbackOutcome::Complete);
    let mut failures = 0;
    for file in transferred {
        if failures == MAX_CONSECUTIVE_FAILURES {
            break;
        }
        let rolled_back = file.roll_back(view, replaced).await;
        failures = match &rolled_back {
            Err(error) if error.kind() == ErrorKind::Unavailable => failures + 1,
            _ => 0,
        };
        outcome = match (outcome, rolled_back) {
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
            (Ok(RollbackOutcome::Complete), Ok(RollbackOutcome::Complete)) => Ok(RollbackOutcome::Complete),
            (Ok(_), Ok(_)) => Ok(RollbackOutcome::Partial),
        };
    }
    outcome
}
