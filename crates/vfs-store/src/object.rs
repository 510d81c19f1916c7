//! Store in a bucket of an object storage service.

mod change;
mod config;
mod connection;
mod error;
mod http_transport;
mod key_layout;
mod list;
mod list_xml;
mod namespaces;
mod object_client;
mod object_metadata;
mod open_uploads;
mod repeatable_upload;
mod staging;
mod verify;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use vfs_core::{Error, ErrorKind, Result};

pub use self::config::{BucketConfig, BucketProvider};
use self::error::BucketError;
use self::http_transport::OperationTimeout;
use self::key_layout::KeyLayout;
use self::list::ListSource;
use self::object_client::{ConditionBasis, MAX_VALUE, ObjectClient};
use self::object_metadata::{FoundObject, MetadataNames};
use self::open_uploads::OpenUploads;
use crate::store::{
    Inspect, Key, ListRequest, Namespace, NewValue, Page, Precondition, PutOutcome, Staging, Store, StoreCapabilities,
    StoredMeta, StoredValue, TimestampSource, ValueContent,
};

/// Store in a bucket of Amazon S3, of a compatible service, or of any other object store.
///
/// # Behaviour
///
/// * **Other tools can read the files.** In the namespace without components, the object at `<prefix>/path/to/file` has
///   exactly the bytes of the file; objects of the namespace `org/user` are at `<prefix>/=/org/user/=/path/to/file`. A
///   path component that consists of `=` gets one more `=`. A control character of a path is encoded in the key, such
///   as a line break as `%0A`, and `%` is encoded as `%25` if it would begin such a code. A key has at most 1,024
///   bytes; a longer path is `invalid_path`.
/// * **Other tools can write files.** An object whose key is not that of any path (an empty part, `.`, over 255 bytes
///   between two `/`) is a problem of the listing. An object whose key ends in `/`, as tools create for empty folders,
///   is ignored.
/// * **Conditions** are checked by the service. The version is the entity tag; a condition names it, or the generation in
///   Google Cloud Storage. A service must support `If-Match` and `If-None-Match` on puts, as S3, R2, MinIO, Google Cloud
///   Storage and Azure do. A put without a precondition first reads the current entity tag. A removal does so too, and
///   then sends `If-Match`; a service that does not support it on removals (some compatible with S3, and all others) may
///   remove an object that was put in the few milliseconds between.
/// * **Lost responses.** A request is retried up to [`BucketConfig::max_retries`] times. Each value carries its
///   [`WriteId`](crate::WriteId), by which a put recognises that an attempt without a response was applied. If another
///   writer has changed the file since, this cannot be determined, and the error says so.
/// * **Values of over 16 MiB** are sent in parts of 8 MiB, four at a time. The store checks the condition just
///   before the parts are joined, and S3 checks it again as it joins them. Parts of an upload that was interrupted by a crash
///   remain in the bucket: configure a lifecycle rule that removes incomplete uploads.
/// * **Without a network** an operation fails after 35 s, with the defaults of [`BucketConfig`].
/// * **Large values are read** in pieces of 8 MiB, four at a time, each with its own timeout and retries. All pieces
///   are of one version: if the value changes in the meantime, the read is restarted.
/// * **Times** are in the metadata `vfs-created-at` and `vfs-modified-at` of an object, to the microsecond (with `_` on
///   Azure). [`head`](Store::head) and [`get`](Store::get) return them; listings return only the time at which an
///   object was put, to the second or millisecond, and no creation time.
/// * **[Staged](Staging) values** are multipart uploads of up to 64 GiB. Their times are those of the beginning of the
///   upload. If another writer changes the file while the upload is completed, the upload is a `conflict` and is
///   discarded. After any other failure of the completion, the put can be repeated in S3 and compatible services; in
///   other services the upload is discarded.
/// * **Damage.** `vfs-content-hash` has the BLAKE3 hash of the content, which [`check`](crate::check) verifies. Staged
///   values have no hash, because the metadata is sent before the content.
/// * **Listings** are sorted by path, except for names with control characters or names that consist of `=`: beyond
///   1,000 values, these may come later. Empty folders that other tools created are directories.
/// * There are no atomic changes of several files, no change notifications and no search.
///
/// A clone is another handle of the same connections.
///
/// ```
/// use std::sync::Arc;
///
/// use bytes::Bytes;
/// use object_store::memory::InMemory;
/// use vfs_core::VfsPath;
/// use vfs_store::{BucketStore, Key, Namespace, NewValue, Precondition, PutOutcome, Store};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
/// let store = BucketStore::new(Arc::new(InMemory::new()), "team/files")?;
/// let key = Key::new(Namespace::default(), VfsPath::parse("/notes.txt")?);
/// let note = NewValue::new(Bytes::from("hello\n"), chrono::Utc::now());
/// let PutOutcome::Applied(stored) = store.put(&key, note, &Precondition::Absent).await? else { panic!("nothing was there") };
/// assert_eq!(store.head(&key).await?, Some(stored));
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("it works");
/// ```
#[derive(Clone)]
pub struct BucketStore {
    inner: Arc<BucketShared>,
}

/// State that all handles of a bucket store share.
struct BucketShared {
    name: String,
    layout: KeyLayout,
    service: ObjectClient,
    source: ListSource,
    removal_lock: UncheckedRemovalLock,
    uploads: OpenUploads,
}

