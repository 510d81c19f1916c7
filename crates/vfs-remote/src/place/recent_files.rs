//! Bounded cache of the last known versions and small contents of files, by path.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use vfs_core::{Version, VfsPath};

/// Most files of which the content is kept.
const MAX_RECENT_FILES: usize = 64;

/// The largest content that is kept, in bytes, so that all of them take 4 MiB at most.
const LARGEST: usize = 64 << 10;

/// What files were when they were seen last, by path, the newest at the end. Whoever builds on it has the place compare the
/// version.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<Seen>>);

/// A file as it was seen last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    path: VfsPath,
    pub(crate) version: Version,
    /// What it held, where that is known and small.
    pub(crate) content: Option<Bytes>,
}

impl Recent {
    /// What the file was last, as far as is known.
    pub(crate) fn get(&self, path: &VfsPath) -> Option<Seen> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|seen| seen.path == *path).cloned()
    }

    /// Keeps what the file is in this version; `content` is what that surely holds.
    pub(crate) fn keep(&self, path: &VfsPath, version: Version, content: Option<&[u8]>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|seen| seen.path != *path);
        if kept.len() == MAX_RECENT_FILES {
            kept.pop_front();
        }
        // A copy, since a part of an answer would keep all of the answer.
        let content = content.filter(|content| content.len() <= LARGEST).map(Bytes::copy_from_slice);
        kept.push_back(Seen { path: path.clone(), version, content });
    }
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Recent").field("files", &kept.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_versions_and_small_contents_are_kept() {
        let recent = Recent::default();
        let path = |name: usize| VfsPath::root().child(&name.to_string()).expect("a name");
        let content = |name| recent.get(&path(name)).map(|seen| (seen.version, seen.content));
        for name in 0..=MAX_RECENT_FILES {
            recent.keep(&path(name), Version::new(name.to_string()), Some(b"text"));
        }
        assert_eq!(content(0), None, "there is no room for it");
        assert_eq!(content(1), Some((Version::new("1"), Some(Bytes::from_static(b"text")))));
        recent.keep(&path(1), Version::new("2"), Some(b""));
        assert_eq!(content(1), Some((Version::new("2"), Some(Bytes::new()))));
        for (version, unknown) in [("3", Some(&[0; LARGEST + 1][..])), ("4", None)] {
            recent.keep(&path(1), Version::new(version), unknown);
            assert_eq!(content(1), Some((Version::new(version), None)), "what it held before is no more");
        }
    }
}
