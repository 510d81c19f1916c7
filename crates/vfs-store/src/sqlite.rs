//! Store in a SQLite file.

mod backup;
mod change;
mod change_log;
mod change_notifier;
mod config;
mod connect;
mod connection_pool;
mod content;
mod disk_reserve_file;
mod error;
mod file_rows;
mod interrupt;
mod list;
mod operation_records;
mod schema;
mod staging;
mod stats;
#[cfg(test)]
mod tests;
mod trigram_index;
mod verify;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use tokio::runtime::Handle;
use vfs_core::{Error, ErrorKind, Result, VfsPath};
use vfs_search::run_blocking;

use self::change_notifier::ChangeNotifier;
use self::config::DatabaseLocation;
use self::connection_pool::{ConnectionPool, TransactionEnd, within_size_limit};
use self::disk_reserve_file::DiskReserveFile;
use self::error::SqliteError;
use self::interrupt::InterruptGuard;
use crate::store::{
    BatchOutcome, BatchStore, CandidateKeys, ChangePage, CheckReport, Condition, IdempotentOperations, Inspect, Key,
    LevelOrder, ListRequest, Namespace, NewValue, OperationRecord, Page, PathStat, Precondition, PutOutcome, Search,
    Sequence, Staging, Store, StoreCapabilities, StoreChangeLog, StoreStats, StoredMeta, StoredValue, TextQuery,
    TransactionSupport, ValueContent, Write, check_staged,
};

pub use self::config::{SqliteConfig, SqliteDurability, SqliteSearchIndex};
pub use self::stats::SqliteStats;

/// Pause between two transactions that purge the search index. It is longer than the longest pause of a writer that
/// waits for the file, so that such a writer gets its turn.
const PURGE_PAUSE: Duration = Duration::from_millis(4);

/// Store in one SQLite file, which any number of processes on one machine can share.
///
/// # Behaviour
///
/// * A clone is another handle of the same connections: one writer and several readers. A read sees a snapshot; readers
///   and the writer do not block each other.
/// * Two files with the suffixes `-wal` and `-shm` belong to the database: move or copy all of them together, while no
///   process uses them. [`backup`](Self::backup) copies a database that is in use.
/// * The file must be on a local disk. It never shrinks; free pages are reused.
/// * On Linux a third file with the suffix `-reserve` reserves three quarters of the free space, 6 MiB at most, so that
///   files can be removed from a full disk if their removal writes no more than that. It has no data.
/// * A value has at most 1 GiB, or 1 TiB if it is staged. A change of 1 GiB takes seconds, during which other changes wait.
/// * UTF-8 text without NUL bytes of up to 8 MiB is indexed for [`Search`]. Other values are always candidates.
/// * Requires a tokio runtime. Each operation makes one hop to its blocking threads; one that deletes many values makes more.
///
/// ```
/// use bytes::Bytes;
/// use vfs_core::VfsPath;
/// use vfs_store::{Inspect, Key, Namespace, NewValue, Precondition, SqliteConfig, SqliteStore, Store};
///
/// # tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
/// # let directory = tempfile::tempdir().expect("a directory");
/// let store = SqliteStore::open(SqliteConfig::new(directory.path().join("agents.db"))).await?;
/// let key = Key::new(Namespace::parse("acme/ann")?, VfsPath::parse("/notes.txt")?);
/// let note = NewValue::new(Bytes::from("hello\n"), chrono::Utc::now());
/// let _ = store.put(&key, note, &Precondition::Absent).await?;
/// assert_eq!(store.get(&key, None).await?.expect("it is there").content, "hello\n");
/// assert!(store.check().await?.problems.is_empty());
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("it works");
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<SqliteShared>,
}

/// State that all handles of a SQLite store share.
struct SqliteShared {
    config: Arc<SqliteConfig>,
    writer: Arc<ConnectionPool>,
    readers: Arc<ConnectionPool>,
    watch: ChangeNotifier,
    reserve: Arc<DiskReserveFile>,
}

