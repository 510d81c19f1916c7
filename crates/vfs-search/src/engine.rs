//! The parallel search engine: a worker pool, an ordered task queue and the consumer's receiver.

pub(crate) mod batch_queue;
mod batcher;
pub(crate) mod ordered_queue;
pub(crate) mod pool;
pub(crate) mod pool_stats;
pub(crate) mod receiver;
pub(crate) mod search;
pub(crate) mod visitor;
mod worker;
