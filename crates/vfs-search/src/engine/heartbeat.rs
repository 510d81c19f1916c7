//! Signs of life of a worker.

use std::sync::atomic::{AtomicU64, Ordering};

/// A worker that has given no sign for so many looks is late.
const MAX_MISSED_CHECKS: u64 = 2;

/// The lowest bit of the beats: whether no sign is expected.
const SUSPENDED_BIT: u64 = 1;

/// The signs of life of a worker.
///
/// A worker cannot be interrupted inside one call into an engine or a tree; what can be done is to see from outside that it
/// is in there. It counts its signs, which costs next to nothing; whoever watches it keeps the time.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    /// Written by the worker alone.
    beats: AtomicU64,
    /// The beats at the last look, and how many looks they have been the same. Written by the watcher alone.
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

    /// Gives a sign: the worker gets on, and the next sign is expected soon.
    pub(crate) fn beat(&self) {
        let beats = self.beats.load(Ordering::Relaxed);
        self.beats.store((beats & !SUSPENDED_BIT).wrapping_add(2), Ordering::Relaxed);
    }

    /// No sign is to be expected until the next.
    pub(crate) fn suspend(&self) {
        self.beats.store(self.beats.load(Ordering::Relaxed) | SUSPENDED_BIT, Ordering::Relaxed);
    }

    /// Whether a sign is overdue: none came since the last two looks.
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
