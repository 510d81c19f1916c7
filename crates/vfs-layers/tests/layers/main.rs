//! What each layer does around a store in memory.

mod audit;
mod cache;
mod concurrency;
mod facets;
mod fault;
mod golden;
mod latency;
mod laws;
mod quota;
mod read_only;
mod retry;
mod scoped;
mod stuck;
mod support;
mod timeout;
mod trace;
