//! In-memory cache of directory listings and file sketches, shared by searches.

mod cached_directory;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::Duration;

use vfs_core::tree::Listing;

use crate::fs::cache_eligibility::CacheEligibility;
use crate::fs::metadata::Metadata;

pub(crate) use self::cached_directory::CachedDirectory;

/// Number of searches after which an unused directory is evicted, if space is short.
const MAX_UNUSED_SEARCHES: u32 = 16;

/// Maximum number of roots that are remembered as searched.
const MAX_TRACKED_ROOTS: usize = 1024;

/// Cache of searches: the names in each directory, and for each file a sketch, from which a later search can conclude
/// that it need not read the file.
///
/// # Behaviour
///
/// * An entry is valid for one directory and one content: same device and inode, and same times of the last change of
///   content and of inode, which no program can set back. Each search checks the metadata once, by name. Cached files
///   have been unchanged for a minute, or longer if the kernel is configured to write back later, on a file system on a
///   local disk (ext4, XFS, btrfs, F2FS, ZFS, bcachefs, JFS); all others are listed and read by every search.
/// * A stale result needs a rare event: a single write to a file in place that takes over a minute, a machine that
///   stood still while its clock did not, or, with a kernel older than 6.8, another image of the same file system
///   mounted in place of the first, with files of the same times.
/// * The cache is shared by all callers. A process that drops read permissions must give a separate cache to the
///   backends that it opens afterwards.
/// * Searches fill the cache from the second one of a root on: files of up to 16 KiB at once, longer files a part by
///   each search, so that no search takes much longer than one that fills nothing. A sketch has about a fortieth of the
///   size of source code. When the size limit is reached, directories that the last 16 searches did not use are
///   evicted.
/// * A clone is a handle on the same cache.
///
/// ```
/// use vfs_local::{LocalConfig, SearchCache};
///
/// let files = LocalConfig::new("/").search_cache(SearchCache::new(8 << 20)).open()?;
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone)]
pub struct SearchCache(Arc<SearchCacheInner>);

/// The cache that all handles share.
struct SearchCacheInner {
    /// By mount, device and inode.
    directories: RwLock<HashMap<(u64, FileIdentity), SearchCacheSlot>>,
    max_bytes: usize,
    /// The size of all directories in bytes, including evicted ones that a running search still uses.
    bytes: Arc<AtomicUsize>,
    policy: CacheEligibility,
    /// Number of searches so far, by which unused directories are recognised.
    searches: AtomicU32,
    /// The roots of backends that have been searched.
    searched_roots: Mutex<HashSet<FileIdentity>>,
}

/// A device and an inode.
pub(crate) type FileIdentity = (u64, u64);

/// A cached directory, with the time of its last use for eviction.
struct SearchCacheSlot {
    directory: Arc<CachedDirectory>,
    /// The number of the last search that used this directory.
    last_search: AtomicU32,
}

impl SearchCache {
    /// Size limit of [`SearchCache::global`], in bytes.
    pub const DEFAULT_MAX_BYTES: usize = 48 << 20;

    /// Creates a separate cache of about `max_bytes`. With 0, nothing is cached.
    pub fn new(max_bytes: usize) -> Self {
        Self::with_policy(max_bytes, CacheEligibility::for_this_kernel())
    }

    /// As [`SearchCache::new`], but caches files that have been unchanged for at least `settled`.
    ///
    /// The default of a minute accounts for programs that write through memory maps. A shorter time is safe if there
    /// are none; a time under two seconds needs a file system with a fine-grained clock.
    pub fn of_unchanged(max_bytes: usize, settled: Duration) -> Self {
        Self::with_policy(max_bytes, CacheEligibility::with_min_age(settled))
    }

    fn with_policy(max_bytes: usize, policy: CacheEligibility) -> Self {
        Self(Arc::new(SearchCacheInner {
            directories: RwLock::default(),
            max_bytes,
            bytes: Arc::default(),
            policy,
            searches: AtomicU32::new(0),
            searched_roots: Mutex::default(),
        }))
    }

