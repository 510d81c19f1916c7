//! Creation of missing parent directories, with rollback if the write fails.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::{ErrorKind, Result, VfsPath};

use super::entry_location::{COMMON_FLAGS, EntryLocation, sync_directory};
use super::errno::from_errno_at;
use super::protected_paths::PathAccess;
use super::root::Root;

impl Root {
    /// Opens the parent directory of `path`, and creates it and its parents if they are missing.
    ///
    /// Returns the created directories as well, so that a failed write can remove them.
    pub(crate) fn create_parents(&self, path: &VfsPath) -> Result<(EntryLocation, CreatedParents)> {
        match self.entry(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            entry => {
                let entry = entry?;
                self.check(&entry, PathAccess::Change, path)?;
                return Ok((entry, CreatedParents::default()));
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
        Ok((EntryLocation { parent: top, name: path.name().unwrap_or_default().to_owned() }, created))
    }
}

/// Number of created levels for each directory that stays open. Each directory is opened only a few times at any depth,
/// and the number of open descriptors does not exceed this number plus one for every chunk of this length.
const LEVELS_PER_OPEN_DIR: usize = 32;

/// The parent directories that were created for a file, from the top down.
#[derive(Debug, Default)]
pub(crate) struct CreatedParents {
    names: Vec<String>,
    /// For each chunk of names, the directory that its first name was created in.
    open_dirs: Vec<OwnedFd>,
}

impl CreatedParents {
    /// Appends the directory `name`, which was created in `above`, its parent.
    fn push(&mut self, name: String, above: OwnedFd) {
        if self.names.len().is_multiple_of(LEVELS_PER_OPEN_DIR) {
            self.open_dirs.push(above);
        }
        self.names.push(name);
    }

    /// Removes the created directories, unless other entries were created in them.
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

    /// Syncs the directories that the new ones were created in.
    pub(crate) fn sync(&self) -> io::Result<()> {
        for (chunk, names) in self.names.chunks(LEVELS_PER_OPEN_DIR).enumerate() {
            self.open_parents(chunk, names)?.iter().try_for_each(|dir| sync_directory(dir.as_fd()))?;
        }
        Ok(())
    }

    /// Opens the parents of one chunk, whose directories have these `names`, from the top down.
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
