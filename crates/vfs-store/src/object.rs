//! Store of objects in a bucket.

mod change;
mod config;
mod connection;
mod error;
mod http;
mod list;
mod list_xml;
mod names;
mod namespaces;
mod read;
mod staging;
mod uploads;
mod verify;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use vfs_core::{Error, ErrorKind, Result};

pub use self::config::{BucketConfig, BucketService};
use self::error::BucketError;
use self::http::OperationTimeout;
use self::list::ListSource;
use self::names::KeyLayout;
use self::read::{ConditionKind, FoundObject, MAX_VALUE, MetadataNames, ObjectService};
use self::uploads::OpenUploads;
use crate::store::{
    Inspect, Key, ListRequest, Namespace, NewValue, Page, Precondition, PutOutcome, Staging, Store, StoreCapabilities,
    StoredMeta, StoredValue, TimestampSource, ValueContent,
};

/// Files in a bucket of Amazon S3, of what speaks its language, or of any other object store.
///
/// # Behaviour
///
/// * **Other tools read the files.** The object at `<prefix>/path/to/file` holds exactly the bytes of the file, for the namespace
///   without components; those of the namespace `org/user` are at `<prefix>/=/org/user/=/path/to/file`. A path component made of
///   `=` only gets one more. A control character of a path is written `%0A` in the key, and `%` is written `%25` where it would
///   be read as one of those; every other character is itself. A key has at most 1,024 bytes; a longer path is `invalid_path`.
/// * **Other tools write files.** An object whose key no path has (an empty part, `.`, over 255 bytes between two `/`) is a problem
///   of the listing. An object whose key ends in `/`, as tools make them for empty folders, is passed over.
/// * **Conditions** are checked by the service, with the entity tag as the version: a service must support `If-Match` and
///   `If-None-Match` on puts, as S3, R2, MinIO, Google Cloud Storage and Azure do. A put that expects anything looks first at what
///   is there. A removal looks first too, and then says `If-Match`: services that do not know it there (of S3's relatives; and all
///   others) may remove what was put in the few milliseconds between.
/// * **Lost answers.** A request is tried again by [`BucketConfig::max_retries`]. Each value carries its
///   [`WriteId`](crate::WriteId), by which a put finds out that an attempt whose answer was lost was made. Where somebody else has
///   changed the file since, this cannot be known, and the error says so.
/// * **Values of over 16 MiB** are sent in parts of 8 MiB, four at a time. S3 checks the condition when it puts them together;
///   for other services it is checked just before that. Parts of an upload that a crash ended stay in the bucket: let a lifecycle
///   rule remove incomplete uploads.
/// * **A dead network** ends an operation after 35 s, with the defaults of [`BucketConfig`].
/// * **Large values are read** in pieces of 8 MiB, four at a time, each with its own time and attempts, and all of one version: a
///   value that others change meanwhile is begun again.
/// * **Times** are in the metadata `vfs-created-at` and `vfs-modified-at` of an object, to the microsecond (with `_` on Azure).
///   [`head`](Store::head) and [`get`](Store::get) read them; listings know only when an object was put, to the second or
///   millisecond, and not when the file was made.
/// * **[Staged](Staging) values** are multipart uploads, of up to 64 GiB. Their times are those at which the upload was begun. An upload
///   that another writer got ahead of while it was completed is a `conflict`, and is discarded.
/// * **Damage.** `vfs-content-hash` has the BLAKE3 hash of the content, which [`check`](crate::check) compares; staged values have none, as
///   metadata comes before the content.
/// * **Listings** are sorted as paths are, but for names with control characters or made of `=` only: beyond 1,000 values they may
///   come later than their place. Folders without files, as other tools make them, are directories.
/// * There are no changes of several files as one, no change notifications and no search.
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

struct BucketShared {
    name: String,
    layout: KeyLayout,
    service: ObjectService,
    source: ListSource,
    alone: Alone,
    uploads: OpenUploads,
}

