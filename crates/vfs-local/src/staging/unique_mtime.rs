//! Unique modification times, so that every write has its own version.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use rustix::fs::Timespec;

/// Returns the current time, but later than every time returned before, so that the versions of two writes within one
/// clock tick differ.
pub(crate) fn next_unique_time() -> Timespec {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX - 1);
    let last =
        LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1))).unwrap_or_default();
    let unique = now.max(last + 1);
    Timespec { tv_sec: (unique / 1_000_000_000).cast_signed(), tv_nsec: (unique % 1_000_000_000).cast_signed() }
}

/// Returns `at` in whole microseconds, with a counter of writes below them, so that two writes with the same time have
/// different versions, unless 999 of them happen within one tick of the clock by which the kernel records changes.
pub(crate) fn make_unique(at: DateTime<Utc>) -> Timespec {
    // Each process starts at a different count, so that versions of several processes differ, too.
    static COUNT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(next_unique_time().tv_nsec.cast_unsigned()));
    // Never zero: a time of all zeros represents a file system without modification times.
    let below = COUNT.fetch_add(1, Ordering::Relaxed) % 999 + 1;
    // During a leap second, chrono counts beyond the second, which the kernel rejects.
    let micros = at.timestamp_subsec_micros().min(999_999);
    Timespec { tv_sec: at.timestamp(), tv_nsec: i64::from(micros) * 1_000 + below.cast_signed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_times_are_valid_and_never_zero() {
        for (text, seconds, micros) in [
            ("1970-01-01T00:00:00Z", 0, 0),
            ("1969-12-31T23:59:59.5Z", -1, 500_000),
            ("2016-12-31T23:59:60.073741Z", 1_483_228_799, 999_999),
        ] {
            let set = make_unique(text.parse().expect("it is a time"));
            assert_eq!((set.tv_sec, set.tv_nsec / 1_000), (seconds, micros), "{text}");
            assert_ne!(set.tv_nsec % 1_000, 0, "{text}");
        }
    }
}
