//! The state of a watcher: converts kernel events for directories to changes of paths.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::FileType;
use rustix::fs::inotify::ReadFlags;
use vfs_core::change_log::{ChangeLog, LogPosition};
use vfs_core::watch::Change;
use vfs_core::{Error, Result, VfsPath};

use super::inotify::{InotifyEvent, InotifyQueue};
use super::pending_renames::PendingRenames;
use super::reported_versions::ReportedVersions;
use super::watched_dir_tree::{WatchDescriptor, WatchedDirTree, WatchedEntryRef, is_reserved};
use crate::fs::metadata::Metadata;
use crate::fs::protected_paths::PathAccess;
use crate::local_fs::LocalFs;

/// Allowance for file times that are behind the clock.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// The reason why an entry cannot be examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryLookupError {
    /// Nothing exists there.
    NotFound,
    /// The parent directory was renamed, and the event for that is still to come.
    ParentMoved,
}

/// Options of a recursive watch.
#[derive(Clone, Copy)]
pub(super) struct RecursiveWatchOptions<'a> {
    /// Paths to watch, including everything below them and the directories on the way to them.
    pub(super) scope: &'a [VfsPath],
    /// Whether directories that were not watched before are new, and reported with everything in them.
    pub(super) report: bool,
    /// Whether the topmost directory may be moved here from another place, as `PendingWatchDir::may_move`.
    pub(super) may_move: bool,
}

/// The watched directories, the subscriptions and the pending changes.
///
/// Events describe the past: when one is processed, its directory may have another name and its file may not exist any
/// more. The tree of directories follows the events, so that each event gets the path of its time; lookups on the disk
/// show the present. If the two do not match, the entry is looked up again after all pending events.
#[derive(Debug)]
pub(super) struct WatchState {
    pub(super) local_fs: Arc<LocalFs>,
    pub(super) queue: Arc<InotifyQueue>,
    pub(super) feed: ChangeLog,
    pub(super) directories: WatchedDirTree,
    /// The changes to publish next.
    pub(super) changes: Vec<Change>,
    /// Entries that could not be examined because their parent was renamed; examined again after the pending events.
    pub(super) deferred: Vec<(WatchDescriptor, String)>,
    pub(super) reported: ReportedVersions,
    pub(super) renames: PendingRenames,
    /// The subscribed paths, and since when each of them is watched.
    pub(super) subscriptions: Vec<(VfsPath, LogPosition)>,
    started_at: SystemTime,
    is_root_removed: bool,
    /// The error because of which a subscribed directory cannot be watched.
    failure: Option<Error>,
}

impl WatchState {
    pub(super) fn new(local_fs: Arc<LocalFs>, queue: Arc<InotifyQueue>, feed: ChangeLog) -> Self {
        Self {
            local_fs,
            queue,
            feed,
            directories: WatchedDirTree::default(),
            changes: Vec::new(),
            deferred: Vec::new(),
            reported: ReportedVersions::default(),
            renames: PendingRenames::default(),
            subscriptions: Vec::new(),
            started_at: SystemTime::now(),
            is_root_removed: false,
            failure: None,
        }
    }

    /// Watches `path` and everything below it, and returns since when it is watched. Later changes are in the feed
    /// until the last subscriber ends.
    pub(super) fn subscribe(&mut self, path: &VfsPath) -> Result<LogPosition> {
        let starts =
            self.subscriptions.iter().filter(|(subscribed, _)| path.starts_with(subscribed)).map(|(_, since)| *since);
        if let Some(since) = starts.min() {
            return Ok(since);
        }
        let result = self.watch_recursive(
            None,
            RecursiveWatchOptions { scope: std::slice::from_ref(path), report: false, may_move: true },
        );
        if let Err(error) = result {
            self.unwatch_unsubscribed();
            return Err(error);
        }
        let since = self.feed.mark();
        self.subscriptions.push((path.clone(), since));
        Ok(since)
    }

