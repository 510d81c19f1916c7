//! The contents that were read or written last.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use vfs_core::{Version, VfsPath};

/// Most files of which the content is kept.
const MOST: usize = 64;

/// The largest content that is kept, in bytes, so that all of them take 4 MiB at most.
const LARGEST: usize = 64 << 10;

/// What small files held when they were seen last, by path, the newest at the end. Whoever builds on it has the place compare
/// the version.
#[derive(Default)]
pub(super) struct RecentContents(Mutex<VecDeque<(VfsPath, Version, Bytes)>>);

impl RecentContents {
    /// What the file held last, as far as is known.
    pub(super) fn get(&self, path: &VfsPath) -> Option<(Version, Bytes)> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(of, ..)| of == path).map(|(_, version, content)| (version.clone(), content.clone()))
    }

    /// Keeps what the file holds in this version, where it is small.
    pub(super) fn keep(&self, path: &VfsPath, version: Version, content: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(of, ..)| of != path);
        if content.len() > LARGEST {
            return;
        }
        if kept.len() == MOST {
            kept.pop_front();
        }
        // A copy, since a part of an answer would keep all of the answer.
        kept.push_back((path.clone(), version, Bytes::copy_from_slice(content)));
    }
}

impl fmt::Debug for RecentContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("RecentContents").field("files", &kept.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_small_contents_are_kept() {
        let recent = RecentContents::default();
        let path = |name: usize| VfsPath::root().child(&name.to_string()).expect("a name");
        for name in 0..=MOST {
            recent.keep(&path(name), Version::new(name.to_string()), b"text");
        }
        assert_eq!(recent.get(&path(0)), None, "there is no room for it");
        assert_eq!(recent.get(&path(1)), Some((Version::new("1"), Bytes::from_static(b"text"))));
        recent.keep(&path(1), Version::new("2"), b"");
        assert_eq!(recent.get(&path(1)), Some((Version::new("2"), Bytes::new())));
        recent.keep(&path(1), Version::new("3"), &vec![0; LARGEST + 1]);
        assert_eq!(recent.get(&path(1)), None, "what it held before is no more");
    }
}
