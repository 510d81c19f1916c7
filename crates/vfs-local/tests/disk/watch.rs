//! Tests of the change feed of a real disk: changes by this backend and by other programs.

mod outside;
mod own;
mod storm;

use vfs_core::watch::Change;

use crate::support::feed::{created_without_version, next_item, removed};
use crate::{Disk, path};

impl Disk {
    fn changed(&self, name: &str) -> Change {
        Change::Changed { path: path(name), version: self.version(name) }
    }

    fn renamed(&self, from: &str, to: &str) -> Change {
        Change::Renamed { from: path(from), to: path(to), version: self.version(to) }
    }
}
