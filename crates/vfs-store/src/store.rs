//! The trait of key-value stores with conditional changes.

mod change_log;
mod content;
mod key;
mod operation_records;
mod report;
mod staging;
mod values;

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use vfs_core::{Result, VfsPath};

pub(crate) use self::content::{version_of, version_of_hash};
pub(crate) use self::values::check_staged;

pub use self::change_log::{ChangePage, ChangeRecord, Sequence, StoreChangeLog};
pub use self::content::ValueContent;
pub use self::key::{Key, Namespace};
pub use self::operation_records::{IdempotentOperations, OperationRecord};
pub use self::report::{CheckReport, StoreStats};
pub use self::staging::{STAGED_PART_BYTES, StagedContent, Staging, StagingToken};
pub use self::values::{
    BatchOutcome, CandidateKeys, Condition, Entry, LevelOrder, ListDepth, ListRequest, NewValue, Page, PageToken,
    PathStat, Precondition, PutOutcome, StoreCapabilities, StoredMeta, StoredValue, TextQuery, TimestampSource,
    TransactionSupport, Write, WriteId,
};

/// Key-value store with conditional changes.
///
/// # Behaviour
///
/// * Changes are atomic: a reader gets the value before or after a change. An acknowledged change is durable and visible to every
///   process that uses the store.
/// * A change is a compare-and-swap: of concurrent writers that expect the same version, one gets [`PutOutcome::Applied`].
/// * A store has no directories: `/a` and `/a/b` may both exist. Only [`list`](Self::list) treats `/` as a separator.
/// * If the connection is lost before an answer, the store finds out by the [`WriteId`] or by other state of the server whether the
///   change was applied. If it was not, the store repeats it or returns `unavailable`. If the future of a change is dropped, the
///   change may be applied or not.
/// * Every [`VfsPath`] is a valid path; paths are compared byte by byte.
///
/// # Errors
///
/// A failed precondition is no error, but [`PutOutcome::PreconditionFailed`]. The kind of an error says what became of a change:
///
/// * The change may have been applied: `unavailable` if the server cannot be reached, fails, is overloaded or limits the rate of
///   requests, or if the outcome is unknown; `timeout` if the server did not finish in time.
/// * The change was not applied, and a later attempt may succeed: `busy` if the store is locked, or its connections are in use, for
///   too long.
/// * The change was not applied, and the same request fails again: `permission_denied` for wrong credentials or missing rights;
///   `storage_full` for a full disk or memory; `quota_exceeded` for a quota of the server; `too_large` for a value over
///   [`StoreCapabilities::max_value`]; `invalid_path` for a path over [`StoreCapabilities::max_path`]; `unsupported` if the server
///   lacks a feature that the store needs, such as conditional requests; `invalid_argument` if the store is unusable (no database,
///   of a newer version, damaged), with advice; `conflict` for a put of a [staged](Staging) content during whose completion another
///   writer changed the value.
/// * Unspecified: `internal`, for a bug.
///
/// Errors need not name a path, and never contain a password.
///
/// [`StoreBackend`](crate::StoreBackend) retries a change after a failed precondition, but no request after an error: a store
/// retries transient failures itself, for a bounded time. An error ends the call and is returned, with the path of the call if the
/// error has none. The exceptions:
///
/// * After `unavailable`, `timeout`, `cancelled` or `internal`, all uploaded files of a batch fail; after other kinds, each of them is
///   put on its own.
/// * A search whose index fails with a [temporary](vfs_core::ErrorKind::is_temporary) kind reads all files; a search with a limit
///   usually does so after every error of the index. Requests for single paths, or listings, take the place of a failed `stat_many` or
///   `get_many`.
/// * Without batches, a failed rename or copy is rolled back before the error is returned, and a new file whose put failed is removed
///   if there is a file above or below it by then.
/// * A rename or copy repeats a put of staged content after `conflict`.
/// * A mutation with an operation id returns the recorded result if there is one.
///
/// The layer `Retry` of `vfs-layers` repeats every operation after `busy`, and after `unavailable` and `timeout` only those that
/// are safe to repeat.
#[async_trait]
pub trait Store: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// Returns the limits and optional features of this store.
    fn capabilities(&self) -> StoreCapabilities;

    /// Returns the metadata of a value, or `None` if there is none.
    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>>;

    /// Returns a value or a `range` of its bytes, clamped to its size, or `None` if there is none.
    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>>;

    /// Returns the presence of values at and below each of `paths`, in their order.
    ///
    /// The default calls [`head`](Self::head) and [`list`](Self::list) for each path.
    async fn stat_many(&self, namespace: &Namespace, paths: &[VfsPath]) -> Result<Vec<PathStat>> {
        stat_each(self, namespace, paths).await
    }

    /// Returns the values at `paths`, in their order; `None` for a path without a value or with one of more than `max_size` bytes. A
    /// store may also return `None` for values of over 64 KiB.
    ///
    /// The default sends requests for single paths.
    async fn get_many(
        &self,
        namespace: &Namespace,
        paths: &[VfsPath],
        max_size: u64,
    ) -> Result<Vec<Option<StoredValue>>> {
        get_each(self, namespace, paths, max_size).await
    }

    /// Stores a value if the current value meets the precondition.
    async fn put(&self, key: &Key, value: NewValue, expected: &Precondition) -> Result<PutOutcome>;

    /// Removes a value if it meets the precondition. Without a value the outcome is `PreconditionFailed(None)`.
    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome>;

    /// Lists one page of values.
    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page>;

    /// Returns the namespaces that have a value, sorted.
    async fn namespaces(&self) -> Result<Vec<Namespace>>;

    /// Returns the batches of this store, if it supports them.
    fn as_batch(&self) -> Option<&dyn BatchStore> {
        None
    }

    /// Returns the change log of this store, if it has one.
    fn as_changes(&self) -> Option<&dyn StoreChangeLog> {
        None
    }

    /// Returns the search index of this store, if it has one.
    fn as_search(&self) -> Option<&dyn Search> {
        None
    }

    /// Returns the recorded batches of this store, if it supports them.
    fn as_operations(&self) -> Option<&dyn IdempotentOperations> {
        None
    }

    /// Returns the staging of large contents, if the store has one.
    fn as_staging(&self) -> Option<&dyn Staging> {
        None
    }

    /// Returns the store's own verification and counts, if it can verify more than its values.
    fn as_inspect(&self) -> Option<&dyn Inspect> {
        None
    }
}

