//! Signs of life of a worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A worker that has given no sign for so long is late.
const LATE: Duration = Duration::from_millis(50);

/// Stands for a worker from which no sign is expected.
const AT_REST: u64 = u64::MAX;

/// When a worker last gave a sign of life.
///
/// A worker cannot be interrupted inside one call into an engine or a tree; what can be done is to see from outside that it
/// is in there.
#[derive(Debug)]
pub(crate) struct Pulse {
    epoch: Instant,
    /// Milliseconds since the epoch.
    last: AtomicU64,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self { epoch: Instant::now(), last: AtomicU64::new(AT_REST) }
    }

    /// Gives a sign: the worker gets on, and the next sign is expected soon.
    pub(crate) fn beat(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    /// No sign is to be expected until the next.
    pub(crate) fn rest(&self) {
        self.last.store(AT_REST, Ordering::Relaxed);
    }

    /// Whether a sign is overdue.
    pub(crate) fn is_late(&self) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        last != AT_REST && u128::from(self.now().saturating_sub(last)) > LATE.as_millis()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(AT_REST - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_worker_that_is_expected_can_be_late() {
        let long_ago = Instant::now() - Duration::from_secs(1);
        let pulse = Pulse { epoch: long_ago, last: AtomicU64::new(0) };
        assert!(pulse.is_late());
        pulse.beat();
        assert!(!pulse.is_late());
        pulse.last.store(0, Ordering::Relaxed);
        pulse.rest();
        assert!(!pulse.is_late());
    }
}