/// Whether removals must keep puts of this process away, as nothing else does.
enum Alone {
    /// The service checks, and all attempts are seen.
    No,
    /// An object store of any kind: puts go together, removals alone.
    Yes(RwLock<()>),
}

impl BucketStore {
    /// Connects to a bucket, and makes sure that it is there and may be listed.
    ///
    /// # Errors
    ///
    /// `invalid_argument` where there is no such bucket, it is in another region, or the endpoint is not usable as it is;
    /// `permission_denied` for missing, wrong or expired credentials; `unavailable` where the service does not answer, after the
    /// retries of the configuration.
    pub async fn open(config: BucketConfig) -> Result<Self> {
        let (service, source) = connection::connect(&config)?;
        let name = config.to_string();
        let store = Self {
            inner: Arc::new(BucketShared {
                name,
                layout: config.layout,
                service,
                source,
                alone: Alone::No,
                uploads: OpenUploads::default(),
            }),
        };
        store.is_reachable().await?;
        Ok(store)
    }

    /// The objects of any object store below `prefix`, or all where it is empty.
    ///
    /// # Behaviour
    ///
    /// * The object store must support [`PutMode::Create`](object_store::PutMode::Create) and
    ///   [`PutMode::Update`](object_store::PutMode::Update) with entity tags.
    /// * It is listed as a whole for each page. For the services that [`open`](Self::open) knows, that is what to use.
    /// * A removal is checked against puts of this process only.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for a prefix with an empty part, `.`, `..`, a control character, or a part made of `=` only.
    pub fn new(objects: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self> {
        let layout = KeyLayout::new(prefix)?;
        let name = match layout.prefix() {
            "" => objects.to_string(),
            prefix => format!("{objects}/{prefix}"),
        };
        let source = ListSource::Whole(Arc::clone(&objects));
        let service = ObjectService {
            objects,
            conditions: ConditionKind::Tags,
            labels: MetadataNames::HYPHENED,
            limit: OperationTimeout::NONE,
        };
        Ok(Self {
            inner: Arc::new(BucketShared {
                name,
                layout,
                service,
                source,
                alone: Alone::Yes(RwLock::new(())),
                uploads: OpenUploads::default(),
            }),
        })
    }

    fn location(&self, key: &Key) -> Result<Path> {
        if key.path.is_root() {
            return Err(Error::new(ErrorKind::InvalidPath, "the root is no file").with_path(&key.path));
        }
        self.inner.layout.key(key)
    }

    async fn look(&self, location: &Path) -> Result<Option<FoundObject>> {
        self.inner.service.look(location).await.map_err(|fault| self.error(&fault))
    }

    fn error(&self, fault: &BucketError) -> Error {
        fault.error(&self.inner.name)
    }

    /// Whether it is known of every attempt how it ended.
    fn sees_attempts(&self) -> bool {
        matches!(self.inner.alone, Alone::No)
    }

    async fn together(&self) -> Option<RwLockReadGuard<'_, ()>> {
        match &self.inner.alone {
            Alone::No => None,
            Alone::Yes(turns) => Some(turns.read().await),
        }
    }

    async fn alone(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        match &self.inner.alone {
            Alone::No => None,
            Alone::Yes(turns) => Some(turns.write().await),
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
                format!("the file has {} bytes, and an object of this store at most {MAX_VALUE}", content.len());
            return Err(Error::new(ErrorKind::TooLarge, reason).with_path(&key.path));
        }
        let _turn = self.together().await;
        self.put_value(&location, &value, expected).await
    }

    async fn delete(&self, key: &Key, expected: &Precondition) -> Result<PutOutcome> {
        let location = self.location(key)?;
        let _turn = self.alone().await;
        self.delete_value(&location, expected).await
    }

    async fn list(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        self.page(namespace, request).await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        self.walk_namespaces().await
    }

    fn as_staging(&self) -> Option<&dyn Staging> {
        Some(self)
    }

    fn as_inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
}

/// The bucket and the prefix.
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
