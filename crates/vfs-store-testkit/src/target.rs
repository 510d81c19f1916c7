//! Stores under test, and the features that laws need from them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use vfs_core::Result;
use vfs_store::{LevelOrder, MemoryStore, STAGED_PART_BYTES, Store, StoreCapabilities, TimestampSource};

use crate::laws::StoreLaw;

/// Empty store for one law, with properties that the trait does not show.
#[derive(Clone)]
#[non_exhaustive]
pub struct StoreTarget {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Another handle of the same values, opened as by another process.
    pub(crate) second: Option<Arc<dyn Store>>,
    /// The events that change a version. Default [`VersionScheme::OfContent`].
    pub versions: VersionScheme,
    open: Option<Arc<OpenStore>>,
    exceptions: Vec<(&'static str, &'static str)>,
    guard: Option<Arc<dyn Any + Send + Sync>>,
}

/// Function that opens the values of a target once more.
type OpenStore = dyn Fn() -> BoxFuture<'static, Result<Arc<dyn Store>>> + Send + Sync;

/// Kind of events that change the version of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VersionScheme {
    /// Changes of the content: the same content at the same path has the same version.
    OfContent,
    /// All changes: the same content may have another version if it is put again.
    OfChange,
}

impl StoreTarget {
    /// Creates a target of a fresh and empty `store`, without the laws of two handles.
    pub fn new(store: impl Store) -> Self {
        Self::with_store(Arc::new(store))
    }

    /// Creates a target of the values that `open` opens, which are empty at first.
    ///
    /// Each call of `open` must open them as another process would, for example a file by its path: laws of two handles and races
    /// use two results, and another law expects the values in a result that is opened after all others are dropped. A store whose
    /// values live only as long as its process returns clones.
    ///
    /// # Errors
    ///
    /// Those of `open`.
    pub async fn opened_by<S: Store, F>(open: impl Fn() -> F + Send + Sync + 'static) -> Result<Self>
    where
        F: Future<Output = Result<S>> + Send + 'static,
    {
        let open: Arc<OpenStore> = Arc::new(move || {
            let opened = open();
            Box::pin(async { Ok(Arc::new(opened.await?) as Arc<dyn Store>) })
        });
        let mut target = Self::with_store(open().await?);
        target.second = Some(open().await?);
        target.open = Some(open);
        Ok(target)
    }

    fn with_store(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            second: None,
            versions: VersionScheme::OfContent,
            open: None,
            exceptions: Vec::new(),
            guard: None,
        }
    }

    /// Drops both handles, and then opens the values again.
    pub(crate) async fn reopen(&mut self) -> Result<()> {
        let open = self.open.as_ref().expect("the law needs it");
        self.second = None;
        self.store = Arc::new(MemoryStore::new());
        self.store = open().await?;
        Ok(())
    }

    /// Sets the events that change a version.
    #[must_use]
    pub fn with_versions(mut self, versions: VersionScheme) -> Self {
        self.versions = versions;
        self
    }

    /// Excludes the law `number`, for a `reason` that is due to the server and not to the store.
    #[must_use]
    pub fn except(mut self, number: &'static str, reason: &'static str) -> Self {
        self.exceptions.push((number, reason));
        self
    }

