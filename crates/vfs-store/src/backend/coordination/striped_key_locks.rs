//! Striped per-key mutexes that serialise edits of one file in one process.

use std::hash::{BuildHasher as _, RandomState};

use tokio::sync::Mutex;

use crate::store::Key;

/// Number of mutexes. Two files that share one wait for each other.
const STRIPES: usize = 256;

/// Mutexes of files, so that edits of one process do not compete with each other.
#[derive(Debug)]
pub(crate) struct StripedKeyLocks {
    hasher: RandomState,
    mutexes: Box<[Mutex<()>]>,
}

impl StripedKeyLocks {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), mutexes: (0..STRIPES).map(|_| Mutex::default()).collect() }
    }

    /// Returns the mutex of one file.
    pub(crate) fn of(&self, key: &Key) -> &Mutex<()> {
        let index = self.hasher.hash_one(key) % self.mutexes.len() as u64;
        &self.mutexes[index as usize]
    }
}
