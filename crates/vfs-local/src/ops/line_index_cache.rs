//! Where lines are in the huge files that were read last, for the next read of them.

use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use vfs_core::Version;
use vfs_core::window::LineIndex;

use crate::fs::cache_policy::Trust;
use crate::fs::metadata::Metadata;

/// How many files are remembered: at [`LineIndex::MAX_BYTES`] each, 1 MiB in all.
const MOST_FILES: usize = 16;

/// An index of each file that was read last, for the version that it then had.
#[derive(Debug)]
pub(crate) struct LineIndexes {
    /// The one used last is the last one. A std lock, held to look something up, never across a system call or an await.
    kept: Mutex<Vec<Kept>>,
    trust: Trust,
}

#[derive(Debug)]
struct Kept {
    identity: (u64, u64),
    version: Version,
    index: LineIndex,
}

impl LineIndexes {
    pub(crate) fn new() -> Self {
        Self { kept: Mutex::default(), trust: Trust::of_this_kernel() }
    }

    /// What is known of the file whose version, which names the file as well, is `version`.
    pub(crate) fn of(&self, version: &Version) -> LineIndex {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|kept| kept.version == *version).map_or_else(LineIndex::new, |kept| kept.index.clone())
    }

    /// Remembers `index` of the file `fd`, which `metadata` describes, in the place of the one that was used least recently.
    ///
    /// A file that has changed lately, or is where changes do not show, is not remembered: it may change again and keep its
    /// version.
    pub(crate) fn keep(&self, fd: impl AsFd, metadata: &Metadata, version: Version, index: LineIndex) {
        if index.reach() == 0 || !self.trust.is_settled(metadata) || !self.trust.reaches(fd) {
            return;
        }
        let identity = metadata.identity();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = kept.iter().position(|kept| kept.identity == identity).map(|at| kept.remove(at));
        // Another read of the same version may have come further.
        let index = match earlier {
            Some(earlier) if earlier.version == version && earlier.index.reach() > index.reach() => earlier.index,
            _ => index,
        };
        if kept.len() == MOST_FILES {
            kept.remove(0);
        }
        kept.push(Kept { identity, version, index });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use vfs_core::{OpContext, ReadRequest, VfsPath, WriteMode, WriteRequest};

    use super::*;
    use crate::config::LocalConfig;
    use crate::local_fs::Disk;

    /// More than 2 MiB, in which every line tells its number.
    fn lines(width: usize) -> String {
        (1..=200_000).map(|line| format!("{line:0width$}\n")).collect()
    }

    fn path(name: &str) -> VfsPath {
        VfsPath::parse(name).expect("it is a path")
    }

    /// A disk that remembers also what has just been written.
    fn disk(root: &Path) -> Disk {
        let mut disk = Disk::open(&LocalConfig::new(root)).expect("the root opens");
        disk.line_indexes.trust = Trust::anywhere(Duration::ZERO);
        disk
    }

    fn write(disk: &Disk, name: &str, content: String) {
        let request = WriteRequest::new(path(name), content).mode(WriteMode::Overwrite);
        disk.write(request, &OpContext::new()).expect("it writes");
    }

    fn line_after(disk: &Disk, name: &str, skipped: u64) -> String {
        let request = ReadRequest::new(path(name)).lines(skipped, 1);
        let read = disk.read(&request, &OpContext::new()).expect("it reads");
        read.content.as_text().expect("it is text").to_owned()
    }

    fn reaches(disk: &Disk) -> Vec<u64> {
        disk.line_indexes.kept.lock().expect("not poisoned").iter().map(|kept| kept.index.reach()).collect()
    }

    #[test]
    fn reading_again_finds_the_same_and_a_file_that_changed_is_looked_through_anew() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let disk = disk(root.path());
        write(&disk, "/f", lines(12));
        for skipped in [150_000, 150_001, 100_000, 180_000, 3] {
            assert_eq!(line_after(&disk, "/f", skipped), format!("{:012}\n", skipped + 1));
        }
        let known = reaches(&disk);
        assert!(matches!(known[..], [reach] if reach > 1 << 20), "{known:?}");
        // As many bytes, and the lines elsewhere.
        let changed = format!("{}{}", "x".repeat(1 << 20), lines(12));
        write(&disk, "/f", changed[..lines(12).len()].to_owned());
        assert_eq!(line_after(&disk, "/f", 100_000), format!("{:012}\n", 100_001));
        // The same file, changed in place by another program.
        let files = reaches(&disk).len();
        std::fs::write(root.path().join("f"), format!("first\n{changed}")).expect("it writes");
        assert_eq!(line_after(&disk, "/f", 100_000), format!("{:012}\n", 100_000));
        assert_eq!(reaches(&disk).len(), files, "the index of its old version is gone");
    }

    #[test]
    fn what_changed_just_now_is_not_remembered() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let mut disk = disk(root.path());
        disk.line_indexes = LineIndexes::new();
        write(&disk, "/f", lines(12));
        assert_eq!(line_after(&disk, "/f", 150_000), format!("{:012}\n", 150_001));
        assert_eq!(reaches(&disk), []);
    }

    #[test]
    fn a_file_on_a_file_system_in_memory_is_not_remembered() {
        let root = tempfile::tempdir_in("/dev/shm").expect("a file system in memory");
        let mut disk = disk(root.path());
        write(&disk, "/f", lines(12));
        disk.line_indexes.trust = Trust::of_unchanged(Duration::ZERO);
        assert_eq!(line_after(&disk, "/f", 150_000), format!("{:012}\n", 150_001));
        assert_eq!(reaches(&disk), []);
    }

    #[test]
    fn only_the_files_that_were_read_last_are_remembered() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let disk = disk(root.path());
        for file in 0..=MOST_FILES {
            write(&disk, &format!("/{file}"), lines(6));
            line_after(&disk, &format!("/{file}"), 40_000 + 40_000 * file as u64 / 8);
            // The first one is used all the time.
            line_after(&disk, "/0", 40_000);
        }
        let kept = disk.line_indexes.kept.lock().expect("not poisoned");
        let names: Vec<_> = (0..=MOST_FILES)
            .filter(|file| {
                let file = disk.open_file(&path(&format!("/{file}"))).expect("it opens");
                kept.iter().any(|kept| kept.identity == file.metadata.identity())
            })
            .collect();
        assert_eq!(names, [&[0][..], &(2..=MOST_FILES).collect::<Vec<_>>()].concat());
    }
}
