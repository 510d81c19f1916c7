//! Directories that a command made, and nothing is in yet.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vfs_core::VfsPath;

/// Most of them at a time.
const MAX_DIRECTORIES: usize = 10_000;

/// The directories without files that one command line knows of. What the backend has counts first: these are only asked
/// about where it has nothing.
#[derive(Debug, Default)]
pub(crate) struct Directories(Mutex<BTreeSet<VfsPath>>);

impl Directories {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<VfsPath>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn contains(&self, path: &VfsPath) -> bool {
        self.lock().contains(path)
    }

    /// Remembers `path`; false where there are too many.
    pub(crate) fn add(&self, path: VfsPath) -> bool {
        let mut known = self.lock();
        known.contains(&path) || (known.len() < MAX_DIRECTORIES && known.insert(path))
    }

    /// Remembers the directories above `path`, which may just have lost the last that was in them.
    pub(crate) fn add_above(&self, path: &VfsPath) {
        let mut above = path.parent();
        while let Some(directory) = above.filter(|directory| !directory.is_root()) {
            above = directory.parent();
            // One too many is only forgotten: nobody asked for it to be made.
            self.add(directory);
        }
    }

    /// Whether one of them lies below `path`.
    pub(crate) fn has_below(&self, path: &VfsPath) -> bool {
        self.lock().iter().any(|known| known != path && known.starts_with(path))
    }

    /// The names of those in `directory`.
    pub(crate) fn names_in(&self, directory: &VfsPath) -> BTreeSet<String> {
        let known = self.lock();
        let below = known.iter().filter_map(|known| known.strip_prefix(directory));
        below.filter(|below| !below.is_empty() && !below.contains('/')).map(str::to_owned).collect()
    }

    /// Forgets `path` and all below it; whether there was any.
    pub(crate) fn remove(&self, path: &VfsPath) -> bool {
        let mut known = self.lock();
        let before = known.len();
        known.retain(|known| !known.starts_with(path));
        known.len() < before
    }

    /// Moves those at and below `from` to `to`; whether there was any.
    pub(crate) fn rename(&self, from: &VfsPath, to: &VfsPath) -> bool {
        let mut known = self.lock();
        let moved: Vec<_> = known.iter().filter(|known| known.starts_with(from)).cloned().collect();
        for path in &moved {
            known.remove(path);
            let Some(below) = path.strip_prefix(from) else { continue };
            // A path that is too long for its new place is gone with its name.
            if let Ok(path) = to.join(below) {
                known.insert(path);
            }
        }
        !moved.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a valid path")
    }

    #[test]
    fn directories_are_listed_moved_and_forgotten_with_what_is_below() {
        let known = Directories::default();
        for at in ["/a", "/a/b", "/a/b/c", "/ab"] {
            assert!(known.add(path(at)));
        }
        assert_eq!(known.names_in(&VfsPath::root()), ["a", "ab"].map(str::to_owned).into());
        assert!(known.has_below(&path("/a/b")) && !known.has_below(&path("/ab")));
        assert!(known.rename(&path("/a/b"), &path("/x")));
        assert!(known.contains(&path("/x/c")) && !known.contains(&path("/a/b/c")));
        assert!(known.remove(&path("/x")) && !known.contains(&path("/x/c")));
        known.add_above(&path("/p/q/file"));
        assert!(known.contains(&path("/p/q")) && known.contains(&path("/p")) && !known.contains(&VfsPath::root()));
    }

    #[test]
    fn there_is_a_bound() {
        let known = Directories::default();
        for number in 0..MAX_DIRECTORIES {
            assert!(known.add(path(&format!("/{number}"))));
        }
        assert!(!known.add(path("/one-more")) && known.add(path("/1")));
    }
}
