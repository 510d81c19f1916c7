//! LRU cache of the line indexes and first blocks of large files, by version.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use vfs_core::Version;
use vfs_core::window::LineIndex;

/// Maximum number of files in the cache.
const MAX_FILES: usize = 64;

/// The line index of one version of a large file, as far as reads have determined it.
#[derive(Debug, Default)]
pub(crate) struct CachedLineIndex {
    pub(crate) lines: LineIndex,
    /// The first block, which shows the type of a file's content.
    pub(crate) head: Option<Bytes>,
}

/// Line indexes and heads of the files that were read last, the newest at the end.
#[derive(Default)]
pub(crate) struct LineIndexCache(Mutex<VecDeque<(Version, CachedLineIndex)>>);

impl LineIndexCache {
    /// Removes and returns the entry of `version`, or an empty one.
    pub(crate) fn take(&self, version: &Version) -> CachedLineIndex {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = entries.iter().position(|(of, _)| of == version);
        index.and_then(|index| entries.remove(index)).map(|(_, knowledge)| knowledge).unwrap_or_default()
    }

    /// Inserts or replaces the entry of `version`.
    pub(crate) fn insert(&self, version: Version, knowledge: CachedLineIndex) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(of, _)| *of != version);
        if entries.len() == MAX_FILES {
            entries.pop_front();
        }
        entries.push_back((version, knowledge));
    }
}

impl fmt::Debug for LineIndexCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("LineIndexCache").field("files", &entries.len()).finish()
    }
}
