//! Copying.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io;
use vfs_core::{CopyRequest, CopyResult, Error, ErrorKind, OpContext, Result, TransferMode, VfsPath};

use crate::commit::{Settle, move_new, move_over};
use crate::config::Durability;
use crate::disk::Disk;
use crate::ends::{check_ends, name_end, replaceable, transferable, without_path};
use crate::errno::error;
use crate::lock::EntryLock;
use crate::metadata::{Metadata, special_file};
use crate::remove::{for_each_entry, remove_hidden};
use crate::root::{Entry, MadeDirectories, RESERVED, retry};
use crate::staging::{Sharing, Staged, reserved_name};

impl Disk {
    pub(crate) fn copy(&self, request: CopyRequest, cx: &OpContext) -> Result<CopyResult> {
        let CopyRequest { from, to, mode, .. } = request;
        check_ends(&from, &to)?;
        let source = self.root.followed_entry(&from)?;
        let kind = transferable(&source, &from)?;
        let (target, made) = self.root.make_parents(&to)?;
        let copied = self.copy_held(&from, &source, kind, &target, &made, mode, cx);
        match copied {
            Ok((replaced, Copied { files, bytes })) => Ok(CopyResult::new(from, to, replaced, files, bytes)),
            Err(error) => {
                made.undo();
                Err(name_end(error, &from, &to))
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the two ends of a copy with what is known of each")]
    fn copy_held(
        &self,
        from: &VfsPath,
        source: &Entry,
        kind: FileType,
        target: &Entry,
        made: &MadeDirectories,
        mode: TransferMode,
        cx: &OpContext,
    ) -> Result<(bool, Copied)> {
        if kind == FileType::Directory {
            let _lock = EntryLock::acquire(target, cx, self.wait_until())?;
            let existing = replaceable(target, kind, mode)?;
            let copied = self.copy_directory(source, target, existing, made, cx)?;
            return Ok((existing.is_some(), copied));
        }
        let file = self.open_file(from)?;
        let limit = if file.metadata.size() == 0 { self.max_file_size } else { u64::MAX };
        let held = match target.file_type().map_err(error)? {
            Some(FileType::Directory) => return Err(Error::of(ErrorKind::IsADirectory)),
            Some(_) if mode == TransferMode::CreateNew => return Err(Error::of(ErrorKind::AlreadyExists)),
            Some(FileType::Symlink) => {
                return Err(Error::new(ErrorKind::AlreadyExists, "the target is a link; delete it first"));
            }
            _ => self.hold(target, &VfsPath::root(), cx).map_err(without_path)?,
        };
        let staged = Staged::new(target, held.file.as_ref(), self.durability)?;
        let bytes = staged.copy_from(file.fd.as_fd(), limit, cx)?;
        let copied = Copied { files: 1, bytes };
        match &held.file {
            Some(replaced) if mode == TransferMode::Overwrite => {
                staged.publish_over(target, replaced)?;
                Ok((true, copied))
            }
            Some(_) => Err(Error::of(ErrorKind::AlreadyExists)),
            None => {
                let permissions = Mode::from_raw_mode(file.metadata.mode() & 0o777);
                fs::fchmod(staged.fd(), permissions).map_err(error)?;
                staged.publish_new(target, || made.sync())?;
                Ok((false, copied))
            }
        }
    }

    /// Copies a tree under a reserved name, and gives it its own when it is complete.
    fn copy_directory(
        &self,
        source: &Entry,
        target: &Entry,
        existing: Option<FileType>,
        made: &MadeDirectories,
        cx: &OpContext,
    ) -> Result<Copied> {
        if lies_in(target, source)? {
            return Err(Error::invalid_argument("a directory cannot be copied into itself"));
        }
        let hidden = target.sibling(reserved_name(target, Sharing::Unique)).map_err(error)?;
        fs::mkdirat(&hidden.parent, &hidden.name, Mode::from_raw_mode(0o700)).map_err(error)?;
        let settle = Settle { durability: self.durability, made };
        let published = self.copy_below(source, &hidden, cx).and_then(|copied| {
            match existing {
                None => move_new(&hidden, target, settle),
                Some(existing) => move_over(&hidden, target, existing, settle),
            }
            .map_err(error)?;
            Ok(copied)
        });
        published.map_err(|failure| match remove_hidden(&hidden) {
            Ok(()) => failure,
            Err(error) => error,
        })
    }

    fn copy_below(&self, source: &Entry, hidden: &Entry, cx: &OpContext) -> Result<Copied> {
        let mut copied = Copied::default();
        let top = Pair {
            from: open_directory(source.parent.as_fd(), OsStr::new(&source.name)).map_err(error)?,
            to: open_directory(hidden.parent.as_fd(), OsStr::new(&hidden.name)).map_err(error)?,
        };
        let mut pending = self.copy_level(top, &mut copied, cx)?;
        while let Some((above, name)) = pending.pop() {
            let from = open_directory(above.from.as_fd(), &name).map_err(error)?;
            fs::mkdirat(&above.to, &name, Mode::from_raw_mode(0o700)).map_err(error)?;
            let to = open_directory(above.to.as_fd(), &name).map_err(error)?;
            pending.extend(self.copy_level(Pair { from, to }, &mut copied, cx)?);
        }
        Ok(copied)
    }

    /// Copies what is not a directory from one directory to another, and returns the directories that are left to do.
    fn copy_level(&self, pair: Pair, copied: &mut Copied, cx: &OpContext) -> Result<Vec<(Rc<Pair>, OsString)>> {
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
                directories.push((Rc::clone(&pair), name));
            } else {
                copied.bytes += self.copy_entry(&pair, &name, kind, cx)?;
                copied.files += 1;
            }
        }
        let mode = Metadata::of(pair.from.as_fd()).map_err(error)?.mode() & 0o7777;
        // Until its directories are made, it must stay writable for us, whatever the original allows.
        fs::fchmod(&pair.to, Mode::from_raw_mode(mode | 0o700)).map_err(error)?;
        if self.durability == Durability::Full {
            retry(|| fs::fsync(&pair.to)).map_err(error)?;
        }
        Ok(directories)
    }

    fn copy_entry(&self, pair: &Pair, name: &OsStr, kind: FileType, cx: &OpContext) -> Result<u64> {
        match kind {
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = retry(|| fs::openat(&pair.from, name, flags, Mode::empty())).map_err(error)?;
                let metadata = Metadata::of(file.as_fd()).map_err(error)?;
                metadata.require_readable_file(self.hard_links)?;
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let permissions = Mode::from_raw_mode(metadata.mode() & 0o777);
                let copy = retry(|| fs::openat(&pair.to, name, flags, permissions)).map_err(error)?;
                let staged = Staged::adopt(copy, self.durability);
                let limit = if metadata.size() == 0 { self.max_file_size } else { u64::MAX };
                let bytes = staged.copy_from(file.as_fd(), limit, cx)?;
                staged.finish()?;
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

fn open_directory(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry(|| fs::openat(parent, name, flags, Mode::empty()))
}

/// Whether the directory that holds `entry` is `directory` or below it, whatever links led there.
fn lies_in(entry: &Entry, directory: &Entry) -> Result<bool> {
    let directory = Metadata::at(directory.parent.as_fd(), &directory.name).map_err(error)?.identity();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut above = fs::openat(&entry.parent, ".", flags, Mode::empty()).map_err(error)?;
    let mut identity = Metadata::of(above.as_fd()).map_err(error)?.identity();
    loop {
        if identity == directory {
            return Ok(true);
        }
        above = fs::openat(&above, "..", flags, Mode::empty()).map_err(error)?;
        let next = Metadata::of(above.as_fd()).map_err(error)?.identity();
        if next == identity {
            return Ok(false);
        }
        identity = next;
    }
}
