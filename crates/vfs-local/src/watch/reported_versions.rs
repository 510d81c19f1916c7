//! Cache of the last reported version of each file.

use std::collections::{HashMap, VecDeque};

use vfs_core::Version;

use super::watched_dir_tree::WatchDescriptor;

/// Maximum number of remembered files.
const MAX_FILES: usize = 4096;

/// The versions that were reported last, so that no change is reported twice: one change causes several kernel events,
/// and a file in a new directory is found by listing the directory and reported by an event as well.
#[derive(Debug, Default)]
pub(super) struct ReportedVersions {
    versions: HashMap<(WatchDescriptor, String), Option<Version>>,
    order: VecDeque<(WatchDescriptor, String)>,
}

impl ReportedVersions {
    /// Returns the version that was last reported for the file `name` of the directory `dir`, or `None` if none is
    /// remembered.
    pub(super) fn get(&self, dir: WatchDescriptor, name: &str) -> Option<&Option<Version>> {
        self.versions.get(&(dir, name.to_owned()))
    }

    pub(super) fn set(&mut self, dir: WatchDescriptor, name: &str, version: Option<Version>) {
        let key = (dir, name.to_owned());
        if self.versions.insert(key.clone(), version).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MAX_FILES
            && let Some(oldest) = self.order.pop_front()
        {
            self.versions.remove(&oldest);
        }
    }

    pub(super) fn forget(&mut self, dir: WatchDescriptor, name: &str) {
        self.versions.remove(&(dir, name.to_owned()));
    }

    /// Forgets all files of some directories.
    pub(super) fn forget_dirs(&mut self, dirs: &[WatchDescriptor]) {
        self.versions.retain(|(dir, _), _| !dirs.contains(dir));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_versions_is_bounded() {
        let mut reported = ReportedVersions::default();
        for file in 0..=MAX_FILES {
            reported.set(1, &file.to_string(), None);
        }
        assert_eq!((reported.get(1, "0"), reported.get(1, "1")), (None, Some(&None)));
        for _ in 0..3 * MAX_FILES {
            reported.set(2, "again", Some("v".into()));
            reported.forget(2, "again");
        }
        assert!(reported.order.len() <= MAX_FILES && reported.versions.is_empty());
    }
}
