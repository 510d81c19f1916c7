//! Symbolic link resolution, one component at a time.

use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::VfsPath;

use super::{RESERVED_PREFIX, Root};
use crate::fs::entry_location::{COMMON_FLAGS, EntryLocation, file_type_at};

/// Upper bound on the links in one path, as on Linux.
const MAX_LINKS: usize = 40;

/// The result of following all links of a path.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    /// The components from the root down, without links.
    pub(super) names: Vec<Vec<u8>>,
    pub(super) end: LinkResolutionEnd,
}

/// The entry at the end of a path.
#[derive(Debug)]
pub(super) enum LinkResolutionEnd {
    /// A name in a directory; nothing need exist there.
    Entry(EntryLocation),
    /// The root, or a directory that a link to `.` or `..` leads to.
    Directory,
    /// Nothing, because a directory on the way is missing or is a file.
    Absent {
        /// The reason why an operation on the path fails.
        cause: Errno,
        /// Whether creating the missing directories would not help: the path has `..` after a component that is not a
        /// directory, or a link target that ends with `/` and leads to none.
        is_unreachable: bool,
    },
}

/// Follows the links in `path`. Every directory on the way stays open, so that `..` in a link leads to the parent of
/// the directory that was passed, and the walk never leaves the root.
pub(super) fn follow_links(root: &Root, path: &VfsPath) -> io::Result<ResolvedPath> {
    let pending = path.components().rev().map(|name| name.as_bytes().to_vec()).collect();
    let mut walk =
        LinkWalk { root, open_dirs: Vec::new(), pending, link_count: 0, dead_end: None, needs_directory: false };
    while let Some(name) = walk.pending.pop() {
        if let Some(resolution) = walk.step(name)? {
            return Ok(resolution);
        }
    }
    let end = walk
        .dead_end
        .map_or(LinkResolutionEnd::Directory, |cause| LinkResolutionEnd::Absent { cause, is_unreachable: true });
    Ok(walk.end([], end))
}

/// A walk along a path that follows the links in it.
struct LinkWalk<'a> {
    root: &'a Root,
    /// The open directories below the root that lead to the current one.
    open_dirs: Vec<(Vec<u8>, OwnedFd)>,
    /// The remaining components, in reverse order.
    pending: Vec<Vec<u8>>,
    /// The number of links followed so far.
    link_count: usize,
    /// The reason why operations fail, set once `..` follows a component that is not a directory.
    dead_end: Option<Errno>,
    /// Whether a link target at the end of the path ends with `/` or `/.`.
    needs_directory: bool,
}

impl LinkWalk<'_> {
    fn step(&mut self, name: Vec<u8>) -> io::Result<Option<ResolvedPath>> {
        if name == b".." {
            return if self.open_dirs.pop().is_some() || self.root.is_host() { Ok(None) } else { Err(Errno::XDEV) };
        }
        match file_type_at(self.current(), &name)? {
            Some(FileType::Symlink) => self.expand(&name)?,
            file_type if self.pending.is_empty() => return self.finish(name, file_type).map(Some),
            Some(FileType::Directory) => {
                let fd = self.root.open_child(self.current(), &name, OFlags::PATH | OFlags::DIRECTORY)?;
                self.open_dirs.push((name, fd));
            }
            file_type => return Ok(self.skip_missing(name, file_type)),
        }
        Ok(None)
    }

    fn current(&self) -> BorrowedFd<'_> {
        self.open_dirs.last().map_or(self.root.fd.as_fd(), |(_, fd)| fd.as_fd())
    }

    /// Replaces the link `name` by its target.
    fn expand(&mut self, name: &[u8]) -> io::Result<()> {
        self.link_count += 1;
        if self.link_count > MAX_LINKS {
            return Err(Errno::LOOP);
        }
        let target = fs::readlinkat(self.current(), name, Vec::new())?;
        let target = target.as_bytes();
        if target.starts_with(b"/") {
            if !self.root.is_host() {
                return Err(Errno::XDEV);
            }
            self.open_dirs.clear();
        }
        self.needs_directory |= self.pending.is_empty() && (target.ends_with(b"/") || target.ends_with(b"/."));
        let names = target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        self.pending.extend(names.rev().map(<[u8]>::to_vec));
        Ok(())
    }

    /// Ends the walk at its last component.
    fn finish(&mut self, name: Vec<u8>, file_type: Option<FileType>) -> io::Result<ResolvedPath> {
        if self.needs_directory && file_type != Some(FileType::Directory) {
            self.dead_end.get_or_insert(missing_directory_errno(file_type));
        } else if name.starts_with(RESERVED_PREFIX.as_bytes()) {
            return Err(Errno::NOENT);
        }
        if let Some(cause) = self.dead_end {
            return Ok(self.end([name], LinkResolutionEnd::Absent { cause, is_unreachable: true }));
        }
        let text = String::from_utf8(name.clone()).map_err(|_| Errno::ILSEQ)?;
        let parent = fs::openat(self.current(), ".", OFlags::PATH | OFlags::DIRECTORY | COMMON_FLAGS, Mode::empty())?;
        Ok(self.end([name], LinkResolutionEnd::Entry(EntryLocation { parent, name: text })))
    }

    /// Skips `name`, which is not a directory, and the components after it, below which there are no links. Returns
    /// where the path leads, or `None` if a `..` leads back to the current directory.
    fn skip_missing(&mut self, name: Vec<u8>, file_type: Option<FileType>) -> Option<ResolvedPath> {
        let cause = self.dead_end.unwrap_or(missing_directory_errno(file_type));
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
        Some(self.end(below, LinkResolutionEnd::Absent { cause, is_unreachable }))
    }

    fn end(&mut self, below: impl IntoIterator<Item = Vec<u8>>, end: LinkResolutionEnd) -> ResolvedPath {
        let open_dirs = mem::take(&mut self.open_dirs).into_iter().map(|(name, _)| name);
        ResolvedPath { names: open_dirs.chain(below).collect(), end }
    }
}

/// Returns the reason why a path cannot lead through an entry of type `file_type`, which is not a directory.
fn missing_directory_errno(file_type: Option<FileType>) -> Errno {
    if file_type.is_none() { Errno::NOENT } else { Errno::NOTDIR }
}
