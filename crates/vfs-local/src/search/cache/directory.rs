//! What is remembered of one directory.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use vfs_core::tree::{Learn, Listing, Sketch};

use crate::fs::metadata::{ChangeTimes, Metadata};

/// A directory as it was listed once, and what is known of its files.
pub(crate) struct CachedDirectory {
    device: u64,
    change_times: ChangeTimes,
    /// Sorted by name.
    listing: Listing,
    /// By their places in the listing.
    files: RwLock<Vec<Option<CachedFile>>>,
    /// Where a file was looked for last: the next one is mostly after it.
    last_position: AtomicUsize,
    bytes: AtomicUsize,
    /// What all of them take.
    total_bytes: Arc<AtomicUsize>,
}

/// The content that a file had.
#[derive(Clone)]
struct CachedFile {
    inode: u64,
    change_times: ChangeTimes,
    sketch: Sketch,
}

impl CachedDirectory {
    /// Of the directory of `metadata` with the entries of `listing`, as far as something was known of its files `before`.
    pub(super) fn new(
        metadata: &Metadata,
        listing: &Listing,
        before: Option<&Self>,
        total_bytes: &Arc<AtomicUsize>,
    ) -> Self {
        let mut entries: Vec<_> = listing.iter().collect();
        entries.sort_unstable_by_key(|(name, _)| *name);
        let mut sorted = Listing::with_capacity(entries.len());
        entries.iter().for_each(|(name, kind)| sorted.push(name, *kind));
        let file = |name: &str| {
            before.and_then(|before| {
                before.files.read().unwrap_or_else(PoisonError::into_inner)[before.position(name)?].clone()
            })
        };
        let files: Vec<_> = entries.iter().map(|(name, _)| file(name)).collect();
        let (device, _) = metadata.identity();
        let directory = Self {
            device,
            change_times: metadata.change_times(),
            listing: sorted,
            files: RwLock::default(),
            last_position: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            total_bytes: Arc::clone(total_bytes),
        };
        let known: usize = files.iter().flatten().map(|file| file.sketch.memory()).sum();
        directory.add_bytes(Self::base_size(listing) + known);
        *directory.files.write().unwrap_or_else(PoisonError::into_inner) = files;
        directory
    }

    /// How much memory a directory with the entries of `listing` takes while nothing is known of its files, in bytes.
    pub(super) fn base_size(listing: &Listing) -> usize {
        let names: usize = listing.iter().map(|(name, _)| name.len()).sum();
        // Where the name is, and what the entry is.
        let entry = 3 * size_of::<usize>() + size_of::<Option<CachedFile>>();
        size_of::<Self>() + names + listing.len() * entry
    }

    /// The entries, if the directory is unchanged, whose facts are `metadata` now.
    pub(crate) fn listing(&self, metadata: &Metadata) -> Option<Listing> {
        (self.change_times == metadata.change_times()).then(|| self.listing.clone())
    }

    /// Of how many files the content is known.
    pub(super) fn sketch_count(&self) -> usize {
        self.files.read().unwrap_or_else(PoisonError::into_inner).iter().flatten().count()
    }

    /// What is remembered of the content of the file `name`, if its facts are still those that `stat` finds.
    pub(crate) fn sketch(&self, name: &str, stat: impl FnOnce() -> Option<Metadata>) -> Option<Sketch> {
        let at = self.position(name)?;
        let file = self.files.read().unwrap_or_else(PoisonError::into_inner)[at].clone()?;
        let metadata = stat()?;
        self.is_current(&file, &metadata).then_some(file.sketch)
    }

    /// Where to leave what is learned of the file `name`, whose facts are `metadata`; `None` where it is known.
    pub(crate) fn learner(self: &Arc<Self>, name: &str, metadata: &Metadata) -> Option<Learn> {
        let at = self.position(name)?;
        let (device, inode) = metadata.identity();
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        if device != self.device || files[at].as_ref().is_some_and(|file| self.is_current(file, metadata)) {
            return None;
        }
        let (directory, change_times) = (Arc::clone(self), metadata.change_times());
        Some(Box::new(move |sketch| {
            directory.add_bytes(sketch.memory());
            let mut files = directory.files.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(earlier) = files[at].replace(CachedFile { inode, change_times, sketch }) {
                directory.release_bytes(earlier.sketch.memory());
            }
        }))
    }

    fn is_current(&self, file: &CachedFile, metadata: &Metadata) -> bool {
        metadata.identity() == (self.device, file.inode)
            && metadata.change_times() == file.change_times
            && metadata.size() == file.sketch.size()
    }

    fn position(&self, name: &str) -> Option<usize> {
        let last_position = self.last_position.load(Ordering::Relaxed);
        let is_at = |at: &usize| *at < self.listing.len() && self.listing.name(*at) == name;
        let at = [last_position, last_position + 1].into_iter().find(is_at).or_else(|| self.binary_search(name))?;
        self.last_position.store(at, Ordering::Relaxed);
        Some(at)
    }

    fn binary_search(&self, name: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.listing.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.listing.name(middle).cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.total_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn release_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.total_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for CachedDirectory {
    fn drop(&mut self) {
        self.release_bytes(self.bytes.load(Ordering::Relaxed));
    }
}

impl fmt::Debug for CachedDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("entries", &self.listing.len()).finish_non_exhaustive()
    }
}
