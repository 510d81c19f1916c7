//! What is remembered of one directory.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use vfs_core::tree::{Learn, Listing, Sketch};

use crate::fs::metadata::{Changes, Metadata};

/// A directory as it was listed once, and what is known of its files.
pub(crate) struct Directory {
    device: u64,
    changes: Changes,
    /// Sorted by name.
    listing: Listing,
    /// By their places in the listing.
    files: RwLock<Vec<Option<File>>>,
    /// Where a file was looked for last: the next one is mostly after it.
    last: AtomicUsize,
    bytes: AtomicUsize,
    /// What all of them take.
    all_bytes: Arc<AtomicUsize>,
}

/// The content that a file had.
#[derive(Clone)]
struct File {
    inode: u64,
    changes: Changes,
    sketch: Sketch,
}

impl Directory {
    /// Of the directory of `metadata` with the entries of `listing`, as far as something was known of its files `before`.
    pub(super) fn new(
        metadata: &Metadata,
        listing: &Listing,
        before: Option<&Self>,
        all_bytes: &Arc<AtomicUsize>,
    ) -> Self {
        let mut entries: Vec<_> = listing.iter().collect();
        entries.sort_unstable_by_key(|(name, _)| *name);
        let mut sorted = Listing::with_capacity(entries.len());
        entries.iter().for_each(|(name, kind)| sorted.push(name, *kind));
        let file = |name: &str| {
            before.and_then(|before| {
                before.files.read().unwrap_or_else(PoisonError::into_inner)[before.index(name)?].clone()
            })
        };
        let files: Vec<_> = entries.iter().map(|(name, _)| file(name)).collect();
        let (device, _) = metadata.identity();
        let directory = Self {
            device,
            changes: metadata.changes(),
            listing: sorted,
            files: RwLock::default(),
            last: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            all_bytes: Arc::clone(all_bytes),
        };
        let known: usize = files.iter().flatten().map(|file| file.sketch.memory()).sum();
        directory.takes(Self::least_memory(listing) + known);
        *directory.files.write().unwrap_or_else(PoisonError::into_inner) = files;
        directory
    }

    /// How much memory a directory with the entries of `listing` takes while nothing is known of its files, in bytes.
    pub(super) fn least_memory(listing: &Listing) -> usize {
        let names: usize = listing.iter().map(|(name, _)| name.len()).sum();
        // Where the name is, and what the entry is.
        let entry = 3 * size_of::<usize>() + size_of::<Option<File>>();
        size_of::<Self>() + names + listing.len() * entry
    }

    /// The entries, if the directory is unchanged, whose facts are `metadata` now.
    pub(crate) fn listing(&self, metadata: &Metadata) -> Option<Listing> {
        (self.changes == metadata.changes()).then(|| self.listing.clone())
    }

    /// Of how many files the content is known.
    pub(super) fn files(&self) -> usize {
        self.files.read().unwrap_or_else(PoisonError::into_inner).iter().flatten().count()
    }

    /// What is remembered of the content of the file `name`, if its facts are still those that `look` finds.
    pub(crate) fn recall(&self, name: &str, look: impl FnOnce() -> Option<Metadata>) -> Option<Sketch> {
        let at = self.index(name)?;
        let file = self.files.read().unwrap_or_else(PoisonError::into_inner)[at].clone()?;
        let metadata = look()?;
        self.is_of(&file, &metadata).then_some(file.sketch)
    }

    /// Where to leave what is learned of the file `name`, whose facts are `metadata`; `None` where it is known.
    pub(crate) fn learn(self: &Arc<Self>, name: &str, metadata: &Metadata) -> Option<Learn> {
        let at = self.index(name)?;
        let (device, inode) = metadata.identity();
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        if device != self.device || files[at].as_ref().is_some_and(|file| self.is_of(file, metadata)) {
            return None;
        }
        let (directory, changes) = (Arc::clone(self), metadata.changes());
        Some(Box::new(move |sketch| {
            directory.takes(sketch.memory());
            let mut files = directory.files.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(earlier) = files[at].replace(File { inode, changes, sketch }) {
                directory.gives(earlier.sketch.memory());
            }
        }))
    }

    fn is_of(&self, file: &File, metadata: &Metadata) -> bool {
        metadata.identity() == (self.device, file.inode)
            && metadata.changes() == file.changes
            && metadata.size() == file.sketch.size()
    }

    fn index(&self, name: &str) -> Option<usize> {
        let last = self.last.load(Ordering::Relaxed);
        let is_at = |at: &usize| *at < self.listing.len() && self.listing.name(*at) == name;
        let at = [last, last + 1].into_iter().find(is_at).or_else(|| self.search(name))?;
        self.last.store(at, Ordering::Relaxed);
        Some(at)
    }

    fn search(&self, name: &str) -> Option<usize> {
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

    fn takes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.all_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn gives(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.all_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.gives(self.bytes.load(Ordering::Relaxed));
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("entries", &self.listing.len()).finish_non_exhaustive()
    }
}
