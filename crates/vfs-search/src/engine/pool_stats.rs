//! What a pool is at.

/// What the workers of a [`Pool`](crate::Pool) are at, at one moment.
///
/// ```
/// use vfs_search::Pool;
///
/// let stats = Pool::new(4).stats();
/// assert!(stats.is_idle());
/// assert_eq!(stats.threads, 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Threads that there are: workers and those that stand in for them, idle ones included.
    pub threads: usize,
    /// Threads that are in a turn: at work, or waiting for the consumer of a search.
    pub busy: usize,
    /// Turns that wait for a thread.
    pub queued: usize,
}

impl PoolStats {
    /// Whether no thread is in a turn and no turn waits for one.
    pub fn is_idle(&self) -> bool {
        self.busy == 0 && self.queued == 0
    }
}
