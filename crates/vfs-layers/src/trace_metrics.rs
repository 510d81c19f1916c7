//! Counters and durations of each operation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vfs_core::{ErrorKind, Operation};

use crate::outcome::Outcome;

/// Counters that [`Trace`](crate::Trace) updates.
///
/// # Behaviour
///
/// Counting takes a few atomic additions and no lock. Values that are read while operations end may stem from
/// different moments. Each file of an upload or download is an operation.
#[derive(Debug)]
pub struct TraceMetrics {
    operations: Vec<OperationCounters>,
}

/// Atomic counters of one operation.
#[derive(Debug)]
struct OperationCounters {
    calls: AtomicU64,
    dropped: AtomicU64,
    errors: Vec<AtomicU64>,
    total_us: AtomicU64,
    max_us: AtomicU64,
}

/// The counters and durations of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationMetrics {
    /// Number of calls that have ended, with or without success.
    pub calls: u64,
    /// Number of calls that the caller dropped before their end.
    pub dropped: u64,
    /// Number of failed calls by error kind, without kinds that did not occur.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Sum of the durations, to the microsecond.
    pub total: Duration,
    /// Longest duration, to the microsecond.
    pub max: Duration,
}

impl Default for TraceMetrics {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        let counters = || OperationCounters {
            calls: zero(),
            dropped: zero(),
            errors: ErrorKind::ALL.iter().map(|_| zero()).collect(),
            total_us: zero(),
            max_us: zero(),
        };
        Self { operations: Operation::ALL.iter().map(|_| counters()).collect() }
    }
}

impl TraceMetrics {
    /// Returns the metrics of `operation`.
    pub fn of(&self, operation: Operation) -> OperationMetrics {
        let counters = &self.operations[operation as usize];
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let errors = ErrorKind::ALL.iter().zip(&counters.errors).map(|(kind, count)| (*kind, read(count)));
        OperationMetrics {
            calls: read(&counters.calls),
            dropped: read(&counters.dropped),
            errors: errors.filter(|(_, count)| *count > 0).collect(),
            total: Duration::from_micros(read(&counters.total_us)),
            max: Duration::from_micros(read(&counters.max_us)),
        }
    }

    /// Returns the metrics of every operation that was called, in the order of [`Operation::ALL`].
    pub fn all(&self) -> Vec<(Operation, OperationMetrics)> {
        let all = Operation::ALL.iter().map(|operation| (*operation, self.of(*operation)));
        all.filter(|(_, metrics)| metrics.calls > 0).collect()
    }

    pub(crate) fn add(&self, operation: Operation, outcome: Outcome, elapsed: Duration) {
        let counters = &self.operations[operation as usize];
        let elapsed = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        counters.calls.fetch_add(1, Ordering::Relaxed);
        counters.total_us.fetch_add(elapsed, Ordering::Relaxed);
        counters.max_us.fetch_max(elapsed, Ordering::Relaxed);
        match outcome {
            Outcome::Ok => {}
            Outcome::Failed(kind) => {
                counters.errors[kind as usize].fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Dropped => {
                counters.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
