//! Store adapter for the document formats of agent frameworks.

mod batch;
mod change_log;

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _};
use lru::LruCache;
use vfs_core::state::FileData;
use vfs_core::{Error, ErrorKind, Problem, Result, Version, VfsPath};

use crate::store::{
    BatchStore, Entry, IdempotentOperations, Inspect, Key, ListRequest, Namespace, NewValue, Page, PathStat,
    Precondition, PutOutcome, Search, Staging, Store, StoreCapabilities, StoreChangeLog, StoredMeta, StoredValue,
    TimestampSource, get_each, stat_each,
};

/// Upper bound on the number of documents that are fetched concurrently.
const MAX_CONCURRENT_FETCHES: usize = 16;

/// Maximum number of files whose metadata is cached.
const METADATA_CACHE_CAPACITY: NonZeroUsize = NonZeroUsize::new(100_000).expect("100,000 is not 0");

/// Representation of the content of new documents. In both forms, bytes that are not UTF-8 are a string in base64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DocumentForm {
    /// As a string, with its encoding beside it.
    #[default]
    Text,
    /// As a list of lines, which older frameworks read.
    Lines,
}

/// Store adapter whose values are documents `{"content": ..., "created_at": ..., "modified_at": ...}`, the format in
/// which agent frameworks store files. The frameworks can read files that this adapter wrote, and the adapter reads
/// theirs.
///
/// # Behaviour
///
/// * The inner store contains the documents; the adapter returns the sizes, contents and times of the files in them.
///   Both [forms](DocumentForm) are read.
/// * A value that is not such a document is an error for that file alone, and a problem in listings. It can be deleted.
/// * To read a range, the whole document is fetched. The last file of which a range was read is cached while its
///   version is the current one.
/// * A listing fetches each document whose version it has not seen before; the metadata of 100,000 files is cached.
/// * Versions are those of the documents: the same content with different times may have a different version.
/// * There is no search index, as documents can represent the same text in many ways.
///
/// # Errors
///
/// Errors of the inner store, and `invalid_argument` for a value that is not a document.
///
/// ```
/// use vfs_core::BackendExt;
/// use vfs_store::{DocumentStore, MemoryStore, StoreBackend};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
/// let files = StoreBackend::new(DocumentStore::new(MemoryStore::new()));
/// files.create_text("/memories/ann.md", "likes tea\n").await?;
/// assert_eq!(files.read_text("/memories/ann.md").await?, "likes tea\n");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
pub struct DocumentStore<S> {
    store: S,
    form: DocumentForm,
    metadata_cache: Mutex<LruCache<Key, (Version, StoredMeta)>>,
    /// The last file of which a range was read, as its next range is likely to follow.
    last: Mutex<Option<(Key, StoredValue)>>,
}

impl<S: Store> DocumentStore<S> {
    /// Returns an adapter over `store`.
    pub fn new(store: S) -> Self {
        Self {
            store,
            form: DocumentForm::default(),
            metadata_cache: Mutex::new(LruCache::new(METADATA_CACHE_CAPACITY)),
            last: Mutex::default(),
        }
    }

    /// Sets the representation of the content of new documents.
    #[must_use]
    pub fn form(mut self, form: DocumentForm) -> Self {
        self.form = form;
        self
    }

    /// Returns the inner store.
    pub fn store(&self) -> &S {
        &self.store
    }

    fn metadata_cache(&self) -> MutexGuard<'_, LruCache<Key, (Version, StoredMeta)>> {
        self.metadata_cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last(&self) -> MutexGuard<'_, Option<(Key, StoredValue)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last file of which a range was read, if it is the file of `key` and has not changed since.
    async fn last_if_unchanged(&self, key: &Key) -> Result<Option<StoredValue>> {
        let last = self.last().as_ref().filter(|(of, _)| of == key).map(|(_, file)| file.clone());
        let Some(last) = last else { return Ok(None) };
        let current = self.store.head(key).await?;
        Ok(current.filter(|current| current.version == last.stored.version).map(|_| last))
    }

