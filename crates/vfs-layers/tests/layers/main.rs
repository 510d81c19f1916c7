//! What each layer does around a store in memory.

mod audit;
mod cache;
mod concurrency;
mod facets;
mod fault;
mod golden;
mod kept;
mod latency;
mod laws;
mod overlay;
mod overlay_discard;
mod quota;
mod read_only;
mod retry;
mod scoped;
mod snapshots;
mod stuck;
mod support;
mod timeout;
mod trace;
