//! LRU cache of the line indexes of large files.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use vfs_core::Version;
use vfs_core::window::LineIndex;

use crate::store::Key;

/// Maximum number of files whose line index is cached.
const CACHE_CAPACITY: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not 0");

/// Line indexes of the last read version of some files.
pub(crate) struct LineIndexCache(Mutex<LruCache<Key, (Version, LineIndex)>>);

impl Default for LineIndexCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(CACHE_CAPACITY)))
    }
}

impl LineIndexCache {
    /// Returns the cached index of `version`, or an empty one.
    pub(crate) fn get(&self, key: &Key, version: &Version) -> LineIndex {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(key).filter(|(of, _)| of == version).map(|(_, index)| index.clone()).unwrap_or_default()
    }

    /// Caches the index of `version` in place of that of another version.
    pub(crate) fn insert(&self, key: Key, version: Version, index: LineIndex) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, (version, index));
    }
}

impl fmt::Debug for LineIndexCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("LineIndexCache").field("files", &cache.len()).finish()
    }
}
