//! Store in a Redis server.

mod change;
mod change_log;
mod config;
mod connection;
mod error;
mod key_names;
mod list;
mod operation_records;
mod read;
mod reply;
mod retention_times;
mod staging;
mod value_header;
mod verify;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use self::change_log::BlockingConnectionPool;
use self::connection::{RedisClient, RedisRequest};
use self::key_names::KeyNames;
use self::reply::ReplyParts;
use self::value_header::MAX_VALUE;
use crate::store::{
    BatchOutcome, BatchStore, Condition, IdempotentOperations, Inspect, Key, LevelOrder, ListRequest, Namespace,
    NewValue, Page, PathStat, Precondition, PutOutcome, Search, Staging, Store, StoreCapabilities, StoreChangeLog,
    StoredMeta, StoredValue, TransactionSupport, Write, get_each, stat_each,
};

pub use self::config::RedisConfig;

/// Version of the oldest server that has all commands of the store.
const MIN_SERVER_VERSION: (u32, u32) = (6, 2);
/// Maximum number of namespaces that are queried at the same time.
const MAX_CONCURRENT_REQUESTS: usize = 16;

/// Store in a Redis server, or a compatible one, of version 6.2 or later.
///
/// # Behaviour
///
/// * A change with its conditions, and likewise a batch, is one atomic script. A server executes one script at a time:
///   while it moves 10,000 files, all other clients wait.
/// * A change whose connection was lost is repeated with the same id for at most five minutes. The server stores the
///   outcomes of the last ten minutes, about 200 bytes each, so that it applies the change once.
/// * An acknowledged change is as durable as the server: with `appendonly yes` and `appendfsync always` it is on its
///   disk, with `everysec` a crash of the machine may lose the last second, without either all since the last snapshot.
///   Replicas follow a moment later.
/// * A server that reaches its `maxmemory` must refuse changes (`maxmemory-policy noeviction`, the default). With
///   another policy it removes files, and with them what makes repeated changes safe; opening such a server logs a
///   warning.
/// * The cost of listing a directory depends on the number of its entries, not on the number of files below them.
/// * The log has at least the last 4,096 changes of a namespace. A server that lost its last changes in a crash may
///   reuse their sequence numbers.
/// * All keys begin with the [`prefix`](RedisConfig::prefix). A user of the server needs `~prefix:* +@all -@admin
///   -@dangerous +info`. Only the verification of the whole store ([`Inspect::check`]) scans all keys of the server, in
///   small steps, to find files that are missing in the index. It reports index entries without a file only if this
///   handle has no expiry.
/// * A foreign value at the key of a file is an error for that file, and a problem in a listing.
///
/// # Example
///
/// ```no_run
/// use vfs_store::{RedisConfig, RedisStore};
///
/// # async fn open() -> vfs_core::Result<()> {
/// let store = RedisStore::open(RedisConfig::new("redis://localhost")?).await?;
/// # Ok(())
/// # }
/// ```
///
/// A clone is another handle with the same connections.
#[derive(Debug, Clone)]
pub struct RedisStore {
    inner: Arc<RedisShared>,
}

/// State that all handles of a Redis store share.
#[derive(Debug)]
struct RedisShared {
    client: RedisClient,
    names: KeyNames,
    /// Expiry of a file in milliseconds; 0 if files do not expire.
    ttl: u64,
    blocking: BlockingConnectionPool,
}

