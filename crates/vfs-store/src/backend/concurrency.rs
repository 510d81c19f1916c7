//! Concurrency of callers, of writers to one path, and of the runtime that a call began in.

pub(super) mod backoff;
pub(super) mod completion;
pub(super) mod feed_barrier;
pub(super) mod key_locks;
pub(super) mod runtime;
