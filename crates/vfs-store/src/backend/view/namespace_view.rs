//! Access of one call to the files of its namespace.

use std::ops::Range;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use vfs_core::{Error, ErrorKind, OpContext, Problem, Result, VfsPath};
use vfs_search::run_until_cancelled;

use super::super::backend_shared::BackendShared;
use super::directory_map::DirectoryEntries;
use super::identified_operation::IdentifiedOperation;
use super::path_entry::{PathEntry, above};
use crate::store::{
    BatchOutcome, BatchStore, Condition, Entry, Key, LevelOrder, ListRequest, Namespace, NewValue, Page, PathStat,
    Precondition, PutOutcome, Store, StoredMeta, StoredValue, Write,
};

/// Size in bytes of a block: smaller files are read by one request.
pub(crate) const BLOCK_BYTES: u64 = 4 << 20;

/// Number of attempts to read a file that changes meanwhile.
pub(crate) const READ_ATTEMPTS: usize = 4;

/// Namespace and context of one call.
#[derive(Debug)]
pub(crate) struct NamespaceView<S> {
    pub(crate) shared: Arc<BackendShared<S>>,
    pub(crate) namespace: Namespace,
    pub(crate) cx: OpContext,
    /// The mutation, if it has an id and is to be recorded.
    pub(crate) operation: Option<Arc<IdentifiedOperation>>,
}

impl<S> Clone for NamespaceView<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            namespace: self.namespace.clone(),
            cx: self.cx.clone(),
            operation: self.operation.clone(),
        }
    }
}

impl<S: Store> NamespaceView<S> {
    /// Returns the same view with another context of the call.
    pub(crate) fn with_context(&self, cx: OpContext) -> Self {
        Self { cx, ..self.clone() }
    }

    pub(crate) fn store(&self) -> &S {
        &self.shared.store
    }

    pub(crate) fn batches(&self) -> Option<&dyn BatchStore> {
        self.shared.store.as_batch()
    }

    pub(crate) fn fetches(&self) -> usize {
        self.shared.config.fetches.get()
    }

    pub(crate) fn key(&self, path: &VfsPath) -> Key {
        Key::new(self.namespace.clone(), path.clone())
    }

    /// Awaits an answer of the store until the call is cancelled; errors name `path`.
    pub(crate) async fn ask<T>(&self, path: &VfsPath, answer: impl Future<Output = Result<T>>) -> Result<T> {
        run_until_cancelled(&self.cx, path, answer).await.flatten().map_err(|error| error.or_path(path))
    }

    /// Returns `false` for the root and for paths that are too long for the store, for which no request is sent.
    fn can_hold(&self, path: &VfsPath) -> bool {
        !path.is_root() && path.as_str().len() <= self.store().capabilities().max_path
    }

    /// Returns an error for a path that is too long for the store.
    pub(crate) fn check_path(&self, path: &VfsPath) -> Result<()> {
        let max = self.store().capabilities().max_path;
        if path.as_str().len() <= max {
            return Ok(());
        }
        let message = format!("the path is longer than the {max} bytes that this store can hold; use a shorter one");
        Err(Error::new(ErrorKind::InvalidPath, message).with_path(path))
    }

    /// Returns an error for a file that is too large.
    pub(crate) fn check_size(&self, path: &VfsPath, size: u64) -> Result<()> {
        let max = self.shared.max_file_size();
        if size <= max {
            return Ok(());
        }
        let message =
            format!("{size} bytes are over the limit of {max} for one file; split the content over several files");
        Err(Error::new(ErrorKind::TooLarge, message).with_path(path))
    }

    pub(crate) async fn head(&self, path: &VfsPath) -> Result<Option<StoredMeta>> {
        if !self.can_hold(path) {
            return Ok(None);
        }
        self.ask(path, self.store().head(&self.key(path))).await
    }

    /// Returns the presence of values at and below each of `paths`, for a request about `path`.
    pub(crate) async fn stat_many(&self, path: &VfsPath, paths: &[VfsPath]) -> Result<Vec<PathStat>> {
        let mut stats = vec![PathStat::default(); paths.len()];
        let max = self.store().capabilities().max_path;
        let (indexes, short): (Vec<_>, Vec<_>) = paths
            .iter()
            .enumerate()
            .filter(|(_, path)| path.as_str().len() <= max)
            .map(|(at, path)| (at, path.clone()))
            .unzip();
        for (at, stat) in
            indexes.into_iter().zip(self.ask(path, self.store().stat_many(&self.namespace, &short)).await?)
        {
            stats[at] = stat;
        }
        Ok(stats)
    }

    pub(crate) async fn get(&self, path: &VfsPath, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        if !self.can_hold(path) {
            return Ok(None);
        }
        self.ask(path, self.store().get(&self.key(path), range)).await
    }

