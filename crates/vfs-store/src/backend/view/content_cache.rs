//! LRU cache of file contents by version, for searches.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lru::LruCache;
use vfs_core::Version;

use crate::store::Key;

/// Assumed overhead of an entry beside its content and path, in bytes.
const ENTRY_WEIGHT: u64 = 256;

/// LRU cache of the last fetched content of each file, limited by bytes.
pub(crate) struct ContentCache {
    capacity: u64,
    entries: Mutex<CacheEntries>,
}

/// Contents by the keys of their files, with their total weight in bytes.
struct CacheEntries {
    by_key: LruCache<Key, (Version, CachedContent)>,
    weight: u64,
}

/// Content of a file, with its classification as text or binary.
#[derive(Debug, Clone)]
pub(crate) struct CachedContent {
    pub(crate) bytes: Bytes,
    /// `true` if a search treats the content as binary.
    pub(crate) is_binary: bool,
}

impl CachedContent {
    pub(crate) fn new(bytes: Bytes) -> Self {
        let is_binary = vfs_search::is_binary(&bytes);
        Self { bytes, is_binary }
    }
}

fn weight(key: &Key, content: &CachedContent) -> u64 {
    (key.path.as_str().len() + content.bytes.len()) as u64 + ENTRY_WEIGHT
}

impl ContentCache {
    /// Returns a cache of at most `capacity` bytes.
    pub(crate) fn new(capacity: u64) -> Self {
        Self { capacity, entries: Mutex::new(CacheEntries { by_key: LruCache::unbounded(), weight: 0 }) }
    }

    /// Returns the maximum number of cached bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns `true` if any version of the file is cached.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.lock().by_key.contains(key)
    }

    /// Returns the content of this version, if it is cached.
    pub(crate) fn get(&self, key: &Key, version: &Version) -> Option<CachedContent> {
        let mut entries = self.lock();
        let (cached_version, content) = entries.by_key.get(key)?;
        (cached_version == version).then(|| content.clone())
    }

    /// Caches a content in place of the cached version of the file, and evicts the least recently used files if
    /// necessary.
    pub(crate) fn insert(&self, key: Key, version: Version, content: CachedContent) {
        let added = weight(&key, &content);
        let mut entries = self.lock();
        if let Some((_, old)) = entries.by_key.pop(&key) {
            entries.weight -= weight(&key, &old);
        }
        if added > self.capacity {
            return;
        }
        while entries.weight + added > self.capacity {
            let Some((key, (_, old))) = entries.by_key.pop_lru() else { break };
            entries.weight -= weight(&key, &old);
        }
        entries.weight += added;
        entries.by_key.put(key, (version, content));
    }

    fn lock(&self) -> MutexGuard<'_, CacheEntries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ContentCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.lock();
        f.debug_struct("ContentCache").field("files", &entries.by_key.len()).field("weight", &entries.weight).finish()
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::VfsPath;

    use super::*;
    use crate::store::Namespace;

    #[test]
    fn the_least_recently_used_is_evicted_first_and_an_old_version_is_never_returned() {
        let contents = ContentCache::new(3 * 300);
        let key = |name: &str| Key::new(Namespace::default(), VfsPath::parse(name).expect("a valid path"));
        let put = |name: &str, version: &str| {
            contents.insert(key(name), version.into(), CachedContent::new(Bytes::from(vec![b'x'; 40])));
        };
        let has = |name: &str, version: &str| contents.get(&key(name), &version.into()).is_some();
        ["/a", "/b", "/c"].iter().for_each(|name| put(name, "1"));
        assert!(has("/a", "1"));
        put("/d", "1");
        assert_eq!(["/a", "/b", "/c", "/d"].map(|name| has(name, "1")), [true, false, true, true]);
        put("/a", "2");
        assert_eq!(["1", "2"].map(|version| has("/a", version)), [false, true]);
        let mut other = key("/a");
        other.namespace = Namespace::parse("x").expect("a namespace");
        assert!(contents.get(&other, &"2".into()).is_none());
        contents.insert(key("/a"), "3".into(), CachedContent::new(Bytes::from(vec![0; 4000])));
        assert!(
            !has("/a", "2") && !has("/a", "3"),
            "neither a content over the capacity nor the one that it replaces is cached"
        );
    }
}
