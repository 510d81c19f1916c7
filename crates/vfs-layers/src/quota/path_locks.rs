//! Who may change what at the same time.

use std::hash::{BuildHasher as _, RandomState};

use tokio::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vfs_core::VfsPath;

/// How many files can be changed at once.
const LANES: usize = 64;

/// Lets changes of different files run beside each other, those of one file one after the other, and those of whole trees
/// alone: what was there before a change is then the same when it is made.
#[derive(Debug)]
pub(super) struct Gate {
    trees: RwLock<()>,
    files: Vec<Mutex<()>>,
    hasher: RandomState,
}

/// The right to make a change, until it is dropped.
pub(super) enum Held<'a> {
    File { _file: MutexGuard<'a, ()>, _trees: RwLockReadGuard<'a, ()> },
    Tree { _trees: RwLockWriteGuard<'a, ()> },
}

impl Gate {
    pub(super) fn new() -> Self {
        Self { trees: RwLock::new(()), files: (0..LANES).map(|_| Mutex::new(())).collect(), hasher: RandomState::new() }
    }

    /// Waits for the right to change the file at `path`, or any where that is `None`.
    pub(super) async fn enter(&self, path: Option<&VfsPath>) -> Held<'_> {
        let Some(path) = path else { return Held::Tree { _trees: self.trees.write().await } };
        let _trees = self.trees.read().await;
        let lane = usize::try_from(self.hasher.hash_one(path) % LANES as u64).unwrap_or_default();
        Held::File { _file: self.files[lane].lock().await, _trees }
    }
}
