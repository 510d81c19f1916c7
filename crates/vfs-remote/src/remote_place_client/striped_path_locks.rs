//! Striped mutexes that serialise writers of one path within this process.

use std::hash::{BuildHasher as _, RandomState};

use tokio::sync::{Mutex, MutexGuard};
use vfs_core::{OpContext, Result, VfsPath};
use vfs_search::run_until_cancelled;

/// Number of mutexes. If two files share a mutex, their changes wait for each other unnecessarily.
const LOCK_COUNT: usize = 256;

/// Mutexes of paths, so that the changes of one process do not compete for locks in the place, which have to be polled.
#[derive(Debug)]
pub(crate) struct StripedPathLocks {
    hasher: RandomState,
    locks: Box<[Mutex<()>]>,
}

impl StripedPathLocks {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), locks: (0..LOCK_COUNT).map(|_| Mutex::default()).collect() }
    }

    /// Locks `path`.
    pub(crate) async fn lock(&self, cx: &OpContext, path: &VfsPath) -> Result<MutexGuard<'_, ()>> {
        let lock = &self.locks[self.index(path)];
        run_until_cancelled(cx, path, lock.lock()).await
    }

    /// Locks two paths, in the same order for all callers, so that no two callers deadlock.
    pub(crate) async fn lock_both(
        &self,
        cx: &OpContext,
        one: &VfsPath,
        other: &VfsPath,
    ) -> Result<(MutexGuard<'_, ()>, Option<MutexGuard<'_, ()>>)> {
        let (a, b) = (self.index(one), self.index(other));
        if a == b {
            return Ok((self.lock(cx, one).await?, None));
        }
        let (first, second) = if a < b { (one, other) } else { (other, one) };
        let first = self.lock(cx, first).await?;
        Ok((first, Some(self.lock(cx, second).await?)))
    }

    fn index(&self, path: &VfsPath) -> usize {
        (self.hasher.hash_one(path) % self.locks.len() as u64) as usize
    }
}
