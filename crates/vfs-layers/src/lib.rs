//! Wrappers over any backend, each a small value that composes with the others.

mod concurrency;
mod fault;
mod latency;
mod metrics;
mod outputs;
mod per_operation;
mod place;
mod read_only;
mod retry;
mod timeout;
mod trace;

pub use concurrency::ConcurrencyLimit;
pub use fault::Fault;
pub use latency::Latency;
pub use metrics::{Metrics, OperationMetrics};
pub use read_only::ReadOnly;
pub use retry::Retry;
pub use timeout::Timeout;
pub use trace::Trace;
