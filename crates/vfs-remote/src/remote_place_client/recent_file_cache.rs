//! Bounded cache of the last observed versions and small contents of files, by path.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use vfs_core::{Version, VfsPath};

/// Maximum number of files in the cache.
const MAX_RECENT_FILES: usize = 64;

/// Maximum size of a content in the cache, in bytes, so that all contents take at most 4 MiB.
const MAX_CONTENT: usize = 64 << 10;

/// The files that were read or written last, the newest at the end. Entries may be stale: the place has to compare the
/// version before an entry is used.
#[derive(Default)]
pub(crate) struct RecentFileCache(Mutex<VecDeque<RecentFile>>);

/// A file as it was read or written last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecentFile {
    path: VfsPath,
    pub(crate) version: Version,
    /// The content, if it is certain and small.
    pub(crate) content: Option<Bytes>,
}

impl RecentFileCache {
    /// Returns the last entry of `path`.
    pub(crate) fn get(&self, path: &VfsPath) -> Option<RecentFile> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().find(|file| file.path == *path).cloned()
    }

    /// Records the version of a file; `content` is its content, if that is certain.
    pub(crate) fn insert(&self, path: &VfsPath, version: Version, content: Option<&[u8]>) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| file.path != *path);
        if files.len() == MAX_RECENT_FILES {
            files.pop_front();
        }
        // Copy the content, since a slice of a response would retain the whole response.
        let content = content.filter(|content| content.len() <= MAX_CONTENT).map(Bytes::copy_from_slice);
        files.push_back(RecentFile { path: path.clone(), version, content });
    }
}

impl fmt::Debug for RecentFileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("RecentFileCache").field("files", &files.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_versions_and_small_contents_are_cached() {
        let recent = RecentFileCache::default();
        let path = |name: usize| VfsPath::root().child(&name.to_string()).expect("a name");
        let content = |name| recent.get(&path(name)).map(|file| (file.version, file.content));
        for name in 0..=MAX_RECENT_FILES {
            recent.insert(&path(name), Version::new(name.to_string()), Some(b"text"));
        }
        assert_eq!(content(0), None, "there is no room for it");
        assert_eq!(content(1), Some((Version::new("1"), Some(Bytes::from_static(b"text")))));
        recent.insert(&path(1), Version::new("2"), Some(b""));
        assert_eq!(content(1), Some((Version::new("2"), Some(Bytes::new()))));
        for (version, unknown) in [("3", Some(&[0; MAX_CONTENT + 1][..])), ("4", None)] {
            recent.insert(&path(1), Version::new(version), unknown);
            assert_eq!(content(1), Some((Version::new(version), None)), "the content of the old version is dropped");
        }
    }
}
