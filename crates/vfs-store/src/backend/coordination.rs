//! Locks, retries and waits of concurrent calls.

pub(super) mod backoff;
pub(super) mod completion;
pub(super) mod feed_start_barrier;
pub(super) mod shutdown_aware_runtime;
pub(super) mod striped_key_locks;
