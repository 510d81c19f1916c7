//! Symbolic link resolution, one component at a time.

use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::VfsPath;

use super::{RESERVED, Root};
use crate::fs::entry::{ALWAYS, Entry, file_type_at};

/// Upper bound on the links in one path, as on Linux.
const MAX_LINKS: usize = 40;

/// Where a path leads when its links are followed.
#[derive(Debug)]
pub(super) struct Followed {
    /// The components from the root down, without links.
    pub(super) names: Vec<Vec<u8>>,
    pub(super) end: End,
}

/// What is at the end of a path.
#[derive(Debug)]
pub(super) enum End {
    /// A name in a directory, under which nothing need exist.
    Entry(Entry),
    /// The root, or a directory that a link to `.` or `..` leads to.
    Directory,
    /// Nothing, because a directory on the way is missing or a file.
    Absent {
        /// Why an operation on the path fails.
        cause: Errno,
        /// Whether creating the missing directories would not help: the path has `..` after a component that is not a
        /// directory, or a link target that ends with `/` and leads to none.
        is_unreachable: bool,
    },
}

/// Follows the links in `path` and holds every directory on the way open, so that `..` in a link is the parent of the directory
/// that was passed, and the root is never left.
pub(super) fn follow(root: &Root, path: &VfsPath) -> io::Result<Followed> {
    let pending = path.components().rev().map(|name| name.as_bytes().to_vec()).collect();
    let mut walk = Walk { root, held: Vec::new(), pending, links: 0, dead_end: None, needs_directory: false };
    while let Some(name) = walk.pending.pop() {
        if let Some(followed) = walk.step(name)? {
            return Ok(followed);
        }
    }
    let end = walk.dead_end.map_or(End::Directory, |cause| End::Absent { cause, is_unreachable: true });
    Ok(walk.end([], end))
}

struct Walk<'a> {
    root: &'a Root,
    /// The directories below the root that lead to the current one.
    held: Vec<(Vec<u8>, OwnedFd)>,
    /// The components that remain, in reverse order.
    pending: Vec<Vec<u8>>,
    /// How many links were followed.
    links: usize,
    /// Why operations fail, once a component that is not a directory was left by `..`.
    dead_end: Option<Errno>,
    /// Whether a link target at the end of the path ends with `/` or `/.`.
    needs_directory: bool,
}

impl Walk<'_> {
    fn step(&mut self, name: Vec<u8>) -> io::Result<Option<Followed>> {
        if name == b".." {
            return if self.held.pop().is_some() || self.root.is_host() { Ok(None) } else { Err(Errno::XDEV) };
        }
        match file_type_at(self.current(), &name)? {
            Some(FileType::Symlink) => self.expand(&name)?,
            found if self.pending.is_empty() => return self.finish(name, found).map(Some),
            Some(FileType::Directory) => {
                let fd = self.root.open_child(self.current(), &name, OFlags::PATH | OFlags::DIRECTORY)?;
                self.held.push((name, fd));
            }
            found => return Ok(self.pass_missing(name, found)),
        }
        Ok(None)
    }

    fn current(&self) -> BorrowedFd<'_> {
        self.held.last().map_or(self.root.fd.as_fd(), |(_, fd)| fd.as_fd())
    }

    /// Replaces the link `name` by its target.
    fn expand(&mut self, name: &[u8]) -> io::Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP);
        }
        let target = fs::readlinkat(self.current(), name, Vec::new())?;
        let target = target.as_bytes();
        if target.starts_with(b"/") {
            if !self.root.is_host() {
                return Err(Errno::XDEV);
            }
            self.held.clear();
        }
        self.needs_directory |= self.pending.is_empty() && (target.ends_with(b"/") || target.ends_with(b"/."));
        let names = target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        self.pending.extend(names.rev().map(<[u8]>::to_vec));
        Ok(())
    }

    /// Ends the walk at its last component.
    fn finish(&mut self, name: Vec<u8>, found: Option<FileType>) -> io::Result<Followed> {
        if self.needs_directory && found != Some(FileType::Directory) {
            self.dead_end.get_or_insert(no_directory(found));
        } else if name.starts_with(RESERVED.as_bytes()) {
            return Err(Errno::NOENT);
        }
        if let Some(cause) = self.dead_end {
            return Ok(self.end([name], End::Absent { cause, is_unreachable: true }));
        }
        let text = String::from_utf8(name.clone()).map_err(|_| Errno::ILSEQ)?;
        let parent = fs::openat(self.current(), ".", OFlags::PATH | OFlags::DIRECTORY | ALWAYS, Mode::empty())?;
        Ok(self.end([name], End::Entry(Entry { parent, name: text })))
    }

    /// Passes `name`, which is not a directory, and the components after it, below which there are no links. Returns where the
    /// path leads, or `None` if a `..` leads back to the current directory.
    fn pass_missing(&mut self, name: Vec<u8>, found: Option<FileType>) -> Option<Followed> {
        let cause = self.dead_end.unwrap_or(no_directory(found));
        if self.pending.iter().any(|name| name == b"..") {
            self.dead_end = Some(cause);
        }
        let mut below = vec![name];
        while let Some(name) = self.pending.pop() {
            if name == b".." {
                below.pop();
            } else {
                below.push(name);
            }
            if below.is_empty() {
                return None;
            }
        }
        let is_unreachable = self.dead_end.is_some();
        Some(self.end(below, End::Absent { cause, is_unreachable }))
    }

    fn end(&mut self, below: impl IntoIterator<Item = Vec<u8>>, end: End) -> Followed {
        let held = mem::take(&mut self.held).into_iter().map(|(name, _)| name);
        Followed { names: held.chain(below).collect(), end }
    }
}

/// Why a path cannot lead through an entry of the type `found`, which is not a directory.
fn no_directory(found: Option<FileType>) -> Errno {
    if found.is_none() { Errno::NOENT } else { Errno::NOTDIR }
}
