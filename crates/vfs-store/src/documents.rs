//! Store adapter for the document formats of agent frameworks.

mod batch;
mod changes;

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
    Batch, Changes, Entry, Inspect, Key, ListRequest, Namespace, NewValue, Operations, Page, PathStat, Precondition,
    PutOutcome, Search, Staging, Store, StoreCapabilities, StoredMeta, StoredValue, TimestampSource, get_each,
    stat_each,
};

/// How many values are looked into at once.
const MAX_CONCURRENT_FETCHES: usize = 16;

/// Most values of which is kept what they hold, by their versions.
const METADATA_CACHE_CAPACITY: NonZeroUsize = NonZeroUsize::new(100_000).expect("100,000 is not 0");

/// How the content of a new document is spelled. Bytes that are not UTF-8 are a text in base64 in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DocumentForm {
    /// As a string, with its encoding beside it.
    #[default]
    Text,
    /// As a list of lines, which older frameworks read.
    Lines,
}

/// A store whose values are documents `{"content": ..., "created_at": ..., "modified_at": ...}`, the form in which agents'
/// frameworks keep files: these can read what was written here, and what they wrote is read here.
///
/// # Behaviour
///
/// * The store inside holds the documents; sizes, contents and times here are those of the files in them. Both
///   [forms](DocumentForm) are read.
/// * A value that is no such document is an error for that file alone, and a problem in listings. It can be deleted.
/// * A part of a document needs all of it. That of which a part was asked for last is kept, as long as it is the same.
/// * A listing looks into each value that it has not seen in its version before; the sizes of 100,000 are kept.
/// * Versions are those of the documents: the same content with other times may be another version.
/// * Which values hold a text is not told, as a document can spell it in many ways.
///
/// # Errors
///
/// Those of the store inside, and `invalid_argument` for a value that is no document.
///
/// ```
/// use vfs_core::BackendExt;
/// use vfs_store::{Documents, MemoryStore, StoreBackend};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
/// let files = StoreBackend::new(Documents::new(MemoryStore::new()));
/// files.create_text("/memories/ann.md", "likes tea\n").await?;
/// assert_eq!(files.read_text("/memories/ann.md").await?, "likes tea\n");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
pub struct Documents<S> {
    store: S,
    form: DocumentForm,
    known: Mutex<LruCache<Key, (Version, StoredMeta)>>,
    /// The file of which a part was asked for last: its next part is likely to be next.
    last: Mutex<Option<(Key, StoredValue)>>,
}

impl<S: Store> Documents<S> {
    /// Documents in `store`.
    pub fn new(store: S) -> Self {
        Self {
            store,
            form: DocumentForm::default(),
            known: Mutex::new(LruCache::new(METADATA_CACHE_CAPACITY)),
            last: Mutex::default(),
        }
    }

    /// Sets how the content of new documents is spelled.
    #[must_use]
    pub fn form(mut self, form: DocumentForm) -> Self {
        self.form = form;
        self
    }

    /// The store inside.
    pub fn store(&self) -> &S {
        &self.store
    }

    fn known(&self) -> MutexGuard<'_, LruCache<Key, (Version, StoredMeta)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last(&self) -> MutexGuard<'_, Option<(Key, StoredValue)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file that a part was asked for of last, where that is `key` and it is still the same.
    async fn same_as_last(&self, key: &Key) -> Result<Option<StoredValue>> {
        let last = self.last().as_ref().filter(|(of, _)| of == key).map(|(_, file)| file.clone());
        let Some(last) = last else { return Ok(None) };
        let now = self.store.head(key).await?;
        Ok(now.filter(|now| now.version == last.stored.version).map(|_| last))
    }

    /// `value` with its content as a document.
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

    /// The file in a document, which is noted.
    fn decode(&self, key: &Key, document: StoredValue) -> Result<StoredValue> {
        let StoredValue { stored, content } = document;
        let data: FileData = serde_json::from_slice(&content).map_err(|error| no_document(&key.path, &error))?;
        let content = data.to_bytes().map_err(|reason| no_document(&key.path, &reason))?;
        let file = of_document(&stored, content.len(), data.created_at, data.modified_at);
        self.note(key, &file);
        Ok(StoredValue::new(file, content))
    }

    fn note(&self, key: &Key, file: &StoredMeta) {
        self.known().put(key.clone(), (file.version.clone(), file.clone()));
    }

    /// What is known of the file in the document `stored`; `None` where it is another one by now.
    async fn describe(&self, key: &Key, stored: &StoredMeta) -> Result<Option<StoredMeta>> {
        if let Some((version, file)) = self.known().get(key)
            && *version == stored.version
        {
            return Ok(Some(file.clone()));
        }
        let Some(document) = self.store.get(key, None).await? else { return Ok(None) };
        let file = self.decode(key, document)?.stored;
        Ok((file.version == stored.version).then_some(file))
    }

    /// As [`describe`](Self::describe), where what cannot be looked into is told as the document that it was: for the outcome
    /// of a change, which is what it is.
    async fn described(&self, namespace: &Namespace, path: &VfsPath, stored: StoredMeta) -> StoredMeta {
        let key = Key::new(namespace.clone(), path.clone());
        match self.describe(&key, &stored).await {
            Ok(Some(file)) => file,
            Ok(None) | Err(_) => stored,
        }
    }

