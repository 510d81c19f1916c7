//! Deleting: a file or link in one step, a directory by moving it out of sight first.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags};
use rustix::io::{self, Errno};
use vfs_core::{DeleteRequest, DeleteResult, Error, ErrorKind, OpContext, Result};

use crate::commit::{Settle, move_new, rename_new};
use crate::config::Durability;
use crate::disk::Disk;
use crate::errno::{error, error_at};
use crate::lock::EntryLock;
use crate::metadata::special_file;
use crate::root::{Entry, MadeDirectories, RESERVED, retry};
use crate::staging::{Sharing, reserved_name};

/// How deep below the removed directory descriptors are held; what lies deeper is moved up first.
const MAX_HELD: usize = 64;

impl Disk {
    pub(crate) fn delete(&self, request: DeleteRequest, cx: &OpContext) -> Result<DeleteResult> {
        let path = &request.path;
        if path.is_root() {
            return Err(Error::invalid_argument("the root cannot be deleted; name something below it").with_path(path));
        }
        let entry = self.root.entry(path)?;
        let files = match entry.file_type().map_err(|errno| error_at(errno, path))? {
            None => return Err(Error::not_found(path)),
            Some(FileType::Directory) if !request.recursive => {
                return Err(Error::new(
                    ErrorKind::IsADirectory,
                    "it is a directory; ask for a recursive delete if all of it is meant",
                )
                .with_path(path));
            }
            Some(FileType::Directory) if request.expected_version.is_some() => {
                return Err(Error::invalid_argument("a directory has no version to expect").with_path(path));
            }
            Some(FileType::Directory) => {
                let _lock = EntryLock::acquire(&entry, cx, self.wait_until()).map_err(|error| error.or_path(path))?;
                self.remove_aside(&entry).map_err(|error| error.or_path(path))?
            }
            Some(FileType::RegularFile) => {
                let held = self.hold(&entry, path, cx)?;
                let Some(file) = &held.file else { return Err(Error::not_found(path)) };
                let version = file.metadata.version();
                if request.expected_version.as_ref().is_some_and(|expected| *expected != version) {
                    return Err(Error::conflict(path, Some(version)));
                }
                self.remove_one(&entry).map_err(|error| error.or_path(path))?
            }
            Some(FileType::Symlink) if request.expected_version.is_some() => {
                return Err(Error::invalid_argument("a link has no version to expect").with_path(path));
            }
            Some(FileType::Symlink) => {
                let _lock = EntryLock::acquire(&entry, cx, self.wait_until()).map_err(|error| error.or_path(path))?;
                self.remove_one(&entry).map_err(|error| error.or_path(path))?
            }
            Some(_) => return Err(special_file().with_path(path)),
        };
        Ok(DeleteResult::new(path.clone(), files))
    }

    /// Removes a file or link.
    fn remove_one(&self, entry: &Entry) -> Result<u64> {
        if self.durability == Durability::Full {
            return self.remove_aside(entry);
        }
        fs::unlinkat(&entry.parent, &entry.name, AtFlags::empty()).map_err(error)?;
        Ok(1)
    }

    /// Removes what `entry` names, with everything below it, and counts the files.
    ///
    /// Moving it out of sight is the commit point, after which it is gone for every reader, whether or not the caller
    /// waits for the rest. If something of it cannot be removed, what is left comes back under its name.
    fn remove_aside(&self, entry: &Entry) -> Result<u64> {
        let hidden = self.move_aside(entry)?;
        empty_and_remove(&hidden).map_err(|failure| rename_new(&hidden, entry).err().map_or(failure, error))
    }

    /// Gives `entry` a reserved name, which no listing shows.
    fn move_aside(&self, entry: &Entry) -> Result<Entry> {
        let hidden = entry.sibling(reserved_name(entry, Sharing::PerEntry)).map_err(error)?;
        if hidden.file_type().map_err(error)?.is_some() {
            // A process that died while it changed or removed this name left it.
            empty_and_remove(&hidden)?;
        }
        let settle = Settle { durability: self.durability, made: &MadeDirectories::default() };
        move_new(entry, &hidden, settle).map_err(error)?;
        Ok(hidden)
    }
}

/// Removes what was made under a reserved name and never got its own.
pub(crate) fn remove_hidden(hidden: &Entry) -> Result<()> {
    empty_and_remove(hidden).map(drop)
}

fn empty_and_remove(hidden: &Entry) -> Result<u64> {
    if hidden.file_type().map_err(error)? != Some(FileType::Directory) {
        fs::unlinkat(&hidden.parent, &hidden.name, AtFlags::empty()).map_err(error)?;
        return Ok(1);
    }
    let files = empty(&hidden.parent, &hidden.name).map_err(error)?;
    fs::unlinkat(&hidden.parent, &hidden.name, AtFlags::REMOVEDIR).map_err(error)?;
    Ok(files)
}

/// A directory on the way down, with the subdirectories that are still to be emptied.
struct Level {
    fd: OwnedFd,
    name: Vec<u8>,
    directories: Vec<Vec<u8>>,
}

/// Removes all that is below the directory `name` of `parent`, without recursion and with few descriptors.
fn empty(parent: &OwnedFd, name: &str) -> io::Result<u64> {
    let mut files = 0;
    let mut moved = 0_u64;
    let mut levels = vec![Level::open(parent.as_fd(), name.as_bytes().to_vec(), &mut files)?];
    while let Some(level) = levels.last_mut() {
        let Some(child) = level.directories.pop() else {
            let done = levels.pop();
            if let (Some(done), Some(above)) = (done, levels.last()) {
                fs::unlinkat(&above.fd, &done.name[..], AtFlags::REMOVEDIR)?;
            }
            continue;
        };
        if levels.len() < MAX_HELD {
            let dir = levels[levels.len() - 1].fd.as_fd();
            let next = Level::open(dir, child, &mut files)?;
            levels.push(next);
        } else {
            // Too deep to hold a descriptor for each level: it goes on from the top, under a name of its own.
            let name = move_up(&levels[levels.len() - 1].fd, &child, &levels[0].fd, &mut moved)?;
            levels[0].directories.push(name);
        }
    }
    Ok(files)
}

/// Moves a directory to the top of the tree that is removed, and returns its name there.
fn move_up(from: &OwnedFd, name: &[u8], top: &OwnedFd, moved: &mut u64) -> io::Result<Vec<u8>> {
    loop {
        *moved += 1;
        let new = format!("{RESERVED}deep-{moved}").into_bytes();
        match fs::renameat_with(from, name, top, &new[..], RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(new),
            // A removal that was cut short had got this far before.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
}

impl Level {
    /// Opens a directory, removes what is not one, and remembers what is.
    fn open(parent: BorrowedFd<'_>, name: Vec<u8>, files: &mut u64) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = retry(|| fs::openat(parent, &name[..], flags, Mode::empty()))?;
        let mut directories = Vec::new();
        let mut others = Vec::new();
        for_each_entry(fd.as_fd(), |name, kind| {
            let list = if kind == FileType::Directory { &mut directories } else { &mut others };
            list.push(name.to_bytes().to_vec());
            Ok(())
        })?;
        for name in others {
            match fs::unlinkat(&fd, &name[..], AtFlags::empty()) {
                Ok(()) => *files += 1,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(Self { fd, name, directories })
    }
}

/// Calls `each` for every entry of a directory but `.` and `..`, from its beginning.
pub(crate) fn for_each_entry(
    dir: BorrowedFd<'_>,
    mut each: impl FnMut(&CStr, FileType) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            },
            kind => kind,
        };
        each(name, kind)?;
    }
    Ok(())
}
