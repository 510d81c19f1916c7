//! Copies of files and directory trees.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::time::Instant;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::transfer::TransferTargetMode;
use vfs_core::{CopyRequest, CopyResult, Error, ErrorKind, OpContext, Result, VfsPath};

use crate::config::policies::HardLinks;
use crate::fs::created_parents::CreatedParents;
use crate::fs::directory_entries::for_each_entry;
use crate::fs::entry_location::EntryLocation;
use crate::fs::errno::from_errno;
use crate::fs::errno::retry;
use crate::fs::metadata::{Metadata, special_file_error};
use crate::fs::protected_paths::PathAccess;
use crate::fs::remove_tree::remove_staged;
use crate::fs::root::RESERVED_PREFIX;
use crate::local_fs::LocalFs;
use crate::ops::transfer_checks::{attach_path, check_source, check_target, same_path_error};
use crate::staging::durable_rename::{RenameSync, explain_mount_error_at, rename_new_durably, rename_over_durably};
use crate::staging::entry_lock::{InProcessEntryLock, LockPurpose};
use crate::staging::reserved_names::{create_reserved, lock_against_cleanup};
use crate::staging::staged_file::{ReplacePrecondition, StagedFile};
use crate::staging::tree_sync::TreeSync;

impl LocalFs {
    pub(crate) fn copy(&self, request: CopyRequest, cx: &OpContext) -> Result<CopyResult> {
        let CopyRequest { from, to, mode, .. } = request;
        vfs_core::transfer::check_source_and_target(&from, &to)?;
        let source = self.root.resolve_entry(&from)?;
        let kind = check_source(&source, &from)?;
        self.root.check(&source, PathAccess::Copy, &from)?;
        let (mut target, created) = self.root.create_parents(&to)?;
        let deadline = self.lock_deadline();
        let copied = loop {
            // As for a write, a copy over a link writes to the link's target, and a directory never replaces that
            // target.
            if mode == TransferTargetMode::Overwrite && kind == FileType::RegularFile {
                target = self.root.resolve_entry(&to)?;
                self.root.check(&target, PathAccess::Change, &to).inspect_err(|_| created.rollback())?;
            }
            let copied = match kind {
                FileType::Directory => self.copy_directory(&source, (&target, &to), mode, &created, cx),
                _ => self.copy_file((&source, &from), (&target, &to), mode, &created, cx),
            };
            match copied {
                // A new file was created at the target after the check.
                Err(error) if lost_race(&error, mode) && Instant::now() < deadline => cx.check()?,
                copied => break copied,
            }
        };
        match copied {
            Ok((replaced, CopyCounts { files, bytes })) => Ok(CopyResult::new(from, to, replaced, files, bytes)),
            Err(error) => {
                created.rollback();
                Err(attach_path(error, &from, &to))
            }
        }
    }

    fn copy_file(
        &self,
        (source, from): (&EntryLocation, &VfsPath),
        (target, to): (&EntryLocation, &VfsPath),
        mode: TransferTargetMode,
        created: &CreatedParents,
        cx: &OpContext,
    ) -> Result<(bool, CopyCounts)> {
        if InProcessEntryLock::order_key(source).map_err(from_errno)?
            == InProcessEntryLock::order_key(target).map_err(from_errno)?
        {
            return Err(same_path_error());
        }
        let file = self.open_file(from)?;
        let at_target = |error: Error| error.or_path(to);
        check_target(target, FileType::RegularFile, mode).map_err(at_target)?;
        let locked = self.lock_entry(LockPurpose::Change, target, HardLinks::Allow, cx).map_err(at_target)?;
        let staged = StagedFile::create(target, locked.file.as_ref(), self.durability).map_err(at_target)?;
        let bytes = staged.copy_from(file.fd.as_fd(), self.max_file_size, cx)?;
        let copied = CopyCounts { files: 1, bytes };
        match &locked.file {
            Some(replaced) if mode == TransferTargetMode::Overwrite => {
                let published =
                    staged.finish()?.publish_over(&self.root, target, replaced, ReplacePrecondition::SameFile);
                published.map_err(at_target)?;
                Ok((true, copied))
            }
            Some(_) => Err(Error::of(ErrorKind::AlreadyExists)),
            None => {
                let permissions = Mode::from_raw_mode(file.metadata.mode() & 0o777);
                fs::fchmod(staged.fd(), permissions).map_err(from_errno)?;
                staged.finish()?.publish_new(target, || created.sync()).map_err(at_target)?;
                Ok((false, copied))
            }
        }
    }

