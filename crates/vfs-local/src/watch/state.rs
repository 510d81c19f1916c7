//! From what the kernel says of single directories to changes of paths.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::FileType;
use rustix::fs::inotify::ReadFlags;
use vfs_core::feed::{Feed, Moment};
use vfs_core::{Change, Error, Result, VfsPath};

use super::directory_tree::{Directories, Id, Place, is_reserved};
use super::inotify::{Event, Queue};
use super::rename_tracker::Renames;
use super::reported_versions::Recent;
use crate::fs::metadata::Metadata;
use crate::fs::protected_paths::Deed;
use crate::local_fs::Disk;

/// How far the times of files may be behind the clock, and more.
const SLACK: Duration = Duration::from_secs(1);

/// Why nothing can be said of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nothing is there.
    Gone,
    /// Its directory was renamed, and the event of that is still to come.
    Elsewhere,
}

/// How directories are walked.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    /// What is walked: what lies on the way to one of these, or below.
    pub(super) scope: &'a [VfsPath],
    /// Whether directories that were not watched before are new, and told of with all that is in them.
    pub(super) tells: bool,
    /// Whether the directory that it begins with is taken from another place, as [`Pending::takes`].
    pub(super) takes: bool,
}

/// What is watched, and what is known of it.
///
/// Events are of the past: by the time that one is looked at, its directory may have another name and its file may be gone.
/// The tree of directories follows the events, so that each has the path it had then; what is looked up on the disk is of
/// now. Where the two do not fit, it is looked again when all events that there are have been followed.
#[derive(Debug)]
pub(super) struct State {
    pub(super) disk: Arc<Disk>,
    pub(super) queue: Arc<Queue>,
    pub(super) feed: Feed,
    pub(super) directories: Directories,
    /// What is to be published next.
    pub(super) changes: Vec<Change>,
    /// What could not be looked at, as its directory was renamed since; looked at again when that is known.
    pub(super) elsewhere: Vec<(Id, String)>,
    pub(super) recent: Recent,
    pub(super) renames: Renames,
    /// What somebody asked for, since when.
    pub(super) followed: Vec<(VfsPath, Moment)>,
    begun: SystemTime,
    is_gone: bool,
    /// What keeps a directory from being watched that somebody asked for.
    failure: Option<Error>,
}

impl State {
    pub(super) fn new(disk: Arc<Disk>, queue: Arc<Queue>, feed: Feed) -> Self {
        Self {
            disk,
            queue,
            feed,
            directories: Directories::default(),
            changes: Vec::new(),
            elsewhere: Vec::new(),
            recent: Recent::default(),
            renames: Renames::default(),
            followed: Vec::new(),
            begun: SystemTime::now(),
            is_gone: false,
            failure: None,
        }
    }

    /// Watches what is at and below `path`, and says since when that is so. What follows is in the feed until the last
    /// subscriber is gone.
    pub(super) fn follow(&mut self, path: &VfsPath) -> Result<Moment> {
        let known = self.followed.iter().filter(|(followed, _)| path.starts_with(followed)).map(|(_, since)| *since);
        if let Some(since) = known.min() {
            return Ok(since);
        }
        let covered = self.cover(None, Walk { scope: std::slice::from_ref(path), tells: false, takes: true });
        if let Err(error) = covered {
            self.unwatch_unfollowed();
            return Err(error);
        }
        let since = self.feed.mark();
        self.followed.push((path.clone(), since));
        Ok(since)
    }

    /// Publishes what has happened until now, and ends the feed where not all can be seen any more. The feed is to be woken
    /// after that, when the state is no longer locked.
    pub(super) fn catch_up(&mut self) {
        let events = self.queue.read();
        self.process(&events);
        for (dir, name) in std::mem::take(&mut self.elsewhere) {
            self.look_again((dir, &name));
        }
        if !self.is_gone && !self.disk.root.is_host() && self.disk.root.is_gone() {
            self.is_gone = true;
            self.changes.push(Change::Removed { path: VfsPath::root() });
        }
        let failure = self.failure.take();
        if failure.is_some() {
            // Whoever lists again after it sees all until now.
            self.changes.push(Change::Overflow);
        }
        let changes = std::mem::take(&mut self.changes);
        self.feed.push(|| changes);
        if let Some(error) = failure {
            // What is watched no longer is free for the next watcher.
            self.followed.clear();
            self.unwatch_unfollowed();
            self.feed.end(error);
        }
    }

