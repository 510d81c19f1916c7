//! What each layer does around a store in memory.

mod concurrency;
mod fault;
mod latency;
mod laws;
mod read_only;
mod retry;
mod stuck;
mod support;
mod timeout;
mod trace;
