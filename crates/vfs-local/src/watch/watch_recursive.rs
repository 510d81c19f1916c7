//! Watching directories with all that is below them.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use vfs_core::{Change, Error, ErrorKind, Result, VfsPath};

use super::directory_tree::{Id, Place, Put};
use super::state::{Missing, State, Walk};
use crate::fs::directory_entries::for_each_entry;
use crate::fs::errno::error_at;
use crate::fs::metadata::Metadata;
use crate::fs::root::RESERVED;

/// Directories deeper than this are opened from the root each time, so that a deep tree does not use up descriptors.
const MAX_HELD_DEPTH: usize = 64;

/// A directory that is still to be watched.
struct Pending {
    /// Where it is; `None` for the root.
    above: Option<(Id, String)>,
    path: VfsPath,
    /// The directory that it is in.
    held: Option<Rc<OwnedFd>>,
    /// Whether it is taken from another place where it is known to be. In a directory that was watched before it is not:
    /// an event will say that it was moved.
    takes: bool,
}

impl Pending {
    fn place(&self) -> Option<Place<'_>> {
        self.above.as_ref().map(|(above, name)| (*above, name.as_str()))
    }
}

/// What stands where a directory is looked for.
pub(super) enum Found {
    /// It does, and is watched from now on.
    Directory(OwnedFd, Id),
    /// Nothing, or a file or link.
    Nothing,
    /// A directory that cannot be watched: it may not be read, or is on a file system that does not belong to the root.
    Closed,
    /// The directory above is no longer where it was known to be.
    Elsewhere,
}

impl State {
    /// Watches a directory, and those below it.
    ///
    /// What is listed in a directory may be told by an event as well, since it is watched before it is listed: nothing is
    /// missed.
    ///
    /// # Errors
    ///
    /// What keeps a directory from being watched that could be otherwise: a limit of the machine.
    pub(super) fn cover(&mut self, above: Option<Place<'_>>, walk: Walk<'_>) -> Result<()> {
        let path = match above {
            None => VfsPath::root(),
            Some((above, name)) => match self.directories.path(above).and_then(|path| path.child(name).ok()) {
                Some(path) => path,
                None => return Ok(()),
            },
        };
        let above = above.map(|(above, name)| (above, name.to_owned()));
        let mut taken = Vec::new();
        let covered = self.cover_all(vec![Pending { above, path, held: None, takes: walk.takes }], walk, &mut taken);
        taken.retain(|id| !self.directories.contains(*id));
        self.unwatch(taken);
        covered
    }

    fn cover_all(&mut self, mut pending: Vec<Pending>, walk: Walk<'_>, taken: &mut Vec<Id>) -> Result<()> {
        while let Some(next) = pending.pop() {
            if self.is_hidden(&next.path) {
                continue;
            }
            let found = self.find(next.place(), next.held.as_deref()).map_err(|error| error.with_path(&next.path))?;
            match found {
                Found::Directory(dir, id) => pending.extend(self.enter(dir, id, next, walk, taken)?),
                Found::Nothing | Found::Closed if walk.tells => {
                    self.changes.push(Change::Created { path: next.path, version: None });
                }
                Found::Nothing | Found::Closed => {}
                Found::Elsewhere => self.elsewhere.extend(next.above),
            }
        }
        Ok(())
    }

    /// Puts a directory that was found in its place, and says which below it are to be watched, too.
    fn enter(
        &mut self,
        dir: OwnedFd,
        id: Id,
        at: Pending,
        walk: Walk<'_>,
        taken: &mut Vec<Id>,
    ) -> Result<Vec<Pending>> {
        let is_known = self.directories.contains(id);
        let is_here =
            is_known && at.place().is_none_or(|(above, name)| self.directories.child(above, name) == Some(id));
        if is_here && walk.tells {
            return Ok(Vec::new());
        }
        if walk.tells {
            // Of the one that was known here it is not told yet that it is gone, nor would it be when this is.
            if at.place().is_some_and(|(above, name)| self.directories.child(above, name).is_some()) {
                self.changes.push(Change::Removed { path: at.path.clone() });
            }
            self.changes.push(Change::Created { path: at.path.clone(), version: None });
        }
        if is_known && !is_here {
            if !at.takes {
                return Ok(Vec::new());
            }
            if walk.tells {
                // What is below it was told of where it was before, and is to be told of here.
                taken.extend(self.forget(id));
            }
        }
        let (put, gone) = self.directories.put(id, at.place());
        self.unwatch(gone);
        if put == Put::Refused {
            taken.push(id);
            return Ok(Vec::new());
        }
        self.look_into((dir, id), &at.path, walk, !is_here)
    }