    /// Drops `guard`, such as a temporary directory or a server, together with the target.
    #[must_use]
    pub fn with_guard(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// Returns why `law` does not apply, or `None` if it applies.
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

/// Features that a law needs from a store, in addition to the trait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreNeed {
    /// Nothing.
    Nothing,
    /// Batches.
    Batch,
    /// A change log.
    Changes,
    /// Batches, and a change log.
    BatchAndChanges,
    /// A search for the values that may contain a text.
    Search,
    /// Batches, and a search for the values that may contain a text.
    BatchAndSearch,
    /// Contents that are staged in parts.
    Staging,
    /// Batches, and contents that are staged in parts.
    BatchAndStaging,
    /// Pages of a level in the order of keys.
    KeyOrder,
    /// Another handle of the same values.
    Second,
    /// Another handle, and batches.
    BatchAndSecond,
    /// Another handle, and a change log.
    ChangesAndSecond,
    /// Times that are stored as the caller sets them.
    StoredTimes,
    /// Versions that depend on the content only.
    VersionsOfContent,
    /// A maximum size of values that is small enough to exceed it in a test.
    SmallValues,
    /// A maximum length of paths below that of all paths.
    ShortPaths,
}

/// Largest maximum size of values in bytes that a law exceeds.
pub(crate) const MAX_SMALL_VALUE: u64 = 16 * 1024 * 1024;

/// Size in bytes of the contents that laws stage: more than a part, so that there are two.
pub(crate) const STAGED_BYTES: usize = STAGED_PART_BYTES + 12_345;

impl StoreNeed {
    /// Returns why `target` lacks these features, or `None` if it has them.
    pub fn missing_in(self, target: &StoreTarget) -> Option<&'static str> {
        let StoreCapabilities { max_value, max_path, level_order, .. } = target.store.capabilities();
        let batch = (target.store.as_batch().is_some(), "this store makes one change at a time");
        let changes = (target.store.as_changes().is_some(), "this store records no changes");
        let search = (target.store.as_search().is_some(), "this store cannot search");
        let staging = (
            target.store.as_staging().is_some_and(|staging| staging.max_size() >= STAGED_BYTES as u64),
            "this store stages no contents of several parts",
        );
        let second = (target.second.is_some(), "there is no other handle of the same values");
        let needs = match self {
            StoreNeed::Nothing => vec![],
            StoreNeed::Batch => vec![batch],
            StoreNeed::Changes => vec![changes],
            StoreNeed::BatchAndChanges => vec![batch, changes],
            StoreNeed::Search => vec![search],
            StoreNeed::BatchAndSearch => vec![batch, search],
            StoreNeed::Staging => vec![staging],
            StoreNeed::BatchAndStaging => vec![batch, staging],
            StoreNeed::KeyOrder => vec![(level_order == LevelOrder::Keys, "this store promises no order of a level")],
            StoreNeed::Second => vec![second],
            StoreNeed::BatchAndSecond => vec![batch, second],
            StoreNeed::ChangesAndSecond => vec![changes, second],
            StoreNeed::StoredTimes => {
                vec![(
                    target.store.capabilities().timestamps == TimestampSource::Caller,
                    "this store sets the times of values",
                )]
            }
            StoreNeed::VersionsOfContent => {
                vec![(target.versions == VersionScheme::OfContent, "each change has a version of its own")]
            }
            StoreNeed::SmallValues => vec![(max_value <= MAX_SMALL_VALUE, "the limit of values is too large to test")],
            StoreNeed::ShortPaths => {
                vec![(max_path < vfs_core::VfsPath::MAX_LEN, "values may have any path")]
            }
        };
        needs.into_iter().find_map(|(is_fulfilled, reason)| (!is_fulfilled).then_some(reason))
    }
}

/// Factory of fresh stores of one kind.
#[derive(Clone)]
#[non_exhaustive]
pub struct StoreFactory {
    /// The first part of the names of the trials.
    pub name: &'static str,
    /// The reason why there is no such store here, such as a server without a configured address. If set, every law is
    /// ignored.
    pub absent: Option<&'static str>,
    /// Creates a store that no other law has used, on the runtime of the law.
    pub make: Arc<MakeStore>,
}

/// Function that creates a store.
pub type MakeStore = dyn Fn() -> BoxFuture<'static, Result<StoreTarget>> + Send + Sync;

impl StoreFactory {
    /// Creates a factory that calls `make` for each law.
    pub fn new<F>(name: &'static str, make: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<StoreTarget>> + Send + 'static,
    {
        Self { name, absent: None, make: Arc::new(move || Box::pin(make())) }
    }

    /// Sets the reason why there is no such store here.
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
