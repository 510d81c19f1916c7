//! What searches of the disk have learned, so that the next one need not list and read it all again.

mod directory;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::Duration;

use vfs_core::tree::Listing;

use crate::fs::cache_policy::CachePolicy;
use crate::fs::metadata::Metadata;

pub(crate) use self::directory::CachedDirectory;

/// How many searches a directory is kept that none of them came by, where there is no room.
const MAX_UNUSED_SEARCHES: u32 = 16;

/// How many roots are known to have been searched.
const MAX_TRACKED_ROOTS: usize = 1024;

/// What searches remember of what they came by: the names in each directory, and for each file a sketch, from which the next
/// search may tell that it need not be read.
///
/// # Behaviour
///
/// * What is remembered counts for the very directory and content it was made of: same device and inode, and same times of
///   change of content and of inode, which no program can set back. It is looked at once, by name, in each search. What is
///   remembered was unchanged for a minute, or longer where the kernel is set to write later, on a file system of this
///   machine's disks (ext4, XFS, btrfs, F2FS, ZFS, bcachefs, JFS); all else is listed and read by every search.
/// * It takes a rare thing to be misled: a single write to a file in place that takes over a minute, a machine that stood
///   still while its clock did not, or, with a kernel older than 6.8, another image of the same file system mounted in the
///   place of the first with files of the same times.
/// * It knows nothing of who asks. A process that gives up rights to read gives backends that it opens from then on a memory
///   of their own.
/// * Searches learn from the second one of a root on: at once what is in files of up to 16 KiB, of longer ones a part by
///   each search, so that none takes much longer than one that does not learn. A sketch has about a fortieth of the size of
///   source code. What the last 16 searches did not come by makes room for others, where the bound is reached.
/// * A clone is a handle on the same memory.
///
/// ```
/// use vfs_local::{LocalConfig, SearchMemory};
///
/// let files = LocalConfig::new("/").search_memory(SearchMemory::new(8 << 20)).open()?;
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone)]
pub struct SearchMemory(Arc<CacheInner>);

struct CacheInner {
    /// By mount, device and inode.
    directories: RwLock<HashMap<(u64, FileIdentity), CacheSlot>>,
    max_bytes: usize,
    /// What all directories take, those included that are only held by a search that goes on.
    bytes: Arc<AtomicUsize>,
    policy: CachePolicy,
    /// Counts searches, so that it can be told what was of no use lately.
    searches: AtomicU32,
    /// The roots of backends that were searched.
    searched_roots: Mutex<HashSet<FileIdentity>>,
}

/// A device and an inode.
pub(crate) type FileIdentity = (u64, u64);

struct CacheSlot {
    directory: Arc<CachedDirectory>,
    /// The number of the search that came by it last.
    last_search: AtomicU32,
}

impl SearchMemory {
    /// The bound of [`SearchMemory::global`], in bytes.
    pub const DEFAULT_MAX_BYTES: usize = 48 << 20;

    /// One of its own, of about `max_bytes`. With 0 nothing is remembered.
    pub fn new(max_bytes: usize) -> Self {
        Self::with_policy(max_bytes, CachePolicy::for_this_kernel())
    }

    /// As [`SearchMemory::new`], for what was unchanged for as long as `settled`.
    ///
    /// The default of a minute is for programs that write through memory maps. Less is right where none does; under two
    /// seconds it takes a file system with a fine clock.
    pub fn of_unchanged(max_bytes: usize, settled: Duration) -> Self {
        Self::with_policy(max_bytes, CachePolicy::with_min_age(settled))
    }

    fn with_policy(max_bytes: usize, policy: CachePolicy) -> Self {
        Self(Arc::new(CacheInner {
            directories: RwLock::default(),
            max_bytes,
            bytes: Arc::default(),
            policy,
            searches: AtomicU32::new(0),
            searched_roots: Mutex::default(),
        }))
    }

