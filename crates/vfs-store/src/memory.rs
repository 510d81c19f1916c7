//! Store in memory, the reference for all other stores.

mod change_log;
mod memory_namespace;
mod operation_records;
mod search;
mod staging;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use self::memory_namespace::MemoryNamespace;
use crate::store::{
    BatchOutcome, BatchStore, CandidateKeys, ChangePage, Condition, IdempotentOperations, Inspect, Key, LevelOrder,
    ListRequest, Namespace, NewValue, OperationRecord, Page, PathStat, Precondition, PutOutcome, Search, Sequence,
    Staging, StagingToken, Store, StoreCapabilities, StoreChangeLog, StoredMeta, StoredValue, TextQuery,
    TransactionSupport, Write, check_staged, get_each, stat_each,
};

/// Store in memory, for tests and for files that need not outlive the process. Dropping the last handle drops the values.
///
/// # Behaviour
///
/// * A clone is another handle of the same values.
/// * [`new`](Self::new) returns a store with all optional features. [`single_valued`](Self::single_valued) returns one with the
///   features of object storage: changes of single values, and no change log.
/// * The log has the last 4,096 changes of a namespace. Times have microsecond precision, as in most databases.
///
/// ```
/// use bytes::Bytes;
/// use vfs_core::VfsPath;
/// use vfs_store::{Key, MemoryStore, Namespace, NewValue, Precondition, PutOutcome, Store};
///
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new();
/// let key = Key::new(Namespace::parse("acme/ann")?, VfsPath::parse("/notes.txt")?);
/// let note = || NewValue::new(Bytes::from("hello\n"), chrono::Utc::now());
/// assert!(matches!(store.put(&key, note(), &Precondition::Absent).await?, PutOutcome::Applied(_)));
/// assert!(matches!(store.put(&key, note(), &Precondition::Absent).await?, PutOutcome::PreconditionFailed(Some(_))));
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("it works");
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    capabilities: StoreCapabilities,
    spaces: Arc<Mutex<BTreeMap<Namespace, MemoryNamespace>>>,
}

impl MemoryStore {
    /// Returns an empty store with batches, a change log and a search index.
    pub fn new() -> Self {
        let capabilities =
            StoreCapabilities::new(u64::MAX).level_order(LevelOrder::Keys).transactions(TransactionSupport::Namespace);
        Self::with_capabilities(capabilities.bulk_reads(true))
    }

    /// Returns an empty store without batches, change log and search index.
    pub fn single_valued() -> Self {
        Self::with_capabilities(StoreCapabilities::new(u64::MAX).level_order(LevelOrder::Keys))
    }

    /// Sets the maximum size of a value in bytes for this handle. Default: no limit.
    #[must_use]
    pub fn max_value(mut self, bytes: u64) -> Self {
        self.capabilities.max_value = bytes;
        self
    }

    /// Sets the maximum length of a path in bytes for this handle. Default [`VfsPath::MAX_LEN`].
    #[must_use]
    pub fn max_path(mut self, bytes: usize) -> Self {
        self.capabilities.max_path = bytes;
        self
    }

    fn with_capabilities(capabilities: StoreCapabilities) -> Self {
        Self { capabilities, spaces: Arc::default() }
    }

