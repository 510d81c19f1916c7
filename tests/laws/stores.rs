//! Every law of a store on every store, as one named trial each: `store::subject::law`.
//!
//! A store of yours is one line in `trials` and one function, which makes it empty and for one law only:
//!
//! ```ignore
//! async fn sqlite() -> Result<StoreTarget> {
//!     let directory = tempfile::tempdir().expect("a directory can be made");
//!     let config = SqliteConfig::new(directory.path().join("laws.db"));
//!     Ok(StoreTarget::opened_by(move || SqliteStore::open(config.clone())).await?.with_guard(directory))
//! }
//! ```
//!
//! * `opened_by` lets the laws of two processes run, and every race go over two handles.
//! * `with_times` and `with_versions` say where the store has times or versions of its own, as object storage does.
//! * `except` leaves out the law of a number, such as `SL4`, where the server, and not the store, cannot do it; it says why.
//! * `from_env` ignores every law of a store whose server's address is not in the environment.

use std::future::ready;
use std::sync::Arc;

use libtest_mimic::Trial;
use object_store::memory::InMemory;
use vfs_core::Result;
use vfs_store::{
    BucketStore, MemoryStore, PostgresConfig, PostgresStore, RedisConfig, RedisStore, SqliteConfig, SqliteStore,
};
use vfs_store_testkit::{StoreFactory, StoreTarget, VersionScheme, store_trials};

use crate::servers::{Schema, drop_schema};
use crate::{buckets, in_process};

pub(crate) fn trials() -> Vec<Trial> {
    let factories = [
        StoreFactory::new("memory", || memory(MemoryStore::new())),
        StoreFactory::new("memory-single", || memory(MemoryStore::single_valued())),
        StoreFactory::new("memory-limited", || memory(MemoryStore::new().max_value(6 << 20).max_path(1024))),
        StoreFactory::new("sqlite", sqlite),
        StoreFactory::new("sqlite-memory", sqlite_in_memory),
        from_env("postgres", "VFS_TEST_POSTGRES", "VFS_TEST_POSTGRES is not the URL of a Postgres server", postgres),
        from_env("postgres-pooled", "VFS_TEST_PGBOUNCER", "VFS_TEST_PGBOUNCER is not the URL of a pooler", postgres),
        StoreFactory::new("bucket-memory", bucket_in_memory),
        StoreFactory::new("bucket-s3s-fs", in_process::s3s_fs),
        from_env("bucket-moto", "VFS_TEST_S3", "VFS_TEST_S3 is not the endpoint of a moto server", buckets::moto),
        from_env("redis", "VFS_TEST_REDIS", "VFS_TEST_REDIS is not the URL of a Redis server", redis),
    ];
    factories.into_iter().flat_map(store_trials).collect()
}

async fn memory(store: MemoryStore) -> Result<StoreTarget> {
    StoreTarget::opened_by(move || ready(Ok(store.clone()))).await
}

/// Stores on one file, as several processes have.
async fn sqlite() -> Result<StoreTarget> {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let config = SqliteConfig::new(directory.path().join("laws.db"));
    Ok(StoreTarget::opened_by(move || SqliteStore::open(config.clone())).await?.with_guard(directory))
}

async fn sqlite_in_memory() -> Result<StoreTarget> {
    let store = SqliteStore::open(SqliteConfig::in_memory()).await?;
    StoreTarget::opened_by(move || ready(Ok(store.clone()))).await
}

/// In memory; each object has a version of its own.
async fn bucket_in_memory() -> Result<StoreTarget> {
    let store = BucketStore::new(Arc::new(InMemory::new()), "laws")?;
    let target = StoreTarget::opened_by(move || ready(Ok(store.clone()))).await?;
    Ok(target.with_versions(VersionScheme::OfChange))
}

/// Stores on the server whose address is in `variable`; where it is not set, every law is ignored for the `reason`.
fn from_env<F>(
    name: &'static str,
    variable: &str,
    reason: &'static str,
    make: impl Fn(String) -> F + Send + Sync + 'static,
) -> StoreFactory
where
    F: Future<Output = Result<StoreTarget>> + Send + 'static,
{
    let url = std::env::var(variable).ok();
    let is_absent = url.is_none();
    let factory = StoreFactory::new(name, move || make(url.clone().unwrap_or_default()));
    if is_absent { factory.absent(reason) } else { factory }
}

/// Under a prefix that no other law has.
async fn redis(url: String) -> Result<StoreTarget> {
    let config = RedisConfig::new(&url)?.prefix(&format!("laws-{:016x}", fastrand::u64(..)))?;
    StoreTarget::opened_by(move || RedisStore::open(config.clone())).await
}

/// In a schema that no other law has, dropped with the target.
async fn postgres(url: String) -> Result<StoreTarget> {
    let schema = Schema::new(&url, "laws");
    let config = PostgresConfig::new(&url)?.schema(&schema.name).pool_size(4);
    let guard = Dropped(Some(schema));
    Ok(StoreTarget::opened_by(move || PostgresStore::open(config.clone())).await?.with_guard(guard))
}

/// The schema is taken away with the target.
struct Dropped(Option<Schema>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(drop_schema);
    }
}
