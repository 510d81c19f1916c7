//! Renames and copies of files and directories.

pub(super) mod transfer_plan;

use chrono::Utc;
use vfs_core::transfer::{TransferTargetMode, check_source_and_target};
use vfs_core::{CopyRequest, CopyResult, Error, ErrorKind, RenameRequest, RenameResult, Result, VfsPath};

use self::transfer_plan::{FileTransfer, TransferKind, TransferPlan};
use super::coordination::backoff::{backoff, contended};
use super::coordination::completion::finish_or_roll_back;
use super::nontransactional;
use super::view::namespace_view::NamespaceView;
use super::view::path_entry::PathEntry;
use super::write::room_for;
use crate::store::{BatchOutcome, Condition, Precondition, Store, StoredMeta, Write};

pub(super) async fn rename<S: Store>(view: &NamespaceView<S>, req: &RenameRequest) -> Result<RenameResult> {
    let (plan, _) = transfer(view, (&req.from, &req.to), req.mode, TransferKind::Rename).await?;
    Ok(renamed(&plan))
}

pub(super) async fn copy<S: Store>(view: &NamespaceView<S>, req: &CopyRequest) -> Result<CopyResult> {
    let (plan, copies) = transfer(view, (&req.from, &req.to), req.mode, TransferKind::Copy).await?;
    Ok(copied(&plan, copies.iter().map(|stored| stored.size)))
}

fn renamed(plan: &TransferPlan) -> RenameResult {
    RenameResult::new(plan.from.clone(), plan.to.clone(), plan.replaced.is_some())
}

fn copied(plan: &TransferPlan, sizes: impl ExactSizeIterator<Item = u64>) -> CopyResult {
    let files = sizes.len() as u64;
    CopyResult::new(plan.from.clone(), plan.to.clone(), plan.replaced.is_some(), files, sizes.sum())
}

/// Applies a transfer, and returns its plan with the metadata of the files at the target.
async fn transfer<S: Store>(
    view: &NamespaceView<S>,
    (from, to): (&VfsPath, &VfsPath),
    mode: TransferTargetMode,
    kind: TransferKind,
) -> Result<(TransferPlan, Vec<StoredMeta>)> {
    check_source_and_target(from, to)?;
    for attempt in 0..view.shared.config.edit_attempts {
        let plan = plan(view, from, to, mode).await?;
        let stored = match view.batches() {
            Some(_) => batched(view, &plan, kind).await?,
            None => {
                let (view, plan) = (view.clone(), plan.clone());
                let cx = view.cx.clone();
                let work = |cx| async move { nontransactional::transfer(&view.with_context(cx), &plan, kind).await };
                finish_or_roll_back(&cx, to, work).await?
            }
        };
        if let Some(stored) = stored {
            return Ok((plan, stored));
        }
        backoff(&view.cx, to, attempt).await?;
    }
    Err(contended(to))
}

async fn plan<S: Store>(
    view: &NamespaceView<S>,
    from: &VfsPath,
    to: &VfsPath,
    mode: TransferTargetMode,
) -> Result<TransferPlan> {
    let (source, target) = futures::join!(view.find(from), view.look_up(to));
    let source = source?;
    let replaced = check_target(&source, target?, to, mode)?;
    view.check_path(to)?;
    let files = match source {
        PathEntry::File(stored) => {
            vec![FileTransfer { from: from.clone(), to: to.clone(), size: stored.size, version: stored.version }]
        }
        PathEntry::Directory => {
            let entries = view.subtree(from).await?.readable()?;
            let transfers = entries.into_iter().map(|entry| {
                let below = entry.path.strip_prefix(from).unwrap_or_default();
                let target = to.join(below).map_err(|error| error.with_path(to))?;
                view.check_path(&target).map_err(|error| error.with_path(to))?;
                let StoredMeta { size, version, .. } = entry.stored;
                Ok(FileTransfer { from: entry.path, to: target, size, version })
            });
            transfers.collect::<Result<_>>()?
        }
    };
    if files.is_empty() {
        return Err(Error::not_found(from));
    }
    Ok(TransferPlan { from: from.clone(), to: to.clone(), files, replaced })
}

/// Returns the file at the target if `source` may replace it, or `None` if the target does not exist.
fn check_target(
    source: &PathEntry,
    target: Option<PathEntry>,
    to: &VfsPath,
    mode: TransferTargetMode,
) -> Result<Option<StoredMeta>> {
    let Some(target) = target else { return Ok(None) };
    if mode != TransferTargetMode::Overwrite {
        return Err(Error::already_exists(to));
    }
    match (source, target) {
        (PathEntry::File(_), PathEntry::File(replaced)) => Ok(Some(replaced)),
        (PathEntry::File(_), PathEntry::Directory) => Err(Error::at(ErrorKind::IsADirectory, to)),
        (PathEntry::Directory, PathEntry::File(_)) => Err(Error::at(ErrorKind::NotADirectory, to)),
        (PathEntry::Directory, PathEntry::Directory) => {
            let message = "the target directory is not empty; delete it first or choose another target";
            Err(Error::new(ErrorKind::NotEmpty, message).with_path(to))
        }
    }
}

/// Applies the transfer as one batch, or returns `None` if other writers invalidated the plan.
async fn batched<S: Store>(
    view: &NamespaceView<S>,
    plan: &TransferPlan,
    kind: TransferKind,
) -> Result<Option<Vec<StoredMeta>>> {
    let mut conditions = match &plan.replaced {
        // An existing file remains accessible even if another writer creates one above or below it.
        Some(replaced) => vec![Condition::At(plan.to.clone(), Precondition::Version(replaced.version.clone()))],
        None => [room_for(&plan.to), vec![Condition::At(plan.to.clone(), Precondition::Absent)]].concat(),
    };
    let at = Utc::now();
    if kind == TransferKind::Copy && view.operation.is_some() {
        // The result is recorded in the transaction of the copy, so the sizes of the sources must not change.
        let unchanged =
            |file: &FileTransfer| Condition::At(file.from.clone(), Precondition::Version(file.version.clone()));
        conditions.extend(plan.files.iter().map(unchanged));
    }
    let write = |FileTransfer { from, to, .. }: FileTransfer| match kind {
        TransferKind::Rename => Write::Move { from, to },
        TransferKind::Copy => Write::Copy { from, to, at },
    };
    let writes = plan.files.iter().cloned().map(write).collect();
    let outcome = match kind {
        TransferKind::Rename => view.commit(&plan.to, &conditions, writes, || renamed(plan)).await?,
        TransferKind::Copy => {
            let result = || copied(plan, plan.files.iter().map(|file| file.size));
            view.commit(&plan.to, &conditions, writes, result).await?
        }
    };
    Ok(match outcome {
        BatchOutcome::Applied(stored) => Some(stored),
        BatchOutcome::PreconditionFailed(..) => None,
    })
}