    /// Returns the cache that all backends of the process share unless they are given another one.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<SearchCache> = LazyLock::new(|| SearchCache::new(SearchCache::DEFAULT_MAX_BYTES));
        &GLOBAL
    }

    /// Returns the number of files whose content is cached.
    pub fn files(&self) -> usize {
        let directories = self.0.directories.read().unwrap_or_else(PoisonError::into_inner);
        directories.values().map(|slot| slot.directory.sketch_count()).sum()
    }

    /// Returns the approximate size in bytes.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether this cache has no space at all.
    pub(crate) fn is_disabled(&self) -> bool {
        self.0.max_bytes == 0
    }

    /// Begins a search of a backend whose root is `root`. Returns whether the search should fill the cache; the first
    /// search of a root should not, since it may be the only one.
    pub(crate) fn begin_search(&self, root: FileIdentity) -> bool {
        let mut searched_roots = self.0.searched_roots.lock().unwrap_or_else(PoisonError::into_inner);
        if searched_roots.len() == MAX_TRACKED_ROOTS {
            searched_roots.clear();
        }
        !searched_roots.insert(root)
    }

    /// Counts a search, and evicts unused directories if space is short.
    pub(crate) fn evict_unused(&self) {
        let search = self.0.searches.fetch_add(1, Ordering::Relaxed);
        if !search.is_multiple_of(MAX_UNUSED_SEARCHES) || self.bytes() < self.0.max_bytes - self.0.max_bytes / 8 {
            return;
        }
        let mut directories = self.0.directories.write().unwrap_or_else(PoisonError::into_inner);
        let is_unused = |slot: &SearchCacheSlot| {
            // A search that began after this one may have used the directory.
            let age = search.wrapping_sub(slot.last_search.load(Ordering::Relaxed));
            (MAX_UNUSED_SEARCHES + 1..u32::MAX / 2).contains(&age)
        };
        let unused: Vec<_> = directories.extract_if(|_, slot| is_unused(slot)).collect();
        // The lock is released first, so that searches need not wait while the directories are freed.
        drop(directories);
        drop(unused);
    }

    /// Returns whether nothing is cached.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Returns whether there is space for more.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes() < self.0.max_bytes
    }

    /// Returns the cached directory of `metadata`, which may have changed since it was cached.
    pub(crate) fn get(&self, metadata: &Metadata) -> Option<Arc<CachedDirectory>> {
        let directories = self.0.directories.read().unwrap_or_else(PoisonError::into_inner);
        let slot = directories.get(&(metadata.mount_id(), metadata.identity()))?;
        slot.last_search.store(self.0.searches.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(Arc::clone(&slot.directory))
    }

    /// Caches `listing` of the directory `fd`, whose metadata before it was listed is `metadata`, and takes the
    /// sketches of its files from the entry that was cached `before`. Returns `None` if the directory should not be
    /// cached.
    pub(crate) fn insert(
        &self,
        fd: BorrowedFd<'_>,
        metadata: &Metadata,
        listing: &Listing,
        before: Option<&CachedDirectory>,
    ) -> Option<Arc<CachedDirectory>> {
        let bytes = CachedDirectory::base_size(listing);
        // A single directory must not take the space of all others.
        let is_cacheable = bytes <= self.0.max_bytes / 8
            && self.bytes().saturating_add(bytes) <= self.0.max_bytes
            && listing.problems.is_empty()
            && !metadata.is_encrypted()
            && self.is_settled(metadata);
        if !is_cacheable || !self.0.policy.trusts_file_system(fd) {
            return None;
        }
        let directory = Arc::new(CachedDirectory::new(metadata, listing, before, &self.0.bytes));
        let last_search = AtomicU32::new(self.0.searches.load(Ordering::Relaxed));
        let mut directories = self.0.directories.write().unwrap_or_else(PoisonError::into_inner);
        directories.insert(
            (metadata.mount_id(), metadata.identity()),
            SearchCacheSlot { directory: Arc::clone(&directory), last_search },
        );
        Some(directory)
    }

    /// Returns whether the file of `metadata` has been unchanged long enough to be cached.
    pub(crate) fn is_settled(&self, metadata: &Metadata) -> bool {
        self.0.policy.is_settled(metadata)
    }
}

impl fmt::Debug for SearchCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchCache").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
