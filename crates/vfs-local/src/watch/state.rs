//! From what the kernel says of single directories to changes of paths.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::FileType;
use rustix::fs::inotify::ReadFlags;
use vfs_core::feed::{Feed, Moment};
use vfs_core::{Change, Error, Result, VfsPath};

use super::directory_tree::{EntryRef, WatchId, WatchedDirs, is_reserved};
use super::inotify::{InotifyEvent, InotifyQueue};
use super::rename_tracker::RenameTracker;
use super::reported_versions::ReportedVersions;
use crate::fs::metadata::Metadata;
use crate::fs::protected_paths::PathAccess;
use crate::local_fs::LocalFs;

/// How far the times of files may be behind the clock, and more.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// Why nothing can be said of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookupError {
    /// Nothing is there.
    NotFound,
    /// Its directory was renamed, and the event of that is still to come.
    ParentMoved,
}

/// How directories are walked.
#[derive(Clone, Copy)]
pub(super) struct WalkOptions<'a> {
    /// What is walked: what lies on the way to one of these, or below.
    pub(super) scope: &'a [VfsPath],
    /// Whether directories that were not watched before are new, and told of with all that is in them.
    pub(super) report: bool,
    /// Whether the directory that it begins with is taken from another place, as `PendingDir::may_move`.
    pub(super) may_move: bool,
}

/// What is watched, and what is known of it.
///
/// Events are of the past: by the time that one is looked at, its directory may have another name and its file may be gone.
/// The tree of directories follows the events, so that each has the path it had then; what is looked up on the disk is of
/// now. Where the two do not fit, it is looked again when all events that there are have been followed.
#[derive(Debug)]
pub(super) struct WatchState {
    pub(super) local_fs: Arc<LocalFs>,
    pub(super) queue: Arc<InotifyQueue>,
    pub(super) feed: Feed,
    pub(super) directories: WatchedDirs,
    /// What is to be published next.
    pub(super) changes: Vec<Change>,
    /// What could not be looked at, as its directory was renamed since; looked at again when that is known.
    pub(super) deferred: Vec<(WatchId, String)>,
    pub(super) reported: ReportedVersions,
    pub(super) renames: RenameTracker,
    /// What somebody asked for, since when.
    pub(super) subscriptions: Vec<(VfsPath, Moment)>,
    started_at: SystemTime,
    is_root_removed: bool,
    /// What keeps a directory from being watched that somebody asked for.
    failure: Option<Error>,
}

impl WatchState {
    pub(super) fn new(local_fs: Arc<LocalFs>, queue: Arc<InotifyQueue>, feed: Feed) -> Self {
        Self {
            local_fs,
            queue,
            feed,
            directories: WatchedDirs::default(),
            changes: Vec::new(),
            deferred: Vec::new(),
            reported: ReportedVersions::default(),
            renames: RenameTracker::default(),
            subscriptions: Vec::new(),
            started_at: SystemTime::now(),
            is_root_removed: false,
            failure: None,
        }
    }

    /// Watches what is at and below `path`, and says since when that is so. What follows is in the feed until the last
    /// subscriber is gone.
    pub(super) fn subscribe(&mut self, path: &VfsPath) -> Result<Moment> {
        let known = self
            .subscriptions
            .iter()
            .filter(|(subscriptions, _)| path.starts_with(subscriptions))
            .map(|(_, since)| *since);
        if let Some(since) = known.min() {
            return Ok(since);
        }
        let result = self
            .watch_recursive(None, WalkOptions { scope: std::slice::from_ref(path), report: false, may_move: true });
        if let Err(error) = result {
            self.unwatch_unsubscribed();
            return Err(error);
        }
        let since = self.feed.mark();
        self.subscriptions.push((path.clone(), since));
        Ok(since)
    }

    /// Publishes what has happened until now, and ends the feed where not all can be seen any more. The feed is to be woken
    /// after that, when the state is no longer locked.
    pub(super) fn process_pending(&mut self) {
        let events = self.queue.read();
        self.process(&events);
        for (dir, name) in std::mem::take(&mut self.deferred) {
            self.recheck_entry((dir, &name));
        }
        if !self.is_root_removed && !self.local_fs.root.is_host() && self.local_fs.root.is_removed() {
            self.is_root_removed = true;
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
            self.subscriptions.clear();
            self.unwatch_unsubscribed();
            self.feed.end(error);
        }
    }