    /// Returns `value` with its content encoded as a document.
    fn encode(&self, value: NewValue) -> Result<NewValue> {
        let NewValue { content, created_at, modified_at, .. } = &value;
        let document = match self.form {
            DocumentForm::Text => FileData::text(content.bytes()?, *created_at, *modified_at),
            DocumentForm::Lines => FileData::lines(content.bytes()?, *created_at, *modified_at),
        };
        let document = serde_json::to_vec(&document)
            .map_err(|error| Error::invalid_argument("the file cannot be written as a document").with_source(error))?;
        Ok(NewValue { content: Bytes::from(document).into(), ..value })
    }

    /// Returns the file in a document, and caches its metadata.
    fn decode(&self, key: &Key, document: StoredValue) -> Result<StoredValue> {
        let StoredValue { stored, content } = document;
        let data: FileData = serde_json::from_slice(&content).map_err(|error| invalid_document(&key.path, &error))?;
        let content = data.to_bytes().map_err(|reason| invalid_document(&key.path, &reason))?;
        let file = file_metadata(&stored, content.len(), data.created_at, data.modified_at);
        self.cache_metadata(key, &file);
        Ok(StoredValue::new(file, content))
    }

    fn cache_metadata(&self, key: &Key, file: &StoredMeta) {
        self.metadata_cache().put(key.clone(), (file.version.clone(), file.clone()));
    }

    /// Returns the metadata of the file in the document `stored`, or `None` if the document was replaced or removed
    /// since.
    async fn describe(&self, key: &Key, stored: &StoredMeta) -> Result<Option<StoredMeta>> {
        if let Some((version, file)) = self.metadata_cache().get(key)
            && *version == stored.version
        {
            return Ok(Some(file.clone()));
        }
        let Some(document) = self.store.get(key, None).await? else { return Ok(None) };
        let file = self.decode(key, document)?.stored;
        Ok((file.version == stored.version).then_some(file))
    }

    /// Returns the metadata of the file in the document `stored`, or that of the document itself if the file cannot be
    /// read.
    ///
    /// The outcome of a change uses this, as the change was made even if its document cannot be read.
    async fn describe_or_document(&self, namespace: &Namespace, path: &VfsPath, stored: StoredMeta) -> StoredMeta {
        let key = Key::new(namespace.clone(), path.clone());
        match self.describe(&key, &stored).await {
            Ok(Some(file)) => file,
            Ok(None) | Err(_) => stored,
        }
    }

    /// Returns the outcome of the put of a document as that of its file, whose size and times are `put`.
    async fn convert_outcome(
        &self,
        key: &Key,
        outcome: PutOutcome,
        put: (usize, DateTime<Utc>, DateTime<Utc>),
    ) -> PutOutcome {
        match outcome {
            PutOutcome::Applied(stored) => {
                let file = file_metadata(&stored, put.0, put.1, put.2);
                self.cache_metadata(key, &file);
                PutOutcome::Applied(file)
            }
            PutOutcome::PreconditionFailed(None) => PutOutcome::PreconditionFailed(None),
            PutOutcome::PreconditionFailed(Some(stored)) => {
                PutOutcome::PreconditionFailed(Some(self.describe_or_document(&key.namespace, &key.path, stored).await))
            }
        }
    }
}

/// Returns the metadata of the file of `size` bytes in the document `stored`.
fn file_metadata(
    stored: &StoredMeta,
    size: usize,
    created_at: DateTime<Utc>,
    modified_at: DateTime<Utc>,
) -> StoredMeta {
    StoredMeta::new(size as u64, stored.version.clone(), modified_at).created_at(created_at)
}

fn invalid_document(path: &VfsPath, reason: &dyn fmt::Display) -> Error {
    let message = format!(
        "the stored value is not a document ({reason:.200}); delete it, or repair it with the program that wrote it"
    );
    Error::invalid_argument(message).with_path(path)
}

/// Returns the `range` of `content`, clamped to its size.
fn slice(content: &Bytes, range: Option<Range<u64>>) -> Bytes {
    let Some(range) = range else { return content.clone() };
    let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
    let (start, end) = (within(range.start), within(range.end));
    content.slice(start..end.max(start))
}

impl<S: fmt::Debug> fmt::Debug for DocumentStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cached_files = self.metadata_cache.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("DocumentStore")
            .field("store", &self.store)
            .field("form", &self.form)
            .field("cached_files", &cached_files)
            .finish()
    }
}

