//! Wrappers over any backend, each a small value that composes with the others.

mod audit;
mod cache;
mod concurrency;
mod fault;
mod latency;
mod metrics;
mod objects;
mod outcome;
mod outputs;
mod overlay;
mod per_operation;
mod quota;
mod read_only;
mod retry;
mod scoped;
mod snapshots;
mod timeout;
mod trace;

pub use audit::{
    Audit, AuditHead, AuditOperation, AuditPart, AuditParts, AuditRecord, AuditScope, AuditSink, BackendSink,
    ChainBreak, ChainFault, FileState, MemorySink, OnSinkFailure, TracingSink, verify, verify_until,
};
pub use cache::Cache;
pub use concurrency::ConcurrencyLimit;
pub use fault::Fault;
pub use latency::Latency;
pub use metrics::{Metrics, OperationMetrics};
pub use outcome::Outcome;
pub use overlay::{Commit, CommitConflict, Merge, OverlayBackend};
pub use quota::{ActorUsage, Quota, QuotaLimits, QuotaMeter, QuotaUsage};
pub use read_only::ReadOnly;
pub use retry::Retry;
pub use scoped::Scoped;
pub use snapshots::{CheckpointedBackend, Checkpoints, UndoEntry, Undone};
pub use timeout::Timeout;
pub use trace::Trace;
