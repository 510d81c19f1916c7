//! LRU cache of the line indexes of large files.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use vfs_core::Version;
use vfs_core::window::LineIndex;

use crate::store::Key;

/// Most files of which something is kept.
const CACHE_CAPACITY: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not 0");

/// What is known of the newest version of some files.
pub(crate) struct LineIndexCache(Mutex<LruCache<Key, (Version, LineIndex)>>);

impl Default for LineIndexCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(CACHE_CAPACITY)))
    }
}

impl LineIndexCache {
    /// What is known of `version`; nothing of any other.
    pub(crate) fn get(&self, key: &Key, version: &Version) -> LineIndex {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).filter(|(of, _)| of == version).map(|(_, known)| known.clone()).unwrap_or_default()
    }

    pub(crate) fn keep(&self, key: Key, version: Version, known: LineIndex) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, (version, known));
    }
}

impl fmt::Debug for LineIndexCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("LineIndexCache").field("files", &kept.len()).finish()
    }
}
