//! Iterative removal of a directory tree, with a bounded number of descriptors.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::mem::take;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, FileType, OFlags};
use rustix::io::{self, Errno};
use vfs_core::error::ErrorDetail;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::directory_entries::for_each_entry;
use super::entry_location::EntryLocation;
use super::errno::from_errno;
use super::rename_noreplace::rename_new_at;
use super::root::Root;

/// Maximum depth below the removed directory at which descriptors stay open; deeper directories are moved to the top
/// first.
pub(crate) const MAX_OPEN_LEVELS: usize = 64;

/// Maximum number of times that a directory is found not to be empty after it was emptied.
const MAX_ATTEMPTS: usize = 1_000;

/// Counts of removed entries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RemovedCounts {
    /// Files and links.
    pub(crate) files: u64,
    directories: u64,
}

/// An entry that cannot be removed, and the reason.
#[derive(Debug)]
pub(crate) struct RemovalError {
    error: Error,
    /// The names that lead from the removed directory to the entry; empty for that directory itself.
    below: Vec<Vec<u8>>,
}

impl RemovalError {
    /// Creates the error for the entry `name` of the last of `levels`, or for that level itself if there is no name.
    pub(crate) fn new(levels: &[RemovalDirLevel], name: Option<&[u8]>, error: Error) -> Self {
        let above = levels.iter().skip(1).map(|level| level.name.clone());
        Self { error, below: above.chain(name.map(<[u8]>::to_vec)).collect() }
    }

    /// Converts this to the error of removing the directory at `path`, of which `removed` was removed. The error has
    /// the path of the entry.
    pub(crate) fn into_error(self, path: &VfsPath, removed: RemovedCounts) -> Error {
        let error = self.with_full_path(path);
        if removed.files + removed.directories == 0 { error } else { error.after_partial_delete(removed.files) }
    }

    /// As [`into_error`](Self::into_error), if the remaining tree could not be renamed back.
    pub(crate) fn into_displaced_error(self, path: &VfsPath, removed: RemovedCounts) -> Error {
        let error = self.with_full_path(path);
        let message = format!(
            "{}; removed files: {}; the rest of the directory could not be renamed back and is under a reserved name",
            error.message(),
            removed.files
        );
        let displaced = Error::new(error.kind(), message).with_path_text(error.path().unwrap_or(path.as_str()));
        displaced.with_detail(ErrorDetail::PartialDelete { files: removed.files }).with_source(error)
    }

    /// Returns the error with the full path of the entry; `path` is the one of the removed directory.
    fn with_full_path(self, path: &VfsPath) -> Error {
        let mut text = path.as_str().to_owned();
        for name in &self.below {
            text.push('/');
            text.push_str(&String::from_utf8_lossy(name));
        }
        self.error.with_path_text(&text)
    }
}

/// Removes an entry that was staged under a reserved name and never published.
pub(crate) fn remove_staged(root: &Root, reserved: &EntryLocation) -> Result<()> {
    remove_tree(root, reserved, &mut RemovedCounts::default()).map_err(|failure| failure.error)
}

/// Removes `entry` with everything below it, and adds the removed entries to `removed`, also if it fails.
pub(crate) fn remove_tree(root: &Root, entry: &EntryLocation, removed: &mut RemovedCounts) -> Result<(), RemovalError> {
    let at_top = |errno| RemovalError::new(&[], None, from_errno(errno));
    if entry.file_type().map_err(at_top)? != Some(FileType::Directory) {
        fs::unlinkat(&entry.parent, &entry.name, AtFlags::empty()).map_err(at_top)?;
        removed.files += 1;
        return Ok(());
    }
    // A concurrent write may still publish a file into the directory; the next attempt removes it with the rest.
    for _ in 0..MAX_ATTEMPTS {
        remove_children(root, entry, removed)?;
        match fs::unlinkat(&entry.parent, &entry.name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            outcome => {
                removed.directories += u64::from(outcome.is_ok());
                return outcome.map_err(at_top);
            }
        }
    }
    Err(RemovalError::new(&[], None, Error::of(ErrorKind::Busy)))
}