    /// Copies a tree under a reserved name, and renames it to its own name when it is complete.
    fn copy_directory(
        &self,
        source: &EntryLocation,
        (target, to): (&EntryLocation, &VfsPath),
        mode: TransferTargetMode,
        created: &CreatedParents,
        cx: &OpContext,
    ) -> Result<(bool, CopyCounts)> {
        let _lock = InProcessEntryLock::acquire(target, cx, self.lock_deadline())?;
        let existing = check_target(target, FileType::Directory, mode).map_err(|error| error.or_path(to))?;
        if self.is_inside(target, source)? {
            return Err(Error::invalid_argument("a directory cannot be copied into itself"));
        }
        let mut staged_dir = None;
        let reserved = create_reserved(&self.root, target, |reserved| {
            fs::mkdirat(&reserved.parent, &reserved.name, Mode::from_raw_mode(0o700))?;
            let opened = self.open_directory(reserved.parent.as_fd(), OsStr::new(&reserved.name));
            match opened.and_then(|created| lock_against_cleanup(&created).map(|()| created)) {
                Ok(created) => staged_dir = Some(created),
                // Before the lock was taken, another process took the directory for a leftover and removed it.
                Err(Errno::NOENT) => return Err(Errno::EXIST),
                Err(errno) => {
                    fs::unlinkat(&reserved.parent, &reserved.name, AtFlags::REMOVEDIR)?;
                    return Err(errno);
                }
            }
            Ok(())
        })
        .map_err(|error| error.or_path(to))?;
        let sync_spec = RenameSync { durability: self.durability, created };
        let published = self.copy_tree(source, &reserved, cx).and_then(|copied| {
            match existing {
                None => rename_new_durably(&reserved, target, sync_spec).map_err(from_errno)?,
                Some(existing) => rename_over_durably(&reserved, target, existing, sync_spec)
                    .map_err(|error| explain_mount_error_at(error, target, to))?,
            }
            Ok((existing.is_some(), copied))
        });
        let published = published.map_err(|failure| match remove_staged(&self.root, &reserved) {
            Ok(()) => failure,
            Err(error) => error,
        });
        drop(staged_dir);
        published
    }

    fn copy_tree(&self, source: &EntryLocation, reserved: &EntryLocation, cx: &OpContext) -> Result<CopyCounts> {
        let mut copied = CopyCounts::default();
        let top = CopyDirPair {
            from: self.open_directory(source.parent.as_fd(), OsStr::new(&source.name)).map_err(from_errno)?,
            to: self.open_directory(reserved.parent.as_fd(), OsStr::new(&reserved.name)).map_err(from_errno)?,
        };
        let mut sync = TreeSync::new(self.durability, &top.to).map_err(from_errno)?;
        let mut pending = self.copy_dir_entries(top, &mut copied, &mut sync, cx)?;
        while let Some((above, name)) = pending.pop() {
            let from = self.open_directory(above.from.as_fd(), &name).map_err(from_errno)?;
            let to = self.open_directory(above.to.as_fd(), &name).map_err(from_errno)?;
            pending.extend(self.copy_dir_entries(CopyDirPair { from, to }, &mut copied, &mut sync, cx)?);
        }
        sync.finish().map_err(from_errno)?;
        Ok(copied)
    }