impl<S: fmt::Display> fmt::Display for DocumentStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "documents in {}", self.store)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Store> Store for DocumentStore<S> {
    fn capabilities(&self) -> StoreCapabilities {
        // A document contains the times of its file.
        self.store.capabilities().timestamps(TimestampSource::Caller).bulk_reads(false)
    }

    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
        if let Some(stored) = self.store.head(key).await?
            && let Some((version, file)) = self.metadata_cache().get(key)
            && *version == stored.version
        {
            return Ok(Some(file.clone()));
        }
        Ok(self.get(key, None).await?.map(|file| file.stored))
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        if range.is_some()
            && let Some(StoredValue { stored, content }) = self.last_if_unchanged(key).await?
        {
            return Ok(Some(StoredValue::new(stored, slice(&content, range))));
        }
        let Some(document) = self.store.get(key, None).await? else { return Ok(None) };
        let file = self.decode(key, document)?;
        let slice = slice(&file.content, range);
        let stored = file.stored.clone();
        if (slice.len() as u64) < stored.size {
            *self.last() = Some((key.clone(), file));
        }
        Ok(Some(StoredValue::new(stored, slice)))
    }

    async fn stat_many(&self, namespace: &Namespace, paths: &[VfsPath]) -> Result<Vec<PathStat>> {
        stat_each(self, namespace, paths).await
    }

    async fn get_many(
        &self,
        namespace: &Namespace,
        paths: &[VfsPath],
        max_size: u64,
    ) -> Result<Vec<Option<StoredValue>>> {
        get_each(self, namespace, paths, max_size).await
    }

    async fn put(&self, key: &Key, value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
        let put = (value.content.bytes()?.len(), value.created_at, value.modified_at);
        let outcome = self.store.put(key, self.encode(value)?, expected).await?;
        Ok(self.convert_outcome(key, outcome, put).await)
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        // The document cannot be read once it is deleted.
        let before = match self.store.head(key).await? {
            Some(stored) => Some(self.describe_or_document(&key.namespace, &key.path, stored).await),
            None => None,
        };
        Ok(match self.store.delete(key, expected).await? {
            PutOutcome::Applied(stored) => {
                PutOutcome::Applied(before.filter(|file| file.version == stored.version).unwrap_or(stored))
            }
            PutOutcome::PreconditionFailed(None) => PutOutcome::PreconditionFailed(None),
            PutOutcome::PreconditionFailed(Some(stored)) => {
                PutOutcome::PreconditionFailed(Some(self.describe_or_document(&key.namespace, &key.path, stored).await))
            }
        })
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let mut page = self.store.list(namespace, request).await?;
        let descriptions: Vec<_> = std::mem::take(&mut page.entries)
            .into_iter()
            .map(|Entry { path, stored }| async move {
                let key = Key::new(namespace.clone(), path);
                let described = match self.describe(&key, &stored).await {
                    // The document was replaced or removed since: the entry is the current file, if there is one.
                    Ok(None) => self.head(&key).await,
                    described => described,
                };
                (key.path, described)
            })
            .collect();
        let mut descriptions = stream::iter(descriptions).buffered(MAX_CONCURRENT_FETCHES);
        while let Some((path, described)) = descriptions.next().await {
            match described {
                Ok(Some(stored)) => page.entries.push(Entry { path, stored }),
                Ok(None) => {}
                // An unavailable store is not a problem of the file.
                Err(error) if error.is_temporary() => return Err(error),
                Err(error) => page.problems.push(Problem::from(error.or_path(&path))),
            }
        }
        drop(descriptions);
        Ok(page)
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        self.store.namespaces().await
    }

    fn as_batch(&self) -> Option<&dyn BatchStore> {
        self.store.as_batch().map(|_| self as &dyn BatchStore)
    }

    fn as_changes(&self) -> Option<&dyn StoreChangeLog> {
        self.store.as_changes().map(|_| self as &dyn StoreChangeLog)
    }

    fn as_search(&self) -> Option<&dyn Search> {
        None
    }

    fn as_operations(&self) -> Option<&dyn IdempotentOperations> {
        // The version of a document depends on its times.
        None
    }

    fn as_staging(&self) -> Option<&dyn Staging> {
        // A document is encoded as a whole.
        None
    }

    fn as_inspect(&self) -> Option<&dyn Inspect> {
        self.store.as_inspect()
    }
}

fn unsupported() -> Error {
    Error::new(ErrorKind::Unsupported, "the inner store does not support this operation")
}