    fn process(&mut self, events: &[InotifyEvent]) {
        let mut arrivals: HashMap<u32, usize> = events
            .iter()
            .enumerate()
            .filter(|(_, event)| event.has(ReadFlags::MOVED_TO) && event.name.is_some())
            .map(|(at, event)| (event.cookie, at))
            .collect();
        self.renames.begin();
        for event in events {
            if event.has(ReadFlags::QUEUE_OVERFLOW) {
                // What was read with it is older than what is watched from now on.
                return self.rescan();
            }
            if event.has(ReadFlags::IGNORED) {
                let removed = self.directories.remove(event.dir);
                self.unwatch(removed);
            }
            let Some(name) = event.name.as_deref().filter(|_| self.directories.contains(event.dir)) else { continue };
            let (place, is_directory) = ((event.dir, name), event.has(ReadFlags::ISDIR));
            if event.has(ReadFlags::MOVED_FROM) {
                let to = arrivals.get(&event.cookie).map(|at| &events[*at]);
                match to.and_then(|to| Some((to.dir, to.name.as_deref()?))).filter(|to| self.directories.contains(to.0))
                {
                    Some(to) => {
                        arrivals.remove(&event.cookie);
                        self.handle_rename(place, to, is_directory);
                    }
                    None => self.handle_moved_away(place, event.cookie),
                }
            } else if event.has(ReadFlags::MOVED_TO) {
                // Its other half was handled where that came with it.
                if arrivals.remove(&event.cookie).is_some() {
                    self.handle_moved_here(place, event.cookie, is_directory);
                }
            } else if event.has(ReadFlags::CREATE) {
                self.handle_created(place, is_directory);
            } else if event.has(ReadFlags::DELETE) {
                self.handle_removed(place);
            } else if event.has(ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE) && !is_directory {
                self.handle_written(place, event.has(ReadFlags::MODIFY));
            }
        }
    }

    /// Something has come to be at a place.
    pub(super) fn handle_created(&mut self, (dir, name): EntryRef<'_>, is_directory: bool) {
        let Some(path) = self.subscribed_path((dir, name)) else { return };
        if is_directory {
            self.watch_subscribed((dir, name), true, false);
        } else {
            let metadata = self.stat_entry((dir, name)).ok();
            self.report_file((dir, name), path, metadata);
        }
    }

    /// As [`WatchState::watch_recursive`], of all that is followed. Where not all of it can be watched the feed ends.
    pub(super) fn watch_subscribed(&mut self, place: EntryRef<'_>, report: bool, may_move: bool) {
        let scope = self.scope();
        let result = self.watch_recursive(Some(place), WalkOptions { scope: &scope, report, may_move });
        self.failure = self.failure.take().or(result.err());
    }

    /// Lets go of directories that nobody wants to know of.
    fn unwatch_unsubscribed(&mut self) {
        let ids: Vec<_> = self.directories.ids().collect();
        for id in ids {
            if self.directories.path(id).is_some_and(|path| !self.is_subscribed(&path)) {
                let removed = self.directories.remove(id);
                self.reported.forget_dirs(&removed);
                self.unwatch(removed);
            }
        }
    }

    /// Tells of what is at a place, where that was not known when its event came.
    fn recheck_entry(&mut self, place: EntryRef<'_>) {
        let Some(path) = self.subscribed_path(place) else { return };
        match self.stat_entry(place).ok() {
            Some(found) if found.file_type() == FileType::Directory => self.watch_subscribed(place, true, false),
            // What is gone had an event that said so.
            None => {}
            found => self.report_file(place, path, found),
        }
    }

    /// What was at a place is no longer there.
    pub(super) fn handle_removed(&mut self, place: EntryRef<'_>) {
        self.forget_entry(place);
        if let Some(path) = self.subscribed_path(place) {
            self.changes.push(Change::Removed { path });
        }
    }

    /// A file was written to, or closed by somebody who may have.
    fn handle_written(&mut self, (dir, name): EntryRef<'_>, is_certain: bool) {
        let Some(path) = self.subscribed_path((dir, name)) else { return };
        // Of what is gone by now there is a later event.
        let Some(metadata) =
            self.stat_entry((dir, name)).ok().filter(|found| found.file_type() == FileType::RegularFile)
        else {
            return;
        };
        let version = Some(metadata.version());
        match self.reported.get(dir, name) {
            Some(last) if *last == version => return,
            // Opened to be written, but not written: every change that takes a lock does so.
            None if !is_certain && metadata.changed() + CLOCK_SLACK < self.started_at => return,
            _ => {}
        }
        self.reported.set(dir, name, version.clone());
        self.changes.push(Change::Changed { path, version });
    }

