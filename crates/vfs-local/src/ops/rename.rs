//! Renames of files, links and directories.

use std::cmp::Ordering;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use vfs_core::transfer::TransferTargetMode;
use vfs_core::{Error, ErrorKind, OpContext, RenameRequest, RenameResult, Result, VfsPath};

use crate::fs::entry_location::EntryLocation;
use crate::fs::errno::from_errno;
use crate::fs::metadata::Metadata;
use crate::fs::protected_paths::PathAccess;
use crate::local_fs::LocalFs;
use crate::ops::transfer_checks::{attach_path, check_source, check_target, same_path_error};
use crate::staging::durable_rename::{RenameSync, explain_mount_error_at, rename_new_durably, rename_over_durably};
use crate::staging::entry_lock::InProcessEntryLock;

impl LocalFs {
    pub(crate) fn rename(&self, request: RenameRequest, cx: &OpContext) -> Result<RenameResult> {
        let RenameRequest { from, to, mode, .. } = request;
        vfs_core::transfer::check_source_and_target(&from, &to)?;
        let source = self.root.entry(&from)?;
        self.root.check(&source, PathAccess::Change, &from)?;
        let kind = check_source(&source, &from)?;
        let (target, created) = self.root.create_parents(&to)?;
        let sync = RenameSync { durability: self.durability, created: &created };
        match self.rename_locked((&source, &from), kind, (&target, &to), mode, sync, cx) {
            Ok(replaced) => Ok(RenameResult::new(from, to, replaced)),
            Err(error) => {
                let error = match error.kind() {
                    ErrorKind::PathEscape if error.path().is_none() => {
                        explain_cross_device(error, kind, (&source, &from), (&target, &to))
                    }
                    _ => error,
                };
                created.rollback();
                Err(attach_path(error, &from, &to))
            }
        }
    }

    fn rename_locked(
        &self,
        (source, from): (&EntryLocation, &VfsPath),
        kind: FileType,
        (target, to): (&EntryLocation, &VfsPath),
        mode: TransferTargetMode,
        sync: RenameSync<'_>,
        cx: &OpContext,
    ) -> Result<bool> {
        let deadline = self.lock_deadline();
        // Every thread locks two entries in the same order, so that no two threads wait for one another.
        let mut both = [source, target];
        match InProcessEntryLock::order_key(source)
            .map_err(from_errno)?
            .cmp(&InProcessEntryLock::order_key(target).map_err(from_errno)?)
        {
            Ordering::Less => {}
            Ordering::Greater => both.reverse(),
            Ordering::Equal => return Err(same_path_error()),
        }
        let _first = InProcessEntryLock::acquire(both[0], cx, deadline)?;
        let _second = InProcessEntryLock::acquire(both[1], cx, deadline)?;
        loop {
            let existing = check_target(target, kind, mode).map_err(|error| error.or_path(to))?;
            let moved = match existing {
                None => rename_new_durably(source, target, sync).map_err(from_errno),
                Some(existing) => rename_over_durably(source, target, existing, sync),
            };
            match moved {
                // A new file was created at the target after the check.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && mode == TransferTargetMode::Overwrite => {
                    cx.check()?;
                }
                moved => {
                    let moved = moved.map_err(|error| {
                        explain_mount_error_at(explain_mount_error_at(error, source, from), target, to)
                    });
                    return moved.map(|()| existing.is_some());
                }
            }
        }
    }
}

/// Explains the `failure` of a rename that the kernel cannot do: to another file system, into another project of a file
/// system with project quotas, or of a directory that is partly in a lower layer of its file system.
fn explain_cross_device(
    failure: Error,
    kind: FileType,
    (source, from): NamedEntry<'_>,
    (target, to): NamedEntry<'_>,
) -> Error {
    let mount_of = |entry: &EntryLocation| {
        Metadata::from_fd(entry.parent.as_fd()).map(|metadata| (metadata.identity().0, metadata.mount_id()))
    };
    let is_mounted =
        |entry: &EntryLocation| Metadata::at(entry.parent.as_fd(), &entry.name).is_ok_and(|at| at.is_mount_point());
    let is_same_file_system = mount_of(source).is_ok_and(|one| mount_of(target).is_ok_and(|other| one == other))
        && !is_mounted(source)
        && !is_mounted(target);
    let (message, path) = match (is_same_file_system, kind) {
        (true, FileType::Directory) => {
            let message = "the file system cannot rename this directory, such as one of a lower layer; copy the directory to \
                           the new path, then delete the original";
            (message, from)
        }
        // For example between directories of different project quotas.
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

/// An entry, and the caller's path of it.
type NamedEntry<'a> = (&'a EntryLocation, &'a VfsPath);
