//! The parallel search engine: a worker pool, an ordered task queue and the consumer's receiver.

pub(crate) mod batch;
pub(crate) mod batch_queue;
pub(crate) mod ordered_queue;
pub(crate) mod pool;
pub(crate) mod pool_stats;
pub(crate) mod receiver;
pub(crate) mod search;
mod slot_writer;
mod task_output;
pub(crate) mod visitor;
mod worker;
