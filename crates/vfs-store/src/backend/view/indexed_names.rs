//! Current names of a namespace from the cached index and the change log.

use vfs_core::{Result, VfsPath};

use super::directory_map::DirectoryMap;
use super::name_index::NameIndex;
use super::namespace_view::NamespaceView;
use crate::store::{ChangePage, ListRequest, Sequence, Store, StoreChangeLog};

/// Maximum number of changes in one request.
const CHANGE_PAGE_SIZE: usize = 1000;

/// Maximum number of names in one request.
const LIST_PAGE_SIZE: usize = 10_000;

/// Extent of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchExtent {
    /// Some directories: cached names are used, but the namespace is not listed.
    Part,
    /// The whole namespace.
    All,
}

impl<S: Store> NamespaceView<S> {
    /// Returns the current names, including every change that was acknowledged before this call. If they are not cached, they are
    /// listed if `extent` is the whole namespace. Returns `None` if `extent` is a part and no names are cached, if the store has no log, if
    /// there are too many names, or if the changes expire during the listing.
    pub(crate) async fn indexed_names(&self, extent: SearchExtent) -> Result<Option<DirectoryMap>> {
        let Some(changes) = self.store().as_changes() else { return Ok(None) };
        let index = self.shared.indexes.index(&self.namespace);
        if let Some(names) = self.cached_names(changes, &index).await? {
            return Ok(Some(names));
        }
        if extent == SearchExtent::Part || index.is_too_large() {
            return Ok(None);
        }
        let _loading = self.ask(&VfsPath::root(), async { Ok(index.loading.lock().await) }).await?;
        // Another search may have listed them meanwhile, but before changes that this one has to include.
        if let Some(names) = self.cached_names(changes, &index).await? {
            return Ok(Some(names));
        }
        if index.is_too_large() { Ok(None) } else { self.load_names(changes, &index).await }
    }

    /// Returns the cached names with all changes since, or `None` if there are none, too many, or the changes have expired.
    async fn cached_names(&self, changes: &dyn StoreChangeLog, index: &NameIndex) -> Result<Option<DirectoryMap>> {
        match index.cached() {
            Some(cached) => self.catch_up(changes, index, cached).await,
            None => Ok(None),
        }
    }

    /// Lists all names, and applies the changes since the sequence before the listing.
    ///
    /// The listing may already include some of these changes; applying them again has no effect.
    async fn load_names(&self, changes: &dyn StoreChangeLog, index: &NameIndex) -> Result<Option<DirectoryMap>> {
        let root = VfsPath::root();
        let position = self.ask(&root, changes.last_sequence(&self.namespace)).await?;
        let Some(names) = self.list_names(&root, self.shared.indexes.max_entries()).await? else {
            index.mark_too_large(&root);
            return Ok(None);
        };
        self.catch_up(changes, index, (position, names)).await
    }

    /// Applies all changes since to `names`, or returns `None` if these have expired or there are too many names.
    async fn catch_up(
        &self,
        changes: &dyn StoreChangeLog,
        index: &NameIndex,
        (mut position, mut names): (Sequence, DirectoryMap),
    ) -> Result<Option<DirectoryMap>> {
        let start = position;
        loop {
            let page = changes.since(&self.namespace, position, CHANGE_PAGE_SIZE);
            match self.ask(&VfsPath::root(), page).await? {
                ChangePage::Changes { changes, next, has_more } => {
                    changes.into_iter().for_each(|(_, record)| names.apply(record));
                    position = next;
                    if names.files() > self.shared.indexes.max_entries() {
                        index.mark_too_large(&VfsPath::root());
                        return Ok(None);
                    }
                    if !has_more {
                        index.store(position, &names);
                        return Ok(Some(names));
                    }
                }
                ChangePage::Expired(_) => {
                    index.invalidate(start);
                    return Ok(None);
                }
            }
        }
    }

    /// Returns the names of all files below `path`, or `None` if there are more than `max_entries`.
    pub(crate) async fn list_names(&self, path: &VfsPath, max_entries: usize) -> Result<Option<DirectoryMap>> {
        let mut names = DirectoryMap::default();
        let mut request = ListRequest::all(path.clone()).limit(LIST_PAGE_SIZE);
        loop {
            let page = self.page(&request).await?;
            let next = page.next.clone();
            names.add_page(page);
            if names.files() > max_entries {
                return Ok(None);
            }
            let Some(next) = next else { return Ok(Some(names)) };
            request = request.from(next);
        }
    }
}
