//! Changes of several values, without transactions of the store.
//!
//! Each step is atomic, but not all of them together: other clients can observe a rename half done. A failure is compensated as long
//! as the process lives. A step that was started is always awaited, even if the caller is gone, as its outcome would be unknown
//! otherwise. Concurrent writers of `/a` and `/a/b` may both be refused; both files exist only if a process ends between its steps.

mod compensation;
mod load;
mod transfer_error;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use tokio::sync::Semaphore;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use self::compensation::{SentValue, SourceState, TransferredFile};
use self::load::{discard_loaded, load, load_current};
use self::transfer_error::TransferError;
use super::concurrency::backoff::{backoff, contended};
use super::concurrency::completion::within;
use super::transfer::plan::{FileTransfer, TransferKind, TransferPlan};
use super::view::namespace_view::NamespaceView;
use crate::store::{NewValue, Precondition, PutOutcome, Store, StoredMeta};

/// Upper bound on the size of the files that a transfer holds in memory, in mebibytes. A single file may be larger.
const MAX_TRANSFERRED_MIB: u32 = 64;

/// Timeout of the check after a failed change; the store has had its own timeout before.
const AFTERMATH_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of consecutive files whose rollback fails because the store is unavailable, after which the rollback ends.
const MAX_CONSECUTIVE_FAILURES: usize = 3;

/// Outcome of a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rollback {
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

/// Creates a file, and removes it again if a file above it or below it was created meanwhile.
pub(super) async fn put_new<S: Store>(view: &NamespaceView<S>, path: &VfsPath, value: NewValue) -> Result<PutOutcome> {
    if !has_room(view, path).await? {
        return Ok(PutOutcome::PreconditionFailed(None));
    }
    let (sent, steady) = (SentValue::new(&value), steady(view, path)?);
    let put = steady.put(path, value, &Precondition::Absent).await;
    if let Ok(PutOutcome::PreconditionFailed(found)) = put {
        return Ok(PutOutcome::PreconditionFailed(found));
    }
    // Somebody may have looked before this was here and write now: whoever looks second sees the other.
    let has_room = match &put {
        Ok(_) => has_room(&steady, path).await,
        // A store that failed may be gone, and has been waited for already.
        Err(error) => match within(AFTERMATH_TIMEOUT, has_room(&steady, path)).await {
            Some(has_room) => has_room,
            None => return Err(error.clone()),
        },
    };
    match (put, has_room) {
        (Ok(put), Ok(true)) => Ok(put),
        (Ok(PutOutcome::Applied(stored)), has_room) => {
            let _taken_back = steady.delete(path, &Precondition::Version(stored.version)).await?;
            has_room.map(|_| PutOutcome::PreconditionFailed(None))
        }
        (Err(error), Ok(false)) => {
            if let Some(found) = steady.head(path).await?
                && sent.is(&steady, path, &found).await?
            {
                let _taken_back = steady.delete(path, &Precondition::Version(found.version)).await?;
            }
            Err(error)
        }
        (put, _) => put,
    }
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
            Err(TransferError::Conflict) => return Ok(None),
            Err(TransferError::Failed(error)) => return Err(error),
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
    let mut made = Vec::with_capacity(plan.files.len());
    let failure = match make(view, plan, kind, replaced, &mut made).await {
        Ok(()) => return Ok(Some(made.into_iter().filter_map(|made| made.target).collect())),
        Err(failure) => failure,
    };
    let rollback = roll_back(&for_cleanup(view), &made, replaced).await;
    let error = match (failure, &rollback) {
        (TransferError::Conflict, Ok(Rollback::Complete)) => return Ok(None),
        (TransferError::Failed(error), Ok(Rollback::Complete)) => return Err(error),
        (TransferError::Failed(error), _) => error.or_path(&plan.to),
        // Not `busy`, after which a caller may assume that nothing was changed.
        (TransferError::Conflict, _) => {
            Error::new(ErrorKind::Conflict, "others changed source or target meanwhile").with_path(&plan.to)
        }
    };
    let error = error.with_consequence("a part of it could not be rolled back: look at source and target");
    Err(match rollback {
        Ok(_) => error,
        Err(cause) => error.with_source(cause),
    })
}

async fn make<S: Store>(
    view: &NamespaceView<S>,
    plan: &TransferPlan,
    kind: TransferKind,
    replaced: Option<&NewValue>,
    made: &mut Vec<TransferredFile>,
) -> Result<(), TransferError> {
    let expected = match &plan.replaced {
        Some(stored) => Precondition::Version(stored.version.clone()),
        None => Precondition::Absent,
    };
    copy_all(view, plan, kind, &expected, made).await?;
    if made.is_empty() {
        return Err(Error::not_found(&plan.from).into());
    }
    if meets_others(view, plan, made).await? {
        return Err(TransferError::Conflict);
    }
    if kind == TransferKind::Rename {
        remove_sources(view, replaced, made).await?;
        if made.is_empty() {
            return Err(Error::not_found(&plan.from).into());
        }
    }
    Ok(())
}

