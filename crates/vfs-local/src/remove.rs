//! Deleting: a file or link in one step, a directory by moving it out of sight first.

use std::ffi::CStr;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, FileType, OFlags, RawDir, RenameFlags};
use rustix::io::{self, Errno};
use vfs_core::{DeleteRequest, DeleteResult, DeleteScope, Error, ErrorKind, OpContext, Result};

use crate::commit::{Settle, move_new, refusal, rename_new};
use crate::config::{Durability, HardLinks};
use crate::disk::Disk;
use crate::errno::{error, error_at};
use crate::guard::Deed;
use crate::hidden::{mark_alive, place_anywhere, place_beside};
use crate::lock::{EntryLock, Purpose};
use crate::metadata::special_file;
use crate::root::{Entry, MadeDirectories, Root, sync_directory};

/// How deep below the removed directory descriptors are held; what lies deeper is moved up first.
const MAX_HELD: usize = 64;

/// How often a directory that was emptied is found not to be empty.
const MAX_ROUNDS: usize = 1_000;

impl Disk {
    pub(crate) fn delete(&self, request: DeleteRequest, cx: &OpContext) -> Result<DeleteResult> {
        let path = &request.path;
        if path.is_root() {
            return Err(Error::invalid_argument("the root cannot be deleted; name something below it").with_path(path));
        }
        if request.scope == DeleteScope::EmptyDirectory {
            return self.delete_empty(path, cx);
        }
        let entry = self.root.entry(path)?;
        self.root.check(&entry, Deed::Change, path)?;
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
                let held =
                    self.hold(Purpose::Removal, &entry, HardLinks::Allow, cx).map_err(|error| error.or_path(path))?;
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
        fs::unlinkat(&entry.parent, &entry.name, AtFlags::empty()).map_err(|errno| refusal(error(errno), entry))?;
        Ok(1)
    }

    /// Removes what `entry` names, with everything below it, and counts the files.
    ///
    /// Moving it out of sight is the commit point, after which it is gone for every reader, whether or not the caller
    /// waits for the rest. If something of it cannot be removed, what is left comes back under its name. A directory that
    /// cannot be moved is emptied where it is.
    fn remove_aside(&self, entry: &Entry) -> Result<u64> {
        let settle = Settle { durability: self.durability, made: &MadeDirectories::default() };
        let place = |hidden: &Entry| move_new(entry, hidden, settle);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let held = match entry.file_type().map_err(error)? {
            Some(FileType::Directory | FileType::RegularFile) => {
                Some(self.root.open_child(entry.parent.as_fd(), entry.name.as_bytes(), flags).map_err(error)?)
            }
            _ => None,
        };
        let placed = match &held {
            Some(held) => {
                mark_alive(held).map_err(error)?;
                place_beside(&self.root, entry, place)
            }
            None => place_anywhere(entry, place),
        };
        let hidden = match placed {
            Ok(hidden) => hidden,
            // Where file systems lie in layers, a directory of a lower one is not moved.
            Err(failure) if failure.kind() == ErrorKind::PathEscape => return self.remove_in_place(entry),
            Err(failure) => return Err(refusal(failure, entry)),
        };
        empty_and_remove(&self.root, &hidden).map_err(|failure| match rename_new(&hidden, entry) {
            // Something new has its name; what is left stays out of sight.
            Ok(()) | Err(Errno::EXIST) => failure,
            Err(errno) => error(errno),
        })
    }

    fn remove_in_place(&self, entry: &Entry) -> Result<u64> {
        let files = empty_and_remove(&self.root, entry)?;
        if self.durability == Durability::Full {
            sync_directory(entry.parent.as_fd()).map_err(error)?;
        }
        Ok(files)
    }
}

/// Removes what was made under a reserved name and never got its own.
pub(crate) fn remove_hidden(root: &Root, hidden: &Entry) -> Result<()> {
    empty_and_remove(root, hidden).map(drop)
}

fn empty_and_remove(root: &Root, hidden: &Entry) -> Result<u64> {
    if hidden.file_type().map_err(error)? != Some(FileType::Directory) {
        fs::unlinkat(&hidden.parent, &hidden.name, AtFlags::empty()).map_err(error)?;
        return Ok(1);
    }
    let mut files = 0;
    // A write that was on its way into the directory may put a file into it still; it goes with the rest.
    for _ in 0..MAX_ROUNDS {
        files += empty(root, &hidden.parent, &hidden.name).map_err(error)?;
        match fs::unlinkat(&hidden.parent, &hidden.name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            removed => return removed.map(|()| files).map_err(error),
        }
    }
    Err(Error::of(ErrorKind::Busy))
}

/// A directory on the way down, with the subdirectories that are still to be emptied.
struct Level {
    fd: OwnedFd,
    name: Vec<u8>,
    directories: Vec<Vec<u8>>,
}

/// Removes all that is below the directory `name` of `parent`, without recursion and with few descriptors.
fn empty(root: &Root, parent: &OwnedFd, name: &str) -> io::Result<u64> {
    let mut files = 0;
    let mut rounds = 0;
    let mut levels = vec![Level::open(root, parent.as_fd(), name.as_bytes().to_vec(), &mut files)?];
    while let Some(level) = levels.last_mut() {
        let Some(child) = level.directories.pop() else {
            let done = levels.pop();
            if let (Some(done), Some(above)) = (done, levels.last_mut()) {
                match fs::unlinkat(&above.fd, &done.name[..], AtFlags::REMOVEDIR) {
                    Err(Errno::NOTEMPTY | Errno::EXIST) if rounds < MAX_ROUNDS => {
                        rounds += 1;
                        above.directories.push(done.name);
                    }
                    removed => removed?,
                }
            }
            continue;
        };
        if levels.len() < MAX_HELD {
            let dir = levels[levels.len() - 1].fd.as_fd();
            let next = Level::open(root, dir, child, &mut files)?;
            levels.push(next);
        } else {
            // Too deep to hold a descriptor for each level: it goes on from the top, under a name of its own.
            let deepest = &levels[levels.len() - 1];
            match move_up(&deepest.fd, &child, &levels[0].fd) {
                Ok(name) => levels[0].directories.push(name),
                // It cannot be moved, as one of a lower layer, and is entered where it is.
                Err(Errno::XDEV) => {
                    let next = Level::open(root, deepest.fd.as_fd(), child, &mut files)?;
                    levels.push(next);
                }
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(files)
}

/// Moves a directory to the top of the tree that is removed, and returns its name there: one that listings show, in case
/// something below it cannot be removed.
fn move_up(from: &OwnedFd, name: &[u8], top: &OwnedFd) -> io::Result<Vec<u8>> {
    loop {
        let new = format!("moved-up-{:016x}", RandomState::new().build_hasher().finish()).into_bytes();
        match fs::renameat_with(from, name, top, &new[..], RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            moved => return moved.map(|()| new),
        }
    }
}

impl Level {
    /// Opens a directory, removes what is not one, and remembers what is.
    fn open(root: &Root, parent: BorrowedFd<'_>, name: Vec<u8>, files: &mut u64) -> io::Result<Self> {
        let fd = root.open_child_on_same_mount(parent, &name, OFlags::RDONLY | OFlags::DIRECTORY)?;
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
    // Not on the heap: the C library takes a lock each time so much is given back, and many threads list at once.
    let mut buffer = [const { MaybeUninit::uninit() }; 32 << 10];
    let mut entries = RawDir::new(dir, &mut buffer);
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