/// Removes everything below the directory `entry`.
fn remove_children(root: &Root, entry: &EntryLocation, removed: &mut RemovedCounts) -> Result<(), RemovalError> {
    let mut attempts = 0;
    let top = RemovalDirLevel::open(root, entry.parent.as_fd(), entry.name.as_bytes());
    let mut levels = vec![top.map_err(|errno| RemovalError::new(&[], None, from_errno(errno)))?];
    remove_non_directories(&mut levels, removed)?;
    while let Some(level) = levels.last_mut() {
        let Some(child) = level.directories.pop() else {
            remove_emptied_dir(&mut levels, &mut attempts, removed)?;
            continue;
        };
        let deepest = &levels[levels.len() - 1];
        if levels.len() >= MAX_OPEN_LEVELS {
            // The child is too deep for an open descriptor for each level: continue with it from the top, under a new
            // name.
            match move_to_top(&deepest.fd, &child, &levels[0].fd) {
                Ok(name) => {
                    levels[0].directories.push(name);
                    continue;
                }
                // The child cannot be moved, like a directory of a lower overlay layer: descend into it where it is.
                Err(Errno::XDEV) => {}
                Err(errno) => return Err(RemovalError::new(&levels, Some(&child), from_errno(errno))),
            }
        }
        let next = RemovalDirLevel::open(root, deepest.fd.as_fd(), &child);
        let next = next.map_err(|errno| RemovalError::new(&levels, Some(&child), from_errno(errno)))?;
        levels.push(next);
        remove_non_directories(&mut levels, removed)?;
    }
    Ok(())
}

/// Removes the entries of the deepest level that are not directories.
fn remove_non_directories(levels: &mut [RemovalDirLevel], removed: &mut RemovedCounts) -> Result<(), RemovalError> {
    let Some(level) = levels.last_mut() else { return Ok(()) };
    for name in take(&mut level.non_directories) {
        match fs::unlinkat(&level.fd, &name[..], AtFlags::empty()) {
            Ok(()) => removed.files += 1,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(RemovalError::new(levels, Some(&name), from_errno(errno))),
        }
    }
    Ok(())
}

/// Removes the directory of the deepest level, which has been emptied, unless it is the topmost one.
fn remove_emptied_dir(
    levels: &mut Vec<RemovalDirLevel>,
    attempts: &mut usize,
    removed: &mut RemovedCounts,
) -> Result<(), RemovalError> {
    let done = levels.pop();
    let (Some(done), Some(above)) = (done, levels.last_mut()) else { return Ok(()) };
    match fs::unlinkat(&above.fd, &done.name[..], AtFlags::REMOVEDIR) {
        Ok(()) => removed.directories += 1,
        Err(Errno::NOTEMPTY | Errno::EXIST) if *attempts < MAX_ATTEMPTS => {
            *attempts += 1;
            above.directories.push(done.name);
        }
        Err(errno) => return Err(RemovalError::new(levels, Some(&done.name), from_errno(errno))),
    }
    Ok(())
}

/// Moves a directory to the top of the removed tree, and returns its name there: a visible one, in case something below
/// it cannot be removed.
fn move_to_top(from: &OwnedFd, name: &[u8], top: &OwnedFd) -> io::Result<Vec<u8>> {
    loop {
        let new = format!("moved-up-{:016x}", RandomState::new().build_hasher().finish()).into_bytes();
        match rename_new_at((from.as_fd(), name), (top.as_fd(), &new)) {
            Err(Errno::EXIST) => {}
            moved => return moved.map(|()| new),
        }
    }
}

/// An open directory on the way down, and its entries that are still to be removed.
#[derive(Debug)]
pub(crate) struct RemovalDirLevel {
    pub(crate) fd: OwnedFd,
    name: Vec<u8>,
    pub(crate) directories: Vec<Vec<u8>>,
    pub(crate) non_directories: Vec<Vec<u8>>,
}

impl RemovalDirLevel {
    /// Opens and lists the directory `name` of `parent`.
    pub(crate) fn open(root: &Root, parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<Self> {
        let fd = root.open_child_on_same_mount(parent, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut level = Self { fd, name: name.to_vec(), directories: Vec::new(), non_directories: Vec::new() };
        for_each_entry(level.fd.as_fd(), |name, kind| {
            let list = if kind == FileType::Directory { &mut level.directories } else { &mut level.non_directories };
            list.push(name.to_bytes().to_vec());
            Ok(())
        })?;
        Ok(level)
    }
}
