//! Who changes which file now.

use std::hash::{BuildHasher as _, RandomState};

use tokio::sync::Mutex;

use crate::key::Key;

/// How many files, at least, may be changed at once. Two files that share a turn only wait for one another.
const TURNS: usize = 256;

/// Turns to change files, so that the edits of one process do not overtake one another again and again.
#[derive(Debug)]
pub(super) struct Turns {
    hasher: RandomState,
    turns: Box<[Mutex<()>]>,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { hasher: RandomState::new(), turns: (0..TURNS).map(|_| Mutex::default()).collect() }
    }

    /// The turns of one file.
    pub(super) fn of(&self, key: &Key) -> &Mutex<()> {
        let index = self.hasher.hash_one(key) % self.turns.len() as u64;
        &self.turns[index as usize]
    }
}
