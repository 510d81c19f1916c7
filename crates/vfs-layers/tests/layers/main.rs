//! Each layer around a store in memory.

mod audit;
mod cache;
mod concurrency;
mod delay;
mod facets;
mod fault_injection;
mod golden;
mod idempotency;
mod laws;
mod quota;
mod read_only;
mod retry;
mod scoped;
mod support;
mod timeout;
mod trace;
mod unresponsive;
