//! Renaming.

use std::cmp::Ordering;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use vfs_core::{Error, ErrorKind, OpContext, RenameRequest, RenameResult, Result, TransferMode, VfsPath};

use crate::fs::entry::Entry;
use crate::fs::errno::error;
use crate::fs::metadata::Metadata;
use crate::fs::protected_paths::Deed;
use crate::local_fs::Disk;
use crate::ops::transfer_checks::{name_end, replaceable, same_ends, transferable};
use crate::staging::durable_rename::{Settle, move_new, move_over, refusal_at};
use crate::staging::lock::EntryLock;

impl Disk {
    pub(crate) fn rename(&self, request: RenameRequest, cx: &OpContext) -> Result<RenameResult> {
        let RenameRequest { from, to, mode, .. } = request;
        vfs_core::check_ends(&from, &to)?;
        let source = self.root.entry(&from)?;
        self.root.check(&source, Deed::Change, &from)?;
        let kind = transferable(&source, &from)?;
        let (target, made) = self.root.make_parents(&to)?;
        let settle = Settle { durability: self.durability, made: &made };
        match self.rename_held((&source, &from), kind, (&target, &to), mode, settle, cx) {
            Ok(replaced) => Ok(RenameResult::new(from, to, replaced)),
            Err(error) => {
                let error = match error.kind() {
                    ErrorKind::PathEscape if error.path().is_none() => {
                        cross_device(error, kind, (&source, &from), (&target, &to))
                    }
                    _ => error,
                };
                made.undo();
                Err(name_end(error, &from, &to))
            }
        }
    }

    fn rename_held(
        &self,
        (source, from): (&Entry, &VfsPath),
        kind: FileType,
        (target, to): (&Entry, &VfsPath),
        mode: TransferMode,
        settle: Settle<'_>,
        cx: &OpContext,
    ) -> Result<bool> {
        let until = self.wait_until();
        // Every thread takes two entries in the same order, so that none waits for one that waits for it.
        let mut both = [source, target];
        match EntryLock::order(source).map_err(error)?.cmp(&EntryLock::order(target).map_err(error)?) {
            Ordering::Less => {}
            Ordering::Greater => both.reverse(),
            Ordering::Equal => return Err(same_ends()),
        }
        let _first = EntryLock::acquire(both[0], cx, until)?;
        let _second = EntryLock::acquire(both[1], cx, until)?;
        loop {
            let existing = replaceable(target, kind, mode).map_err(|error| error.or_path(to))?;
            let moved = match existing {
                None => move_new(source, target, settle).map_err(error),
                Some(existing) => move_over(source, target, existing, settle),
            };
            match moved {
                // A new file has come to the target since the look at it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && mode == TransferMode::Overwrite => {
                    cx.check()?;
                }
                moved => {
                    let moved = moved.map_err(|error| refusal_at(refusal_at(error, source, from), target, to));
                    return moved.map(|()| existing.is_some());
                }
            }
        }
    }
}

/// The `failure` to move what the kernel does not move in one step: to another file system, into another project of a file
/// system with project quotas, or a directory of which one layer of its file system has only a part.
fn cross_device(failure: Error, kind: FileType, (source, from): End<'_>, (target, to): End<'_>) -> Error {
    let place = |entry: &Entry| Metadata::of(entry.parent.as_fd()).map(|found| (found.identity().0, found.mount()));
    let is_mounted =
        |entry: &Entry| Metadata::at(entry.parent.as_fd(), &entry.name).is_ok_and(|at| at.is_mount_point());
    let is_one_place = place(source).is_ok_and(|one| place(target).is_ok_and(|other| one == other))
        && !is_mounted(source)
        && !is_mounted(target);
    let (message, path) = match (is_one_place, kind) {
        (true, FileType::Directory) => {
            let message = "the file system cannot rename this directory, such as one of a lower layer; copy the directory to \
                           the new path, then delete the original";
            (message, from)
        }
        // As between directories of different project quotas.
        (true, _) => (
            "the file system cannot move this file there; copy the file to the new path, then delete the original",
            from,
        ),
        (false, _) => (
            "source and target are on different file systems; copy the source to the new path, then delete the original",
            if is_mounted(source) { from } else { to },
        ),
    };
    Error::new(ErrorKind::CrossBackend, message).with_path(path).with_source(failure)
}

/// An entry and the caller's path of it.
type End<'a> = (&'a Entry, &'a VfsPath);
