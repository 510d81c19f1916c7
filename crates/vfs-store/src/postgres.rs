//! Store in a Postgres database.

mod change;
mod change_listener;
mod change_log;
mod change_parameters;
mod config;
mod error;
mod inspect;
mod list;
mod operation_records;
mod pooled_connection;
mod postgres_client;
mod read;
mod retry;
mod row_conversion;
mod schema;
mod search;
mod session_settings;
mod staging;
mod statement;
mod tls;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use self::change_listener::ChangeListener;
use self::error::PostgresResult;
use self::postgres_client::PostgresClient;
use self::retry::DeadlineBackoff;
use crate::store::{
    BatchOutcome, BatchStore, CandidateKeys, ChangePage, CheckReport, Condition, IdempotentOperations, Inspect, Key,
    ListRequest, Namespace, NewValue, Page, PathStat, Precondition, PutOutcome, Search, Sequence, Staging, Store,
    StoreCapabilities, StoreChangeLog, StoreStats, StoredMeta, StoredValue, TextQuery, TransactionSupport, Write,
};

pub use self::config::{PostgresConfig, PostgresTls};

/// Store in a schema of a Postgres database of version 13 or later, shared by any number of processes.
///
/// # Behaviour
///
/// * A clone is another handle of the same connections.
/// * Each change is a transaction that locks its namespace from its first write of a file to its commit: changes of one namespace
///   are serialised and numbered without gaps; those of different namespaces do not wait for each other.
/// * If the connection is lost during a commit, the store queries the outcome of the transaction: no change is applied
///   twice, or acknowledged without being applied. If the server does not notice that its client has disconnected, this takes up to
///   45 s, or the time of retries if that is longer.
/// * Values have at most 256 MiB, or 1 TiB if they are [staged](Staging) in parts; paths at most 2,048 bytes. Times
///   have microsecond precision.
/// * Copies and moves share the content of their source.
/// * Behind a pooler such as PgBouncer, set `pooled=true` in the URL, whatever its mode.
/// * A change feed uses an additional connection. Commits in namespaces with a feed wait for each other, because of
///   `NOTIFY`.
/// * If the extension `pg_trgm` exists or can be created by this user, [`Search`] indexes UTF-8 files of at most 128
///   KiB for literals of at least three letters; all other files are always candidates.
///
/// ```no_run
/// use vfs_store::{Inspect, PostgresConfig, PostgresStore};
///
/// # async fn example() -> vfs_core::Result<()> {
/// let store = PostgresStore::open(PostgresConfig::new("postgres://agents:secret@db.example.org/files")?).await?;
/// println!("{} files", store.stats().await?.files);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore(Arc<PostgresShared>);

/// State that all handles of a Postgres store share.
struct PostgresShared {
    server: PostgresClient,
    listener: ChangeListener,
    /// Channel of `NOTIFY` and `LISTEN`.
    channel: Arc<str>,
    can_search: bool,
}

impl PostgresStore {
    /// Connects to the server, and creates the schema and its tables if they are missing. Safe to call concurrently.
    ///
    /// # Errors
    ///
    /// `unavailable` if no server answers; `permission_denied` for wrong credentials and missing rights;
    /// `invalid_argument` if the database is missing, is not encoded in UTF-8, or has tables of another program or of a
    /// newer version.
    pub async fn open(config: PostgresConfig) -> Result<Self> {
        let server = PostgresClient::new(config)?;
        let mut retries = DeadlineBackoff::new(server.config.retry_for);
        let can_search = loop {
            match Self::prepare(&server).await {
                Ok(can_search) => break can_search,
                // A server that cannot be reached was probably never started, so report that at once.
                Err(fault) if fault.is_transient() && !fault.is_connect_failure() && retries.wait().await => {}
                Err(fault) => return Err(fault.describe(&server.config)),
            }
        };
        let channel: Arc<str> = format!("vfs:{}", server.config.schema).into();
        let listener = ChangeListener::new(&server, Arc::clone(&channel));
        Ok(Self(Arc::new(PostgresShared { server, listener, channel, can_search })))
    }