    fn process(&mut self, events: &[Event]) {
        let mut arrivals: HashMap<u32, usize> = events
            .iter()
            .enumerate()
            .filter(|(_, event)| event.is(ReadFlags::MOVED_TO) && event.name.is_some())
            .map(|(at, event)| (event.cookie, at))
            .collect();
        self.renames.begin();
        for event in events {
            if event.is(ReadFlags::QUEUE_OVERFLOW) {
                // What was read with it is older than what is watched from now on.
                return self.start_again();
            }
            if event.is(ReadFlags::IGNORED) {
                let gone = self.directories.remove(event.dir);
                self.unwatch(gone);
            }
            let Some(name) = event.name.as_deref().filter(|_| self.directories.contains(event.dir)) else { continue };
            let (place, is_directory) = ((event.dir, name), event.is(ReadFlags::ISDIR));
            if event.is(ReadFlags::MOVED_FROM) {
                let to = arrivals.get(&event.cookie).map(|at| &events[*at]);
                match to.and_then(|to| Some((to.dir, to.name.as_deref()?))).filter(|to| self.directories.contains(to.0))
                {
                    Some(to) => {
                        arrivals.remove(&event.cookie);
                        self.moved(place, to, is_directory);
                    }
                    None => self.moved_away(place, event.cookie),
                }
            } else if event.is(ReadFlags::MOVED_TO) {
                // Its other half was handled where that came with it.
                if arrivals.remove(&event.cookie).is_some() {
                    self.moved_here(place, event.cookie, is_directory);
                }
            } else if event.is(ReadFlags::CREATE) {
                self.arrived(place, is_directory);
            } else if event.is(ReadFlags::DELETE) {
                self.departed(place);
            } else if event.is(ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE) && !is_directory {
                self.written(place, event.is(ReadFlags::MODIFY));
            }
        }
    }

    /// Something has come to be at a place.
    pub(super) fn arrived(&mut self, (dir, name): Place<'_>, is_directory: bool) {
        let Some(path) = self.concern((dir, name)) else { return };
        if is_directory {
            self.cover_followed((dir, name), true, false);
        } else {
            let metadata = self.look_at((dir, name)).ok();
            self.tell_of_file((dir, name), path, metadata);
        }
    }

    /// As [`State::cover`], of all that is followed. Where not all of it can be watched the feed ends.
    pub(super) fn cover_followed(&mut self, place: Place<'_>, tells: bool, takes: bool) {
        let scope = self.scope();
        let covered = self.cover(Some(place), Walk { scope: &scope, tells, takes });
        self.failure = self.failure.take().or(covered.err());
    }

    /// Lets go of directories that nobody wants to know of.
    fn unwatch_unfollowed(&mut self) {
        let ids: Vec<_> = self.directories.ids().collect();
        for id in ids {
            if self.directories.path(id).is_some_and(|path| !self.is_of_concern(&path)) {
                let gone = self.directories.remove(id);
                self.recent.forget_all(&gone);
                self.unwatch(gone);
            }
        }
    }

    /// Tells of what is at a place, where that was not known when its event came.
    fn look_again(&mut self, place: Place<'_>) {
        let Some(path) = self.concern(place) else { return };
        match self.look_at(place).ok() {
            Some(found) if found.file_type() == FileType::Directory => self.cover_followed(place, true, false),
            // What is gone had an event that said so.
            None => {}
            found => self.tell_of_file(place, path, found),
        }
    }

    /// What was at a place is no longer there.
    pub(super) fn departed(&mut self, place: Place<'_>) {
        self.let_go(place);
        if let Some(path) = self.concern(place) {
            self.changes.push(Change::Removed { path });
        }
    }

    /// A file was written to, or closed by somebody who may have.
    fn written(&mut self, (dir, name): Place<'_>, is_certain: bool) {
        let Some(path) = self.concern((dir, name)) else { return };
        // Of what is gone by now there is a later event.
        let Some(metadata) = self.look_at((dir, name)).ok().filter(|found| found.file_type() == FileType::RegularFile)
        else {
            return;
        };
        let version = Some(metadata.version());
        match self.recent.get(dir, name) {
            Some(told) if *told == version => return,
            // Opened to be written, but not written: every change that takes a lock does so.
            None if !is_certain && metadata.changed() + SLACK < self.begun => return,
            _ => {}
        }
        self.recent.set(dir, name, version.clone());
        self.changes.push(Change::Changed { path, version });
    }

