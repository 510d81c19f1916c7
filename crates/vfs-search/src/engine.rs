//! The parallel search engine: a worker pool, an ordered task queue and the consumer's receiver.

mod item_batcher;
pub(crate) mod ordered_receiver;
pub(crate) mod ordered_task_queue;
pub(crate) mod pool;
pub(crate) mod pool_stats;
pub(crate) mod received_item_queue;
mod run_task;
pub(crate) mod search;
pub(crate) mod search_visitor;
