//! Values, preconditions, listings and capabilities of stores.

use std::collections::HashSet;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use uuid::Uuid;
use vfs_core::{Error, ErrorKind, Problem, Result, Version, VfsPath};

use super::content::ValueContent;
use super::key::Namespace;
use super::staging::{StagedContent, StagingToken};

/// Unique id of a write, by which a store whose connection was lost can find out whether the write was applied. Buckets use it;
/// stores on a database have ids of their own for a whole change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WriteId(u128);

impl WriteId {
    /// Returns a new random UUID.
    pub fn random() -> Self {
        Self(Uuid::new_v4().as_u128())
    }

    /// Returns the id as a number.
    pub fn get(self) -> u128 {
        self.0
    }
}

/// A value to store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewValue {
    /// The content.
    pub content: ValueContent,
    /// Creation time of the file.
    pub created_at: DateTime<Utc>,
    /// Time of the last change of the content.
    pub modified_at: DateTime<Utc>,
    /// Id of this write.
    pub id: WriteId,
}

impl NewValue {
    /// Returns a value with a new write id, created and modified at `at`.
    pub fn new(content: Bytes, at: DateTime<Utc>) -> Self {
        Self { content: content.into(), created_at: at, modified_at: at, id: WriteId::random() }
    }

    /// Returns a value with a content that was staged in the store, with a new write id, created and modified at `at`.
    pub fn staged(content: StagedContent, at: DateTime<Utc>) -> Self {
        Self { content: ValueContent::Staged(content), ..Self::new(Bytes::new(), at) }
    }

    /// Sets the creation time of the file.
    #[must_use]
    pub fn created_at(mut self, at: DateTime<Utc>) -> Self {
        self.created_at = at;
        self
    }
}

/// Metadata of a stored value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredMeta {
    /// Bytes of content.
    pub size: u64,
    /// Version of the content; equal versions of a path mean equal content.
    pub version: Version,
    /// Creation time of the file, or `None` if the store does not record it.
    pub created_at: Option<DateTime<Utc>>,
    /// Time of the last change of the content.
    pub modified_at: DateTime<Utc>,
}

impl StoredMeta {
    /// Returns metadata without a creation time.
    pub fn new(size: u64, version: Version, modified_at: DateTime<Utc>) -> Self {
        Self { size, version, created_at: None, modified_at }
    }

    /// Sets the creation time of the file.
    #[must_use]
    pub fn created_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.created_at = at.into();
        self
    }

    /// Returns the creation time, or the modification time if the store does not record it.
    pub(crate) fn creation_time(&self) -> DateTime<Utc> {
        self.created_at.unwrap_or(self.modified_at)
    }
}

/// A value that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredValue {
    /// Metadata of the whole value.
    pub stored: StoredMeta,
    /// The content, or the requested range of it.
    pub content: Bytes,
}

impl StoredValue {
    /// Returns the value of `stored` with `content`.
    pub fn new(stored: StoredMeta, content: Bytes) -> Self {
        Self { stored, content }
    }
}

/// Presence of values at and below a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStat {
    /// Metadata of the value at the path, if there is one.
    pub stored: Option<StoredMeta>,
    /// `true` if there are values below the path.
    pub has_below: bool,
}

impl PathStat {
    /// Returns the presence of `stored` at a path and of values below it.
    pub fn new(stored: Option<StoredMeta>, has_below: bool) -> Self {
        Self { stored, has_below }
    }
}

/// Precondition of a change of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// No precondition: the change is always applied.
    Any,
    /// No value exists.
    Absent,
    /// The value has this version.
    Version(Version),
}

impl Precondition {
    /// Returns `true` if the current value `found` meets the precondition.
    pub fn holds(&self, found: Option<&StoredMeta>) -> bool {
        match self {
            Precondition::Any => true,
            Precondition::Absent => found.is_none(),
            Precondition::Version(version) => found.is_some_and(|stored| stored.version == *version),
        }
    }
}

/// Outcome of a conditional change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum PutOutcome {
    /// The change was applied. Metadata of the new value; of a removal, of the removed value.
    Applied(StoredMeta),
    /// The precondition failed, and nothing was changed. Metadata of the current value, if there is one.
    PreconditionFailed(Option<StoredMeta>),
}

