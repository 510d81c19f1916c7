//! A cached directory listing with the sketches of its files.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use vfs_core::tree::{Listing, Sketch, SketchCallback};

use crate::fs::metadata::{ChangeTimes, Metadata};

/// A directory as it was listed once, with the sketches of its files.
pub(crate) struct CachedDirectory {
    device: u64,
    change_times: ChangeTimes,
    /// Sorted by name.
    listing: Listing,
    /// By position in the listing.
    files: RwLock<Vec<Option<CachedSketch>>>,
    /// The position of the last lookup: the next one is usually right after it.
    last_position: AtomicUsize,
    bytes: AtomicUsize,
    /// The size of all directories of the cache, in bytes.
    total_bytes: Arc<AtomicUsize>,
}

/// The sketch of a file's content, and the metadata that it is valid for.
#[derive(Clone)]
struct CachedSketch {
    inode: u64,
    change_times: ChangeTimes,
    sketch: Sketch,
}

impl CachedDirectory {
    /// Creates the cache entry of the directory of `metadata` with the entries of `listing`, and takes the sketches of
    /// files that the entry `before` has.
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
        let sketch_bytes: usize = files.iter().flatten().map(|file| file.sketch.memory()).sum();
        directory.add_bytes(Self::base_size(listing) + sketch_bytes);
        *directory.files.write().unwrap_or_else(PoisonError::into_inner) = files;
        directory
    }

    /// Returns the size of a directory with the entries of `listing` and without any sketches, in bytes.
    pub(super) fn base_size(listing: &Listing) -> usize {
        let names: usize = listing.iter().map(|(name, _)| name.len()).sum();
        // The position of the name, and the type of the entry.
        let entry = 3 * size_of::<usize>() + size_of::<Option<CachedSketch>>();
        size_of::<Self>() + names + listing.len() * entry
    }

    /// Returns the listing if the directory, whose current metadata is `metadata`, has not changed.
    pub(crate) fn listing(&self, metadata: &Metadata) -> Option<Listing> {
        (self.change_times == metadata.change_times()).then(|| self.listing.clone())
    }

    /// Returns the number of files with a sketch.
    pub(super) fn sketch_count(&self) -> usize {
        self.files.read().unwrap_or_else(PoisonError::into_inner).iter().flatten().count()
    }

    /// Returns the sketch of the file `name`, if the metadata that `stat` returns is still the one that the sketch is
    /// valid for.
    pub(crate) fn sketch(&self, name: &str, stat: impl FnOnce() -> Option<Metadata>) -> Option<Sketch> {
        let at = self.position(name)?;
        let file = self.files.read().unwrap_or_else(PoisonError::into_inner)[at].clone()?;
        let metadata = stat()?;
        self.is_current(&file, &metadata).then_some(file.sketch)
    }

    /// Returns a function that stores the sketch of the file `name`, whose metadata is `metadata`, or `None` if a valid
    /// one is cached, the name is not listed, or the file is on another device.
    pub(crate) fn learner(self: &Arc<Self>, name: &str, metadata: &Metadata) -> Option<SketchCallback> {
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
            if let Some(earlier) = files[at].replace(CachedSketch { inode, change_times, sketch }) {
                directory.release_bytes(earlier.sketch.memory());
            }
        }))
    }

    fn is_current(&self, file: &CachedSketch, metadata: &Metadata) -> bool {
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