    /// The outcome of putting a file of `size` bytes.
    async fn outcome(&self, key: &Key, outcome: PutOutcome, put: (usize, DateTime<Utc>, DateTime<Utc>)) -> PutOutcome {
        match outcome {
            PutOutcome::Applied(stored) => {
                let file = of_document(&stored, put.0, put.1, put.2);
                self.note(key, &file);
                PutOutcome::Applied(file)
            }
            PutOutcome::PreconditionFailed(None) => PutOutcome::PreconditionFailed(None),
            PutOutcome::PreconditionFailed(Some(stored)) => {
                PutOutcome::PreconditionFailed(Some(self.described(&key.namespace, &key.path, stored).await))
            }
        }
    }
}

/// The file of `size` bytes in the document `stored`.
fn of_document(stored: &StoredMeta, size: usize, created_at: DateTime<Utc>, modified_at: DateTime<Utc>) -> StoredMeta {
    StoredMeta::new(size as u64, stored.version.clone(), modified_at).created_at(created_at)
}

fn no_document(path: &VfsPath, reason: &dyn fmt::Display) -> Error {
    let message = format!(
        "what is stored there is no file ({reason:.200}); delete it, or put it right with the program that wrote it"
    );
    Error::invalid_argument(message).with_path(path)
}

/// The part of `content` that is in `range`, cut at its end.
fn part(content: &Bytes, range: Option<Range<u64>>) -> Bytes {
    let Some(range) = range else { return content.clone() };
    let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
    let (start, end) = (within(range.start), within(range.end));
    content.slice(start..end.max(start))
}

impl<S: fmt::Debug> fmt::Debug for Documents<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("Documents")
            .field("store", &self.store)
            .field("form", &self.form)
            .field("known", &known)
            .finish()
    }
}

impl<S: fmt::Display> fmt::Display for Documents<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "documents in {}", self.store)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Store> Store for Documents<S> {
    fn capabilities(&self) -> StoreCapabilities {
        // A document holds the times of its file.
        self.store.capabilities().timestamps(TimestampSource::Caller).bulk_reads(false)
    }

    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
        if let Some(stored) = self.store.head(key).await?
            && let Some((version, file)) = self.known().get(key)
            && *version == stored.version
        {
            return Ok(Some(file.clone()));
        }
        Ok(self.get(key, None).await?.map(|file| file.stored))
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        if range.is_some()
            && let Some(StoredValue { stored, content }) = self.same_as_last(key).await?
        {
            return Ok(Some(StoredValue::new(stored, part(&content, range))));
        }
        let Some(document) = self.store.get(key, None).await? else { return Ok(None) };
        let file = self.decode(key, document)?;
        let part = part(&file.content, range);
        let stored = file.stored.clone();
        if (part.len() as u64) < stored.size {
            *self.last() = Some((key.clone(), file));
        }
        Ok(Some(StoredValue::new(stored, part)))
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
        Ok(self.outcome(key, outcome, put).await)
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        // Afterwards nobody can look into it any more.
        let before = match self.store.head(key).await? {
            Some(stored) => Some(self.described(&key.namespace, &key.path, stored).await),
            None => None,
        };
        Ok(match self.store.delete(key, expected).await? {
            PutOutcome::Applied(stored) => {
                PutOutcome::Applied(before.filter(|file| file.version == stored.version).unwrap_or(stored))
            }
            PutOutcome::PreconditionFailed(None) => PutOutcome::PreconditionFailed(None),
            PutOutcome::PreconditionFailed(Some(stored)) => {
                PutOutcome::PreconditionFailed(Some(self.described(&key.namespace, &key.path, stored).await))
            }
        })
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let mut page = self.store.list(namespace, request).await?;
        let looks: Vec<_> = std::mem::take(&mut page.entries)
            .into_iter()
            .map(|Entry { path, stored }| async move {
                let key = Key::new(namespace.clone(), path);
                let looked = match self.describe(&key, &stored).await {
                    // It is another one by now, or gone: what is there now is told as well.
                    Ok(None) => self.head(&key).await,
                    looked => looked,
                };
                (key.path, looked)
            })
            .collect();
        let mut looks = stream::iter(looks).buffered(MAX_CONCURRENT_FETCHES);
        while let Some((path, looked)) = looks.next().await {
            match looked {
                Ok(Some(stored)) => page.entries.push(Entry { path, stored }),
                Ok(None) => {}
                // A store that is not there is no fault of the file.
                Err(error) if error.is_temporary() => return Err(error),
                Err(error) => page.problems.push(Problem::from(error.or_path(&path))),
            }
        }
        drop(looks);
        Ok(page)
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        self.store.namespaces().await
    }

    fn as_batch(&self) -> Option<&dyn Batch> {
        self.store.as_batch().map(|_| self as &dyn Batch)
    }

    fn as_changes(&self) -> Option<&dyn Changes> {
        self.store.as_changes().map(|_| self as &dyn Changes)
    }

    fn as_search(&self) -> Option<&dyn Search> {
        None
    }

    fn as_operations(&self) -> Option<&dyn Operations> {
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

fn unable() -> Error {
    Error::new(ErrorKind::Unsupported, "the store inside cannot do this")
}
