//! Statistics of a worker pool.

/// The number of threads and queued time slices of a [`Pool`](crate::Pool) at one moment.
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
    /// Existing threads: workers and compensation threads, including idle ones.
    pub threads: usize,
    /// Threads that run a time slice: at work, or waiting for the consumer of a search.
    pub busy: usize,
    /// Time slices that wait for a thread.
    pub queued: usize,
}

impl PoolStats {
    /// Returns whether no thread runs a time slice and none is queued.
    pub fn is_idle(&self) -> bool {
        self.busy == 0 && self.queued == 0
    }
}
