//! Helper functions of the laws of stores.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use vfs_core::{Result, VfsPath};
use vfs_store::{
    BatchOutcome, Condition, Entry, Key, ListDepth, ListRequest, Namespace, NewValue, Page, Precondition, PutOutcome,
    Store, StoredMeta, StoredValue, TimestampSource, Write,
};

use super::StoreTarget;

/// Timeout after which a law treats a store as hanging. It is not a requirement on speed.
pub(super) const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the namespace of laws that are not about namespaces.
pub(super) fn home() -> Namespace {
    namespace("laws/home")
}

/// Returns the namespace `text`.
pub(super) fn namespace(text: &str) -> Namespace {
    Namespace::parse(text).expect("laws name valid namespaces")
}

/// Returns the path `text`.
pub(super) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("laws name valid paths")
}

/// Returns the key of a path in the namespace of the laws.
pub(super) fn key(text: &str) -> Key {
    Key::new(home(), path(text))
}

/// Returns a time with microseconds, which a store must not round.
pub(super) fn moment(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 123_456_000).expect("it is a time") + TimeDelta::seconds(seconds)
}

/// Returns a value that was created at one time and changed at a later one.
pub(super) fn value(content: impl Into<Bytes>) -> NewValue {
    NewValue::new(content.into(), moment(10)).created_at(moment(0))
}

/// Returns `size` random bytes, different for each `seed`.
pub(super) fn noise(size: usize, seed: u64) -> Bytes {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; size];
    random.fill(&mut bytes);
    bytes.into()
}

/// Returns a write that puts `content`.
pub(super) fn put(at: &str, content: &'static str) -> Write {
    Write::Put(path(at), value(content))
}

/// Returns a write that deletes a value.
pub(super) fn delete(at: &str) -> Write {
    Write::Delete(path(at))
}

/// Returns a write that moves a value.
pub(super) fn rename(from: &str, to: &str) -> Write {
    Write::Move { from: path(from), to: path(to) }
}

/// Returns a write that copies a value, with a time an hour later.
pub(super) fn copy(from: &str, to: &str) -> Write {
    Write::Copy { from: path(from), to: path(to), at: moment(3600) }
}

/// Returns the condition that `expected` holds at a path.
pub(super) fn at(text: &str, expected: Precondition) -> Condition {
    Condition::At(path(text), expected)
}

/// Returns the condition that there is nothing below a path.
pub(super) fn nothing_below(text: &str) -> Condition {
    Condition::NothingBelow(path(text))
}

/// Returns the new metadata of a change that must be applied.
pub(super) fn done(outcome: PutOutcome) -> StoredMeta {
    match outcome {
        PutOutcome::Applied(stored) => stored,
        PutOutcome::PreconditionFailed(found) => panic!("refused, as {found:?} is there"),
    }
}

/// Returns the current metadata, from a change that must be refused.
pub(super) fn refused(outcome: PutOutcome) -> Option<StoredMeta> {
    match outcome {
        PutOutcome::PreconditionFailed(found) => found,
        PutOutcome::Applied(stored) => panic!("it was applied: {stored:?}"),
    }
}

/// Returns the new metadata of a batch that must be applied.
pub(super) fn all_done(outcome: BatchOutcome) -> Vec<StoredMeta> {
    match outcome {
        BatchOutcome::Applied(stored) => stored,
        BatchOutcome::PreconditionFailed(path, found) => panic!("refused, as {found:?} is at {path}"),
    }
}

/// Returns the path and current metadata, from a batch that must be refused.
pub(super) fn all_refused(outcome: BatchOutcome) -> (VfsPath, Option<StoredMeta>) {
    match outcome {
        BatchOutcome::PreconditionFailed(path, found) => (path, found),
        BatchOutcome::Applied(stored) => panic!("it was applied: {stored:?}"),
    }
}

/// Entries of all pages of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// Values, in the order of the pages.
    pub(super) entries: Vec<Entry>,
    /// Directories, in the order of the pages.
    pub(super) directories: Vec<VfsPath>,
}

impl Listing {
    /// Adds `page`, which must be well formed.
    fn add(&mut self, request: &ListRequest, page: Page) {
        assert!(page.entries.is_sorted_by(|a, b| a.path < b.path), "a page is sorted: {:?}", page.entries);
        assert!(page.directories.is_sorted_by(|a, b| a < b), "directories are sorted: {:?}", page.directories);
        assert!(page.problems.is_empty(), "{:?}", page.problems);
        let count = page.entries.len() + page.directories.len();
        assert!(count <= request.limit, "{count} are more than {}", request.limit);
        assert!(request.depth == ListDepth::Level || page.directories.is_empty(), "{:?}", page.directories);
        self.entries.extend(page.entries);
        self.directories.extend(page.directories);
    }

