//! Locks that serialise changes of one file, and changes of trees with all others.

use std::hash::{BuildHasher as _, RandomState};

use tokio::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vfs_core::VfsPath;

/// Number of locks that files are hashed to, and so of files that can be changed at once.
const FILE_LOCK_COUNT: usize = 64;

/// Locks of paths by hash. Changes of different files run concurrently, those of one file one after another, and those
/// of trees alone: the state that was read before a change is then still current when it is made.
#[derive(Debug)]
pub(super) struct StripedPathLocks {
    trees: RwLock<()>,
    files: Vec<Mutex<()>>,
    hasher: RandomState,
}

/// Guard of a change, which releases its locks when dropped.
pub(super) enum PathLockGuard<'a> {
    File { _file: MutexGuard<'a, ()>, _trees: RwLockReadGuard<'a, ()> },
    Tree { _trees: RwLockWriteGuard<'a, ()> },
}

impl StripedPathLocks {
    pub(super) fn new() -> Self {
        Self {
            trees: RwLock::new(()),
            files: (0..FILE_LOCK_COUNT).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Acquires the lock of the file at `path`, or of all files if it is `None`.
    pub(super) async fn lock(&self, path: Option<&VfsPath>) -> PathLockGuard<'_> {
        let Some(path) = path else { return PathLockGuard::Tree { _trees: self.trees.write().await } };
        let _trees = self.trees.read().await;
        let index = usize::try_from(self.hasher.hash_one(path) % FILE_LOCK_COUNT as u64).unwrap_or_default();
        PathLockGuard::File { _file: self.files[index].lock().await, _trees }
    }
}