    /// Opens and watches the directory at a place: below `held` where that is given, else from the root, through no link.
    pub(super) fn find(&self, place: Option<Place<'_>>, held: Option<&OwnedFd>) -> Result<Found> {
        let root = &self.disk.root;
        let dir = match place {
            None => root.open_directory(&VfsPath::root())?,
            Some((above, name)) => {
                let opened;
                let above = match held {
                    Some(held) => held,
                    None => match self.open(above)? {
                        Some(dir) => {
                            opened = dir;
                            &opened
                        }
                        None => return Ok(Found::Elsewhere),
                    },
                };
                match root.open_child(above.as_fd(), name.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY) {
                    Ok(dir) => dir,
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Found::Nothing),
                    Err(Errno::ACCESS | Errno::PERM | Errno::XDEV) => return Ok(Found::Closed),
                    Err(errno) => return Err(error_at(errno, &VfsPath::root())),
                }
            }
        };
        match self.queue.add(dir.as_fd()) {
            Ok(id) => Ok(Found::Directory(dir, id)),
            Err(Errno::ACCESS | Errno::PERM) => Ok(Found::Closed),
            Err(Errno::NOSPC) => {
                let message = "there are more directories than may be watched here; watch a part of them, or raise the \
                               sysctl fs.inotify.max_user_watches (in a container user.max_inotify_watches, too)";
                Err(Error::new(ErrorKind::QuotaExceeded, message))
            }
            Err(errno) => Err(error_at(errno, &VfsPath::root())),
        }
    }

    /// The directory that is at a place now.
    pub(super) fn directory_at(&self, place: Place<'_>) -> Result<Id, Missing> {
        match self.find(Some(place), None) {
            Ok(Found::Directory(_, id)) => {
                if !self.directories.contains(id) {
                    self.queue.remove(id);
                }
                Ok(id)
            }
            Ok(Found::Elsewhere) if self.directories.contains(place.0) => Err(Missing::Elsewhere),
            _ => Err(Missing::Gone),
        }
    }

    /// Opens a directory that is watched, if it still is where it is known to be.
    pub(super) fn open(&self, id: Id) -> Result<Option<OwnedFd>> {
        let Some(names) = self.directories.names(id) else { return Ok(None) };
        let root = &self.disk.root;
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

    /// The directories in `dir` that are to be watched, too. Tells of the rest where that is asked for.
    fn look_into(
        &mut self,
        (dir, id): (OwnedFd, Id),
        path: &VfsPath,
        walk: Walk<'_>,
        takes: bool,
    ) -> Result<Vec<Pending>> {
        let entries = entries(&dir, path, walk.scope)?;
        let held = (path.components().count() < MAX_HELD_DEPTH).then(|| Rc::new(dir));
        let mut directories = Vec::new();
        for (name, kind) in entries {
            let Ok(path) = path.child(&name) else { continue };
            if kind == FileType::Directory {
                directories.push(Pending { above: Some((id, name)), path, held: held.clone(), takes });
            } else if walk.tells {
                let metadata = match &held {
                    Some(dir) => Metadata::at(dir.as_fd(), &name).ok(),
                    None => self.look_at((id, &name)).ok(),
                };
                self.tell_of_file((id, &name), path, metadata);
            }
        }
        Ok(directories)
    }
}

/// What of a directory lies on the way to a path of `scope` or below one.
fn entries(dir: &OwnedFd, path: &VfsPath, scope: &[VfsPath]) -> Result<Vec<(String, FileType)>> {
    let mut entries = Vec::new();
    if scope.iter().any(|followed| path.starts_with(followed)) {
        let listed = for_each_entry(dir.as_fd(), |name, kind| {
            let name = name.to_str().ok().filter(|name| !name.starts_with(RESERVED));
            entries.extend(name.map(|name| (name.to_owned(), kind)));
            Ok(())
        });
        return match listed {
            Ok(()) | Err(Errno::NOENT) => Ok(entries),
            Err(errno) => Err(error_at(errno, path)),
        };
    }
    let ahead = scope.iter().filter_map(|followed| followed.strip_prefix(path)?.split('/').next());
    for name in ahead {
        if entries.iter().all(|(known, _)| known != name)
            && let Ok(metadata) = Metadata::at(dir.as_fd(), name)
        {
            entries.push((name.to_owned(), metadata.file_type()));
        }
    }
    Ok(entries)
}
