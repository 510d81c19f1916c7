//! LRU cache of line indexes for the large files that were read last.

use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use vfs_core::Version;
use vfs_core::window::LineIndex;

use crate::fs::cache_eligibility::CacheEligibility;
use crate::fs::metadata::Metadata;

/// Maximum number of cached files: at [`LineIndex::MAX_BYTES`] each, 1 MiB in all.
const MAX_FILES: usize = 16;

/// The line indexes of the files that were read last, each for one version.
#[derive(Debug)]
pub(crate) struct LineIndexCache {
    /// In order of use, the most recent one last. The std lock covers a lookup only, never a system call or an await.
    entries: Mutex<Vec<CachedLineIndex>>,
    policy: CacheEligibility,
}

/// The line index of one version of a file.
#[derive(Debug)]
struct CachedLineIndex {
    identity: (u64, u64),
    version: Version,
    index: LineIndex,
}

impl LineIndexCache {
    pub(crate) fn new() -> Self {
        Self { entries: Mutex::default(), policy: CacheEligibility::for_this_kernel() }
    }

    /// Returns the index of the file of this `version`, which identifies the file as well. The index is empty if none
    /// is cached.
    pub(crate) fn get(&self, version: &Version) -> LineIndex {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().find(|entry| entry.version == *version).map_or_else(LineIndex::new, |entry| entry.index.clone())
    }

    /// Caches `index` for the file `fd`, which `metadata` describes, and evicts the least recently used entry if the
    /// cache is full.
    ///
    /// A file that has changed recently, or whose file system does not show every change, is not cached: it may change
    /// again without a new version.
    pub(crate) fn insert(&self, fd: impl AsFd, metadata: &Metadata, version: Version, index: LineIndex) {
        if index.reach() == 0 || !self.policy.is_settled(metadata) || !self.policy.trusts_file_system(fd) {
            return;
        }
        let identity = metadata.identity();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = entries.iter().position(|entry| entry.identity == identity).map(|at| entries.remove(at));
        // Another read of the same version may have indexed more of the file.
        let index = match earlier {
            Some(earlier) if earlier.version == version && earlier.index.reach() > index.reach() => earlier.index,
            _ => index,
        };
        if entries.len() == MAX_FILES {
            entries.remove(0);
        }
        entries.push(CachedLineIndex { identity, version, index });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use vfs_core::{OpContext, ReadRequest, VfsPath, WriteMode, WriteRequest};

    use super::*;
    use crate::config::LocalConfig;
    use crate::local_fs::LocalFs;

    /// Returns more than 2 MiB of lines that each contain their number.
    fn lines(width: usize) -> String {
        (1..=200_000).map(|line| format!("{line:0width$}\n")).collect()
    }

    fn path(name: &str) -> VfsPath {
        VfsPath::parse(name).expect("it is a path")
    }

    /// Opens a backend that caches even files that have just been written.
    fn local_fs(root: &Path) -> LocalFs {
        let mut local_fs = LocalFs::open(&LocalConfig::new(root)).expect("the root opens");
        local_fs.line_indexes.policy = CacheEligibility::on_any_file_system(Duration::ZERO);
        local_fs
    }

    fn write(local_fs: &LocalFs, name: &str, content: String) {
        let request = WriteRequest::new(path(name), content).mode(WriteMode::Overwrite);
        local_fs.write(request, &OpContext::new()).expect("it writes");
    }

    fn line_after(local_fs: &LocalFs, name: &str, skipped: u64) -> String {
        let request = ReadRequest::new(path(name)).lines(skipped, 1);
        let read = local_fs.read(&request, &OpContext::new()).expect("it reads");
        read.content.as_text().expect("it is text").to_owned()
    }

    fn reaches(local_fs: &LocalFs) -> Vec<u64> {
        local_fs.line_indexes.entries.lock().expect("not poisoned").iter().map(|entry| entry.index.reach()).collect()
    }

    #[test]
    fn repeated_reads_return_equal_lines_and_a_change_invalidates_the_index() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let local_fs = local_fs(root.path());
        write(&local_fs, "/f", lines(12));
        for skipped in [150_000, 150_001, 100_000, 180_000, 3] {
            assert_eq!(line_after(&local_fs, "/f", skipped), format!("{:012}\n", skipped + 1));
        }
        let cached = reaches(&local_fs);
        assert!(matches!(cached[..], [reach] if reach > 1 << 20), "{cached:?}");
        // The size is the same, but the lines start elsewhere.
        let changed = format!("{}{}", "x".repeat(1 << 20), lines(12));
        write(&local_fs, "/f", changed[..lines(12).len()].to_owned());
        assert_eq!(line_after(&local_fs, "/f", 100_000), format!("{:012}\n", 100_001));
        // The same file, changed in place by another program.
        let files = reaches(&local_fs).len();
        std::fs::write(root.path().join("f"), format!("first\n{changed}")).expect("it writes");
        assert_eq!(line_after(&local_fs, "/f", 100_000), format!("{:012}\n", 100_000));
        assert_eq!(reaches(&local_fs).len(), files, "the index of its old version is evicted");
    }

    #[test]
    fn recently_changed_files_are_not_cached() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let mut local_fs = local_fs(root.path());
        local_fs.line_indexes = LineIndexCache::new();
        write(&local_fs, "/f", lines(12));
        assert_eq!(line_after(&local_fs, "/f", 150_000), format!("{:012}\n", 150_001));
        assert!(reaches(&local_fs).is_empty());
    }

    #[test]
    fn files_on_tmpfs_are_not_cached() {
        let root = tempfile::tempdir_in("/dev/shm").expect("a file system in memory");
        let mut local_fs = local_fs(root.path());
        write(&local_fs, "/f", lines(12));
        local_fs.line_indexes.policy = CacheEligibility::with_min_age(Duration::ZERO);
        assert_eq!(line_after(&local_fs, "/f", 150_000), format!("{:012}\n", 150_001));
        assert!(reaches(&local_fs).is_empty());
    }

    #[test]
    fn least_recently_used_index_is_evicted() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let local_fs = local_fs(root.path());
        for file in 0..=MAX_FILES {
            write(&local_fs, &format!("/{file}"), lines(6));
            line_after(&local_fs, &format!("/{file}"), 40_000 + 40_000 * file as u64 / 8);
            // The first file is used all the time.
            line_after(&local_fs, "/0", 40_000);
        }
        let entries = local_fs.line_indexes.entries.lock().expect("not poisoned");
        let names: Vec<_> = (0..=MAX_FILES)
            .filter(|file| {
                let file = local_fs.open_file(&path(&format!("/{file}"))).expect("it opens");
                entries.iter().any(|entry| entry.identity == file.metadata.identity())
            })
            .collect();
        assert_eq!(names, [&[0][..], &(2..=MAX_FILES).collect::<Vec<_>>()].concat());
    }
}