impl SqliteStore {
    /// Opens a store; creates a missing file, and migrates an older one to the current version.
    ///
    /// # Errors
    ///
    /// * `invalid_argument`: the file is not a SQLite database, belongs to another program, is damaged, or was created
    ///   by a newer version; its directory does not exist; or the `config` is out of its bounds.
    /// * `permission_denied`: this user may not write to the file. `busy`: other connections lock the file for longer
    ///   than the busy timeout.
    /// * `unsupported`: the file system has no shared memory. `storage_full`: the disk is full.
    pub async fn open(mut config: SqliteConfig) -> Result<Self> {
        config.check()?;
        if let DatabaseLocation::File(path) = &mut config.location {
            // Readers are opened later, when the working directory may be a different one.
            *path = std::path::absolute(&*path).map_err(|cause| {
                Error::invalid_argument("the path of the SQLite file cannot be made absolute").with_source(cause)
            })?;
        }
        let config = Arc::new(config);
        let opened = Arc::clone(&config);
        let open = move || {
            let connection = within_size_limit(|| connect::open(&opened))?;
            let reserve = DiskReserveFile::beside(&opened.location);
            reserve.allocate();
            Ok::<_, SqliteError>((connection, reserve))
        };
        let (first, reserve) = run_blocking(&Handle::current(), open).await??;
        let pool = |size, open| ConnectionPool::new(Arc::clone(&config), size, open);
        let writer = Arc::new(pool(1, vec![first]));
        let (readers, watch) = match config.location {
            DatabaseLocation::File(_) => {
                (Arc::new(pool(config.readers, Vec::new())), ChangeNotifier::new(Some(pool(1, Vec::new()))))
            }
            DatabaseLocation::Memory => (Arc::clone(&writer), ChangeNotifier::new(None)),
        };
        Ok(Self { inner: Arc::new(SqliteShared { config, writer, readers, watch, reserve: Arc::new(reserve) }) })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &SqliteConfig {
        &self.inner.config
    }

    /// Returns the size of the file and of the data other than values.
    ///
    /// # Errors
    ///
    /// As every operation.
    pub async fn file_stats(&self) -> Result<SqliteStats> {
        self.inner.readers.read(stats::file_stats).await
    }

    /// Copies a snapshot into a new file at `to` while the store is in use, and returns its size in bytes.
    ///
    /// An unfinished copy is an empty file, or none.
    ///
    /// # Errors
    ///
    /// `already_exists` if `to` is a database that is not empty; `cancelled` if the future was dropped; and the errors
    /// of [`open`](Self::open) for a file that cannot be created.
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<u64> {
        let guard = InterruptGuard::default();
        let (token, to) = (guard.token(), to.as_ref().to_owned());
        let copy = move |connection: &mut Connection| within_size_limit(|| backup::backup(connection, &to, &token));
        self.inner.readers.run(copy).await
    }

    async fn change(
        &self,
        namespace: &Namespace,
        conditions: Vec<Condition>,
        writes: Vec<Write>,
        record: Option<OperationRecord>,
    ) -> Result<Option<BatchOutcome>> {
        check_staged(namespace, &writes)?;
        for write in &writes {
            if let Write::Put(path, NewValue { content: ValueContent::Bytes(content), .. }) = write
                && content.len() as u64 > content::MAX_VALUE
            {
                let reason = format!("{} bytes are more than the 1 GiB that a SQLite store can hold", content.len());
                return Err(Error::new(ErrorKind::TooLarge, reason).with_path(path));
            }
        }
        let reserve =
            writes.iter().all(|write| matches!(write, Write::Delete(_))).then(|| Arc::clone(&self.inner.reserve));
        let purge_passes = trigram_index::IndexUpdateTiming::of(&writes).purge_passes;
        let (namespace, search_index) = (namespace.clone(), self.inner.config.search_index);
        let work = move |connection: &Connection| {
            if let Some(record) = &record
                && operation_records::find(connection, &namespace, &record.key)?.is_some()
            {
                return Ok(TransactionEnd::RollBack(None));
            }
            let outcome = change::batch(connection, &namespace, search_index, &conditions, &writes)?;
            if !matches!(outcome, BatchOutcome::Applied(_)) {
                return Ok(TransactionEnd::RollBack(Some(outcome)));
            }
            if let Some(record) = &record {
                operation_records::insert(connection, &namespace, record)?;
            }
            Ok(TransactionEnd::Commit(Some(outcome)))
        };
        // The notification is part of the blocking work: this future may be dropped before the commit.
        let inner = Arc::clone(&self.inner);
        let outcome = self.inner.writer.change(work, reserve, move || inner.watch.notify()).await?;
        if matches!(outcome, Some(BatchOutcome::Applied(_))) {
            self.purge_removed(purge_passes).await;
        }
        Ok(outcome)
    }

    /// Removes deleted files from the search index, in up to `passes` transactions, between which others may change the
    /// file. Later changes remove the files that are left after these, or after a failure.
    async fn purge_removed(&self, passes: usize) {
        let purge = |connection: &Connection| trigram_index::purge_removed(connection).map(TransactionEnd::Commit);
        for pass in 0..passes {
            if pass > 0 {
                tokio::time::sleep(PURGE_PAUSE).await;
            }
            match self.inner.writer.change(purge, None, || {}).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) if error.is_temporary() => {
                    tracing::debug!(%error, "removed files are still in the search index of a SQLite store");
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "removed files are still in the search index of a SQLite store");
                    return;
                }
            }
        }
    }

    /// Applies a batch without an operation record.
    async fn batch_unrecorded(
        &self,
        namespace: &Namespace,
        conditions: Vec<Condition>,
        writes: Vec<Write>,
    ) -> Result<BatchOutcome> {
        let outcome = self.change(namespace, conditions, writes, None).await?;
        outcome.ok_or_else(|| Error::of(ErrorKind::Internal))
    }

    /// Applies a batch of one `write` at `key`.
    async fn change_one(&self, key: &Key, write: Write, expected: &Precondition) -> Result<PutOutcome> {
        let condition = Condition::At(key.path.clone(), expected.clone());
        self.batch_unrecorded(&key.namespace, vec![condition], vec![write]).await?.into_single()
    }
}

