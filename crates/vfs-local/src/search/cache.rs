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

use crate::fs::cache_policy::Trust;
use crate::fs::metadata::Metadata;

pub(crate) use self::directory::Directory;

/// How many searches a directory is kept that none of them came by, where there is no room.
const MOST_UNUSED: u32 = 16;

/// How many roots are known to have been searched.
const MOST_ROOTS: usize = 1024;

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
pub struct SearchMemory(Arc<Inner>);

struct Inner {
    /// By mount, device and inode.
    directories: RwLock<HashMap<(u64, Identity), Remembered>>,
    max_bytes: usize,
    /// What all directories take, those included that are only held by a search that goes on.
    bytes: Arc<AtomicUsize>,
    trust: Trust,
    /// Counts searches, so that it can be told what was of no use lately.
    searches: AtomicU32,
    /// The roots of backends that were searched.
    searched: Mutex<HashSet<Identity>>,
}

/// A device and an inode.
pub(crate) type Identity = (u64, u64);

struct Remembered {
    directory: Arc<Directory>,
    /// The number of the search that came by it last.
    used: AtomicU32,
}

impl SearchMemory {
    /// The bound of [`SearchMemory::global`], in bytes.
    pub const DEFAULT_MAX_BYTES: usize = 48 << 20;

    /// One of its own, of about `max_bytes`. With 0 nothing is remembered.
    pub fn new(max_bytes: usize) -> Self {
        Self::trusting(max_bytes, Trust::of_this_kernel())
    }

    /// As [`SearchMemory::new`], for what was unchanged for as long as `settled`.
    ///
    /// The default of a minute is for programs that write through memory maps. Less is right where none does; under two
    /// seconds it takes a file system with a fine clock.
    pub fn of_unchanged(max_bytes: usize, settled: Duration) -> Self {
        Self::trusting(max_bytes, Trust::of_unchanged(settled))
    }

    fn trusting(max_bytes: usize, trust: Trust) -> Self {
        Self(Arc::new(Inner {
            directories: RwLock::default(),
            max_bytes,
            bytes: Arc::default(),
            trust,
            searches: AtomicU32::new(0),
            searched: Mutex::default(),
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
        directories.values().map(|remembered| remembered.directory.files()).sum()
    }

    /// How many bytes it takes, about.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Whether anything can be remembered.
    pub(crate) fn is_none(&self) -> bool {
        self.0.max_bytes == 0
    }

    /// Begins a search of a backend whose root is `root`. Whether it is to learn, which the first one of a root is not: it may
    /// be the only one.
    pub(crate) fn begin(&self, root: Identity) -> bool {
        let mut searched = self.0.searched.lock().unwrap_or_else(PoisonError::into_inner);
        if searched.len() == MOST_ROOTS {
            searched.clear();
        }
        !searched.insert(root)
    }

    /// Counts a search, and makes room where there is little.
    pub(crate) fn make_room(&self) {
        let search = self.0.searches.fetch_add(1, Ordering::Relaxed);
        if !search.is_multiple_of(MOST_UNUSED) || self.bytes() < self.0.max_bytes - self.0.max_bytes / 8 {
            return;
        }
        let mut directories = self.0.directories.write().unwrap_or_else(PoisonError::into_inner);
        let is_unused = |remembered: &Remembered| {
            // A search that began since may have come by it.
            let age = search.wrapping_sub(remembered.used.load(Ordering::Relaxed));
            (MOST_UNUSED + 1..u32::MAX / 2).contains(&age)
        };
        let unused: Vec<_> = directories.extract_if(|_, remembered| is_unused(remembered)).collect();
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
    pub(crate) fn recall(&self, metadata: &Metadata) -> Option<Arc<Directory>> {
        let directories = self.0.directories.read().unwrap_or_else(PoisonError::into_inner);
        let remembered = directories.get(&(metadata.mount(), metadata.identity()))?;
        remembered.used.store(self.0.searches.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(Arc::clone(&remembered.directory))
    }

    /// Remembers `listing` of the directory that `fd` holds, whose facts were `metadata` before it was listed; and what was
    /// known of its files, where that was remembered `before`. `None` where it is not to be remembered.
    pub(crate) fn keep(
        &self,
        fd: BorrowedFd<'_>,
        metadata: &Metadata,
        listing: &Listing,
        before: Option<&Directory>,
    ) -> Option<Arc<Directory>> {
        let bytes = Directory::least_memory(listing);
        // One directory is not to take the room of all others.
        let is_wanted = bytes <= self.0.max_bytes / 8
            && self.bytes().saturating_add(bytes) <= self.0.max_bytes
            && listing.problems.is_empty()
            && !metadata.is_encrypted()
            && self.is_settled(metadata);
        if !is_wanted || !self.0.trust.reaches(fd) {
            return None;
        }
        let directory = Arc::new(Directory::new(metadata, listing, before, &self.0.bytes));
        let used = AtomicU32::new(self.0.searches.load(Ordering::Relaxed));
        let mut directories = self.0.directories.write().unwrap_or_else(PoisonError::into_inner);
        directories
            .insert((metadata.mount(), metadata.identity()), Remembered { directory: Arc::clone(&directory), used });
        Some(directory)
    }

    /// Whether what `metadata` tells of was not changed lately.
    pub(crate) fn is_settled(&self, metadata: &Metadata) -> bool {
        self.0.trust.is_settled(metadata)
    }
}

impl fmt::Debug for SearchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchMemory").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
