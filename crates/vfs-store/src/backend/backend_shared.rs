//! State that all handles of a backend share.

use std::sync::Arc;

use tokio::sync::Semaphore;
use vfs_search::Pool;

use super::config::StoreConfig;
use super::coordination::feed_start_barrier::FeedStartBarrier;
use super::coordination::striped_key_locks::StripedKeyLocks;
use super::view::content_cache::ContentCache;
use super::view::line_index_cache::LineIndexCache;
use super::view::name_index::NameIndexes;
use crate::store::Store;

/// Upper bound on the number of blocks of files that are prefetched concurrently by all searches of a backend.
const MAX_PREFETCHED_BLOCKS: usize = 4;

/// The store, the configuration and the caches of a backend.
#[derive(Debug)]
pub(super) struct BackendShared<S> {
    pub(super) store: S,
    pub(super) config: StoreConfig,
    pub(super) pool: Pool,
    pub(super) contents: ContentCache,
    pub(super) indexes: NameIndexes,
    pub(super) line_indexes: LineIndexCache,
    pub(super) key_locks: StripedKeyLocks,
    pub(super) feed_barrier: Arc<FeedStartBarrier>,
    /// Permits for blocks of files that are prefetched.
    pub(super) prefetch_permits: Arc<Semaphore>,
}

impl<S: Store> BackendShared<S> {
    pub(super) fn new(store: S, config: StoreConfig) -> Self {
        Self {
            pool: config.search_pool.clone().unwrap_or_else(|| Pool::new(config.fetches.get())),
            contents: ContentCache::new(config.content_cache),
            indexes: NameIndexes::new(config.index_entries, config.index_namespaces),
            line_indexes: LineIndexCache::default(),
            key_locks: StripedKeyLocks::new(),
            feed_barrier: Arc::default(),
            prefetch_permits: Arc::new(Semaphore::new(MAX_PREFETCHED_BLOCKS)),
            store,
            config,
        }
    }

    /// Returns the size in bytes of the largest file that can be written in chunks.
    pub(super) fn max_streamed_size(&self) -> u64 {
        match self.store.as_staging() {
            Some(staging) => self.config.max_streamed_size.min(staging.max_size()),
            None => self.max_file_size(),
        }
    }

    /// Returns the size in bytes of the largest file that the configuration and the store allow.
    pub(super) fn max_file_size(&self) -> u64 {
        self.config.max_file_size.min(self.store.capabilities().max_value)
    }
}
