//! Locks, retries and waits of concurrent calls.

pub(super) mod backoff;
pub(super) mod completion;
pub(super) mod feed_start_barrier;
pub(super) mod key_locks;
pub(super) mod runtime_handle;
