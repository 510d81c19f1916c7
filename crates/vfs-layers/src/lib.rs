//! Interceptors around any backend, which compose with each other.

mod audit;
mod concurrency_limit;
mod content_cache;
mod delay;
mod fault_injection;
mod idempotency;
mod outcome;
mod per_operation_setting;
mod quota;
mod read_only;
mod retry;
mod scoped;
mod timeout;
mod trace;
mod trace_metrics;

pub use audit::{
    Audit, AuditFileState, AuditHead, AuditLogPart, AuditLogReader, AuditOperation, AuditRecord, AuditScope, AuditSink,
    BackendSink, ChainBreak, ChainFault, MemorySink, OnSinkFailure, TracingSink, verify, verify_until,
};
pub use concurrency_limit::ConcurrencyLimit;
pub use content_cache::Cache;
pub use delay::Delay;
pub use fault_injection::FaultInjection;
pub use idempotency::Idempotency;
pub use outcome::Outcome;
pub use quota::{ActorUsage, Quota, QuotaLimits, QuotaUsage, QuotaUsageReader};
pub use read_only::ReadOnly;
pub use retry::Retry;
pub use scoped::Scoped;
pub use timeout::Timeout;
pub use trace::Trace;
pub use trace_metrics::{OperationMetrics, TraceMetrics};
