//! Directories that are made on the way to a file, and taken back where that is not written.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::{ErrorKind, Result, VfsPath};

use super::entry::{COMMON_FLAGS, Entry, sync_directory};
use super::errno::from_errno_at;
use super::protected_paths::PathAccess;
use super::root::Root;

impl Root {
    /// Opens the directory that is to hold `path`, making it and those above it where they are missing.
    ///
    /// Returns what was made, so that a failed write can take it back.
    pub(crate) fn create_parents(&self, path: &VfsPath) -> Result<(Entry, CreatedParents)> {
        match self.entry(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => {
                let found = found?;
                self.check(&found, PathAccess::Change, path)?;
                return Ok((found, CreatedParents::default()));
            }
        }
        let mut missing = Vec::new();
        let mut existing = path.parent();
        let mut top = loop {
            let Some(directory) = existing else {
                break self.open_at(&VfsPath::root(), OFlags::PATH | OFlags::DIRECTORY)?;
            };
            match self.open_at(&directory, OFlags::PATH | OFlags::DIRECTORY) {
                Ok(fd) => break fd,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    missing.extend(directory.name().map(str::to_owned));
                    existing = directory.parent();
                }
                Err(error) => return Err(error.with_path(path)),
            }
        };
        let names: Vec<&str> = missing.iter().rev().map(String::as_str).chain(path.name()).collect();
        self.protected_paths().check(self.fd.as_fd(), &top, &names, PathAccess::Change, path)?;
        let mut created = CreatedParents::default();
        for name in missing.into_iter().rev() {
            let existed = match fs::mkdirat(&top, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) => false,
                Err(Errno::EXIST) => true,
                Err(errno) => {
                    created.rollback();
                    return Err(from_errno_at(errno, path));
                }
            };
            let next = self.open_child(top.as_fd(), name.as_bytes(), OFlags::PATH | OFlags::DIRECTORY);
            if existed && created.names.is_empty() {
                top = next.map_err(|errno| from_errno_at(errno, path))?;
                continue;
            }
            match next {
                Ok(next) => created.push(name, std::mem::replace(&mut top, next)),
                Err(errno) => {
                    created.push(name, top);
                    created.rollback();
                    return Err(from_errno_at(errno, path));
                }
            }
        }
        Ok((Entry { parent: top, name: path.name().unwrap_or_default().to_owned() }, created))
    }
}

/// Every so many levels, one of the made directories is held open. Each is opened a few times however deep it is, and
/// no more than this many descriptors and one for each stretch of this length are open at a time.
const LEVELS_PER_OPEN_DIR: usize = 32;

/// Directories that were made on the way to a file: their names from the top down.
#[derive(Debug, Default)]
pub(crate) struct CreatedParents {
    names: Vec<String>,
    /// The directory that the first of each stretch of them was made in.
    open_dirs: Vec<OwnedFd>,
}

impl CreatedParents {
    /// Adds the directory `name`, which was made in `above`, and that in the one before.
    fn push(&mut self, name: String, above: OwnedFd) {
        if self.names.len().is_multiple_of(LEVELS_PER_OPEN_DIR) {
            self.open_dirs.push(above);
        }
        self.names.push(name);
    }

    /// Takes them back, unless something else has come to live in them.
    pub(crate) fn rollback(&self) {
        for (chunk, names) in self.names.chunks(LEVELS_PER_OPEN_DIR).enumerate().rev() {
            let Ok(above) = self.open_parents(chunk, names) else { return };
            for (dir, name) in above.iter().zip(names).rev() {
                if fs::unlinkat(dir, name, AtFlags::REMOVEDIR).is_err() {
                    return;
                }
            }
        }
    }

    /// Syncs the directories that they were made in.
    pub(crate) fn sync(&self) -> io::Result<()> {
        for (chunk, names) in self.names.chunks(LEVELS_PER_OPEN_DIR).enumerate() {
            self.open_parents(chunk, names)?.iter().try_for_each(|dir| sync_directory(dir.as_fd()))?;
        }
        Ok(())
    }

    /// The directories that those of one stretch, which have these `names`, were made in, from the top down.
    fn open_parents(&self, chunk: usize, names: &[String]) -> io::Result<Vec<OwnedFd>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | COMMON_FLAGS;
        let first = self.open_dirs.get(chunk).ok_or(Errno::BADF)?;
        let mut above = vec![io::fcntl_dupfd_cloexec(first, 0)?];
        for name in &names[..names.len() - 1] {
            above.push(fs::openat(&above[above.len() - 1], name, flags, Mode::empty())?);
        }
        Ok(above)
    }
}
