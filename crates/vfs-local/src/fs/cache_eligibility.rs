//! Conditions under which cached facts about a file or directory may be reused.

use std::os::fd::AsFd;
use std::time::{Duration, SystemTime};

use crate::fs::file_systems;
use crate::fs::metadata::Metadata;

/// Minimum time that a file or directory must have been unchanged before facts about it are cached.
///
/// A program that writes through a memory map sets a file's times when it first writes to a page, and not again before
/// the kernel has written that page to the disk, which by default takes up to half a minute. The clocks of file systems
/// tick in steps of up to two seconds.
pub(crate) const MIN_UNCHANGED_AGE: Duration = Duration::from_secs(60);

/// Decides whether facts about a file or directory may be cached, to be reused while its times stay the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheEligibility {
    min_age: Duration,
    trusted: TrustedFileSystems,
}

/// The file systems whose timestamps are trusted to show every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrustedFileSystems {
    LocalDisks,
    #[cfg(test)]
    All,
}

impl CacheEligibility {
    /// Returns a policy that waits until this machine's kernel shows changes made through memory maps.
    pub(crate) fn for_this_kernel() -> Self {
        Self::with_min_age(min_unchanged_age())
    }

    /// Returns a policy for files that have been unchanged for at least `min_age`.
    pub(crate) fn with_min_age(min_age: Duration) -> Self {
        Self { min_age, trusted: TrustedFileSystems::LocalDisks }
    }

    /// As [`with_min_age`](Self::with_min_age), but trusts every file system, so that tests run anywhere.
    #[cfg(test)]
    pub(crate) fn on_any_file_system(min_age: Duration) -> Self {
        Self { min_age, trusted: TrustedFileSystems::All }
    }

    /// Returns whether the file of `metadata` has been unchanged for the minimum age.
    pub(crate) fn is_settled(&self, metadata: &Metadata) -> bool {
        SystemTime::now().duration_since(metadata.changed()).is_ok_and(|age| age >= self.min_age)
    }

    /// Returns whether the file system of `fd` shows every change in its timestamps. Not cached: after an unmount, the
    /// next device may get the same number.
    pub(crate) fn trusts_file_system(&self, fd: impl AsFd) -> bool {
        match self.trusted {
            // On file systems in memory, writes through a memory map do not show in the times; a network file system
            // may report a change of another machine late; and an overlay does not show changes in its lower layers.
            TrustedFileSystems::LocalDisks => file_systems::is_on_local_disk(fd),
            #[cfg(test)]
            TrustedFileSystems::All => true,
        }
    }
}

/// Returns twice the time that this machine's kernel needs to write memory-mapped pages to the disk, but at least
/// [`MIN_UNCHANGED_AGE`]. Returns [`Duration::MAX`] if the kernel is configured not to write them back by itself.
fn min_unchanged_age() -> Duration {
    let wait = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/vm/{name}")).ok()?;
        text.trim().parse().ok().map(|centiseconds: u64| Duration::from_millis(centiseconds.saturating_mul(10)))
    };
    match ["dirty_expire_centisecs", "dirty_writeback_centisecs"].map(wait) {
        [_, Some(Duration::ZERO)] => Duration::MAX,
        [Some(expire), Some(writeback)] => expire.saturating_add(writeback).saturating_mul(2).max(MIN_UNCHANGED_AGE),
        _ => MIN_UNCHANGED_AGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_age_covers_memory_mapped_writes() {
        assert!(CacheEligibility::for_this_kernel().min_age >= MIN_UNCHANGED_AGE);
    }

    #[test]
    fn file_systems_in_memory_are_not_trusted() {
        let memory = rustix::fs::memfd_create("f", rustix::fs::MemfdFlags::CLOEXEC).expect("there is memory");
        assert!(!CacheEligibility::with_min_age(Duration::ZERO).trusts_file_system(&memory));
        assert!(CacheEligibility::on_any_file_system(Duration::ZERO).trusts_file_system(&memory));
    }
}