    /// Publishes the changes until now, and ends the feed if some changes cannot be seen any more. The caller wakes the
    /// feed afterwards, when the state is no longer locked.
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
            // A subscriber that lists again after this event sees all changes until now.
            self.changes.push(Change::Overflow);
        }
        let changes = std::mem::take(&mut self.changes);
        self.feed.push(|| changes);
        if let Some(error) = failure {
            // The removed watches are available to the next watcher.
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
                // Events that were read together with the overflow are older than the watches that start now.
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
                // If both halves were read together, the rename was already handled.
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

    /// Handles a new entry.
    pub(super) fn handle_created(&mut self, (dir, name): WatchedEntryRef<'_>, is_directory: bool) {
        let Some(path) = self.subscribed_path((dir, name)) else { return };
        if is_directory {
            self.watch_subscribed((dir, name), true, false);
        } else {
            let metadata = self.stat_entry((dir, name)).ok();
            self.report_file((dir, name), path, metadata);
        }
    }

    /// As [`WatchState::watch_recursive`], for all subscriptions. Ends the feed if not everything can be watched.
    pub(super) fn watch_subscribed(&mut self, place: WatchedEntryRef<'_>, report: bool, may_move: bool) {
        let scope = self.scope();
        let result = self.watch_recursive(Some(place), RecursiveWatchOptions { scope: &scope, report, may_move });
        self.failure = self.failure.take().or(result.err());
    }

    /// Removes the watches of directories without a subscriber.
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

    /// Reports the entry if it could not be examined when its event was processed.
    fn recheck_entry(&mut self, place: WatchedEntryRef<'_>) {
        let Some(path) = self.subscribed_path(place) else { return };
        match self.stat_entry(place).ok() {
            Some(metadata) if metadata.file_type() == FileType::Directory => self.watch_subscribed(place, true, false),
            // The removal of the entry had an event of its own.
            None => {}
            metadata => self.report_file(place, path, metadata),
        }
    }

    /// Handles an entry that was removed.
    pub(super) fn handle_removed(&mut self, place: WatchedEntryRef<'_>) {
        self.forget_entry(place);
        if let Some(path) = self.subscribed_path(place) {
            self.changes.push(Change::Removed { path });
        }
    }

    /// Handles a file that was written to, or closed by a process that may have written to it.
    fn handle_written(&mut self, (dir, name): WatchedEntryRef<'_>, is_certain: bool) {
        let Some(path) = self.subscribed_path((dir, name)) else { return };
        // If the file was removed meanwhile, a later event reports that.
        let Some(metadata) =
            self.stat_entry((dir, name)).ok().filter(|metadata| metadata.file_type() == FileType::RegularFile)
        else {
            return;
        };
        let version = Some(metadata.version());
        match self.reported.get(dir, name) {
            Some(last) if *last == version => return,
            // The file was opened for writing, but not written to: changes that take a lock do so.
            None if !is_certain && metadata.changed() + CLOCK_SLACK < self.started_at => return,
            _ => {}
        }
        self.reported.set(dir, name, version.clone());
        self.changes.push(Change::Changed { path, version });
    }

    /// Handles a file that was renamed to a place where a file may have existed.
    pub(super) fn handle_replaced(&mut self, (dir, name): WatchedEntryRef<'_>) {
        let Some(path) = self.subscribed_path((dir, name)) else { return };
        match self.stat_entry((dir, name)) {
            Ok(metadata) if metadata.file_type() == FileType::RegularFile => self.handle_written((dir, name), true),
            // If a directory took its place, or it was removed, a later event reports that.
            Ok(metadata) if metadata.file_type() == FileType::Directory => {}
            Err(EntryLookupError::NotFound) => {}
            Ok(_) => self.handle_created((dir, name), false),
            Err(EntryLookupError::ParentMoved) => {
                self.reported.set(dir, name, None);
                self.changes.push(Change::Changed { path, version: None });
            }
        }
    }

    /// Reports a file, link or special file that is new, or that was reported when it was listed and may have changed
    /// since.
    pub(super) fn report_file(&mut self, (dir, name): WatchedEntryRef<'_>, path: VfsPath, metadata: Option<Metadata>) {
        let version = metadata.as_ref().and_then(version);
        let change = match self.reported.get(dir, name) {
            Some(last) if *last == version => return,
            Some(_) => Change::Changed { path, version: version.clone() },
            None => Change::Created { path, version: version.clone() },
        };
        self.reported.set(dir, name, version);
        self.changes.push(change);
    }

    /// Returns the path of an entry, if there is a subscriber for it.
    pub(super) fn subscribed_path(&self, place: WatchedEntryRef<'_>) -> Option<VfsPath> {
        if is_reserved(place) {
            return None;
        }
        let path = self.directories.path(place.0)?.child(place.1).ok()?;
        (self.is_subscribed(&path) && !self.is_hidden(&path)).then_some(path)
    }

    /// Returns whether `path` is hidden from subscribers.
    pub(super) fn is_hidden(&self, path: &VfsPath) -> bool {
        self.local_fs.root.protected_paths().check_path(PathAccess::Read, path).is_err()
    }

    /// Returns whether there is a subscriber for `path`, or for something below it.
    fn is_subscribed(&self, path: &VfsPath) -> bool {
        self.subscriptions.iter().any(|(subscribed, _)| path.starts_with(subscribed) || subscribed.starts_with(path))
    }

    fn scope(&self) -> Vec<VfsPath> {
        self.subscriptions.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Returns the metadata of an entry, without following a link. If its parent was renamed, the entry is examined
    /// again later.
    pub(super) fn stat_entry(&mut self, (dir, name): WatchedEntryRef<'_>) -> Result<Metadata, EntryLookupError> {
        match self.open(dir) {
            Ok(Some(above)) => Metadata::at(above.as_fd(), name).map_err(|_| EntryLookupError::NotFound),
            Ok(None) if self.directories.contains(dir) => {
                self.deferred.push((dir, name.to_owned()));
                Err(EntryLookupError::ParentMoved)
            }
            _ => Err(EntryLookupError::NotFound),
        }
    }

    /// Forgets an entry and removes its watches.
    pub(super) fn forget_entry(&mut self, (dir, name): WatchedEntryRef<'_>) {
        self.reported.forget(dir, name);
        if let Some(id) = self.directories.child(dir, name) {
            let removed = self.directories.remove(id);
            self.unwatch(removed);
        }
    }

    /// Removes a directory and everything below it from the tree, but not their watches.
    pub(super) fn forget_dir(&mut self, id: WatchDescriptor) -> Vec<WatchDescriptor> {
        let forgotten = self.directories.remove(id);
        self.reported.forget_dirs(&forgotten);
        forgotten
    }

    pub(super) fn unwatch(&self, removed: Vec<WatchDescriptor>) {
        removed.into_iter().for_each(|id| self.queue.remove(id));
    }

    /// Restarts all watches after events were lost, and reports the overflow after that: a subscriber that then
    /// lists again must not miss a change.
    fn rescan(&mut self) {
        let before = std::mem::take(&mut self.directories);
        self.reported = ReportedVersions::default();
        self.deferred.clear();
        let scope = self.scope();
        let result = self.watch_recursive(None, RecursiveWatchOptions { scope: &scope, report: false, may_move: true });
        self.failure = self.failure.take().or(result.err());
        self.unwatch(before.ids().filter(|id| !self.directories.contains(*id)).collect());
        self.changes.push(Change::Overflow);
    }
}

/// Returns the version of a regular file, or `None` for any other entry.
pub(super) fn version(metadata: &Metadata) -> Option<vfs_core::Version> {
    (metadata.file_type() == FileType::RegularFile).then(|| metadata.version())
}