    pub(crate) async fn put(&self, path: &VfsPath, value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
        self.ask(path, self.store().put(&self.key(path), value, expected)).await
    }

    pub(crate) async fn delete(&self, path: &VfsPath, expected: &Precondition) -> Result<PutOutcome> {
        if !self.can_hold(path) {
            return Ok(PutOutcome::PreconditionFailed(None));
        }
        self.ask(path, self.store().delete(&self.key(path), expected)).await
    }

    /// Applies `writes` as one batch, for a change of `path`.
    pub(crate) async fn batch(
        &self,
        path: &VfsPath,
        conditions: &[Condition],
        writes: Vec<Write>,
    ) -> Result<BatchOutcome> {
        let Some(batches) = self.batches() else {
            return Err(Error::new(ErrorKind::Internal, "internal: the store does not support batches").with_path(path));
        };
        self.ask(path, batches.batch(&self.namespace, conditions, writes)).await
    }

    /// Locks the file at `path` against other edits, appends and repeated overwrites of this process. All writers compare and
    /// swap, so the lock only saves attempts.
    pub(crate) async fn lock_key(&self, path: &VfsPath) -> Result<tokio::sync::MutexGuard<'_, ()>> {
        let mutex = self.shared.key_locks.of(&self.key(path));
        self.ask(path, async { Ok(mutex.lock().await) }).await
    }

    /// Reads the whole file at `path` of at most `max` bytes, or returns `None` if there is none.
    pub(crate) async fn whole(&self, path: &VfsPath, max: u64) -> Result<Option<StoredValue>> {
        self.whole_within(path, BLOCK_BYTES.min(max.saturating_add(1)), max).await
    }

    /// Reads the whole file at `path`, probably of `size` bytes, or returns `None` if there is none.
    pub(crate) async fn whole_of(&self, path: &VfsPath, size: u64) -> Result<Option<StoredValue>> {
        self.whole_within(path, size.max(BLOCK_BYTES), u64::MAX).await
    }

    /// Reads the whole file at `path` of at most `max` bytes; the first request is for `first` bytes.
    async fn whole_within(&self, path: &VfsPath, first: u64, max: u64) -> Result<Option<StoredValue>> {
        for _ in 0..READ_ATTEMPTS {
            let Some(first) = self.get(path, Some(0..first)).await? else { return Ok(None) };
            let StoredValue { stored, content, .. } = first;
            if stored.size > max {
                let message = format!("the file has {} bytes, over the limit of {max}; read a part of it", stored.size);
                return Err(Error::new(ErrorKind::TooLarge, message).with_path(path));
            }
            let received = content.len() as u64;
            if received >= stored.size {
                return Ok(Some(StoredValue::new(stored, content)));
            }
            let Some(rest) = self.get(path, Some(received..stored.size)).await? else { return Ok(None) };
            if rest.stored.version == stored.version {
                return Ok(Some(StoredValue::new(stored, [content, rest.content].concat().into())));
            }
        }
        Err(keeps_changing(path))
    }

    /// Reads the whole file at `path` of at most `max` bytes; a missing file is an error.
    pub(crate) async fn whole_file(&self, path: &VfsPath, max: u64) -> Result<StoredValue> {
        for _ in 0..READ_ATTEMPTS {
            if let Some(value) = self.whole(path, max).await? {
                return Ok(value);
            }
            self.check_no_file(path).await?;
        }
        Err(keeps_changing(path))
    }

    /// Fails with the reason why no file is at `path`; succeeds if one was created meanwhile.
    pub(crate) async fn check_no_file(&self, path: &VfsPath) -> Result<()> {
        match self.look_up(path).await? {
            Some(PathEntry::File(_)) => Ok(()),
            Some(PathEntry::Directory) => Err(Error::at(ErrorKind::IsADirectory, path)),
            None => Err(Error::not_found(path)),
        }
    }

    /// Returns `true` if there are files below `path`.
    pub(crate) async fn has_below(&self, path: &VfsPath) -> Result<bool> {
        let mut request = ListRequest::level(path.clone()).limit(1);
        loop {
            let page = self.page(&request).await?;
            if !page.entries.is_empty() || !page.directories.is_empty() || !page.problems.is_empty() {
                return Ok(true);
            }
            let Some(next) = page.next else { return Ok(false) };
            request = request.from(next);
        }
    }

    /// Returns `true` if a parent of `path` is a file.
    pub(crate) async fn is_below_file(&self, path: &VfsPath) -> Result<bool> {
        let heads = above(path).map(|path| async move { Ok(self.head(&path).await?.is_some()) });
        let heads: Vec<_> = heads.collect();
        stream::iter(heads).buffer_unordered(self.fetches()).try_any(|is_file| async move { is_file }).await
    }

    /// Returns the entry at `path`, or `not_a_directory` if a parent is a file.
    pub(crate) async fn look_up(&self, path: &VfsPath) -> Result<Option<PathEntry>> {
        if path.is_root() {
            self.cx.check().map_err(|error| error.or_path(path))?;
            return Ok(Some(PathEntry::Directory));
        }
        if let Some(stored) = self.head(path).await? {
            return Ok(Some(PathEntry::File(stored)));
        }
        let (has_below, is_below_file) = futures::join!(self.has_below(path), self.is_below_file(path));
        if has_below? {
            Ok(Some(PathEntry::Directory))
        } else if is_below_file? {
            Err(Error::at(ErrorKind::NotADirectory, path))
        } else {
            Ok(None)
        }
    }

    /// Returns the entry at `path`; a missing entry is `not_found`.
    pub(crate) async fn find(&self, path: &VfsPath) -> Result<PathEntry> {
        self.look_up(path).await?.ok_or_else(|| Error::not_found(path))
    }

    /// Lists one page.
    pub(crate) async fn page(&self, request: &ListRequest) -> Result<Page> {
        self.ask(&request.below, self.store().list(&self.namespace, request)).await
    }

    /// Lists one level of `path`.
    pub(crate) async fn level(&self, path: &VfsPath) -> Result<DirectoryEntries> {
        let mut directory = DirectoryEntries::default();
        let mut request = ListRequest::level(path.clone());
        loop {
            let page = self.page(&request).await?;
            directory.add_page(path, &page);
            let Some(next) = page.next else { return Ok(directory) };
            request = request.from(next);
        }
    }

    /// Lists one level of `path`, at least its first `max_entries` entries; the flag is `true` if the level is complete.
    pub(crate) async fn level_up_to(&self, path: &VfsPath, max_entries: usize) -> Result<(DirectoryEntries, bool)> {
        if self.store().capabilities().level_order != LevelOrder::Keys {
            return Ok((self.level(path).await?, true));
        }
        let (mut directory, mut last) = (DirectoryEntries::default(), None);
        let mut request =
            ListRequest::level(path.clone()).limit(max_entries.saturating_add(1).min(ListRequest::DEFAULT_LIMIT));
        loop {
            let page = self.page(&request).await?;
            directory.add_page(path, &page);
            last = last.max(last_key(&page));
            let Some(next) = page.next else { return Ok((directory, true)) };
            if last.as_deref().is_some_and(|last| directory.has_first(max_entries, last)) {
                return Ok((directory, false));
            }
            request = request.from(next);
        }
    }

    /// Lists everything below `path`, in the order of the store.
    pub(crate) async fn subtree(&self, path: &VfsPath) -> Result<SubtreeListing> {
        let mut subtree = SubtreeListing::default();
        let mut request = ListRequest::all(path.clone());
        loop {
            let page = self.page(&request).await?;
            subtree.entries.extend(page.entries);
            subtree.problems.extend(page.problems);
            let Some(next) = page.next else { return Ok(subtree) };
            request = request.from(next);
        }
    }
}

