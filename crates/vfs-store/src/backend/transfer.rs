//! Moving and copying files and whole directories.

use chrono::Utc;
use vfs_core::{
    CopyRequest, CopyResult, Error, ErrorKind, RenameRequest, RenameResult, Result, TransferMode, VfsPath,
    check_source_and_target,
};

use super::single::{self, Source};
use super::space::{Found, Space, contended};
use super::waiting::{make_way, settled};
use super::write::room_for;
use crate::store::{BatchOutcome, Condition, Expected, Store, Stored, Write};

pub(super) async fn rename<S: Store>(space: &Space<S>, req: &RenameRequest) -> Result<RenameResult> {
    let (plan, _) = transfer(space, (&req.from, &req.to), req.mode, Source::Goes).await?;
    Ok(RenameResult::new(req.from.clone(), req.to.clone(), plan.replaced.is_some()))
}

pub(super) async fn copy<S: Store>(space: &Space<S>, req: &CopyRequest) -> Result<CopyResult> {
    let (plan, copies) = transfer(space, (&req.from, &req.to), req.mode, Source::Stays).await?;
    let bytes = copies.iter().map(|stored| stored.size).sum();
    Ok(CopyResult::new(req.from.clone(), req.to.clone(), plan.replaced.is_some(), copies.len() as u64, bytes))
}

/// What a rename or copy comes to: each file with its new place, and the one file that it takes the place of.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) from: VfsPath,
    pub(super) to: VfsPath,
    pub(super) moves: Vec<Move>,
    pub(super) replaced: Option<Stored>,
}

#[derive(Debug, Clone)]
pub(super) struct Move {
    pub(super) from: VfsPath,
    pub(super) to: VfsPath,
    /// How many bytes the source had when it was looked at.
    pub(super) size: u64,
}

/// Makes the transfer, and says what is at the target now.
async fn transfer<S: Store>(
    space: &Space<S>,
    (from, to): (&VfsPath, &VfsPath),
    mode: TransferMode,
    source: Source,
) -> Result<(Plan, Vec<Stored>)> {
    check_source_and_target(from, to)?;
    for attempt in 0..space.inner.config.edit_attempts {
        let plan = plan(space, from, to, mode).await?;
        let made = match space.batches() {
            Some(_) => batched(space, &plan, source).await?,
            None => {
                let (space, plan) = (space.clone(), plan.clone());
                let cx = space.cx.clone();
                let work = |cx| async move { single::transfer(&space.with_context(cx), &plan, source).await };
                settled(&cx, to, work).await?
            }
        };
        if let Some(made) = made {
            return Ok((plan, made));
        }
        make_way(&space.cx, to, attempt).await?;
    }
    Err(contended(to))
}

async fn plan<S: Store>(space: &Space<S>, from: &VfsPath, to: &VfsPath, mode: TransferMode) -> Result<Plan> {
    let (source, target) = futures::join!(space.find(from), space.look_up(to));
    let source = source?;
    let replaced = check_target(&source, target?, to, mode)?;
    space.check_path(to)?;
    let moves = match source {
        Found::File(stored) => vec![Move { from: from.clone(), to: to.clone(), size: stored.size }],
        Found::Directory => {
            let files = space.subtree(from).await?.readable()?;
            let moves = files.into_iter().map(|entry| {
                let below = entry.path.strip_prefix(from).unwrap_or_default();
                let target = to.join(below).map_err(|error| error.with_path(to))?;
                space.check_path(&target).map_err(|error| error.with_path(to))?;
                Ok(Move { from: entry.path, to: target, size: entry.stored.size })
            });
            moves.collect::<Result<_>>()?
        }
    };
    if moves.is_empty() {
        return Err(Error::not_found(from));
    }
    Ok(Plan { from: from.clone(), to: to.clone(), moves, replaced })
}

/// The file that gives way to `source`, where there is one and it may.
fn check_target(source: &Found, target: Option<Found>, to: &VfsPath, mode: TransferMode) -> Result<Option<Stored>> {
    let Some(target) = target else { return Ok(None) };
    if mode != TransferMode::Overwrite {
        return Err(Error::already_exists(to));
    }
    match (source, target) {
        (Found::File(_), Found::File(replaced)) => Ok(Some(replaced)),
        (Found::File(_), Found::Directory) => Err(Error::at(ErrorKind::IsADirectory, to)),
        (Found::Directory, Found::File(_)) => Err(Error::at(ErrorKind::NotADirectory, to)),
        (Found::Directory, Found::Directory) => {
            let message = "the target directory is not empty; delete it first or choose another target";
            Err(Error::new(ErrorKind::NotEmpty, message).with_path(to))
        }
    }
}

/// Makes the transfer in one step; `None` where what it was planned on has changed.
async fn batched<S: Store>(space: &Space<S>, plan: &Plan, source: Source) -> Result<Option<Vec<Stored>>> {
    let conditions = match &plan.replaced {
        // A file keeps the place that it has, also where others made one above or below it.
        Some(replaced) => vec![Condition::At(plan.to.clone(), Expected::Version(replaced.version.clone()))],
        None => [room_for(&plan.to), vec![Condition::At(plan.to.clone(), Expected::Nothing)]].concat(),
    };
    let at = Utc::now();
    let write = |Move { from, to, .. }: Move| match source {
        Source::Goes => Write::Move { from, to },
        Source::Stays => Write::Copy { from, to, at },
    };
    let writes = plan.moves.iter().cloned().map(write).collect();
    Ok(match space.batch(&plan.to, &conditions, writes).await? {
        BatchOutcome::Done(stored) => Some(stored),
        BatchOutcome::Refused(..) => None,
    })
}