impl fmt::Display for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.config.location {
            DatabaseLocation::File(path) => write!(f, "SQLite file {}", path.display()),
            DatabaseLocation::Memory => f.write_str("SQLite in memory"),
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Store for SqliteStore {
    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities::new(content::MAX_VALUE)
            .transactions(TransactionSupport::Namespace)
            .max_path(VfsPath::MAX_LEN)
            .level_order(LevelOrder::Keys)
            .bulk_reads(true)
    }

    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
        let Key { namespace, path } = key.clone();
        let find = move |connection: &Connection| {
            let Some(id) = file_rows::namespace_id(connection, &namespace)? else { return Ok(None) };
            Ok(file_rows::find(connection, id, path.as_str())?.map(|found| found.stored))
        };
        self.inner.readers.read(find).await
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        let Key { namespace, path } = key.clone();
        let read = move |connection: &Connection| {
            let Some(id) = file_rows::namespace_id(connection, &namespace)? else { return Ok(None) };
            let Some(found) = file_rows::find(connection, id, path.as_str())? else { return Ok(None) };
            let content = content::read(connection, found.id, found.stored.size, range)?;
            Ok(Some(StoredValue::new(found.stored, content)))
        };
        self.inner.readers.read(read).await
    }

    async fn stat_many(&self, namespace: &Namespace, paths: &[VfsPath]) -> Result<Vec<PathStat>> {
        let (namespace, paths) = (namespace.clone(), paths.to_vec());
        let stat = move |connection: &Connection| {
            let Some(id) = file_rows::namespace_id(connection, &namespace)? else {
                return Ok(vec![PathStat::default(); paths.len()]);
            };
            let stat = |path: &VfsPath| {
                let found = file_rows::find(connection, id, path.as_str())?;
                Ok(PathStat::new(found.map(|found| found.stored), file_rows::has_below(connection, id, path)?))
            };
            paths.iter().map(stat).collect()
        };
        self.inner.readers.read(stat).await
    }

    async fn get_many(
        &self,
        namespace: &Namespace,
        paths: &[VfsPath],
        max_size: u64,
    ) -> Result<Vec<Option<StoredValue>>> {
        let (namespace, paths) = (namespace.clone(), paths.to_vec());
        let read = move |connection: &Connection| {
            let Some(id) = file_rows::namespace_id(connection, &namespace)? else { return Ok(vec![None; paths.len()]) };
            let read = |path: &VfsPath| {
                let Some(found) = file_rows::find(connection, id, path.as_str())? else { return Ok(None) };
                if found.stored.size > max_size {
                    return Ok(None);
                }
                let content = content::read(connection, found.id, found.stored.size, None)?;
                Ok(Some(StoredValue::new(found.stored, content)))
            };
            paths.iter().map(read).collect()
        };
        self.inner.readers.read(read).await
    }

    async fn put(&self, key: &Key, value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
        self.change_one(key, Write::Put(key.path.clone(), value), expected).await
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        self.change_one(key, Write::Delete(key.path.clone()), expected).await
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let (namespace, request) = (namespace.clone(), request.clone());
        let list = move |connection: &Connection| match file_rows::namespace_id(connection, &namespace)? {
            Some(id) => list::list(connection, id, &request),
            None => Ok(Page::default()),
        };
        self.inner.readers.read(list).await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        let list = |connection: &Connection| {
            let mut statement =
                connection.prepare_cached("SELECT name FROM namespaces WHERE files > 0 ORDER BY name")?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            names.map(|name| Namespace::parse(&name?).map_err(|_| SqliteError::damaged())).collect()
        };
        self.inner.readers.read(list).await
    }

    fn as_batch(&self) -> Option<&dyn BatchStore> {
        Some(self)
    }

    fn as_changes(&self) -> Option<&dyn StoreChangeLog> {
        Some(self)
    }

    fn as_search(&self) -> Option<&dyn Search> {
        Some(self)
    }

    fn as_operations(&self) -> Option<&dyn IdempotentOperations> {
        Some(self)
    }

    fn as_staging(&self) -> Option<&dyn Staging> {
        Some(self)
    }

    fn as_inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
}

