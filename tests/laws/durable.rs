//! Files over durable stores: SQLite, and the servers whose addresses are in the environment.

use std::future::Future;
use std::sync::Arc;

use libtest_mimic::{Completion, Trial};
use object_store::memory::InMemory;
use tokio::runtime::{Builder, Runtime};
use vfs_core::{Result, VfsPath};
use vfs_store::{
    BucketStore, Namespace, PostgresConfig, PostgresStore, RedisConfig, RedisStore, SqliteConfig, SqliteStore, Store,
    StoreBackend, StoreConfig, TransactionSupport,
};
use vfs_store_testkit::StoreTarget;
use vfs_testkit::{LawTier, Target, TargetFactory};

use crate::buckets;
use crate::servers::{Schema, drop_schema};

/// Every law over every one of them. What was made on servers for all laws together goes with the guard.
pub(crate) fn trials() -> (Vec<Trial>, Option<Schema>) {
    let mut trials = laws("store-sqlite", LawTier::Semantics, sqlite);
    trials.extend(laws("store-sqlite-memory", LawTier::Storage, async || {
        Ok(StoreTarget::new(SqliteStore::open(SqliteConfig::in_memory()).await?))
    }));
    let bucket = async || Ok(StoreTarget::new(BucketStore::new(Arc::new(InMemory::new()), "laws")?));
    trials.extend(except(laws("store-bucket-memory", LawTier::Storage, bucket), &[LISTED_TIMES]));
    // Not over s3s-fs, which keeps objects as files: it has a fault if a file is requested at the path of a directory.
    // The laws of storage hold on a bucket in memory; a request to moto takes ten times as long as one to the other servers.
    let moto = on_server("store-bucket-moto", LawTier::Wrapper, "VFS_TEST_S3", buckets::moto);
    trials.extend(except(moto, &[LISTED_TIMES]));
    trials.extend(on_server("store-redis", LawTier::Storage, "VFS_TEST_REDIS", redis));
    // A schema takes a while to make, so that the laws share one, each in a namespace of its own.
    let schema = std::env::var("VFS_TEST_POSTGRES").ok().map(|url| Schema::new(&url, "files"));
    let name = schema.as_ref().map(|schema| schema.name.clone()).unwrap_or_default();
    let postgres = move |url| postgres(url, name.clone());
    trials.extend(on_server("store-postgres", LawTier::Storage, "VFS_TEST_POSTGRES", postgres));
    (trials, schema)
}

/// Takes away what the laws made on a server.
pub(crate) fn clear(schema: Option<Schema>) {
    schema.into_iter().for_each(drop_schema);
}

async fn sqlite() -> Result<StoreTarget> {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let store = SqliteStore::open(SqliteConfig::new(directory.path().join("files.db"))).await?;
    Ok(StoreTarget::new(store).with_guard(directory))
}

async fn redis(url: String) -> Result<StoreTarget> {
    let config = RedisConfig::new(&url)?.prefix(&format!("files-{:016x}", fastrand::u64(..)))?;
    Ok(StoreTarget::new(RedisStore::open(config).await?))
}

async fn postgres(url: String, schema: String) -> Result<StoreTarget> {
    let config = PostgresConfig::new(&url)?.schema(&schema).pool_size(4);
    Ok(StoreTarget::new(PostgresStore::open(config).await?))
}

fn laws<F>(name: &'static str, tier: LawTier, open: impl Fn() -> F + Send + Sync + 'static) -> Vec<Trial>
where
    F: Future<Output = Result<StoreTarget>>,
{
    let factory = TargetFactory::new(name, move || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let opened = runtime.block_on(open()).expect("the store can be opened");
        let store: Arc<dyn Store> = Arc::clone(&opened.store);
        let capabilities = store.capabilities();
        let namespace = match capabilities.transactions {
            // A bucket is made for each law, and its keys have the namespace in them.
            TransactionSupport::SingleValue => Namespace::default(),
            TransactionSupport::Namespace => {
                Namespace::parse(&format!("laws/{:016x}", fastrand::u64(..))).expect("a namespace")
            }
        };
        let files = StoreBackend::with_config(store, StoreConfig::new().namespace(namespace));
        let target = Target::new(Arc::new(files)).with_longest_path(capabilities.max_path.min(VfsPath::MAX_LEN));
        target.with_guard((opened, RuntimeGuard(Some(runtime))))
    });
    vfs_testkit::trials(factory.tier(tier))
}

/// The same laws on the server whose address is in `variable`; all are ignored where it is not set.
fn on_server<F>(
    name: &'static str,
    tier: LawTier,
    variable: &'static str,
    open: impl Fn(String) -> F + Send + Sync + 'static,
) -> Vec<Trial>
where
    F: Future<Output = Result<StoreTarget>>,
{
    let url = std::env::var(variable).ok();
    let is_there = url.is_some();
    let trials = laws(name, tier, move || open(url.clone().unwrap_or_default()));
    if is_there { trials } else { ignored(trials, |_| Some("its server's address is not in the environment")) }
}

/// Laws that cannot hold, by a part of their names, and why.
type Exception = (&'static [&'static str], &'static str);

/// Laws that compare the times of `stat` with those of a listing.
const LISTED_TIMES: Exception = (
    &["entries_agree_with_stat"],
    "a listing of a bucket has the time at which the service received an object, not the times of the file",
);

fn except(trials: Vec<Trial>, exceptions: &'static [Exception]) -> Vec<Trial> {
    let is_in = |name: &str, (parts, _): &&Exception| parts.iter().any(|part| name.contains(part));
    ignored(trials, |name| exceptions.iter().find(|exception| is_in(name, exception)).map(|(_, reason)| *reason))
}

/// The same trials, those for which there is a `reason` ignored with it.
pub(crate) fn ignored<R>(trials: Vec<Trial>, reason: impl Fn(&str) -> Option<R>) -> Vec<Trial>
where
    R: ToString + Send + 'static,
{
    let ignore = |trial: Trial| match reason(trial.name()) {
        Some(reason) => {
            let name = trial.name().to_owned();
            Trial::ignorable_test(name, move || Ok(Completion::ignored_with(reason)))
        }
        None => trial,
    };
    trials.into_iter().map(ignore).collect()
}

/// Runtime of the store's connections. A law ends on a runtime of its own, which cannot wait for another one.
struct RuntimeGuard(Option<Runtime>);

impl Drop for RuntimeGuard {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
