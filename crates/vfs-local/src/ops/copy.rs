//! Copying.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::time::Instant;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::{CopyRequest, CopyResult, Error, ErrorKind, OpContext, Result, TransferMode, VfsPath};

use crate::config::options::HardLinks;
use crate::fs::directory_entries::for_each_entry;
use crate::fs::entry::Entry;
use crate::fs::errno::error;
use crate::fs::errno::retry;
use crate::fs::metadata::{Metadata, special_file};
use crate::fs::parents::MadeDirectories;
use crate::fs::protected_paths::Deed;
use crate::fs::remove_tree::remove_hidden;
use crate::fs::root::RESERVED;
use crate::local_fs::Disk;
use crate::ops::transfer_checks::{name_end, replaceable, same_ends, transferable};
use crate::staging::durable_rename::{Settle, move_new, move_over, refusal_at};
use crate::staging::lock::{EntryLock, Purpose};
use crate::staging::reserved_names::{mark_alive, place_beside};
use crate::staging::staged_file::{Expected, Staged};
use crate::staging::tree_sync::TreeSync;

impl Disk {
    pub(crate) fn copy(&self, request: CopyRequest, cx: &OpContext) -> Result<CopyResult> {
        let CopyRequest { from, to, mode, .. } = request;
        vfs_core::check_ends(&from, &to)?;
        let source = self.root.followed_entry(&from)?;
        let kind = transferable(&source, &from)?;
        self.root.check(&source, Deed::Copy, &from)?;
        let (mut target, made) = self.root.make_parents(&to)?;
        let until = self.wait_until();
        let copied = loop {
            // As for a write, a link at the target is written through, and never replaced by a directory.
            if mode == TransferMode::Overwrite && kind == FileType::RegularFile {
                target = self.root.followed_entry(&to)?;
                self.root.check(&target, Deed::Change, &to).inspect_err(|_| made.undo())?;
            }
            let copied = match kind {
                FileType::Directory => self.copy_directory(&source, (&target, &to), mode, &made, cx),
                _ => self.copy_file((&source, &from), (&target, &to), mode, &made, cx),
            };
            match copied {
                // A new file has come to the target since the look at it.
                Err(error) if is_overtaken(&error, mode) && Instant::now() < until => cx.check()?,
                copied => break copied,
            }
        };
        match copied {
            Ok((replaced, Copied { files, bytes })) => Ok(CopyResult::new(from, to, replaced, files, bytes)),
            Err(error) => {
                made.undo();
                Err(name_end(error, &from, &to))
            }
        }
    }

    fn copy_file(
        &self,
        (source, from): (&Entry, &VfsPath),
        (target, to): (&Entry, &VfsPath),
        mode: TransferMode,
        made: &MadeDirectories,
        cx: &OpContext,
    ) -> Result<(bool, Copied)> {
        if EntryLock::order(source).map_err(error)? == EntryLock::order(target).map_err(error)? {
            return Err(same_ends());
        }
        let file = self.open_file(from)?;
        let at_target = |error: Error| error.or_path(to);
        replaceable(target, FileType::RegularFile, mode).map_err(at_target)?;
        let held = self.hold(Purpose::Change, target, HardLinks::Allow, cx).map_err(at_target)?;
        let staged = Staged::new(target, held.file.as_ref(), self.durability).map_err(at_target)?;
        let bytes = staged.copy_from(file.fd.as_fd(), self.max_file_size, cx)?;
        let copied = Copied { files: 1, bytes };
        match &held.file {
            Some(replaced) if mode == TransferMode::Overwrite => {
                let published = staged.finish()?.publish_over(&self.root, target, replaced, Expected::File);
                published.map_err(at_target)?;
                Ok((true, copied))
            }
            Some(_) => Err(Error::of(ErrorKind::AlreadyExists)),
            None => {
                let permissions = Mode::from_raw_mode(file.metadata.mode() & 0o777);
                fs::fchmod(staged.fd(), permissions).map_err(error)?;
                staged.finish()?.publish_new(target, || made.sync()).map_err(at_target)?;
                Ok((false, copied))
            }
        }
    }

    /// Copies a tree under a reserved name, and gives it its own when it is complete.
    fn copy_directory(
        &self,
        source: &Entry,
        (target, to): (&Entry, &VfsPath),
        mode: TransferMode,
        made: &MadeDirectories,
        cx: &OpContext,
    ) -> Result<(bool, Copied)> {
        let _lock = EntryLock::acquire(target, cx, self.wait_until())?;
        let existing = replaceable(target, FileType::Directory, mode).map_err(|error| error.or_path(to))?;
        if self.lies_in(target, source)? {
            return Err(Error::invalid_argument("a directory cannot be copied into itself"));
        }
        let mut held = None;
        let hidden = place_beside(&self.root, target, |hidden| {
            fs::mkdirat(&hidden.parent, &hidden.name, Mode::from_raw_mode(0o700))?;
            let opened = self.open_directory(hidden.parent.as_fd(), OsStr::new(&hidden.name));
            match opened.and_then(|made| mark_alive(&made).map(|()| made)) {
                Ok(made) => held = Some(made),
                // Until it is locked, another process may take it for a leftover.
                Err(Errno::NOENT) => return Err(Errno::EXIST),
                Err(errno) => {
                    fs::unlinkat(&hidden.parent, &hidden.name, AtFlags::REMOVEDIR)?;
                    return Err(errno);
                }
            }
            Ok(())
        })
        .map_err(|error| error.or_path(to))?;
        let settle = Settle { durability: self.durability, made };
        let published = self.copy_below(source, &hidden, cx).and_then(|copied| {
            match existing {
                None => move_new(&hidden, target, settle).map_err(error)?,
                Some(existing) => {
                    move_over(&hidden, target, existing, settle).map_err(|error| refusal_at(error, target, to))?
                }
            }
            Ok((existing.is_some(), copied))
        });
        let published = published.map_err(|failure| match remove_hidden(&self.root, &hidden) {
            Ok(()) => failure,
            Err(error) => error,
        });
        drop(held);
        published
    }