    /// Another file has come to be where perhaps there was one.
    pub(super) fn handle_replaced(&mut self, (dir, name): EntryRef<'_>) {
        let Some(path) = self.subscribed_path((dir, name)) else { return };
        match self.stat_entry((dir, name)) {
            Ok(found) if found.file_type() == FileType::RegularFile => self.handle_written((dir, name), true),
            // Of what is there now in its stead, or gone, there is a later event.
            Ok(found) if found.file_type() == FileType::Directory => {}
            Err(LookupError::NotFound) => {}
            Ok(_) => self.handle_created((dir, name), false),
            Err(LookupError::ParentMoved) => {
                self.reported.set(dir, name, None);
                self.changes.push(Change::Changed { path, version: None });
            }
        }
    }

    /// Tells of a file, link or other that is new, or was told of when it was listed and may be another by now.
    pub(super) fn report_file(&mut self, (dir, name): EntryRef<'_>, path: VfsPath, metadata: Option<Metadata>) {
        let version = metadata.as_ref().and_then(version);
        let change = match self.reported.get(dir, name) {
            Some(last) if *last == version => return,
            Some(_) => Change::Changed { path, version: version.clone() },
            None => Change::Created { path, version: version.clone() },
        };
        self.reported.set(dir, name, version);
        self.changes.push(change);
    }

    /// The path of a place, if it is one that somebody wants to know of.
    pub(super) fn subscribed_path(&self, place: EntryRef<'_>) -> Option<VfsPath> {
        if is_reserved(place) {
            return None;
        }
        let path = self.directories.path(place.0)?.child(place.1).ok()?;
        (self.is_subscribed(&path) && !self.is_hidden(&path)).then_some(path)
    }

    /// Whether nobody is to know of `path`.
    pub(super) fn is_hidden(&self, path: &VfsPath) -> bool {
        self.local_fs.root.protected_paths().check_path(PathAccess::Read, path).is_err()
    }

    /// Whether somebody wants to know of `path`, or of something below it.
    fn is_subscribed(&self, path: &VfsPath) -> bool {
        self.subscriptions
            .iter()
            .any(|(subscriptions, _)| path.starts_with(subscriptions) || subscriptions.starts_with(path))
    }

    fn scope(&self) -> Vec<VfsPath> {
        self.subscriptions.iter().map(|(path, _)| path.clone()).collect()
    }

    /// What is at a place now, not following a link. Where that cannot be said it is looked again later.
    pub(super) fn stat_entry(&mut self, (dir, name): EntryRef<'_>) -> Result<Metadata, LookupError> {
        match self.open(dir) {
            Ok(Some(above)) => Metadata::at(above.as_fd(), name).map_err(|_| LookupError::NotFound),
            Ok(None) if self.directories.contains(dir) => {
                self.deferred.push((dir, name.to_owned()));
                Err(LookupError::ParentMoved)
            }
            _ => Err(LookupError::NotFound),
        }
    }

    /// Forgets what was at a place.
    pub(super) fn forget_entry(&mut self, (dir, name): EntryRef<'_>) {
        self.reported.forget(dir, name);
        if let Some(id) = self.directories.child(dir, name) {
            let removed = self.directories.remove(id);
            self.unwatch(removed);
        }
    }

    /// Forgets a directory and all below it, which are watched on.
    pub(super) fn forget_dir(&mut self, id: WatchId) -> Vec<WatchId> {
        let forgotten = self.directories.remove(id);
        self.reported.forget_dirs(&forgotten);
        forgotten
    }

    pub(super) fn unwatch(&self, removed: Vec<WatchId>) {
        removed.into_iter().for_each(|id| self.queue.remove(id));
    }

    /// Events were lost: watches what there is now, and only then says so, as whoever lists again must miss nothing.
    fn rescan(&mut self) {
        let before = std::mem::take(&mut self.directories);
        self.reported = ReportedVersions::default();
        self.deferred.clear();
        let scope = self.scope();
        let result = self.watch_recursive(None, WalkOptions { scope: &scope, report: false, may_move: true });
        self.failure = self.failure.take().or(result.err());
        self.unwatch(before.ids().filter(|id| !self.directories.contains(*id)).collect());
        self.changes.push(Change::Overflow);
    }
}

/// The version of a file; a link or anything else has none.
pub(super) fn version(metadata: &Metadata) -> Option<vfs_core::Version> {
    (metadata.file_type() == FileType::RegularFile).then(|| metadata.version())
}
