//! Set of empty directories that exist only for one script.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vfs_core::VfsPath;

/// Upper bound on the directories of one script.
const MAX_DIRECTORIES: usize = 10_000;

/// Empty directories of one script, on a backend that cannot store them. They are consulted only where the backend has no
/// entry.
#[derive(Debug, Default)]
pub(crate) struct ScriptOnlyDirs(Mutex<BTreeSet<VfsPath>>);

impl ScriptOnlyDirs {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<VfsPath>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn contains(&self, path: &VfsPath) -> bool {
        self.lock().contains(path)
    }

    /// Adds `path`; returns `false` if there are too many.
    pub(crate) fn add(&self, path: VfsPath) -> bool {
        let mut paths = self.lock();
        paths.contains(&path) || (paths.len() < MAX_DIRECTORIES && paths.insert(path))
    }

    /// Adds the directories above `path`, which may just have become empty.
    pub(crate) fn add_parents(&self, path: &VfsPath) {
        let mut above = path.parent();
        while let Some(directory) = above.filter(|directory| !directory.is_root()) {
            above = directory.parent();
            // If there are too many, the directory is dropped: no command created it.
            self.add(directory);
        }
    }

    /// Returns whether a directory of the set lies below `path`.
    pub(crate) fn has_descendant(&self, path: &VfsPath) -> bool {
        self.lock().iter().any(|dir| dir != path && dir.starts_with(path))
    }

    /// Returns the names of the directories directly in `directory`.
    pub(crate) fn child_names(&self, directory: &VfsPath) -> BTreeSet<String> {
        let paths = self.lock();
        let below = paths.iter().filter_map(|dir| dir.strip_prefix(directory));
        below.filter(|below| !below.is_empty() && !below.contains('/')).map(str::to_owned).collect()
    }

    /// Removes `path` and all below it; returns whether there was any.
    pub(crate) fn remove(&self, path: &VfsPath) -> bool {
        let mut paths = self.lock();
        let before = paths.len();
        paths.retain(|dir| !dir.starts_with(path));
        paths.len() < before
    }

    /// Moves the directories at and below `from` to `to`; returns whether there was any.
    pub(crate) fn rename(&self, from: &VfsPath, to: &VfsPath) -> bool {
        let mut paths = self.lock();
        let moved: Vec<_> = paths.iter().filter(|dir| dir.starts_with(from)).cloned().collect();
        for path in &moved {
            paths.remove(path);
            let Some(below) = path.strip_prefix(from) else { continue };
            // A path that becomes too long in its new place is dropped.
            if let Ok(path) = to.join(below) {
                paths.insert(path);
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
    fn directories_are_listed_moved_and_removed_with_their_descendants() {
        let dirs = ScriptOnlyDirs::default();
        for at in ["/a", "/a/b", "/a/b/c", "/ab"] {
            assert!(dirs.add(path(at)));
        }
        assert_eq!(dirs.child_names(&VfsPath::root()), ["a", "ab"].map(str::to_owned).into());
        assert!(dirs.has_descendant(&path("/a/b")) && !dirs.has_descendant(&path("/ab")));
        assert!(dirs.rename(&path("/a/b"), &path("/x")));
        assert!(dirs.contains(&path("/x/c")) && !dirs.contains(&path("/a/b/c")));
        assert!(dirs.remove(&path("/x")) && !dirs.contains(&path("/x/c")));
        dirs.add_parents(&path("/p/q/file"));
        assert!(dirs.contains(&path("/p/q")) && dirs.contains(&path("/p")) && !dirs.contains(&VfsPath::root()));
    }

    #[test]
    fn the_number_of_directories_is_limited() {
        let dirs = ScriptOnlyDirs::default();
        for number in 0..MAX_DIRECTORIES {
            assert!(dirs.add(path(&format!("/{number}"))));
        }
        assert!(!dirs.add(path("/one-more")) && dirs.add(path("/1")));
    }
}
