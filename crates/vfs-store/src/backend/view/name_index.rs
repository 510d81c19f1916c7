//! Cache of the names of namespaces, for stores with a change log.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use tokio::time::Instant;
use vfs_core::VfsPath;

use super::directory_map::DirectoryMap;
use crate::store::{Namespace, Sequence};

/// Time for which a namespace that had too many files is not listed again for the index.
const TOO_LARGE_TTL: Duration = Duration::from_secs(60);

/// Name indexes of the most recently searched namespaces.
pub(crate) struct NameIndexes {
    /// Upper bound on the number of files of one index.
    max_entries: usize,
    indexes: Mutex<LruCache<Namespace, Arc<NameIndex>>>,
}

/// Index of one namespace.
#[derive(Default)]
pub(super) struct NameIndex {
    state: Mutex<NameIndexState>,
    /// Locked while all names are listed: other searches wait for the result.
    pub(super) loading: tokio::sync::Mutex<()>,
}

/// State of the index of one namespace.
#[derive(Default)]
enum NameIndexState {
    #[default]
    Empty,
    /// The files as of a change.
    Loaded(Sequence, DirectoryMap),
    /// The directory had too many files at this time.
    TooLarge(Instant, VfsPath),
}

impl NameIndexes {
    pub(crate) fn new(max_entries: usize, namespaces: NonZeroUsize) -> Self {
        Self { max_entries, indexes: Mutex::new(LruCache::new(namespaces)) }
    }

    /// Returns `true` if `path` had too many files when it was listed last.
    pub(crate) fn is_too_large(&self, namespace: &Namespace, path: &VfsPath) -> bool {
        self.index(namespace).is_too_large_below(path)
    }

    /// Returns `true` if names are cached, even if they are out of date.
    pub(crate) fn has_names(&self, namespace: &Namespace) -> bool {
        matches!(*lock(&self.index(namespace).state), NameIndexState::Loaded(..))
    }

    /// Records that `path` has too many files.
    pub(crate) fn mark_too_large(&self, namespace: &Namespace, path: &VfsPath) {
        self.index(namespace).mark_too_large(path);
    }

    pub(super) fn max_entries(&self) -> usize {
        self.max_entries
    }

    pub(super) fn index(&self, namespace: &Namespace) -> Arc<NameIndex> {
        let mut indexes = lock(&self.indexes);
        Arc::clone(indexes.get_or_insert(namespace.clone(), Arc::default))
    }
}

impl NameIndex {
    /// Returns the cached names and the last change that they include.
    pub(super) fn cached(&self) -> Option<(Sequence, DirectoryMap)> {
        match &*lock(&self.state) {
            NameIndexState::Loaded(position, names) => Some((*position, names.clone())),
            _ => None,
        }
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large_below(&VfsPath::root())
    }

    fn is_too_large_below(&self, path: &VfsPath) -> bool {
        let state = lock(&self.state);
        matches!(&*state, NameIndexState::TooLarge(at, of) if at.elapsed() < TOO_LARGE_TTL && of.starts_with(path))
    }

    /// Caches `names`, unless newer names are cached.
    pub(super) fn store(&self, position: Sequence, names: &DirectoryMap) {
        let mut state = lock(&self.state);
        if !matches!(&*state, NameIndexState::Loaded(newer, _) if *newer >= position) {
            *state = NameIndexState::Loaded(position, names.clone());
        }
    }

    pub(super) fn mark_too_large(&self, path: &VfsPath) {
        *lock(&self.state) = NameIndexState::TooLarge(Instant::now(), path.clone());
    }

    /// Removes the names if they are still those of `position`.
    pub(super) fn invalidate(&self, position: Sequence) {
        let mut state = lock(&self.state);
        if matches!(&*state, NameIndexState::Loaded(at, _) if *at == position) {
            *state = NameIndexState::Empty;
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // The value is replaced in one step, so a panic cannot leave it inconsistent.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for NameIndexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indexes: Vec<_> =
            lock(&self.indexes).iter().map(|(namespace, index)| (namespace.clone(), Arc::clone(index))).collect();
        let files: HashMap<_, _> = indexes
            .iter()
            .map(|(namespace, index)| (namespace.as_str(), index.cached().map(|(_, names)| names.files())))
            .collect();
        f.debug_struct("NameIndexes").field("max_entries", &self.max_entries).field("files", &files).finish()
    }
}