/// Copies each file that is still there. Once one has failed no further is begun; those under way are waited for, so that all
/// that was made is known.
async fn copy_all<S: Store>(
    view: &NamespaceView<S>,
    plan: &TransferPlan,
    kind: TransferKind,
    expected: &Precondition,
    made: &mut Vec<TransferredFile>,
) -> Result<(), TransferError> {
    let has_failed = AtomicBool::new(false);
    let room = Semaphore::new(MAX_TRANSFERRED_MIB as usize);
    let copy = async |file: &FileTransfer| {
        let needed = u32::try_from(file.size >> 20).unwrap_or(u32::MAX).clamp(1, MAX_TRANSFERRED_MIB);
        // It is never closed.
        let _held = room.acquire_many(needed).await.ok();
        let mut made = None;
        if has_failed.load(Ordering::Relaxed) {
            return (made, Ok(()));
        }
        let copied = copy_one(view, file, kind, expected, &mut made).await;
        has_failed.fetch_or(copied.is_err(), Ordering::Relaxed);
        (made, copied)
    };
    let mut outcome = Ok(());
    let copies: Vec<_> = plan.files.iter().map(copy).collect();
    for (one, copied) in stream::iter(copies).buffered(view.fetches()).collect::<Vec<_>>().await {
        made.extend(one);
        outcome = outcome.and(copied);
    }
    outcome
}

/// Copies one file. A file that no longer exists leaves `made` empty.
async fn copy_one<S: Store>(
    view: &NamespaceView<S>,
    file: &FileTransfer,
    kind: TransferKind,
    expected: &Precondition,
    made: &mut Option<TransferredFile>,
) -> Result<(), TransferError> {
    let Some((stored, copy)) = load_current(view, (&file.from, file.size), &file.to, kind).await? else {
        return Ok(());
    };
    made.insert(TransferredFile::new(file.clone(), stored)).put(view, copy, expected).await
}

/// Whether others put something where it does not go together with what was made: a part of the target's path became a file, or
/// something is in the target that was not put there by this transfer.
async fn meets_others<S: Store>(
    view: &NamespaceView<S>,
    plan: &TransferPlan,
    made: &[TransferredFile],
) -> Result<bool> {
    let to = &plan.to;
    // A file keeps the place that it has, also where others made one above or below it.
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
    let own: HashSet<_> = made.iter().map(|made| &made.file.to).collect();
    let found = view.subtree(to).await?;
    Ok(!found.problems.is_empty() || found.entries.iter().any(|entry| !own.contains(&entry.path)))
}

/// Removes the sources as they were copied. Where another removed one before, its copy goes, too.
async fn remove_sources<S: Store>(
    view: &NamespaceView<S>,
    replaced: Option<&NewValue>,
    made: &mut Vec<TransferredFile>,
) -> Result<(), TransferError> {
    for one in made.iter_mut() {
        remove_source(view, one).await?;
    }
    let cleanup = for_cleanup(view);
    for taken in made.iter().filter(|made| made.source_state == SourceState::RemovedByOther) {
        taken.clear_target(&cleanup, replaced).await?;
    }
    made.retain(|made| made.source_state == SourceState::Removed);
    Ok(())
}

/// Removes a source as it was copied. What was written to it since is copied first.
async fn remove_source<S: Store>(view: &NamespaceView<S>, made: &mut TransferredFile) -> Result<(), TransferError> {
    let from = made.file.from.clone();
    for attempt in 0..view.shared.config.edit_attempts {
        let steady = steady(view, &from)?;
        // Whatever comes instead of an answer, it may be gone.
        made.source_state = SourceState::Removed;
        match steady.delete(&from, &Precondition::Version(made.source.version.clone())).await? {
            PutOutcome::Applied(_) => return Ok(()),
            PutOutcome::PreconditionFailed(None) => {
                made.source_state = SourceState::RemovedByOther;
                return Ok(());
            }
            PutOutcome::PreconditionFailed(Some(current)) => {
                made.source_state = SourceState::Present;
                copy_again(view, made, current).await?;
            }
        }
        backoff(&view.cx, &from, attempt).await?;
    }
    Err(contended(&from).into())
}

/// Copies a source that was changed since it was copied. If it changes again meanwhile, the next attempt copies it.
async fn copy_again<S: Store>(
    view: &NamespaceView<S>,
    made: &mut TransferredFile,
    current: StoredMeta,
) -> Result<(), TransferError> {
    let Some(target) = &made.target else { return Ok(()) };
    let expected = Precondition::Version(target.version.clone());
    let copy = match load(view, (&made.file.from, &current), &made.file.to, TransferKind::Rename).await {
        Err(TransferError::Conflict) => return Ok(()),
        loaded => loaded?,
    };
    made.source = current;
    made.put(view, copy, &expected).await
}

/// Rolls back all that was made, whichever part of it fails, unless the store is gone.
async fn roll_back<S: Store>(
    view: &NamespaceView<S>,
    made: &[TransferredFile],
    replaced: Option<&NewValue>,
) -> Result<Rollback> {
    let mut outcome = Ok(Rollback::Complete);
    let mut failures = 0;
    for one in made {
        if failures == MAX_CONSECUTIVE_FAILURES {
            break;
        }
        let rolled_back = one.roll_back(view, replaced).await;
        failures = match &rolled_back {
            Err(error) if error.kind() == ErrorKind::Unavailable => failures + 1,
            _ => 0,
        };
        outcome = match (outcome, rolled_back) {
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
            (Ok(Rollback::Complete), Ok(Rollback::Complete)) => Ok(Rollback::Complete),
            (Ok(_), Ok(_)) => Ok(Rollback::Partial),
        };
    }
    outcome
}
