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
pub(crate) const SETTLED: Duration = Duration::from_secs(60);

/// When what is known of a file or directory may be used again for as long as its times stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trust {
    settled: Duration,
    places: Places,
}

/// Which file systems are trusted to tell of every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    Known,
    #[cfg(test)]
    All,
}

impl Trust {
    /// In what was unchanged for as long as this machine's kernel leaves a change unseen.
    pub(crate) fn of_this_kernel() -> Self {
        Self::of_unchanged(settled())
    }

    /// In what was unchanged for as long as `settled`.
    pub(crate) fn of_unchanged(settled: Duration) -> Self {
        Self { settled, places: Places::Known }
    }

    /// In what was unchanged for as long as `settled`, on whatever the tests run on.
    #[cfg(test)]
    pub(crate) fn anywhere(settled: Duration) -> Self {
        Self { settled, places: Places::All }
    }

    /// Whether what `metadata` tells of was not changed lately.
    pub(crate) fn is_settled(&self, metadata: &Metadata) -> bool {
        SystemTime::now().duration_since(metadata.changed()).is_ok_and(|age| age >= self.settled)
    }

    /// Whether `held` is where every change shows. Asked each time: a device that was unmounted leaves its number to the next.
    pub(crate) fn reaches(&self, held: impl AsFd) -> bool {
        match self.places {
            // On a file system in memory writes through a memory map do not show in the times; another machine's may be told
            // late; and what lies below the layers of an overlay nobody can tell.
            Places::Known => file_systems::is_on_disk(held),
            #[cfg(test)]
            Places::All => true,
        }
    }
}

/// How long this machine's kernel needs to write to the disk what was written through a memory map, and a good deal more.
/// For ever, where it is told not to do so by itself.
fn settled() -> Duration {
    let wait = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/vm/{name}")).ok()?;
        text.trim().parse().ok().map(|centiseconds: u64| Duration::from_millis(centiseconds.saturating_mul(10)))
    };
    match ["dirty_expire_centisecs", "dirty_writeback_centisecs"].map(wait) {
        [_, Some(Duration::ZERO)] => Duration::MAX,
        [Some(expire), Some(writeback)] => expire.saturating_add(writeback).saturating_mul(2).max(SETTLED),
        _ => SETTLED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_through_a_memory_map_is_waited_for() {
        assert!(Trust::of_this_kernel().settled >= SETTLED);
    }

    #[test]
    fn what_is_in_memory_is_not_trusted_to_tell_of_changes() {
        let memory = rustix::fs::memfd_create("f", rustix::fs::MemfdFlags::CLOEXEC).expect("there is memory");
        assert!(!Trust::of_unchanged(Duration::ZERO).reaches(&memory));
        assert!(Trust::anywhere(Duration::ZERO).reaches(&memory));
    }
}
