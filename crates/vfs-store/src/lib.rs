//! Files in a key-value store, shared by many agents on many machines.
//!
//! A [`Store`] is small and dumb: values under keys, changed on conditions and listed by prefix. [`StoreBackend`] owns all
//! semantics of files over any of them.

mod backend;
mod copy;
mod inspect;
mod key;
mod memory;
#[cfg(feature = "object-store")]
mod object;
mod open;
mod pages;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod url;

pub use backend::{DocumentForm, Documents, NamespaceOf, NamespaceSource, StoreBackend, StoreConfig};
pub use copy::{Copied, CopyOptions, Existing, copy};
pub use inspect::{check, stats};
pub use key::{Key, Namespace};
pub use memory::MemoryStore;
#[cfg(feature = "object-store")]
pub use object::{BucketConfig, BucketService, BucketStore};
pub use open::open_store;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresConfig, PostgresStore, PostgresTls};
#[cfg(feature = "redis")]
pub use redis::{RedisConfig, RedisStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteConfig, SqliteDurability, SqliteSearchIndex, SqliteStats, SqliteStore};
pub use store::{
    Abilities, Atomicity, Batch, BatchOutcome, Candidates, ChangePage, Changes, CheckReport, Condition, Entry,
    Expected, Inspect, LevelOrder, ListRequest, Listed, Needles, NewValue, Outcome, Page, PageToken, PathStat,
    Position, Search, Store, StoreStats, Stored, Tell, Times, Value, Write, WriteId,
};
pub use url::{Parameters, StoreUrl};
