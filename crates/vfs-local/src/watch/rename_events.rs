//! Renames: two events of the kernel, and four where two entries are swapped.

use rustix::fs::FileType;
use vfs_core::Change;

use super::directory_tree::{Place, is_reserved, owned};
use super::state::{Missing, State, version};

impl State {
    /// Something was renamed, and it is not known where to.
    pub(super) fn moved_away(&mut self, place: Place<'_>, cookie: u32) {
        if is_reserved(place) {
            return self.renames.keep_half(cookie, place);
        }
        if self.renames.came_from_hiding(place) && self.look_at(place).is_ok() {
            // The second half of a write that swaps the new file with the old, of which a part is still to come.
            return self.renames.forget_coming(place);
        }
        self.departed(place);
        // It may be the second half of any other swap.
        self.elsewhere.push(owned(place));
    }

    /// Something was renamed, and it was not known where from.
    pub(super) fn moved_here(&mut self, place: Place<'_>, cookie: u32, is_directory: bool) {
        match self.renames.take_half(cookie) {
            Some((dir, name)) => self.moved((dir, &name), place, is_directory),
            None => self.arrived(place, is_directory),
        }
    }

    /// Something was renamed from one watched directory into another.
    ///
    /// Where two entries are swapped the kernel says that each is renamed to the other.
    pub(super) fn moved(&mut self, from: Place<'_>, to: Place<'_>, is_directory: bool) {
        let is_swap = self.renames.is_swap(from, to) && !matches!(self.look_at(from), Err(Missing::Gone));
        if !is_swap {
            self.renames.keep(from, to);
        }
        match (is_reserved(from), is_reserved(to)) {
            (true, true) => {}
            (true, false) if is_directory => self.arrived(to, true),
            (true, false) => self.replaced(to),
            // The second half of a write that swaps the new file with the old.
            (false, true) if is_swap => {}
            (false, true) => {
                self.departed(from);
                if self.look_at(from).is_ok() {
                    self.replaced(from);
                }
            }
            (false, false) if is_swap && !matches!(self.look_at(to), Err(Missing::Gone)) => {
                for place in [from, to] {
                    let found = self.look_at(place).map(|found| found.file_type() == FileType::Directory);
                    match found {
                        // It may have been moved there and back again, and what is there now made after that.
                        Ok(is_now) if is_directory || is_now => {
                            self.departed(place);
                            self.arrived(place, is_now);
                        }
                        Err(_) if is_directory => self.departed(place),
                        _ => self.replaced(place),
                    }
                }
            }
            (false, false) if is_directory => self.directory_moved(from, to),
            (false, false) => self.file_moved(from, to),
        }
    }

    fn file_moved(&mut self, from: Place<'_>, to: Place<'_>) {
        if self.directories.child(from.0, from.1).is_some() {
            // A directory that was made there since was come by already. Its event is still to come.
            self.departed(from);
            return self.arrived(to, false);
        }
        self.let_go(from);
        self.let_go(to);
        match (self.concern(from), self.concern(to)) {
            (Some(from), Some(path)) => {
                let version = self.look_at(to).ok().and_then(|metadata| version(&metadata));
                self.recent.set(to.0, to.1, version.clone());
                self.changes.push(Change::Renamed { from, to: path, version });
            }
            (Some(path), None) => self.changes.push(Change::Removed { path }),
            (None, Some(_)) => self.arrived(to, false),
            (None, None) => {}
        }
    }

    fn directory_moved(&mut self, from: Place<'_>, to: Place<'_>) {
        let (Some(path), Some(target)) = (self.concern(from), self.concern(to)) else {
            self.departed(from);
            return self.arrived(to, true);
        };
        let there = self.directories.child(to.0, to.1);
        if there.is_some() && there == self.directory_at(to).ok() {
            // It was come by at its new place, and told of, when the directory that it is in was listed.
            return self.departed(from);
        }
        let Some(moved) = self.directories.child(from.0, from.1) else {
            self.departed(from);
            return self.arrived(to, true);
        };
        if self.directory_at(to) != Ok(moved) {
            // It was moved on, or the one that is known at its old place was made there since. Both will be told.
            self.departed(from);
            return self.arrived(to, true);
        }
        let (_, gone) = self.directories.put(moved, Some(to));
        self.unwatch(gone);
        let was_watched_whole = self.followed.iter().any(|(followed, _)| path.starts_with(followed));
        self.changes.push(Change::Renamed { from: path, to: target, version: None });
        if !was_watched_whole {
            self.cover_followed(to, false, true);
        }
    }
}
