//! Heartbeat of a worker thread, by which a watcher notices that the worker is stuck.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of checks without a new beat after which a worker counts as late.
const MAX_MISSED_CHECKS: u64 = 2;

/// The lowest bit of the beat counter: set while no beat is expected.
const SUSPENDED_BIT: u64 = 1;

/// A counter of beats that the worker increments and the watcher compares.
///
/// A worker cannot be interrupted inside one call into the regex engine or a tree, but others can see from outside
/// that it is in there. The worker only counts, which costs next to nothing; the watcher keeps the time.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    /// Written by the worker only.
    beats: AtomicU64,
    /// The counter at the last check, and the number of checks since it changed. Written by the watcher only.
    last_seen: AtomicU64,
    missed: AtomicU64,
}

impl Heartbeat {
    pub(crate) fn new() -> Self {
        Self {
            beats: AtomicU64::new(SUSPENDED_BIT),
            last_seen: AtomicU64::new(SUSPENDED_BIT),
            missed: AtomicU64::new(0),
        }
    }

    /// Counts a beat: the worker makes progress, and the next beat is expected soon.
    pub(crate) fn beat(&self) {
        let beats = self.beats.load(Ordering::Relaxed);
        self.beats.store((beats & !SUSPENDED_BIT).wrapping_add(2), Ordering::Relaxed);
    }

    /// Suspends the heartbeat: no beat is expected until the next one.
    pub(crate) fn suspend(&self) {
        self.beats.store(self.beats.load(Ordering::Relaxed) | SUSPENDED_BIT, Ordering::Relaxed);
    }

    /// Returns whether a beat is overdue: the counter has not changed for the last two checks.
    pub(crate) fn check_missed(&self) -> bool {
        let beats = self.beats.load(Ordering::Relaxed);
        let is_same = self.last_seen.swap(beats, Ordering::Relaxed) == beats && beats & SUSPENDED_BIT == 0;
        let missed = if is_same { self.missed.load(Ordering::Relaxed) + 1 } else { 0 };
        self.missed.store(missed, Ordering::Relaxed);
        missed >= MAX_MISSED_CHECKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_worker_that_is_expected_can_be_late() {
        let heartbeat = Heartbeat::new();
        assert!((0..5).all(|_| !heartbeat.check_missed()));
        heartbeat.beat();
        assert_eq!([(); 4].map(|()| heartbeat.check_missed()), [false, false, true, true]);
        heartbeat.beat();
        assert!(!heartbeat.check_missed());
        heartbeat.suspend();
        assert!((0..5).all(|_| !heartbeat.check_missed()));
    }
}
