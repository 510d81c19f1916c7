//! Rename events: two for a rename, four for an exchange of two entries.

use rustix::fs::FileType;
use vfs_core::watch::Change;

use super::watch_state::{EntryLookupError, WatchState, version};
use super::watched_dir_tree::{WatchedEntryRef, is_reserved, to_owned_ref};

impl WatchState {
    /// Handles an entry that was renamed to an unknown place.
    pub(super) fn handle_moved_away(&mut self, place: WatchedEntryRef<'_>, cookie: u32) {
        if is_reserved(place) {
            return self.renames.record_unpaired(cookie, place);
        }
        if self.renames.came_from_reserved(place) && self.stat_entry(place).is_ok() {
            // This is the second half of a write that exchanges the new file with the old one, whose other events are
            // still to come.
            return self.renames.forget_from_reserved(place);
        }
        self.handle_removed(place);
        // This may be the second half of another exchange.
        self.deferred.push(to_owned_ref(place));
    }

    /// Handles an entry that was renamed from a place that was unknown when this event was read.
    pub(super) fn handle_moved_here(&mut self, place: WatchedEntryRef<'_>, cookie: u32, is_directory: bool) {
        match self.renames.take_unpaired(cookie) {
            Some((dir, name)) => self.handle_rename((dir, &name), place, is_directory),
            None => self.handle_created(place, is_directory),
        }
    }

    /// Handles a rename from one watched directory to another.
    ///
    /// If two entries are exchanged, the kernel reports each as renamed to the other's place.
    pub(super) fn handle_rename(&mut self, from: WatchedEntryRef<'_>, to: WatchedEntryRef<'_>, is_directory: bool) {
        let is_swap =
            self.renames.is_swap(from, to) && !matches!(self.stat_entry(from), Err(EntryLookupError::NotFound));
        if !is_swap {
            self.renames.record(from, to);
        }
        match (is_reserved(from), is_reserved(to)) {
            (true, true) => {}
            (true, false) if is_directory => self.handle_created(to, true),
            (true, false) => self.handle_replaced(to),
            // This is the second half of a write that exchanges the new file with the old one.
            (false, true) if is_swap => {}
            (false, true) => {
                self.handle_removed(from);
                if self.stat_entry(from).is_ok() {
                    self.handle_replaced(from);
                }
            }
            (false, false) if is_swap && !matches!(self.stat_entry(to), Err(EntryLookupError::NotFound)) => {
                for place in [from, to] {
                    let is_directory_now =
                        self.stat_entry(place).map(|metadata| metadata.file_type() == FileType::Directory);
                    match is_directory_now {
                        // The entry may have been moved there and back again, and the current one been created
                        // afterwards.
                        Ok(is_now) if is_directory || is_now => {
                            self.handle_removed(place);
                            self.handle_created(place, is_now);
                        }
                        Err(_) if is_directory => self.handle_removed(place),
                        _ => self.handle_replaced(place),
                    }
                }
            }
            (false, false) if is_directory => self.handle_directory_rename(from, to),
            (false, false) => self.handle_file_rename(from, to),
        }
    }

    fn handle_file_rename(&mut self, from: WatchedEntryRef<'_>, to: WatchedEntryRef<'_>) {
        if self.directories.child(from.0, from.1).is_some() {
            // A directory that was created there later is already in the tree. Its event is still to come.
            self.handle_removed(from);
            return self.handle_created(to, false);
        }
        self.forget_entry(from);
        self.forget_entry(to);
        match (self.subscribed_path(from), self.subscribed_path(to)) {
            (Some(from), Some(path)) => {
                let version = self.stat_entry(to).ok().and_then(|metadata| version(&metadata));
                self.reported.set(to.0, to.1, version.clone());
                self.changes.push(Change::Renamed { from, to: path, version });
            }
            (Some(path), None) => self.changes.push(Change::Removed { path }),
            (None, Some(_)) => self.handle_created(to, false),
            (None, None) => {}
        }
    }

    fn handle_directory_rename(&mut self, from: WatchedEntryRef<'_>, to: WatchedEntryRef<'_>) {
        let (Some(path), Some(target)) = (self.subscribed_path(from), self.subscribed_path(to)) else {
            self.handle_removed(from);
            return self.handle_created(to, true);
        };
        let existing = self.directories.child(to.0, to.1);
        if existing.is_some() && existing == self.directory_at(to).ok() {
            // The directory was already found and reported at its new place, when its parent was listed.
            return self.handle_removed(from);
        }
        let Some(moved) = self.directories.child(from.0, from.1) else {
            self.handle_removed(from);
            return self.handle_created(to, true);
        };
        if self.directory_at(to) != Ok(moved) {
            // The directory was moved on, or the watched one was created at the old place later. Events for both are
            // still to come.
            self.handle_removed(from);
            return self.handle_created(to, true);
        }
        let (_, removed) = self.directories.place(moved, Some(to));
        self.unwatch(removed);
        let was_watched_whole = self.subscriptions.iter().any(|(subscribed, _)| path.starts_with(subscribed));
        self.changes.push(Change::Renamed { from: path, to: target, version: None });
        if !was_watched_whole {
            self.watch_subscribed(to, false, true);
        }
    }
}