    async fn prepare(server: &PostgresClient) -> PostgresResult<bool> {
        let mut connection = server.connection().await?;
        let result = schema::prepare(server, &mut connection).await;
        connection.finish(result)
    }

    async fn change(&self, namespace: &Namespace, conditions: &[Condition], writes: &[Write]) -> Result<BatchOutcome> {
        let outcome = change::change(&self.0.server, &self.0.channel, namespace, conditions, writes, None).await?;
        outcome.ok_or_else(|| Error::new(ErrorKind::Internal, "a change has no result; report it"))
    }

    /// Applies one write if the value at `key` is as `expected`.
    async fn change_one(&self, key: &Key, write: Write, expected: &Precondition) -> Result<PutOutcome> {
        let condition = Condition::At(key.path.clone(), expected.clone());
        let outcome = self.change(&key.namespace, &[condition], &[write]).await;
        outcome.and_then(BatchOutcome::into_single).map_err(|error| error.or_path(&key.path))
    }
}

/// Writes the location of the store, without user and password.
impl fmt::Display for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.0.server.config;
        write!(
            f,
            "the schema '{}' of the Postgres database '{}' at {}",
            config.schema,
            config.database(),
            config.address()
        )
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("config", &self.0.server.config)
            .field("can_search", &self.0.can_search)
            .finish_non_exhaustive()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Store for PostgresStore {
    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities::new(change_parameters::MAX_VALUE)
            .max_path(change_parameters::MAX_PATH)
            .transactions(TransactionSupport::Namespace)
            .bulk_reads(true)
    }

    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
        read::head(&self.0.server, key).await
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        read::get(&self.0.server, key, range).await
    }

    async fn stat_many(&self, namespace: &Namespace, paths: &[VfsPath]) -> Result<Vec<PathStat>> {
        read::stat_many(&self.0.server, namespace, paths).await
    }

    async fn get_many(
        &self,
        namespace: &Namespace,
        paths: &[VfsPath],
        max_size: u64,
    ) -> Result<Vec<Option<StoredValue>>> {
        read::get_many(&self.0.server, namespace, paths, max_size).await
    }

    async fn put(&self, key: &Key, value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
        self.change_one(key, Write::Put(key.path.clone(), value), expected).await
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        self.change_one(key, Write::Delete(key.path.clone()), expected).await
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        list::list(&self.0.server, namespace, request).await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        list::namespaces(&self.0.server).await
    }

    fn as_batch(&self) -> Option<&dyn BatchStore> {
        Some(self)
    }

    fn as_changes(&self) -> Option<&dyn StoreChangeLog> {
        Some(self)
    }

    fn as_search(&self) -> Option<&dyn Search> {
        self.0.can_search.then_some(self as &dyn Search)
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
impl BatchStore for PostgresStore {
    async fn batch(&self, namespace: &Namespace, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
        self.change(namespace, conditions, &writes).await
    }
}

#[async_trait]
impl StoreChangeLog for PostgresStore {
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence> {
        change_log::last_sequence(&self.0.server, namespace).await
    }

    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage> {
        change_log::since(&self.0.server, namespace, seen, limit).await
    }

    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()> {
        change_log::changed(&self.0.server, &self.0.listener, namespace, seen).await
    }
}

#[async_trait]
impl Search for PostgresStore {
    async fn candidates(
        &self,
        namespace: &Namespace,
        prefix: &VfsPath,
        query: &TextQuery,
    ) -> Result<Option<CandidateKeys>> {
        search::candidates(&self.0.server, namespace, prefix, query).await
    }
}

#[async_trait]
impl Inspect for PostgresStore {
    /// Verifies one snapshot while the store is in use.
    async fn check(&self) -> Result<CheckReport> {
        inspect::verify(&self.0.server).await
    }

    async fn stats(&self) -> Result<StoreStats> {
        inspect::stats(&self.0.server).await
    }
}