/// Precondition of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The value at the path meets the precondition.
    At(VfsPath, Precondition),
    /// No value exists below the path; at the path itself one may exist.
    NothingBelow(VfsPath),
}

/// One change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Stores a value, replacing an existing one.
    Put(VfsPath, NewValue),
    /// Removes a value.
    Delete(VfsPath),
    /// Moves a value with its metadata, replacing an existing one.
    Move {
        /// Source path.
        from: VfsPath,
        /// Target path.
        to: VfsPath,
    },
    /// Copies a value, replacing an existing one.
    Copy {
        /// Source path.
        from: VfsPath,
        /// Target path.
        to: VfsPath,
        /// Creation and modification time of the copy.
        at: DateTime<Utc>,
    },
}

/// Returns an error if a staged content has a token of another namespace.
pub(crate) fn check_staged(namespace: &Namespace, writes: &[Write]) -> Result<()> {
    for write in writes {
        if let Write::Put(path, NewValue { content: ValueContent::Staged(staged), .. }) = write
            && staged.token.namespace()? != *namespace
        {
            return Err(StagingToken::unknown().with_path(path));
        }
    }
    Ok(())
}

/// Outcome of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum BatchOutcome {
    /// The batch was applied. Metadata of the new value for each write, in their order; of a removal, of the removed value.
    Applied(Vec<StoredMeta>),
    /// A condition failed, and nothing was changed. The path of the first one that failed, and the metadata of the value at that path:
    /// for [`Condition::NothingBelow`] too, and `None` at the missing source of a move or copy.
    PreconditionFailed(VfsPath, Option<StoredMeta>),
}

impl BatchOutcome {
    /// Returns the outcome of a batch of one write as that of a put or delete.
    ///
    /// # Behaviour
    ///
    /// * [`Applied`](Self::Applied) becomes [`PutOutcome::Applied`] with the metadata of the write; of several writes, with that of
    ///   the last.
    /// * [`PreconditionFailed`](Self::PreconditionFailed) loses its path. Its metadata is that of the value to put or delete only
    ///   if all conditions are about the path of the write.
    ///
    /// # Errors
    ///
    /// `internal` for an applied batch without a write.
    pub fn into_single(self) -> Result<PutOutcome> {
        match self {
            BatchOutcome::Applied(mut stored) => stored.pop().map(PutOutcome::Applied).ok_or_else(|| {
                Error::new(ErrorKind::Internal, "internal: the store returned no metadata of a write that it applied")
            }),
            BatchOutcome::PreconditionFailed(_, found) => Ok(PutOutcome::PreconditionFailed(found)),
        }
    }
}

/// Request for one page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListRequest {
    /// The directory to list below; the value at this path itself is not listed.
    pub below: VfsPath,
    /// Depth of the listing.
    pub depth: ListDepth,
    /// Start of the page: [`Page::next`] of the page before.
    pub from: Option<PageToken>,
    /// Upper bound on the number of entries and directories of the page, at least 1. A page may have fewer.
    pub limit: usize,
}

impl ListRequest {
    /// The default of [`limit`](Self::limit).
    pub const DEFAULT_LIMIT: usize = 1000;

    /// Requests all values below `below`, at any depth.
    pub fn all(below: VfsPath) -> Self {
        Self { below, depth: ListDepth::All, from: None, limit: Self::DEFAULT_LIMIT }
    }

    /// Requests one level of `below`: its values, and the directories that deeper values imply.
    pub fn level(below: VfsPath) -> Self {
        Self { depth: ListDepth::Level, ..Self::all(below) }
    }

    /// Sets the start of the page.
    #[must_use]
    pub fn from(mut self, token: PageToken) -> Self {
        self.from = Some(token);
        self
    }

    /// Sets the upper bound on the number of entries and directories.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit.max(1);
        self
    }
}

/// Depth of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListDepth {
    /// One level; deeper values appear as their directory.
    Level,
    /// All values at any depth.
    All,
}

/// Value of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path of the value.
    pub path: VfsPath,
    /// Metadata of the value.
    pub stored: StoredMeta,
}

/// Opaque token of the start of a page, valid for the store that issued it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PageToken(String);