impl RedisStore {
    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// Without retries: `unavailable` if no server answers, `permission_denied` for a wrong user or password and
    /// for a read-only replica, `unsupported` for a server that is too old.
    pub async fn open(config: RedisConfig) -> Result<Self> {
        let client = RedisClient::new(&config)?;
        let ttl = config.ttl.map_or(0, |ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let store = Self {
            inner: Arc::new(RedisShared {
                client,
                names: config.names,
                ttl,
                blocking: BlockingConnectionPool::default(),
            }),
        };
        store.check_server().await?;
        Ok(store)
    }

    /// Checks that the server is suitable for a store.
    async fn check_server(&self) -> Result<()> {
        let info = self.link().ask_once(RedisRequest::Command(::redis::cmd("INFO"))).await?;
        let info = String::from_utf8_lossy(&reply::bytes(info)?).into_owned();
        let find = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        let address = self.link().address();
        let version = find("redis_version").unwrap_or_default();
        let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
        if numbers.next().zip(numbers.next()).is_some_and(|found| found < MIN_SERVER_VERSION) {
            let message = format!(
                "the server at {address} is Redis {version}; version {}.{} or later is needed",
                MIN_SERVER_VERSION.0, MIN_SERVER_VERSION.1
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if find("role") == Some("slave") && find("slave_read_only") == Some("1") {
            let message =
                format!("the Redis server at {address} is a read-only replica; use the address of the primary");
            return Err(Error::new(ErrorKind::PermissionDenied, message));
        }
        if let Some(policy) = find("maxmemory_policy").filter(|policy| *policy != "noeviction") {
            tracing::warn!(server = address, policy, "this Redis server may remove files when its memory is full");
        }
        Ok(())
    }

    fn link(&self) -> &RedisClient {
        &self.inner.client
    }

    fn names(&self) -> &KeyNames {
        &self.inner.names
    }

    async fn change_one(&self, key: &Key, expected: &Precondition, write: Write) -> Result<PutOutcome> {
        let conditions = [Condition::At(key.path.clone(), expected.clone())];
        let outcome = self.batch(&key.namespace, &conditions, vec![write]).await?;
        outcome.into_single().map_err(|error| reply::unexpected().with_source(error))
    }

    /// Returns the names on the server of all namespaces that were ever written to.
    async fn registered_namespaces(&self) -> Result<Vec<Vec<u8>>> {
        let request = |_| {
            let mut cmd = ::redis::cmd("SMEMBERS");
            cmd.arg(self.names().namespaces());
            RedisRequest::Command(cmd)
        };
        let mut parts = ReplyParts::new(self.link().ask(request).await?)?;
        let mut names = Vec::new();
        while !parts.is_empty() {
            names.push(parts.bytes()?);
        }
        Ok(names)
    }

    async fn has_value(&self, namespace: &Namespace) -> Result<bool> {
        let mut request = ListRequest::all(vfs_core::VfsPath::root()).limit(1);
        loop {
            let page = self.list(namespace, &request).await?;
            match page.next {
                _ if !page.entries.is_empty() => return Ok(true),
                Some(next) => request = request.from(next),
                None => return Ok(false),
            }
        }
    }
}

impl fmt::Display for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redis at {} under '{}'", self.link().address(), self.names().prefix())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Store for RedisStore {
    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities::new(MAX_VALUE).transactions(TransactionSupport::Namespace).level_order(LevelOrder::Keys)
    }

    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
        Ok(self.read_piece(key, 0..0).await?.map(|value| value.stored))
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        self.read(key, range.unwrap_or(0..u64::MAX)).await
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
        self.change_one(key, expected, Write::Put(key.path.clone(), value)).await
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        self.change_one(key, expected, Write::Delete(key.path.clone())).await
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        self.list_page(namespace, request).await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        let readable = self
            .registered_namespaces()
            .await?
            .into_iter()
            .filter_map(|name| std::str::from_utf8(&name).ok().and_then(|name| Namespace::parse(name).ok()));
        let requests = futures::stream::iter(readable).map(|namespace| async move {
            let has_value = self.has_value(&namespace).await?;
            Ok::<_, Error>(has_value.then_some(namespace))
        });
        let found: Vec<Option<Namespace>> = requests.buffer_unordered(MAX_CONCURRENT_REQUESTS).try_collect().await?;
        let mut namespaces: Vec<Namespace> = found.into_iter().flatten().collect();
        namespaces.sort_unstable();
        Ok(namespaces)
    }

    fn as_batch(&self) -> Option<&dyn BatchStore> {
        Some(self)
    }

    fn as_changes(&self) -> Option<&dyn StoreChangeLog> {
        Some(self)
    }

    fn as_search(&self) -> Option<&dyn Search> {
        None
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
impl BatchStore for RedisStore {
    async fn batch(&self, namespace: &Namespace, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
        let outcome = self.make(namespace, conditions, &writes, None).await?;
        outcome.ok_or_else(reply::unexpected)
    }
}
