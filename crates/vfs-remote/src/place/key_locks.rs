//! Striped mutexes that serialise writers of one path within this process.

use std::hash::{BuildHasher as _, RandomState};

use tokio::sync::{Mutex, MutexGuard};
use vfs_core::{OpContext, Result, VfsPath};
use vfs_search::run_until_cancelled;

/// How many files, at least, may be changed at once. Two files that share a turn only wait for one another.
const TURNS: usize = 256;

/// Turns to change files, so that the changes of one process do not meet in the place, where waiting is looking again.
#[derive(Debug)]
pub(crate) struct Turns {
    hasher: RandomState,
    turns: Box<[Mutex<()>]>,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), turns: (0..TURNS).map(|_| Mutex::default()).collect() }
    }

    /// Waits for the turn of `path`.
    pub(crate) async fn of(&self, cx: &OpContext, path: &VfsPath) -> Result<MutexGuard<'_, ()>> {
        let turn = &self.turns[self.index(path)];
        run_until_cancelled(cx, path, turn.lock()).await
    }

    /// Waits for the turns of two paths, in an order in which nobody waits for one who waits for him.
    pub(crate) async fn of_both(
        &self,
        cx: &OpContext,
        one: &VfsPath,
        other: &VfsPath,
    ) -> Result<(MutexGuard<'_, ()>, Option<MutexGuard<'_, ()>>)> {
        let (a, b) = (self.index(one), self.index(other));
        if a == b {
            return Ok((self.of(cx, one).await?, None));
        }
        let (first, second) = if a < b { (one, other) } else { (other, one) };
        let first = self.of(cx, first).await?;
        Ok((first, Some(self.of(cx, second).await?)))
    }

    fn index(&self, path: &VfsPath) -> usize {
        (self.hasher.hash_one(path) % self.turns.len() as u64) as usize
    }
}