    /// Another file has come to be where perhaps there was one.
    pub(super) fn replaced(&mut self, (dir, name): Place<'_>) {
        let Some(path) = self.concern((dir, name)) else { return };
        match self.look_at((dir, name)) {
            Ok(found) if found.file_type() == FileType::RegularFile => self.written((dir, name), true),
            // Of what is there now in its stead, or gone, there is a later event.
            Ok(found) if found.file_type() == FileType::Directory => {}
            Err(Missing::Gone) => {}
            Ok(_) => self.arrived((dir, name), false),
            Err(Missing::Elsewhere) => {
                self.recent.set(dir, name, None);
                self.changes.push(Change::Changed { path, version: None });
            }
        }
    }

    /// Tells of a file, link or other that is new, or was told of when it was listed and may be another by now.
    pub(super) fn tell_of_file(&mut self, (dir, name): Place<'_>, path: VfsPath, metadata: Option<Metadata>) {
        let version = metadata.as_ref().and_then(version);
        let change = match self.recent.get(dir, name) {
            Some(told) if *told == version => return,
            Some(_) => Change::Changed { path, version: version.clone() },
            None => Change::Created { path, version: version.clone() },
        };
        self.recent.set(dir, name, version);
        self.changes.push(change);
    }

    /// The path of a place, if it is one that somebody wants to know of.
    pub(super) fn concern(&self, place: Place<'_>) -> Option<VfsPath> {
        if is_reserved(place) {
            return None;
        }
        let path = self.directories.path(place.0)?.child(place.1).ok()?;
        (self.is_of_concern(&path) && !self.is_hidden(&path)).then_some(path)
    }

    /// Whether nobody is to know of `path`.
    pub(super) fn is_hidden(&self, path: &VfsPath) -> bool {
        self.disk.root.guard().check_path(Deed::Read, path).is_err()
    }

    /// Whether somebody wants to know of `path`, or of something below it.
    fn is_of_concern(&self, path: &VfsPath) -> bool {
        self.followed.iter().any(|(followed, _)| path.starts_with(followed) || followed.starts_with(path))
    }

    fn scope(&self) -> Vec<VfsPath> {
        self.followed.iter().map(|(path, _)| path.clone()).collect()
    }

    /// What is at a place now, not following a link. Where that cannot be said it is looked again later.
    pub(super) fn look_at(&mut self, (dir, name): Place<'_>) -> Result<Metadata, Missing> {
        match self.open(dir) {
            Ok(Some(above)) => Metadata::at(above.as_fd(), name).map_err(|_| Missing::Gone),
            Ok(None) if self.directories.contains(dir) => {
                self.elsewhere.push((dir, name.to_owned()));
                Err(Missing::Elsewhere)
            }
            _ => Err(Missing::Gone),
        }
    }

    /// Forgets what was at a place.
    pub(super) fn let_go(&mut self, (dir, name): Place<'_>) {
        self.recent.forget(dir, name);
        if let Some(id) = self.directories.child(dir, name) {
            let gone = self.directories.remove(id);
            self.unwatch(gone);
        }
    }

    /// Forgets a directory and all below it, which are watched on.
    pub(super) fn forget(&mut self, id: Id) -> Vec<Id> {
        let forgotten = self.directories.remove(id);
        self.recent.forget_all(&forgotten);
        forgotten
    }

    pub(super) fn unwatch(&self, gone: Vec<Id>) {
        gone.into_iter().for_each(|id| self.queue.remove(id));
    }

    /// Events were lost: watches what there is now, and only then says so, as whoever lists again must miss nothing.
    fn start_again(&mut self) {
        let before = std::mem::take(&mut self.directories);
        self.recent = Recent::default();
        self.elsewhere.clear();
        let scope = self.scope();
        let covered = self.cover(None, Walk { scope: &scope, tells: false, takes: true });
        self.failure = self.failure.take().or(covered.err());
        self.unwatch(before.ids().filter(|id| !self.directories.contains(*id)).collect());
        self.changes.push(Change::Overflow);
    }
}

/// The version of a file; a link or anything else has none.
pub(super) fn version(metadata: &Metadata) -> Option<vfs_core::Version> {
    (metadata.file_type() == FileType::RegularFile).then(|| metadata.version())
}