    fn has_all_features(&self) -> bool {
        self.capabilities.transactions == TransactionSupport::Namespace
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Namespace, MemoryNamespace>> {
        // No code that can panic runs while the mutex is locked.
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from a namespace, which is empty if it does not exist.
    fn read<T>(&self, namespace: &Namespace, read: impl FnOnce(&MemoryNamespace) -> T) -> T {
        match self.lock().get(namespace) {
            Some(space) => read(space),
            None => read(&MemoryNamespace::default()),
        }
    }

    /// Changes a namespace, which is created if it does not exist.
    fn change<T>(&self, namespace: &Namespace, change: impl FnOnce(&mut MemoryNamespace) -> T) -> T {
        change(self.lock().entry(namespace.clone()).or_default())
    }

    /// Returns an error for a path or value over the limits of the store.
    fn check(&self, path: &VfsPath, content: Option<&NewValue>) -> Result<()> {
        if path.as_str().len() > self.capabilities.max_path {
            let reason = format!("the path is longer than {} bytes; use a shorter one", self.capabilities.max_path);
            return Err(Error::new(ErrorKind::InvalidPath, reason).with_path(path));
        }
        let size = content.map_or(0, |value| value.content.size());
        if size > self.capabilities.max_value {
            let reason =
                format!("{size} bytes are more than the {} that this store can hold", self.capabilities.max_value);
            return Err(Error::new(ErrorKind::TooLarge, reason).with_path(path));
        }
        Ok(())
    }
}

impl MemoryStore {
    fn check_writes(&self, namespace: &Namespace, writes: &[Write]) -> Result<()> {
        check_staged(namespace, writes)?;
        for write in writes {
            match write {
                Write::Put(path, value) => self.check(path, Some(value))?,
                Write::Move { to, .. } | Write::Copy { to, .. } => self.check(to, None)?,
                Write::Delete(_) => {}
            }
        }
        Ok(())
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values in memory")
    }
}

/// Shows the number of namespaces, not their contents.
impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces = self.lock().len();
        f.debug_struct("MemoryStore")
            .field("capabilities", &self.capabilities)
            .field("namespaces", &namespaces)
            .finish_non_exhaustive()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Store for MemoryStore {
    fn capabilities(&self) -> StoreCapabilities {
        self.capabilities.clone()
    }

    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
        Ok(self.read(&key.namespace, |space| space.head(&key.path).cloned()))
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        Ok(self.read(&key.namespace, |space| space.get(&key.path, range)))
    }

    async fn stat_many(&self, namespace: &Namespace, paths: &[VfsPath]) -> Result<Vec<PathStat>> {
        stat_each(self, namespace, paths).await
    }

    async fn get_many(
        &self,
        namespace: &Namespace,
        paths: &[VfsPath],
        max_size: u64,
    ) -> Result<Vec<Option<StoredValue>>> {
        get_each(self, namespace, paths, max_size).await
    }

    async fn put(&self, key: &Key, value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
        self.check(&key.path, Some(&value))?;
        self.change(&key.namespace, |space| space.put(&key.path, value, expected))
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        self.change(&key.namespace, |space| space.delete(&key.path, expected))
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        Ok(self.read(namespace, |space| space.list(request)))
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        let spaces = self.lock();
        Ok(spaces.iter().filter(|(_, space)| !space.is_empty()).map(|(namespace, _)| namespace.clone()).collect())
    }

    fn as_batch(&self) -> Option<&dyn BatchStore> {
        if self.has_all_features() { Some(self) } else { None }
    }

    fn as_changes(&self) -> Option<&dyn StoreChangeLog> {
        if self.has_all_features() { Some(self) } else { None }
    }

    fn as_search(&self) -> Option<&dyn Search> {
        if self.has_all_features() { Some(self) } else { None }
    }

    fn as_operations(&self) -> Option<&dyn IdempotentOperations> {
        if self.has_all_features() { Some(self) } else { None }
    }

    fn as_staging(&self) -> Option<&dyn Staging> {
        Some(self)
    }

    fn as_inspect(&self) -> Option<&dyn Inspect> {
        // The store has no index or counts beside its values.
        None
    }
}

#[async_trait]
impl BatchStore for MemoryStore {
    async fn batch(&self, namespace: &Namespace, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
        self.check_writes(namespace, &writes)?;
        self.change(namespace, |space| space.batch(conditions, writes))
    }
}

#[async_trait]
impl IdempotentOperations for MemoryStore {
    async fn find(&self, namespace: &Namespace, key: &str) -> Result<Option<OperationRecord>> {
        Ok(self.read(namespace, |space| space.operations.get(key).cloned()))
    }

    async fn batch_once(
        &self,
        namespace: &Namespace,
        record: &OperationRecord,
        conditions: &[Condition],
        writes: Vec<Write>,
    ) -> Result<Option<BatchOutcome>> {
        self.check_writes(namespace, &writes)?;
        self.change(namespace, |space| space.batch_once(record, conditions, writes))
    }
}

#[async_trait]
impl Staging for MemoryStore {
    fn max_size(&self) -> u64 {
        self.capabilities.max_value
    }

    async fn begin(&self, key: &Key, _created_at: DateTime<Utc>, _modified_at: DateTime<Utc>) -> Result<StagingToken> {
        let (token, now) = (StagingToken::in_namespace(&key.namespace), Instant::now());
        let mut spaces = self.lock();
        spaces.values_mut().for_each(|space| space.staged.remove_abandoned(now));
        spaces.entry(key.namespace.clone()).or_default().staged.begin(token.clone(), now);
        Ok(token)
    }

    async fn append(&self, token: &StagingToken, _offset: u64, part: Bytes) -> Result<()> {
        self.change(&token.namespace()?, |space| space.staged.append(token, &part, Instant::now()))
    }

    async fn discard(&self, token: &StagingToken) -> Result<()> {
        self.change(&token.namespace()?, |space| space.staged.remove(token));
        Ok(())
    }
}

#[async_trait]
impl StoreChangeLog for MemoryStore {
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence> {
        Ok(self.read(namespace, |space| space.log.last_sequence()))
    }

    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage> {
        Ok(self.read(namespace, |space| space.log.since(seen, limit)))
    }

    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()> {
        let event = self.change(namespace, |space| space.log.event());
        loop {
            // The listener exists before the check, so that no change between the two is missed.
            let notified = event.listen();
            if self.last_sequence(namespace).await? != seen {
                return Ok(());
            }
            notified.await;
        }
    }
}

#[async_trait]
impl Search for MemoryStore {
    async fn candidates(
        &self,
        namespace: &Namespace,
        prefix: &VfsPath,
        query: &TextQuery,
    ) -> Result<Option<CandidateKeys>> {
        let values = self.read(namespace, |space| space.below_or_at(prefix));
        Ok(search::candidates(values, query))
    }
}
