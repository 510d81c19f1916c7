//! What a store does: the small trait that everything else is built on.

mod changes;
mod report;
mod values;

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use vfs_core::Result;

use crate::key::{Key, Namespace};

pub(crate) use self::values::version_of;

pub use self::changes::{ChangePage, Changes, Position, Tell};
pub use self::report::{CheckReport, StoreStats};
pub use self::values::{
    Abilities, Atomicity, BatchOutcome, Candidates, Condition, Entry, Expected, LevelOrder, ListRequest, Listed,
    Needles, NewValue, Outcome, Page, PageToken, Stored, Times, Value, Write, WriteId,
};

/// Values under keys.
///
/// # Behaviour
///
/// * A change is whole: whoever reads gets the value before it or after it. Once it is acknowledged it is there for every
///   process that uses the store, and stays.
/// * A condition is checked and the change made in one step: of any number of writers that expect the same version, one is
///   [`Outcome::Done`].
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
/// `storage_full` for a full disk or memory; `too_large` for a value over [`Abilities::max_value`]; `invalid_argument` where the store
/// itself is not what it should be (not a database, of a newer version, damaged), saying what to do. Errors need not name a path.
/// None shows a password.
#[async_trait]
pub trait Store: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// What this store can do.
    fn abilities(&self) -> Abilities;

    /// What is known of a value without its content; `None` where there is none.
    async fn head(&self, key: &Key) -> Result<Option<Stored>>;

    /// A value, or the part of it that `range` (in bytes, cut at its end) asks for; `None` where there is none.
    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Value>>;

    /// Puts a value in place of what is there, if that is what is `expected`.
    async fn put(&self, key: &Key, value: NewValue, expected: &Expected) -> Result<Outcome>;

    /// Removes a value, if it is what is `expected`. That there is none is [`Outcome::Refused`] with nothing found.
    async fn delete(&self, key: &Key, expected: &Expected) -> Result<Outcome>;

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
    /// [`Needles::most`]; all values then may.
    ///
    /// A value that is not text, having a NUL or not being UTF-8, is always among them: whether it is binary, and what it says in
    /// another encoding, only those can tell who read it. `prefix` may be the root, and it may be the path of a value.
    async fn candidates(
        &self,
        namespace: &Namespace,
        prefix: &vfs_core::VfsPath,
        needles: &Needles,
    ) -> Result<Option<Candidates>>;
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
            fn abilities(&self) -> Abilities {
                (**self).abilities()
            }

            async fn head(&self, key: &Key) -> Result<Option<Stored>> {
                (**self).head(key).await
            }

            async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Value>> {
                (**self).get(key, range).await
            }

            async fn put(&self, key: &Key, value: NewValue, expected: &Expected) -> Result<Outcome> {
                (**self).put(key, value, expected).await
            }

            async fn delete(&self, key: &Key, expected: &Expected) -> Result<Outcome> {
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