/// Lock that excludes puts of this process during removals.
enum UncheckedRemovalLock {
    /// A service that the store reaches by its own HTTP transport, which sees all attempts.
    NotNeeded,
    /// Any other object store, which removes without conditions: puts share the lock, removals lock it exclusively.
    PerStore(RwLock<()>),
}

impl BucketStore {
    /// Connects to a bucket, and checks that it exists and can be listed.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if there is no such bucket, it is in another region, or the endpoint is not usable;
    /// `permission_denied` for missing, wrong or expired credentials; `unavailable` if the service does not respond,
    /// after the retries of the configuration.
    pub async fn open(config: BucketConfig) -> Result<Self> {
        let (service, source) = connection::connect(&config)?;
        let name = config.to_string();
        let store = Self {
            inner: Arc::new(BucketShared {
                name,
                layout: config.layout,
                service,
                source,
                removal_lock: UncheckedRemovalLock::NotNeeded,
                uploads: OpenUploads::default(),
            }),
        };
        store.check_reachable().await?;
        Ok(store)
    }

    /// Creates a store of the objects below `prefix` in any object store, or of all its objects if `prefix` is empty.
    ///
    /// # Behaviour
    ///
    /// * The object store must support [`PutMode::Create`](object_store::PutMode::Create) and
    ///   [`PutMode::Update`](object_store::PutMode::Update) with entity tags.
    /// * Each page of a listing lists the whole object store. Use [`open`](Self::open) for the services that it
    ///   supports.
    /// * The precondition of a removal is checked against puts of this process only.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for a prefix with an empty part, `.`, `..`, a control character, or a part that consists of
    /// `=`.
    pub fn new(objects: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self> {
        let layout = KeyLayout::new(prefix)?;
        let name = match layout.prefix() {
            "" => objects.to_string(),
            prefix => format!("{objects}/{prefix}"),
        };
        let source = ListSource::Whole(Arc::clone(&objects));
        let service = ObjectClient {
            objects,
            conditions: ConditionBasis::Tags,
            labels: MetadataNames::HYPHENED,
            limit: OperationTimeout::NONE,
            repeatable_uploads: None,
        };
        Ok(Self {
            inner: Arc::new(BucketShared {
                name,
                layout,
                service,
                source,
                removal_lock: UncheckedRemovalLock::PerStore(RwLock::new(())),
                uploads: OpenUploads::default(),
            }),
        })
    }

    fn location(&self, key: &Key) -> Result<Path> {
        if key.path.is_root() {
            return Err(Error::new(ErrorKind::InvalidPath, "the root is not a file").with_path(&key.path));
        }
        self.inner.layout.key(key)
    }

    async fn look(&self, location: &Path) -> Result<Option<FoundObject>> {
        self.inner.service.look(location).await.map_err(|fault| self.error(&fault))
    }

    fn error(&self, fault: &BucketError) -> Error {
        fault.error(&self.inner.name)
    }

    /// Returns whether the store sees the outcome of every attempt.
    fn sees_attempts(&self) -> bool {
        matches!(self.inner.removal_lock, UncheckedRemovalLock::NotNeeded)
    }

    async fn lock_shared(&self) -> Option<RwLockReadGuard<'_, ()>> {
        match &self.inner.removal_lock {
            UncheckedRemovalLock::NotNeeded => None,
            UncheckedRemovalLock::PerStore(lock) => Some(lock.read().await),
        }
    }

    async fn lock_exclusive(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        match &self.inner.removal_lock {
            UncheckedRemovalLock::NotNeeded => None,
            UncheckedRemovalLock::PerStore(lock) => Some(lock.write().await),
        }
    }
}

#[async_trait]
impl Store for BucketStore {
    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities::new(MAX_VALUE)
            .max_path(self.inner.layout.max_path())
            .level_order(self.inner.source.level_order())
            .timestamps(TimestampSource::Store)
    }

    async fn head(&self, key: &Key) -> Result<Option<StoredMeta>> {
        Ok(self.look(&self.location(key)?).await?.map(|found| found.stored))
    }

    async fn get(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
        let read = self.inner.service.get(&self.location(key)?, range).await.map_err(|fault| self.error(&fault))?;
        Ok(read.map(StoredValue::from))
    }

    async fn put(&self, key: &Key, value: NewValue, expected: &Precondition) -> Result<PutOutcome> {
        let location = self.location(key)?;
        if let ValueContent::Bytes(content) = &value.content
            && content.len() as u64 > MAX_VALUE
        {
            let reason =
                format!("{} bytes are more than the {MAX_VALUE} that an object of this store can hold", content.len());
            return Err(Error::new(ErrorKind::TooLarge, reason).with_path(&key.path));
        }
        let _guard = self.lock_shared().await;
        self.put_value(&location, &value, expected).await
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        let location = self.location(key)?;
        let _guard = self.lock_exclusive().await;
        self.delete_value(&location, expected).await
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        self.list_page(namespace, request).await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        self.find_namespaces().await
    }

    fn as_staging(&self) -> Option<&dyn Staging> {
        Some(self)
    }

    fn as_inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
}

/// Writes the bucket and the prefix.
impl fmt::Display for BucketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.name)
    }
}

impl fmt::Debug for BucketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BucketStore({self})")
    }
}