    /// The one that all backends of the process share which were given none.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<SearchMemory> = LazyLock::new(|| SearchMemory::new(SearchMemory::DEFAULT_MAX_BYTES));
        &GLOBAL
    }

    /// Of how many files the content is remembered.
    pub fn files(&self) -> usize {
        let directories = self.0.directories.read().unwrap_or_else(PoisonError::into_inner);
        directories.values().map(|slot| slot.directory.sketch_count()).sum()
    }

    /// How many bytes it takes, about.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Whether anything can be remembered.
    pub(crate) fn is_disabled(&self) -> bool {
        self.0.max_bytes == 0
    }

    /// Begins a search of a backend whose root is `root`. Whether it is to learn, which the first one of a root is not: it may
    /// be the only one.
    pub(crate) fn begin_search(&self, root: FileIdentity) -> bool {
        let mut searched_roots = self.0.searched_roots.lock().unwrap_or_else(PoisonError::into_inner);
        if searched_roots.len() == MAX_TRACKED_ROOTS {
            searched_roots.clear();
        }
        !searched_roots.insert(root)
    }

    /// Counts a search, and makes room where there is little.
    pub(crate) fn evict_unused(&self) {
        let search = self.0.searches.fetch_add(1, Ordering::Relaxed);
        if !search.is_multiple_of(MAX_UNUSED_SEARCHES) || self.bytes() < self.0.max_bytes - self.0.max_bytes / 8 {
            return;
        }
        let mut directories = self.0.directories.write().unwrap_or_else(PoisonError::into_inner);
        let is_unused = |slot: &CacheSlot| {
            // A search that began since may have come by it.
            let age = search.wrapping_sub(slot.last_search.load(Ordering::Relaxed));
            (MAX_UNUSED_SEARCHES + 1..u32::MAX / 2).contains(&age)
        };
        let unused: Vec<_> = directories.extract_if(|_, slot| is_unused(slot)).collect();
        // Searches need not wait while these are freed.
        drop(directories);
        drop(unused);
    }

    /// Whether nothing is remembered at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Whether there is room for more.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes() < self.0.max_bytes
    }

    /// What is remembered of the directory of `metadata`, or was before it changed.
    pub(crate) fn get(&self, metadata: &Metadata) -> Option<Arc<CachedDirectory>> {
        let directories = self.0.directories.read().unwrap_or_else(PoisonError::into_inner);
        let slot = directories.get(&(metadata.mount_id(), metadata.identity()))?;
        slot.last_search.store(self.0.searches.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(Arc::clone(&slot.directory))
    }

    /// Remembers `listing` of the directory that `fd` holds, whose facts were `metadata` before it was listed; and what was
    /// known of its files, where that was remembered `before`. `None` where it is not to be remembered.
    pub(crate) fn insert(
        &self,
        fd: BorrowedFd<'_>,
        metadata: &Metadata,
        listing: &Listing,
        before: Option<&CachedDirectory>,
    ) -> Option<Arc<CachedDirectory>> {
        let bytes = CachedDirectory::base_size(listing);
        // One directory is not to take the room of all others.
        let is_wanted = bytes <= self.0.max_bytes / 8
            && self.bytes().saturating_add(bytes) <= self.0.max_bytes
            && listing.problems.is_empty()
            && !metadata.is_encrypted()
            && self.is_settled(metadata);
        if !is_wanted || !self.0.policy.trusts_file_system(fd) {
            return None;
        }
        let directory = Arc::new(CachedDirectory::new(metadata, listing, before, &self.0.bytes));
        let last_search = AtomicU32::new(self.0.searches.load(Ordering::Relaxed));
        let mut directories = self.0.directories.write().unwrap_or_else(PoisonError::into_inner);
        directories.insert(
            (metadata.mount_id(), metadata.identity()),
            CacheSlot { directory: Arc::clone(&directory), last_search },
        );
        Some(directory)
    }

    /// Whether what `metadata` tells of was not changed lately.
    pub(crate) fn is_settled(&self, metadata: &Metadata) -> bool {
        self.0.policy.is_settled(metadata)
    }
}

impl fmt::Debug for SearchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchMemory").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