#[async_trait]
impl BatchStore for SqliteStore {
    async fn batch(&self, namespace: &Namespace, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
        self.batch_unrecorded(namespace, conditions.to_vec(), writes).await
    }
}

#[async_trait]
impl StoreChangeLog for SqliteStore {
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence> {
        let namespace = namespace.clone();
        self.inner.readers.read(move |connection| change_log::last_sequence(connection, &namespace)).await
    }

    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage> {
        let namespace = namespace.clone();
        self.inner.readers.read(move |connection| change_log::since(connection, &namespace, seen, limit)).await
    }

    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()> {
        loop {
            // Listen before reading the sequence, so that no change in between is missed.
            let listener = self.inner.watch.listen();
            if self.last_sequence(namespace).await? != seen {
                return Ok(());
            }
            self.inner.watch.wait(listener).await?;
        }
    }
}

#[async_trait]
impl Search for SqliteStore {
    async fn candidates(
        &self,
        namespace: &Namespace,
        prefix: &VfsPath,
        query: &TextQuery,
    ) -> Result<Option<CandidateKeys>> {
        let (namespace, prefix, query) = (namespace.clone(), prefix.clone(), query.clone());
        let search = move |connection: &Connection| match file_rows::namespace_id(connection, &namespace)? {
            Some(id) => trigram_index::candidates(connection, id, &prefix, &query),
            None => Ok(Some(CandidateKeys::new())),
        };
        self.inner.readers.read(search).await
    }
}

/// The verification reads one snapshot while the store is in use: integrity of the file, contents, counts, change log
/// and search index. Dropping its future cancels it.
#[async_trait]
impl Inspect for SqliteStore {
    async fn check(&self) -> Result<CheckReport> {
        let guard = InterruptGuard::default();
        let token = guard.token();
        let check = move |connection: &mut Connection| {
            token.run_interruptible(connection, |connection| verify::verify(connection, &token))
        };
        self.inner.readers.run(check).await
    }

    async fn stats(&self) -> Result<StoreStats> {
        self.inner.readers.read(stats::stats).await
    }
}
