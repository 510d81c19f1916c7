//! Stores under test, and the features that laws need from them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use vfs_core::Result;
use vfs_store::{Store, StoreCapabilities, TimestampSource};

use crate::laws::StoreLaw;

/// One empty store that a law has for itself, and the facts about it that the trait does not show.
#[derive(Clone)]
#[non_exhaustive]
pub struct StoreTarget {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The same values through another handle, opened as another process would.
    pub second: Option<Arc<dyn Store>>,
    /// The events that change a version. Default [`Versions::OfContent`].
    pub versions: Versions,
    exceptions: Vec<(&'static str, &'static str)>,
    guard: Option<Arc<dyn Any + Send + Sync>>,
}

/// The events that change the version of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Versions {
    /// Content: with the same content at the same path comes the same version.
    OfContent,
    /// A change: the same content put again may have another version.
    OfChange,
}

impl StoreTarget {
    /// A fresh and empty `store`.
    pub fn new(store: impl Store) -> Self {
        Self {
            store: Arc::new(store),
            second: None,
            versions: Versions::OfContent,
            exceptions: Vec::new(),
            guard: None,
        }
    }

    /// Lets the laws of two handles run, and every race go over both.
    #[must_use]
    pub fn with_second(mut self, second: impl Store) -> Self {
        self.second = Some(Arc::new(second));
        self
    }

    /// Sets the events that change a version.
    #[must_use]
    pub fn with_versions(mut self, versions: Versions) -> Self {
        self.versions = versions;
        self
    }

    /// Leaves the law `number` out, for a `reason` that lies in the server and not in the store.
    #[must_use]
    pub fn except(mut self, number: &'static str, reason: &'static str) -> Self {
        self.exceptions.push((number, reason));
        self
    }

    /// Keeps `guard`, such as a temporary directory or a server, for as long as the target lives.
    #[must_use]
    pub fn holding(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// Why `law` does not apply; `None` where it does.
    pub(crate) fn exception_of(&self, law: &StoreLaw) -> Option<&'static str> {
        let excepted = self.exceptions.iter().find(|(number, _)| *number == law.number);
        law.need.missing_in(self).or(excepted.map(|(_, reason)| *reason))
    }
}

impl fmt::Debug for StoreTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreTarget")
            .field("store", &self.store)
            .field("second", &self.second)
            .field("versions", &self.versions)
            .field("exceptions", &self.exceptions)
            .field("guard", &self.guard.is_some())
            .finish()
    }
}

/// The features that a law needs from a store, beside the trait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreNeed {
    /// Nothing.
    Nothing,
    /// Batches.
    Batch,
    /// A record of changes.
    Changes,
    /// Batches, and a record of changes.
    BatchAndChanges,
    /// A search for the values that may hold a text.
    Search,
    /// Batches, and a search for the values that may hold a text.
    BatchAndSearch,
    /// Another handle of the same values.
    Second,
    /// Another handle, and batches.
    BatchAndSecond,
    /// Another handle, and a record of changes.
    ChangesAndSecond,
    /// Times that are stored as the caller gives them.
    KeptTimes,
    /// Versions that are those of the content.
    VersionsOfContent,
    /// A limit of values that is small enough to go over it.
    SmallValues,
    /// A limit of paths under that of all paths.
    ShortPaths,
}

/// The largest limit of values that a law goes over, in bytes.
pub(crate) const MAX_SMALL_VALUE: u64 = 16 * 1024 * 1024;

impl StoreNeed {
    /// Why `target` does not have it; `None` where it does.
    pub fn missing_in(self, target: &StoreTarget) -> Option<&'static str> {
        let StoreCapabilities { max_value, max_path, .. } = target.store.capabilities();
        let batch = (target.store.as_batch().is_some(), "this store makes one change at a time");
        let changes = (target.store.as_changes().is_some(), "this store records no changes");
        let search = (target.store.as_search().is_some(), "this store cannot search");
        let second = (target.second.is_some(), "there is no other handle of the same values");
        let needs = match self {
            StoreNeed::Nothing => vec![],
            StoreNeed::Batch => vec![batch],
            StoreNeed::Changes => vec![changes],
            StoreNeed::BatchAndChanges => vec![batch, changes],
            StoreNeed::Search => vec![search],
            StoreNeed::BatchAndSearch => vec![batch, search],
            StoreNeed::Second => vec![second],
            StoreNeed::BatchAndSecond => vec![batch, second],
            StoreNeed::ChangesAndSecond => vec![changes, second],
            StoreNeed::KeptTimes => {
                vec![(
                    target.store.capabilities().timestamps == TimestampSource::Caller,
                    "this store sets the times of values",
                )]
            }
            StoreNeed::VersionsOfContent => {
                vec![(target.versions == Versions::OfContent, "each change has a version of its own")]
            }
            StoreNeed::SmallValues => vec![(max_value <= MAX_SMALL_VALUE, "the limit of values is too large to test")],
            StoreNeed::ShortPaths => {
                vec![(max_path < vfs_core::VfsPath::MAX_LEN, "values may have any path")]
            }
        };
        needs.into_iter().find_map(|(met, reason)| (!met).then_some(reason))
    }
}

/// Makes fresh stores of one kind.
#[derive(Clone)]
#[non_exhaustive]
pub struct StoreFactory {
    /// The first part of its trials' names.
    pub name: &'static str,
    /// Why there are none here, such as a server whose address is not known: every law is then ignored.
    pub absent: Option<&'static str>,
    /// Makes a store that no other law has seen, on the law's own runtime.
    pub make: Arc<MakeStore>,
}

/// Makes a store.
pub type MakeStore = dyn Fn() -> BoxFuture<'static, Result<StoreTarget>> + Send + Sync;

impl StoreFactory {
    /// Calls `make` for each law.
    pub fn new<F>(name: &'static str, make: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<StoreTarget>> + Send + 'static,
    {
        Self { name, absent: None, make: Arc::new(move || Box::pin(make())) }
    }

    /// Says that there are none here, and why.
    #[must_use]
    pub fn absent(mut self, reason: &'static str) -> Self {
        self.absent = Some(reason);
        self
    }
}

impl fmt::Debug for StoreFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreFactory").field("name", &self.name).field("absent", &self.absent).finish_non_exhaustive()
    }
}