/// Upper bound on the number of concurrent requests for several values.
const MAX_CONCURRENT_REQUESTS: usize = 16;

/// Implements [`Store::stat_many`] by one request for each path.
pub(crate) async fn stat_each<S: Store + ?Sized>(
    store: &S,
    namespace: &Namespace,
    paths: &[VfsPath],
) -> Result<Vec<PathStat>> {
    let stats: Vec<_> = paths.iter().map(|path| stat(store, namespace, path)).collect();
    stream::iter(stats).buffered(MAX_CONCURRENT_REQUESTS).try_collect().await
}

/// Implements [`Store::get_many`] by one request for each path.
pub(crate) async fn get_each<S: Store + ?Sized>(
    store: &S,
    namespace: &Namespace,
    paths: &[VfsPath],
    max_size: u64,
) -> Result<Vec<Option<StoredValue>>> {
    let get = |path: &VfsPath| {
        let key = Key::new(namespace.clone(), path.clone());
        async move {
            if key.path.is_root() {
                return Ok(None);
            }
            let value = store.get(&key, Some(0..max_size)).await?;
            Ok(value.filter(|value| value.stored.size <= max_size))
        }
    };
    let values: Vec<_> = paths.iter().map(get).collect();
    stream::iter(values).buffered(MAX_CONCURRENT_REQUESTS).try_collect().await
}

async fn stat<S: Store + ?Sized>(store: &S, namespace: &Namespace, path: &VfsPath) -> Result<PathStat> {
    let key = Key::new(namespace.clone(), path.clone());
    let (stored, has_below) = futures::try_join!(
        async { if path.is_root() { Ok(None) } else { store.head(&key).await } },
        has_below(store, namespace, path)
    )?;
    Ok(PathStat::new(stored, has_below))
}

