//! Recursive watches: a directory and everything below it.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use vfs_core::watch::Change;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::watch_state::{EntryLookupError, RecursiveWatchOptions, WatchState};
use super::watched_dir_tree::{DirPlacementOutcome, WatchDescriptor, WatchedEntryRef};
use crate::fs::directory_entries::for_each_entry;
use crate::fs::errno::from_errno_at;
use crate::fs::metadata::Metadata;
use crate::fs::root::RESERVED_PREFIX;

/// Directories deeper than this are opened from the root each time, so that a deep tree does not use up descriptors.
const MAX_OPEN_DEPTH: usize = 64;

/// A directory that is still to be watched.
struct PendingWatchDir {
    /// The parent and the name in it; `None` for the root.
    above: Option<(WatchDescriptor, String)>,
    path: VfsPath,
    /// The open parent directory.
    parent_dir: Option<Rc<OwnedFd>>,
    /// Whether the directory may be moved here from another place in the tree. In a parent that was watched before it
    /// may not: an event will report the move.
    may_move: bool,
}

impl PendingWatchDir {
    fn place(&self) -> Option<WatchedEntryRef<'_>> {
        self.above.as_ref().map(|(above, name)| (*above, name.as_str()))
    }
}

/// The result of opening and watching a directory.
pub(super) enum WatchDirOutcome {
    /// The directory exists, and is watched from now on.
    Directory(OwnedFd, WatchDescriptor),
    /// Nothing exists there, or a file or link.
    NotADirectory,
    /// The directory cannot be watched: it is not readable, or is on a file system that does not belong to the root.
    Unwatchable,
    /// The parent is no longer in the place where the tree has it.
    ParentMoved,
}

impl WatchState {
    /// Watches a directory and everything below it.
    ///
    /// A directory is watched before it is listed, so an entry may be found by both a listing and an event, but no
    /// entry is missed.
    ///
    /// # Errors
    ///
    /// A limit of the machine that prevents the watch of a directory.
    pub(super) fn watch_recursive(
        &mut self,
        above: Option<WatchedEntryRef<'_>>,
        walk: RecursiveWatchOptions<'_>,
    ) -> Result<()> {
        let path = match above {
            None => VfsPath::root(),
            Some((above, name)) => match self.directories.path(above).and_then(|path| path.child(name).ok()) {
                Some(path) => path,
                None => return Ok(()),
            },
        };
        let above = above.map(|(above, name)| (above, name.to_owned()));
        let mut taken = Vec::new();
        let result = self.watch_pending(
            vec![PendingWatchDir { above, path, parent_dir: None, may_move: walk.may_move }],
            walk,
            &mut taken,
        );
        taken.retain(|id| !self.directories.contains(*id));
        self.unwatch(taken);
        result
    }

    fn watch_pending(
        &mut self,
        mut pending: Vec<PendingWatchDir>,
        walk: RecursiveWatchOptions<'_>,
        taken: &mut Vec<WatchDescriptor>,
    ) -> Result<()> {
        while let Some(next) = pending.pop() {
            if self.is_hidden(&next.path) {
                continue;
            }
            let lookup = self
                .open_and_watch(next.place(), next.parent_dir.as_deref())
                .map_err(|error| error.with_path(&next.path))?;
            match lookup {
                WatchDirOutcome::Directory(dir, id) => pending.extend(self.place_dir(dir, id, next, walk, taken)?),
                WatchDirOutcome::NotADirectory | WatchDirOutcome::Unwatchable if walk.report => {
                    self.changes.push(Change::Created { path: next.path, version: None });
                }
                WatchDirOutcome::NotADirectory | WatchDirOutcome::Unwatchable => {}
                WatchDirOutcome::ParentMoved => self.deferred.extend(next.above),
            }
        }
        Ok(())
    }

    /// Places a directory that was found in the tree, and returns the directories below it that are to be watched as
    /// well.
    fn place_dir(
        &mut self,
        dir: OwnedFd,
        id: WatchDescriptor,
        at: PendingWatchDir,
        walk: RecursiveWatchOptions<'_>,
        taken: &mut Vec<WatchDescriptor>,
    ) -> Result<Vec<PendingWatchDir>> {
        let is_watched = self.directories.contains(id);
        let is_here =
            is_watched && at.place().is_none_or(|(above, name)| self.directories.child(above, name) == Some(id));
        if is_here && walk.report {
            return Ok(Vec::new());
        }
        if walk.report {
            // No `Removed` event was sent for the directory previously watched under this name. Send it now: none
            // follows once the new directory has replaced it.
            if at.place().is_some_and(|(above, name)| self.directories.child(above, name).is_some()) {
                self.changes.push(Change::Removed { path: at.path.clone() });
            }
            self.changes.push(Change::Created { path: at.path.clone(), version: None });
        }
        if is_watched && !is_here {
            if !at.may_move {
                return Ok(Vec::new());
            }
            if walk.report {
                // The entries below it were reported at its old place, and have to be reported here.
                taken.extend(self.forget_dir(id));
            }
        }
        let (placement, removed) = self.directories.place(id, at.place());
        self.unwatch(removed);
        if placement == DirPlacementOutcome::Refused {
            taken.push(id);
            return Ok(Vec::new());
        }
        self.collect_children((dir, id), &at.path, walk, !is_here)
    }

