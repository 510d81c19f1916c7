//! Directories that are made on the way to a file, and taken back where that is not written.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::{ErrorKind, Result, VfsPath};

use super::{ALWAYS, Entry, Root, sync_directory};
use crate::errno::error_at;
use crate::guard::Deed;

impl Root {
    /// Opens the directory that is to hold `path`, making it and those above it where they are missing.
    ///
    /// Returns what was made, so that a failed write can take it back.
    pub(crate) fn make_parents(&self, path: &VfsPath) -> Result<(Entry, MadeDirectories)> {
        match self.entry(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => {
                let found = found?;
                self.check(&found, Deed::Change, path)?;
                return Ok((found, MadeDirectories::default()));
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
        self.guard.check(self.fd.as_fd(), &top, &names, Deed::Change, path)?;
        let mut made = MadeDirectories::default();
        for name in missing.into_iter().rev() {
            let existed = match fs::mkdirat(&top, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) => false,
                Err(Errno::EXIST) => true,
                Err(errno) => {
                    made.undo();
                    return Err(error_at(errno, path));
                }
            };
            let next = self.open_child(top.as_fd(), name.as_bytes(), OFlags::PATH | OFlags::DIRECTORY);
            if existed && made.names.is_empty() {
                top = next.map_err(|errno| error_at(errno, path))?;
                continue;
            }
            made.names.push(name);
            match next {
                Ok(next) => {
                    let above = std::mem::replace(&mut top, next);
                    made.above.get_or_insert(above);
                }
                Err(errno) => {
                    made.above.get_or_insert(top);
                    made.undo();
                    return Err(error_at(errno, path));
                }
            }
        }
        Ok((Entry { parent: top, name: path.name().unwrap_or_default().to_owned() }, made))
    }
}

/// Directories that were made on the way to a file: the one above them, and their names from the top down.
#[derive(Debug, Default)]
pub(crate) struct MadeDirectories {
    above: Option<OwnedFd>,
    names: Vec<String>,
}

impl MadeDirectories {
    /// Takes them back, unless something else has come to live in them.
    pub(crate) fn undo(&self) {
        for depth in (0..self.names.len()).rev() {
            let removed = self.directory(depth).and_then(|fd| fs::unlinkat(fd, &self.names[depth], AtFlags::REMOVEDIR));
            if removed.is_err() {
                break;
            }
        }
    }

    /// Syncs the directories that they were made in.
    pub(crate) fn sync(&self) -> io::Result<()> {
        (0..self.names.len()).try_for_each(|depth| sync_directory(self.directory(depth)?.as_fd()))
    }

    /// The directory that the one at `depth` was made in.
    fn directory(&self, depth: usize) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | ALWAYS;
        let above = self.above.as_ref().ok_or(Errno::BADF)?;
        let mut fd = fs::openat(above, ".", flags, Mode::empty())?;
        for name in &self.names[..depth] {
            fd = fs::openat(&fd, name, flags, Mode::empty())?;
        }
        Ok(fd)
    }
}