impl PageToken {
    /// Returns a token with the text of a store.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text of the token.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A page of a listing.
///
/// Entries are sorted by path, and so are directories. The entries of all pages of a [`ListDepth::All`] listing together are sorted. A
/// value that exists from the first page to the last appears exactly once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// Values.
    pub entries: Vec<Entry>,
    /// Directories of a [`ListDepth::Level`] listing. One may have the path of a value.
    pub directories: Vec<VfsPath>,
    /// Values that cannot be named by a path, or cannot be read.
    pub problems: Vec<Problem>,
    /// Start of the next page, or `None` after the last. A page before the last may be empty.
    pub next: Option<PageToken>,
}

/// Literals of which every matching file contains at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextQuery {
    /// The literals.
    pub texts: Vec<String>,
    /// Case sensitivity of the literals.
    pub case: vfs_core::CaseMode,
    /// Upper bound on the number of candidates. If more values could match, the store returns `None` and the caller scans all of them.
    pub max_candidates: usize,
}

impl TextQuery {
    /// The default of [`max_candidates`](Self::max_candidates).
    pub const DEFAULT_MAX_CANDIDATES: usize = 400_000;

    /// Requires at least one of `texts`.
    pub fn new(texts: Vec<String>, case: vfs_core::CaseMode) -> Self {
        Self { texts, case, max_candidates: Self::DEFAULT_MAX_CANDIDATES }
    }

    /// Sets the upper bound on the number of candidates.
    #[must_use]
    pub fn max_candidates(mut self, max_candidates: usize) -> Self {
        self.max_candidates = max_candidates;
        self
    }
}

/// Paths of the values that may contain a literal of a [`TextQuery`].
pub type CandidateKeys = HashSet<VfsPath>;

/// Scope of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionSupport {
    /// Each change is of a single value.
    SingleValue,
    /// A batch changes any values of one namespace atomically.
    Namespace,
}

/// Source of modification times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TimestampSource {
    /// The store keeps the times of [`NewValue`], to the microsecond.
    #[default]
    Caller,
    /// Listings return the time at which the store received the value, and no creation time, as in object storage.
    Store,
}

/// Order of the pages of a [`ListDepth::Level`] listing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LevelOrder {
    /// Unspecified: to get the first names, a caller lists all of them.
    #[default]
    Any,
    /// By key; the key of a directory is its name followed by `/`. The order says which names are on which page; within a page,
    /// entries and directories are each sorted by path.
    Keys,
}

/// Limits and optional features of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCapabilities {
    /// Maximum size in bytes of a value that is put at once. A [staged](super::Staging) one may be larger.
    pub max_value: u64,
    /// Maximum length of a path in bytes.
    pub max_path: usize,
    /// Scope of transactions; with [`TransactionSupport::Namespace`], [`Store::as_batch`](super::Store::as_batch) returns `Some`.
    pub transactions: TransactionSupport,
    /// Order of the pages of one level.
    pub level_order: LevelOrder,
    /// Source of modification times. If it is the store, [`StoreBackend`](crate::StoreBackend) refuses writes that set one.
    pub timestamps: TimestampSource,
    /// `true` if [`Store::get_many`](super::Store::get_many) is faster than single requests; searches then prefetch files.
    pub bulk_reads: bool,
}

impl StoreCapabilities {
    /// Returns capabilities of a store without optional features, for values of up to `max_value` bytes.
    pub fn new(max_value: u64) -> Self {
        Self {
            max_value,
            max_path: 4096,
            transactions: TransactionSupport::SingleValue,
            level_order: LevelOrder::Any,
            timestamps: TimestampSource::Caller,
            bulk_reads: false,
        }
    }

    /// Sets the scope of transactions.
    #[must_use]
    pub fn transactions(mut self, transactions: TransactionSupport) -> Self {
        self.transactions = transactions;
        self
    }

    /// Sets the order of the pages of one level.
    #[must_use]
    pub fn level_order(mut self, order: LevelOrder) -> Self {
        self.level_order = order;
        self
    }

    /// Sets the source of modification times.
    #[must_use]
    pub fn timestamps(mut self, timestamps: TimestampSource) -> Self {
        self.timestamps = timestamps;
        self
    }

    /// Sets whether reading many values by one request is faster.
    #[must_use]
    pub fn bulk_reads(mut self, bulk_reads: bool) -> Self {
        self.bulk_reads = bulk_reads;
        self
    }

    /// Sets the maximum length of a path in bytes.
    #[must_use]
    pub fn max_path(mut self, bytes: usize) -> Self {
        self.max_path = bytes;
        self
    }
}