/// Returns `true` if a listing of one level below `path` has an entry, a directory or a problem.
pub(crate) async fn has_below<S: Store + ?Sized>(store: &S, namespace: &Namespace, path: &VfsPath) -> Result<bool> {
    let mut request = ListRequest::level(path.clone()).limit(1);
    loop {
        let page = store.list(namespace, &request).await?;
        if !page.entries.is_empty() || !page.directories.is_empty() || !page.problems.is_empty() {
            return Ok(true);
        }
        let Some(next) = page.next else { return Ok(false) };
        request = request.from(next);
    }
}

/// Atomic changes of several values of one namespace.
#[async_trait]
pub trait BatchStore: Send + Sync {
    /// Applies all `writes` in their order if all `conditions` hold, else none of them.
    ///
    /// # Behaviour
    ///
    /// * Conditions refer to the state before the first write. The batch is isolated from other writers: a condition holds until
    ///   the last write, also one for the absence of values.
    /// * A [`Write::Move`] or [`Write::Copy`] without a source and a [`Write::Delete`] without a value fail the batch like a
    ///   condition, after all conditions.
    /// * [`StoreBackend`](crate::StoreBackend) uploads small files in batches of at most 256 files and 4 MiB. The rename, copy or
    ///   recursive delete of a directory is one batch with a write for each file.
    ///
    /// # Errors
    ///
    /// Those of [`Store`], and `too_large` for a batch that is too large for the store as a whole.
    async fn batch(&self, namespace: &Namespace, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome>;
}

/// Search index of contents.
#[async_trait]
pub trait Search: Send + Sync {
    /// Returns the paths at and below `prefix` whose values may contain a literal of the query; no other value contains one.
    ///
    /// Returns `None` if the index cannot answer, for example because the literals are too short, or if there are more candidates
    /// than [`TextQuery::max_candidates`].
    ///
    /// A value that is not text (it has a NUL byte or is not UTF-8) is always a candidate, as only its reader can decide whether it is
    /// binary or in another encoding. `prefix` may be the root or the path of a value.
    async fn candidates(
        &self,
        namespace: &Namespace,
        prefix: &vfs_core::VfsPath,
        query: &TextQuery,
    ) -> Result<Option<CandidateKeys>>;
}

/// Verification and counts by the store itself.
#[async_trait]
pub trait Inspect: Send + Sync {
    /// Reads and verifies every value, and the indexes, counts and chunks of the store.
    async fn check(&self) -> Result<CheckReport>;

    /// Counts namespaces, values and bytes.
    async fn stats(&self) -> Result<StoreStats>;
}

macro_rules! forward_store {
    ($($pointer:ty),*) => {$(
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<S: Store + ?Sized> Store for $pointer {
            fn capabilities(&self) -> StoreCapabilities {
                (**self).capabilities()
            }

            async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
                (**self).head(key).await
            }

            async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
                (**self).get(key, range).await
            }

            async fn stat_many(&self, namespace: &Namespace, paths: &[VfsPath]) -> Result<Vec<PathStat>> {
                (**self).stat_many(namespace, paths).await
            }

            async fn get_many(
                &self,
                namespace: &Namespace,
                paths: &[VfsPath],
                max_size: u64,
            ) -> Result<Vec<Option<StoredValue>>> {
                (**self).get_many(namespace, paths, max_size).await
            }

            async fn put(&self, key: &Key, value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
                (**self).put(key, value, expected).await
            }

            async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
                (**self).delete(key, expected).await
            }

            async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
                (**self).list(namespace, request).await
            }

            async fn namespaces(&self) -> Result<Vec<Namespace>> {
                (**self).namespaces().await
            }

            fn as_batch(&self) -> Option<&dyn BatchStore> {
                (**self).as_batch()
            }

            fn as_changes(&self) -> Option<&dyn StoreChangeLog> {
                (**self).as_changes()
            }

            fn as_search(&self) -> Option<&dyn Search> {
                (**self).as_search()
            }

            fn as_operations(&self) -> Option<&dyn IdempotentOperations> {
                (**self).as_operations()
            }

            fn as_staging(&self) -> Option<&dyn Staging> {
                (**self).as_staging()
            }

            fn as_inspect(&self) -> Option<&dyn Inspect> {
                (**self).as_inspect()
            }
        }
    )*};
}

forward_store!(std::sync::Arc<S>, Box<S>);
