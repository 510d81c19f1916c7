//! Whether files can be read without waiting for the disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use super::file_systems::AccessTimes;
use super::metadata::Metadata;
use super::root::Root;

/// What can be told in place.
#[derive(Debug)]
pub(crate) struct InPlace {
    /// Whether the file system says that a read would wait, as far as is known.
    reads: AtomicBool,
    access_times: AccessTimes,
}

impl InPlace {
    pub(crate) fn new(root: &Root) -> Self {
        let access_times = root.access_times();
        Self {
            reads: AtomicBool::new(access_times.is_some()),
            access_times: access_times.unwrap_or(AccessTimes::Always),
        }
    }

    pub(crate) fn reads(&self) -> bool {
        self.reads.load(Ordering::Relaxed)
    }

    /// Takes note that the file system, or the kernel, does not know the question, or nobody may ask it.
    pub(crate) fn disable_reads(&self) {
        self.reads.store(false, Ordering::Relaxed);
    }

    /// Whether reading a file of these facts leaves its time of access alone by itself.
    pub(crate) fn keeps_time(&self, metadata: &Metadata) -> bool {
        match self.access_times {
            AccessTimes::Never => true,
            AccessTimes::Relative => metadata.was_read_lately(SystemTime::now()),
            AccessTimes::Always => false,
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
    fn it_is_known_when_a_time_of_access_would_move() {
        let file = tempfile::tempfile().expect("a temporary file");
        let now = SystemTime::now();
        let read_at = |at: SystemTime| {
            file.set_times(fs::FileTimes::new().set_accessed(at)).expect("times are set");
            Metadata::of(file.as_fd()).expect("it has facts")
        };
        // Setting the times is a change itself, so that only a later read comes after it.
        let facts = [now - Duration::from_secs(60), now + Duration::from_secs(60)].map(read_at);
        let answers = |access_times| {
            let in_place = InPlace { reads: AtomicBool::new(true), access_times };
            facts.map(|facts| in_place.keeps_time(&facts))
        };
        assert_eq!(answers(AccessTimes::Never), [true, true]);
        assert_eq!(answers(AccessTimes::Relative), [false, true]);
        assert_eq!(answers(AccessTimes::Always), [false, false]);
    }
}