    /// Opens and watches the directory of an entry, without following links: below `parent_dir` if that is given, otherwise
    /// from the root.
    pub(super) fn open_and_watch(
        &self,
        place: Option<WatchedEntryRef<'_>>,
        parent_dir: Option<&OwnedFd>,
    ) -> Result<WatchDirOutcome> {
        let root = &self.local_fs.root;
        let dir = match place {
            None => root.open_directory(&VfsPath::root())?,
            Some((above, name)) => {
                let opened;
                let above = match parent_dir {
                    Some(parent_dir) => parent_dir,
                    None => match self.open(above)? {
                        Some(dir) => {
                            opened = dir;
                            &opened
                        }
                        None => return Ok(WatchDirOutcome::ParentMoved),
                    },
                };
                match root.open_child(above.as_fd(), name.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY) {
                    Ok(dir) => dir,
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(WatchDirOutcome::NotADirectory),
                    Err(Errno::ACCESS | Errno::PERM | Errno::XDEV) => return Ok(WatchDirOutcome::Unwatchable),
                    Err(errno) => return Err(from_errno_at(errno, &VfsPath::root())),
                }
            }
        };
        match self.queue.add(dir.as_fd()) {
            Ok(id) => Ok(WatchDirOutcome::Directory(dir, id)),
            Err(Errno::ACCESS | Errno::PERM) => Ok(WatchDirOutcome::Unwatchable),
            Err(Errno::NOSPC) => {
                let message = "too many directories to watch on this machine; watch a part of them, or raise the \
                               sysctl fs.inotify.max_user_watches (in a container user.max_inotify_watches, too)";
                Err(Error::new(ErrorKind::QuotaExceeded, message))
            }
            Err(errno) => Err(from_errno_at(errno, &VfsPath::root())),
        }
    }

    /// Returns the watch descriptor of the directory that exists at an entry now.
    pub(super) fn directory_at(&self, place: WatchedEntryRef<'_>) -> Result<WatchDescriptor, EntryLookupError> {
        match self.open_and_watch(Some(place), None) {
            Ok(WatchDirOutcome::Directory(_, id)) => {
                if !self.directories.contains(id) {
                    self.queue.remove(id);
                }
                Ok(id)
            }
            Ok(WatchDirOutcome::ParentMoved) if self.directories.contains(place.0) => {
                Err(EntryLookupError::ParentMoved)
            }
            _ => Err(EntryLookupError::NotFound),
        }
    }

    /// Opens a watched directory, or returns `None` if it is no longer in the place where the tree has it.
    pub(super) fn open(&self, id: WatchDescriptor) -> Result<Option<OwnedFd>> {
        let Some(names) = self.directories.names(id) else { return Ok(None) };
        let root = &self.local_fs.root;
        let mut dir = root.open_at(&VfsPath::root(), OFlags::PATH | OFlags::DIRECTORY)?;
        for name in names {
            match root.open_child(dir.as_fd(), name.as_bytes(), OFlags::PATH | OFlags::DIRECTORY) {
                Ok(next) => dir = next,
                Err(_) => return Ok(None),
            }
        }
        match self.queue.add(dir.as_fd()) {
            Ok(found) if found == id => return Ok(Some(dir)),
            Ok(other) if !self.directories.contains(other) => self.queue.remove(other),
            _ => {}
        }
        Ok(None)
    }

    /// Returns the directories in `dir` that are to be watched as well. Reports the other entries if `walk.report` is
    /// set.
    fn collect_children(
        &mut self,
        (dir, id): (OwnedFd, WatchDescriptor),
        path: &VfsPath,
        walk: RecursiveWatchOptions<'_>,
        may_move: bool,
    ) -> Result<Vec<PendingWatchDir>> {
        let entries = entries(&dir, path, walk.scope)?;
        let parent_dir = (path.components().count() < MAX_OPEN_DEPTH).then(|| Rc::new(dir));
        let mut directories = Vec::new();
        for (name, kind) in entries {
            let Ok(path) = path.child(&name) else { continue };
            if kind == FileType::Directory {
                directories.push(PendingWatchDir {
                    above: Some((id, name)),
                    path,
                    parent_dir: parent_dir.clone(),
                    may_move,
                });
            } else if walk.report {
                let metadata = match &parent_dir {
                    Some(dir) => Metadata::at(dir.as_fd(), &name).ok(),
                    None => self.stat_entry((id, &name)).ok(),
                };
                self.report_file((id, &name), path, metadata);
            }
        }
        Ok(directories)
    }
}

/// Returns the entries of a directory that are on the way to a path of `scope`, or below one.
fn entries(dir: &OwnedFd, path: &VfsPath, scope: &[VfsPath]) -> Result<Vec<(String, FileType)>> {
    let mut entries = Vec::new();
    if scope.iter().any(|subscribed| path.starts_with(subscribed)) {
        let listed = for_each_entry(dir.as_fd(), |name, kind| {
            let name = name.to_str().ok().filter(|name| !name.starts_with(RESERVED_PREFIX));
            entries.extend(name.map(|name| (name.to_owned(), kind)));
            Ok(())
        });
        return match listed {
            Ok(()) | Err(Errno::NOENT) => Ok(entries),
            Err(errno) => Err(from_errno_at(errno, path)),
        };
    }
    let names = scope.iter().filter_map(|subscribed| subscribed.strip_prefix(path)?.split('/').next());
    for name in names {
        if entries.iter().all(|(other, _)| other != name)
            && let Ok(metadata) = Metadata::at(dir.as_fd(), name)
        {
            entries.push((name.to_owned(), metadata.file_type()));
        }
    }
    Ok(entries)
}