    fn copy_below(&self, source: &Entry, hidden: &Entry, cx: &OpContext) -> Result<Copied> {
        let mut copied = Copied::default();
        let top = Pair {
            from: self.open_directory(source.parent.as_fd(), OsStr::new(&source.name)).map_err(error)?,
            to: self.open_directory(hidden.parent.as_fd(), OsStr::new(&hidden.name)).map_err(error)?,
        };
        let mut sync = TreeSync::new(self.durability, &top.to).map_err(error)?;
        let mut pending = self.copy_level(top, &mut copied, &mut sync, cx)?;
        while let Some((above, name)) = pending.pop() {
            let from = self.open_directory(above.from.as_fd(), &name).map_err(error)?;
            let to = self.open_directory(above.to.as_fd(), &name).map_err(error)?;
            pending.extend(self.copy_level(Pair { from, to }, &mut copied, &mut sync, cx)?);
        }
        sync.finish().map_err(error)?;
        Ok(copied)
    }

    /// Copies the files of one directory to another, makes its directories, and returns those, which are left to do.
    fn copy_level(
        &self,
        pair: Pair,
        copied: &mut Copied,
        sync: &mut TreeSync,
        cx: &OpContext,
    ) -> Result<Vec<(Rc<Pair>, OsString)>> {
        cx.check()?;
        let mut entries = Vec::new();
        for_each_entry(pair.from.as_fd(), |name, kind| {
            if !name.to_bytes().starts_with(RESERVED.as_bytes()) {
                entries.push((OsStr::from_bytes(name.to_bytes()).to_owned(), kind));
            }
            Ok(())
        })
        .map_err(error)?;
        let pair = Rc::new(pair);
        let mut directories = Vec::new();
        for (name, kind) in entries {
            cx.check()?;
            if kind == FileType::Directory {
                fs::mkdirat(&pair.to, &name, Mode::from_raw_mode(0o700)).map_err(error)?;
                directories.push((Rc::clone(&pair), name));
            } else {
                copied.bytes += self.copy_entry(&pair, &name, kind, sync, cx).map_err(|failure| {
                    let message = format!("'{}' in it: {}", name.to_string_lossy(), failure.message());
                    Error::new(failure.kind(), message).with_source(failure)
                })?;
                copied.files += 1;
            }
        }
        let mode = Metadata::of(pair.from.as_fd()).map_err(error)?.mode() & 0o7777;
        // Its directories are still to be entered, whatever the original allows.
        fs::fchmod(&pair.to, Mode::from_raw_mode(mode | 0o100)).map_err(error)?;
        sync.add(pair.to.as_fd()).map_err(error)?;
        Ok(directories)
    }

    fn copy_entry(
        &self,
        pair: &Pair,
        name: &OsStr,
        kind: FileType,
        sync: &mut TreeSync,
        cx: &OpContext,
    ) -> Result<u64> {
        match kind {
            FileType::RegularFile => {
                let file = self.root.open_child(pair.from.as_fd(), name.as_bytes(), OFlags::RDONLY).map_err(error)?;
                let metadata = Metadata::of(file.as_fd()).map_err(error)?;
                metadata.require_readable_file(self.hard_links)?;
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let permissions = Mode::from_raw_mode(metadata.mode() & 0o777);
                let copy = retry(|| fs::openat(&pair.to, name, flags, permissions)).map_err(error)?;
                let staged = Staged::adopt(copy);
                let bytes = staged.copy_from(file.as_fd(), self.max_file_size, cx)?;
                sync.add(staged.finish()?.fd()).map_err(error)?;
                Ok(bytes)
            }
            FileType::Symlink => {
                let target = fs::readlinkat(&pair.from, name, Vec::new()).map_err(error)?;
                fs::symlinkat(&target, &pair.to, name).map_err(error)?;
                Ok(0)
            }
            _ => Err(special_file()),
        }
    }

    fn open_directory(&self, parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        self.root.open_child(parent, name.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Whether the directory that holds `entry` is `directory` or below it, whatever links led there.
    fn lies_in(&self, entry: &Entry, directory: &Entry) -> Result<bool> {
        let root = self.root.identity().map_err(error)?;
        let directory = Metadata::at(directory.parent.as_fd(), &directory.name).map_err(error)?.identity();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut above = fs::openat(&entry.parent, ".", flags, Mode::empty()).map_err(error)?;
        let mut below = None;
        loop {
            let identity = Metadata::of(above.as_fd()).map_err(error)?.identity();
            if identity == directory {
                return Ok(true);
            }
            // The second is the root of everything, which a directory that was moved out of ours can reach.
            if identity == root || below == Some(identity) {
                return Ok(false);
            }
            below = Some(identity);
            above = fs::openat(&above, "..", flags, Mode::empty()).map_err(error)?;
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Copied {
    files: u64,
    bytes: u64,
}

/// A directory and the one that becomes its copy.
struct Pair {
    from: OwnedFd,
    to: OwnedFd,
}

/// Whether a copy over what is there found something that was not there when it looked.
fn is_overtaken(error: &Error, mode: TransferMode) -> bool {
    mode == TransferMode::Overwrite && error.kind() == ErrorKind::AlreadyExists
}