/// Files below a path.
#[derive(Debug, Default)]
pub(crate) struct SubtreeListing {
    pub(crate) entries: Vec<Entry>,
    /// Files that cannot be read.
    pub(crate) problems: Vec<Problem>,
}

impl SubtreeListing {
    /// Returns the files, or the first problem as an error.
    pub(crate) fn readable(self) -> Result<Vec<Entry>> {
        match self.problems.into_iter().next() {
            Some(problem) => Err(Error::new(problem.code, problem.message).with_path_text(&problem.path)),
            None => Ok(self.entries),
        }
    }

    /// Returns the paths of all files, also of unreadable ones that a path can name.
    pub(crate) fn into_paths(self) -> Vec<VfsPath> {
        let unreadable = self.problems.into_iter().filter_map(|problem| VfsPath::parse(&problem.path).ok());
        self.entries.into_iter().map(|entry| entry.path).chain(unreadable).collect()
    }
}

/// Returns the last key of a page of one level.
fn last_key(page: &Page) -> Option<String> {
    let file = page.entries.last().and_then(|entry| entry.path.name()).map(str::to_owned);
    let directories = page.directories.iter().filter_map(VfsPath::name).map(|name| format!("{name}/"));
    file.max(directories.max())
}

/// Returns the error for a file that changed during every attempt to read it.
pub(crate) fn keeps_changing(path: &VfsPath) -> Error {
    Error::new(ErrorKind::Busy, "other writers keep changing the file; try again").with_path(path)
}
