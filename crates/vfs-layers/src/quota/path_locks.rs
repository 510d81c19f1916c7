//! Locks that serialise changes of one file, and changes of trees with all others.

use std::hash::{BuildHasher as _, RandomState};

use tokio::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vfs_core::VfsPath;

/// Number of locks that files are hashed to, and so of files that can be changed at once.
const FILE_LOCK_COUNT: usize = 64;

/// Lets changes of different files run concurrently, serialises those of one file, and runs those of trees alone: the
/// state that was read before a change is then still current when it is made.
#[derive(Debug)]
pub(super) struct PathLocks {
    trees: RwLock<()>,
    files: Vec<Mutex<()>>,
    hasher: RandomState,
}

/// The right to make a change, until it is dropped.
pub(super) enum PathGuard<'a> {
    File { _file: MutexGuard<'a, ()>, _trees: RwLockReadGuard<'a, ()> },
    Tree { _trees: RwLockWriteGuard<'a, ()> },
}

impl PathLocks {
    pub(super) fn new() -> Self {
        Self {
            trees: RwLock::new(()),
            files: (0..FILE_LOCK_COUNT).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Acquires the lock of the file at `path`, or of all files if it is `None`.
    pub(super) async fn lock(&self, path: Option<&VfsPath>) -> PathGuard<'_> {
        let Some(path) = path else { return PathGuard::Tree { _trees: self.trees.write().await } };
        let _trees = self.trees.read().await;
        let index = usize::try_from(self.hasher.hash_one(path) % FILE_LOCK_COUNT as u64).unwrap_or_default();
        PathGuard::File { _file: self.files[index].lock().await, _trees }
    }
}