    /// Returns the paths of the values, sorted.
    pub(super) fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<_> = self.entries.iter().map(|entry| entry.path.as_str()).collect();
        paths.sort_unstable();
        paths
    }

    /// Returns the directories, sorted.
    pub(super) fn folders(&self) -> Vec<&str> {
        let mut folders: Vec<_> = self.directories.iter().map(VfsPath::as_str).collect();
        folders.sort_unstable();
        folders
    }
}

/// Returns all pages of a listing.
pub(super) async fn list(store: &dyn Store, namespace: &Namespace, request: &ListRequest) -> Result<Listing> {
    let mut listing = Listing::default();
    let mut request = request.clone();
    // More pages than any law needs, so that a listing that goes in circles is detected.
    for _ in 0..20_000 {
        let page = store.list(namespace, &request).await?;
        let next = page.next.clone();
        listing.add(&request, page);
        let Some(token) = next else {
            let is_sorted = listing.entries.is_sorted_by(|a, b| a.path < b.path);
            assert!(
                is_sorted || request.depth == ListDepth::Level,
                "all pages are sorted together: {:?}",
                listing.entries
            );
            return Ok(listing);
        };
        request = request.from(token);
    }
    panic!("a listing does not end: {request:?}");
}

/// Returns all values of a namespace, including their content.
pub(super) async fn state_of(store: &dyn Store, namespace: &Namespace) -> Result<BTreeMap<VfsPath, StoredValue>> {
    let mut state = BTreeMap::new();
    for entry in list(store, namespace, &ListRequest::all(VfsPath::root())).await?.entries {
        let key = Key::new(namespace.clone(), entry.path);
        let value = store.get(&key, None).await?.unwrap_or_else(|| panic!("{key:?} is listed but does not exist"));
        state.insert(key.path, value);
    }
    Ok(state)
}

impl StoreTarget {
    /// Returns a handle of the store. If there are two, they alternate by `turn`.
    pub(super) fn handle(&self, turn: usize) -> Arc<dyn Store> {
        match &self.second {
            Some(second) if turn % 2 == 1 => Arc::clone(second),
            _ => Arc::clone(&self.store),
        }
    }

    /// Puts a value without a precondition.
    pub(super) async fn put(&self, path: &str, content: impl Into<Bytes>) -> Result<StoredMeta> {
        Ok(done(self.store.put(&key(path), value(content), &Precondition::Any).await?))
    }

    /// Puts small values, each with its own path as content.
    pub(super) async fn put_each(&self, paths: &[&str]) -> Result<()> {
        for path in paths {
            self.put(path, (*path).to_owned()).await?;
        }
        Ok(())
    }

    /// Returns the content of a value.
    pub(super) async fn content(&self, path: &str) -> Result<Option<Bytes>> {
        Ok(self.store.get(&key(path), None).await?.map(|value| value.content))
    }

    /// Returns the metadata of a value.
    pub(super) async fn head(&self, path: &str) -> Result<Option<StoredMeta>> {
        self.store.head(&key(path)).await
    }

    /// Applies a batch in the namespace of the laws.
    pub(super) async fn batch(&self, conditions: &[Condition], writes: Vec<Write>) -> Result<BatchOutcome> {
        self.store.as_batch().expect("the law needs it").batch(&home(), conditions, writes).await
    }

    /// Returns all pages of a listing in the namespace of the laws.
    pub(super) async fn list(&self, request: ListRequest) -> Result<Listing> {
        list(&*self.store, &home(), &request).await
    }

    /// Returns all values in the namespace of the laws.
    pub(super) async fn state(&self) -> Result<BTreeMap<VfsPath, StoredValue>> {
        state_of(&*self.store, &home()).await
    }

    /// Returns every path in the namespace of the laws with its content as text.
    pub(super) async fn texts(&self) -> Result<Vec<(String, String)>> {
        let text = |value: StoredValue| String::from_utf8_lossy(&value.content).into_owned();
        Ok(self.state().await?.into_iter().map(|(path, value)| (path.to_string(), text(value))).collect())
    }

    /// Asserts that two operations return the same metadata, as far as both have it.
    pub(super) fn assert_same(&self, a: &StoredMeta, b: &StoredMeta, what: &str) {
        assert_eq!((a.size, &a.version), (b.size, &b.version), "{what}");
        if self.store.capabilities().timestamps == TimestampSource::Caller {
            assert_eq!(a, b, "{what}");
        }
    }
}
