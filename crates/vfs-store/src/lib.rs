//! Files in a key-value store, shared by many agents on many machines.
//!
//! A [`Store`] is small: values under keys, conditional changes, and listings by prefix. [`StoreBackend`] implements the semantics of
//! files over any of them.

mod admin;
mod backend;
mod documents;
mod memory;
#[cfg(feature = "object-store")]
mod object;
mod pinned_value;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;

pub use admin::{
    ConflictPolicy, CopyOptions, CopyReport, StoreUrl, StoreUrlParameters, check, copy, open_store, stats,
};
pub use backend::{NamespaceFn, NamespaceSource, StoreBackend, StoreConfig};
pub use documents::{DocumentForm, DocumentStore};
pub use memory::MemoryStore;
#[cfg(feature = "object-store")]
pub use object::{BucketConfig, BucketProvider, BucketStore};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresConfig, PostgresStore, PostgresTls};
#[cfg(feature = "redis")]
pub use redis::{RedisConfig, RedisStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteConfig, SqliteDurability, SqliteSearchIndex, SqliteStats, SqliteStore};
pub use store::{
    BatchOutcome, BatchStore, CandidateKeys, ChangePage, ChangeRecord, CheckReport, Condition, Entry,
    IdempotentOperations, Inspect, Key, LevelOrder, ListDepth, ListRequest, Namespace, NewValue, OperationRecord, Page,
    PageToken, PathStat, Precondition, PutOutcome, STAGED_PART_BYTES, Search, Sequence, StagedContent, Staging,
    StagingToken, Store, StoreCapabilities, StoreChangeLog, StoreStats, StoredMeta, StoredValue, TextQuery,
    TimestampSource, TransactionSupport, ValueContent, Write, WriteId,
};
