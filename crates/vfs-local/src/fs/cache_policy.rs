//! What may be remembered of a file or directory: what was unchanged for a while, where every change shows.

use std::os::fd::AsFd;
use std::time::{Duration, SystemTime};

use crate::fs::file_systems;
use crate::fs::metadata::Metadata;

/// How long a file or directory has to be unchanged before it is remembered, at the least.
///
/// A program that writes through a memory map sets a file's times when it first writes to a page, and not again before the
/// kernel has written that to the disk, which it does within half a minute where it is not set otherwise. The clocks of file
/// systems count in steps of up to two seconds.
pub(crate) const MIN_UNCHANGED_AGE: Duration = Duration::from_secs(60);

/// When what is known of a file or directory may be used again for as long as its times stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CachePolicy {
    min_age: Duration,
    trusted: TrustedFileSystems,
}

/// Which file systems are trusted to tell of every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrustedFileSystems {
    LocalDisks,
    #[cfg(test)]
    All,
}

impl CachePolicy {
    /// In what was unchanged for as long as this machine's kernel leaves a change unseen.
    pub(crate) fn for_this_kernel() -> Self {
        Self::with_min_age(min_unchanged_age())
    }

    /// In what was unchanged for as long as `min_age`.
    pub(crate) fn with_min_age(min_age: Duration) -> Self {
        Self { min_age, trusted: TrustedFileSystems::LocalDisks }
    }

    /// In what was unchanged for as long as `min_age`, on whatever the tests run on.
    #[cfg(test)]
    pub(crate) fn on_any_file_system(min_age: Duration) -> Self {
        Self { min_age, trusted: TrustedFileSystems::All }
    }

    /// Whether what `metadata` tells of was not changed lately.
    pub(crate) fn is_settled(&self, metadata: &Metadata) -> bool {
        SystemTime::now().duration_since(metadata.changed()).is_ok_and(|age| age >= self.min_age)
    }

    /// Whether `fd` is where every change shows. Asked each time: a device that was unmounted leaves its number to the next.
    pub(crate) fn trusts_file_system(&self, fd: impl AsFd) -> bool {
        match self.trusted {
            // On a file system in memory writes through a memory map do not show in the times; another machine's may be told
            // late; and what lies below the layers of an overlay nobody can tell.
            TrustedFileSystems::LocalDisks => file_systems::is_on_local_disk(fd),
            #[cfg(test)]
            TrustedFileSystems::All => true,
        }
    }
}

/// How long this machine's kernel needs to write to the disk what was written through a memory map, and a good deal more.
/// For ever, where it is told not to do so by itself.
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
    fn what_was_written_through_a_memory_map_is_waited_for() {
        assert!(CachePolicy::for_this_kernel().min_age >= MIN_UNCHANGED_AGE);
    }

    #[test]
    fn what_is_in_memory_is_not_trusted_to_tell_of_changes() {
        let memory = rustix::fs::memfd_create("f", rustix::fs::MemfdFlags::CLOEXEC).expect("there is memory");
        assert!(!CachePolicy::with_min_age(Duration::ZERO).trusts_file_system(&memory));
        assert!(CachePolicy::on_any_file_system(Duration::ZERO).trusts_file_system(&memory));
    }
}
