//! Renames: two events of the kernel, and four where two entries are swapped.

use rustix::fs::FileType;
use vfs_core::Change;

use super::directory_tree::{EntryRef, is_reserved, to_owned_ref};
use super::state::{LookupError, WatchState, version};

impl WatchState {
    /// Something was renamed, and it is not known where to.
    pub(super) fn handle_moved_away(&mut self, place: EntryRef<'_>, cookie: u32) {
        if is_reserved(place) {
            return self.renames.record_unpaired(cookie, place);
        }
        if self.renames.came_from_reserved(place) && self.stat_entry(place).is_ok() {
            // The second half of a write that swaps the new file with the old, of which a part is still to come.
            return self.renames.forget_from_reserved(place);
        }
        self.handle_removed(place);
        // It may be the second half of any other swap.
        self.deferred.push(to_owned_ref(place));
    }

    /// Something was renamed, and it was not known where from.
    pub(super) fn handle_moved_here(&mut self, place: EntryRef<'_>, cookie: u32, is_directory: bool) {
        match self.renames.take_unpaired(cookie) {
            Some((dir, name)) => self.handle_rename((dir, &name), place, is_directory),
            None => self.handle_created(place, is_directory),
        }
    }

    /// Something was renamed from one watched directory into another.
    ///
    /// Where two entries are swapped the kernel says that each is renamed to the other.
    pub(super) fn handle_rename(&mut self, from: EntryRef<'_>, to: EntryRef<'_>, is_directory: bool) {
        let is_swap = self.renames.is_swap(from, to) && !matches!(self.stat_entry(from), Err(LookupError::NotFound));
        if !is_swap {
            self.renames.record(from, to);
        }
        match (is_reserved(from), is_reserved(to)) {
            (true, true) => {}
            (true, false) if is_directory => self.handle_created(to, true),
            (true, false) => self.handle_replaced(to),
            // The second half of a write that swaps the new file with the old.
            (false, true) if is_swap => {}
            (false, true) => {
                self.handle_removed(from);
                if self.stat_entry(from).is_ok() {
                    self.handle_replaced(from);
                }
            }
            (false, false) if is_swap && !matches!(self.stat_entry(to), Err(LookupError::NotFound)) => {
                for place in [from, to] {
                    let found = self.stat_entry(place).map(|found| found.file_type() == FileType::Directory);
                    match found {
                        // It may have been moved there and back again, and what is there now made after that.
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

    fn handle_file_rename(&mut self, from: EntryRef<'_>, to: EntryRef<'_>) {
        if self.directories.child(from.0, from.1).is_some() {
            // A directory that was made there since was come by already. Its event is still to come.
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

    fn handle_directory_rename(&mut self, from: EntryRef<'_>, to: EntryRef<'_>) {
        let (Some(path), Some(target)) = (self.subscribed_path(from), self.subscribed_path(to)) else {
            self.handle_removed(from);
            return self.handle_created(to, true);
        };
        let there = self.directories.child(to.0, to.1);
        if there.is_some() && there == self.directory_at(to).ok() {
            // It was come by at its new place, and told of, when the directory that it is in was listed.
            return self.handle_removed(from);
        }
        let Some(moved) = self.directories.child(from.0, from.1) else {
            self.handle_removed(from);
            return self.handle_created(to, true);
        };
        if self.directory_at(to) != Ok(moved) {
            // It was moved on, or the one that is known at its old place was made there since. Both will be told.
            self.handle_removed(from);
            return self.handle_created(to, true);
        }
        let (_, removed) = self.directories.place(moved, Some(to));
        self.unwatch(removed);
        let was_watched_whole = self.subscriptions.iter().any(|(subscriptions, _)| path.starts_with(subscriptions));
        self.changes.push(Change::Renamed { from: path, to: target, version: None });
        if !was_watched_whole {
            self.watch_subscribed(to, false, true);
        }
    }
}
