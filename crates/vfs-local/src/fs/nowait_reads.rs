//! Support for reads that never wait for the disk (`RWF_NOWAIT`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use super::file_systems::AtimeMountOption;
use super::metadata::Metadata;
use super::root::Root;

/// Capabilities of the file system for reads that do not wait, and its policy on access times.
#[derive(Debug)]
pub(crate) struct NowaitReads {
    /// Whether the file system can report that a read would wait; assumed until a read shows that it cannot.
    supported: AtomicBool,
    access_time_policy: AtimeMountOption,
}

impl NowaitReads {
    pub(crate) fn new(root: &Root) -> Self {
        let access_time_policy = root.access_time_policy();
        Self {
            supported: AtomicBool::new(access_time_policy.is_some()),
            access_time_policy: access_time_policy.unwrap_or(AtimeMountOption::Always),
        }
    }

    pub(crate) fn is_supported(&self) -> bool {
        self.supported.load(Ordering::Relaxed)
    }

    /// Records that reads without waiting are not possible: the file system or the kernel does not support them, or a
    /// seccomp filter refuses them.
    pub(crate) fn disable(&self) {
        self.supported.store(false, Ordering::Relaxed);
    }

    /// Returns whether reading a file of this metadata leaves its access time unchanged.
    pub(crate) fn leaves_access_time(&self, metadata: &Metadata) -> bool {
        match self.access_time_policy {
            AtimeMountOption::Never => true,
            AtimeMountOption::Relative => metadata.was_read_recently(SystemTime::now()),
            AtimeMountOption::Always => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;

    #[test]
    fn access_time_updates_are_predicted() {
        let file = tempfile::tempfile().expect("a temporary file");
        let now = SystemTime::now();
        let read_at = |at: SystemTime| {
            file.set_times(fs::FileTimes::new().set_accessed(at)).expect("times are set");
            Metadata::from_fd(file.as_fd()).expect("it has facts")
        };
        // Setting the times is a change itself, so only a read after it is later than the last change.
        let metadata = [now - Duration::from_secs(60), now + Duration::from_secs(60)].map(read_at);
        let predictions = |access_time_policy| {
            let nowait_reads = NowaitReads { supported: AtomicBool::new(true), access_time_policy };
            metadata.map(|metadata| nowait_reads.leaves_access_time(&metadata))
        };
        assert_eq!(predictions(AtimeMountOption::Never), [true, true]);
        assert_eq!(predictions(AtimeMountOption::Relative), [false, true]);
        assert_eq!(predictions(AtimeMountOption::Always), [false, false]);
    }
}