    /// Copies the files of one directory to another and creates its subdirectories. Returns the subdirectories, whose
    /// contents are still to be copied.
    fn copy_dir_entries(
        &self,
        pair: CopyDirPair,
        copied: &mut CopyCounts,
        sync: &mut TreeSync,
        cx: &OpContext,
    ) -> Result<Vec<(Rc<CopyDirPair>, OsString)>> {
        cx.check()?;
        let mut entries = Vec::new();
        for_each_entry(pair.from.as_fd(), |name, kind| {
            if !name.to_bytes().starts_with(RESERVED_PREFIX.as_bytes()) {
                entries.push((OsStr::from_bytes(name.to_bytes()).to_owned(), kind));
            }
            Ok(())
        })
        .map_err(from_errno)?;
        let pair = Rc::new(pair);
        let mut directories = Vec::new();
        for (name, kind) in entries {
            cx.check()?;
            if kind == FileType::Directory {
                fs::mkdirat(&pair.to, &name, Mode::from_raw_mode(0o700)).map_err(from_errno)?;
                directories.push((Rc::clone(&pair), name));
            } else {
                copied.bytes += self.copy_entry(&pair, &name, kind, sync, cx).map_err(|failure| {
                    let message = format!("copying '{}': {}", name.to_string_lossy(), failure.message());
                    Error::new(failure.kind(), message).with_source(failure)
                })?;
                copied.files += 1;
            }
        }
        let mode = Metadata::from_fd(pair.from.as_fd()).map_err(from_errno)?.mode() & 0o7777;
        // The subdirectories must still be entered, even if the permissions of the original do not allow it.
        fs::fchmod(&pair.to, Mode::from_raw_mode(mode | 0o100)).map_err(from_errno)?;
        sync.add(pair.to.as_fd()).map_err(from_errno)?;
        Ok(directories)
    }

    fn copy_entry(
        &self,
        pair: &CopyDirPair,
        name: &OsStr,
        kind: FileType,
        sync: &mut TreeSync,
        cx: &OpContext,
    ) -> Result<u64> {
        match kind {
            FileType::RegularFile => {
                let file =
                    self.root.open_child(pair.from.as_fd(), name.as_bytes(), OFlags::RDONLY).map_err(from_errno)?;
                let metadata = Metadata::from_fd(file.as_fd()).map_err(from_errno)?;
                metadata.check_readable_file(self.hard_links)?;
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let permissions = Mode::from_raw_mode(metadata.mode() & 0o777);
                let copy = retry(|| fs::openat(&pair.to, name, flags, permissions)).map_err(from_errno)?;
                let staged = StagedFile::adopt(copy);
                let bytes = staged.copy_from(file.as_fd(), self.max_file_size, cx)?;
                sync.add(staged.finish()?.fd()).map_err(from_errno)?;
                Ok(bytes)
            }
            FileType::Symlink => {
                let target = fs::readlinkat(&pair.from, name, Vec::new()).map_err(from_errno)?;
                fs::symlinkat(&target, &pair.to, name).map_err(from_errno)?;
                Ok(0)
            }
            _ => Err(special_file_error()),
        }
    }

    fn open_directory(&self, parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        self.root.open_child(parent, name.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Returns whether the directory that contains `entry` is `directory` or below it, by its real location.
    fn is_inside(&self, entry: &EntryLocation, directory: &EntryLocation) -> Result<bool> {
        let root = self.root.identity().map_err(from_errno)?;
        let directory = Metadata::at(directory.parent.as_fd(), &directory.name).map_err(from_errno)?.identity();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut above = fs::openat(&entry.parent, ".", flags, Mode::empty()).map_err(from_errno)?;
        let mut below = None;
        loop {
            let identity = Metadata::from_fd(above.as_fd()).map_err(from_errno)?.identity();
            if identity == directory {
                return Ok(true);
            }
            // The second condition holds at the root of the file system, which the walk reaches if the directory was
            // moved out of the backend's root.
            if identity == root || below == Some(identity) {
                return Ok(false);
            }
            below = Some(identity);
            above = fs::openat(&above, "..", flags, Mode::empty()).map_err(from_errno)?;
        }
    }
}

/// The numbers of files and bytes that a copy has made so far.
#[derive(Debug, Clone, Copy, Default)]
struct CopyCounts {
    files: u64,
    bytes: u64,
}

/// A source directory and the directory that becomes its copy.
struct CopyDirPair {
    from: OwnedFd,
    to: OwnedFd,
}

/// Returns whether an overwriting copy failed because a file was created at the target after the check.
fn lost_race(error: &Error, mode: TransferTargetMode) -> bool {
    mode == TransferTargetMode::Overwrite && error.kind() == ErrorKind::AlreadyExists
}
