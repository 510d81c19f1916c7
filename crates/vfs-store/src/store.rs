//! What a store does: the small trait that everything else is built on.

mod changes;
mod key;
mod report;
mod values;

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use vfs_core::{Result, VfsPath};

pub(crate) use self::values::version_of;

pub use self::changes::{ChangePage, ChangeRecord, Changes, Sequence};
pub use self::key::{Key, Namespace};
pub use self::report::{CheckReport, StoreStats};
pub use self::values::{
    BatchOutcome, CandidateKeys, Condition, Entry, LevelOrder, ListDepth, ListRequest, NewValue, Page, PageToken,
    PathStat, Precondition, PutOutcome, StoreCapabilities, StoredMeta, StoredValue, TextQuery, TimestampSource,
    TransactionSupport, Write, WriteId,
};

/// Values under keys.
///
/// # Behaviour
///
/// * A change is whole: whoever reads gets the value before it or after it. Once it is acknowledged it is there for every
///   process that uses the store, and stays.
/// * A condition is checked and the change made in one step: of any number of writers that expect the same version, one is
///   [`PutOutcome::Applied`].
/// * A store knows nothing of directories: `/a` and `/a/b` may both be there. Only [`list`](Self::list) knows that `/` parts
///   names.
/// * An operation whose connection is lost before its answer came finds out what became of it, by its [`WriteId`] or what else the
///   server remembers, and is tried again only where it was not made. Dropping the future of a change leaves it made or not.
/// * Paths are any that [`VfsPath`](vfs_core::VfsPath) can be, compared byte by byte.
///
/// # Errors
///
/// `unavailable` where the server cannot be reached, is overloaded, or the outcome of a change cannot be known; `timeout`;
/// `busy` where something else holds the store for too long; `permission_denied` for wrong credentials or missing rights;
/// `storage_full` for a full disk or memory; `too_large` for a value over [`StoreCapabilities::max_value`]; `invalid_argument` where the store
/// itself is not what it should be (not a database, of a newer version, damaged), saying what to do. Errors need not name a path.
/// None shows a password.
#[async_trait]
pub trait Store: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// What this store can do.
    fn capabilities(&self) -> StoreCapabilities;

    /// What is known of a value without its content; `None` where there is none.
    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>>;

    /// A value, or the part of it that `range` (in bytes, cut at its end) asks for; `None` where there is none.
    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>>;

    /// What is at and below each of `paths`, in their order.
    ///
    /// Looks at one after the other, unless the store can answer for all at once.
    async fn stat_many(&self, namespace: &Namespace, paths: &[VfsPath]) -> Result<Vec<PathStat>> {
        stat_each(self, namespace, paths).await
    }

    /// The values at `paths` that have at most `max_size` bytes, in their order; `None` where there is none, or a larger one. A store
    /// may leave out those of over 64 KiB whatever `max_size` is.
    ///
    /// Gets one after the other, unless the store can send all at once.
    async fn get_many(
        &self,
        namespace: &Namespace,
        paths: &[VfsPath],
        max_size: u64,
    ) -> Result<Vec<Option<StoredValue>>> {
        get_each(self, namespace, paths, max_size).await
    }

    /// Puts a value in place of what is there, if that is what is `expected`.
    async fn put(&self, key: &Key, value: NewValue, expected: &Precondition) -> Result<PutOutcome>;

    /// Removes a value, if it is what is `expected`. That there is none is [`PutOutcome::PreconditionFailed`] with nothing found.
    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome>;

    /// Lists values, a page at a time.
    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page>;

    /// The namespaces that hold a value, sorted.
    async fn namespaces(&self) -> Result<Vec<Namespace>>;

    /// Makes many changes as one, where the store can.
    fn as_batch(&self) -> Option<&dyn Batch> {
        None
    }

    /// Tells of changes, where the store can.
    fn as_changes(&self) -> Option<&dyn Changes> {
        None
    }

    /// Says which values may hold a text, where the store can tell without reading them.
    fn as_search(&self) -> Option<&dyn Search> {
        None
    }

    /// Looks at the store as a whole, where it can say more than its values do.
    fn as_inspect(&self) -> Option<&dyn Inspect> {
        None
    }
}

/// How many requests for several values are on their way at once.
const REQUESTS_AT_ONCE: usize = 16;

/// [`Store::stat_many`] by requests for one path each.
pub(crate) async fn stat_each<S: Store + ?Sized>(
    store: &S,
    namespace: &Namespace,
    paths: &[VfsPath],
) -> Result<Vec<PathStat>> {
    let stats: Vec<_> = paths.iter().map(|path| stat(store, namespace, path)).collect();
    stream::iter(stats).buffered(REQUESTS_AT_ONCE).try_collect().await
}

/// [`Store::get_many`] by requests for one path each.
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
    stream::iter(values).buffered(REQUESTS_AT_ONCE).try_collect().await
}

async fn stat<S: Store + ?Sized>(store: &S, namespace: &Namespace, path: &VfsPath) -> Result<PathStat> {
    let key = Key::new(namespace.clone(), path.clone());
    let (stored, has_below) = futures::try_join!(
        async { if path.is_root() { Ok(None) } else { store.head(&key).await } },
        has_below(store, namespace, path)
    )?;
    Ok(PathStat::new(stored, has_below))
}

async fn has_below<S: Store + ?Sized>(store: &S, namespace: &Namespace, path: &VfsPath) -> Result<bool> {
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

/// Makes many changes as one.
#[async_trait]
pub trait Batch: Send + Sync {
    /// Makes all the `writes` in their order if all the `conditions` hold, else none of them.
    ///
    /// # Behaviour
    ///
    /// Conditions are those of the moment before the first write, and hold until the last: nobody comes in between. A
    /// [`Write::Move`] or [`Write::Copy`] whose source is missing, and a [`Write::Delete`] of nothing, refuse the batch; name
    /// conditions for them where another refusal is wanted.
    async fn batch(&self, namespace: &Namespace, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome>;
}

/// Says which values may hold a text.
#[async_trait]
pub trait Search: Send + Sync {
    /// The values at and below `prefix` that may hold one of the `needles`; every other one holds none of them.
    ///
    /// `None` where the store cannot tell, as for needles that are too short, and where they are more than
    /// [`TextQuery::most`]; all values then may.
    ///
    /// A value that is not text, having a NUL or not being UTF-8, is always among them: whether it is binary, and what it says in
    /// another encoding, only those can tell who read it. `prefix` may be the root, and it may be the path of a value.
    async fn candidates(
        &self,
        namespace: &Namespace,
        prefix: &vfs_core::VfsPath,
        query: &TextQuery,
    ) -> Result<Option<CandidateKeys>>;
}

/// Looks at a store as a whole.
#[async_trait]
pub trait Inspect: Send + Sync {
    /// Reads every value and verifies it, with all that the store keeps beside values: indexes, counts, pieces.
    async fn check(&self) -> Result<CheckReport>;

    /// Counts what is there.
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

            fn as_batch(&self) -> Option<&dyn Batch> {
                (**self).as_batch()
            }

            fn as_changes(&self) -> Option<&dyn Changes> {
                (**self).as_changes()
            }

            fn as_search(&self) -> Option<&dyn Search> {
                (**self).as_search()
            }

            fn as_inspect(&self) -> Option<&dyn Inspect> {
                (**self).as_inspect()
            }
        }
    )*};
}

forward_store!(std::sync::Arc<S>, Box<S>);
