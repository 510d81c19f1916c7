//! What is put into a store and what comes out.

use std::collections::HashSet;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use uuid::Uuid;
use vfs_core::{Problem, Version, VfsPath};

/// The version of `content` where the store has none of its own: the first half of its hash, in hex. Equal versions mean equal
/// content, in this process and in any other.
pub(crate) fn version_of(content: &[u8]) -> Version {
    Version::new(&blake3::hash(content).to_hex()[..32])
}

/// Tells one write from every other, so that whoever lost the answer can find out whether it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WriteId(u128);

impl WriteId {
    /// Returns a new random UUID.
    pub fn random() -> Self {
        Self(Uuid::new_v4().as_u128())
    }

    /// The number.
    pub fn get(self) -> u128 {
        self.0
    }
}

/// A value to be put.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewValue {
    /// The content.
    pub content: Bytes,
    /// When the file was made.
    pub created_at: DateTime<Utc>,
    /// When its content was last changed.
    pub modified_at: DateTime<Utc>,
    /// Which write this is.
    pub id: WriteId,
}

impl NewValue {
    /// `content`, made and changed at `at`, as a write of its own.
    pub fn new(content: Bytes, at: DateTime<Utc>) -> Self {
        Self { content, created_at: at, modified_at: at, id: WriteId::random() }
    }

    /// As it is, of a file made at `at`.
    #[must_use]
    pub fn created_at(mut self, at: DateTime<Utc>) -> Self {
        self.created_at = at;
        self
    }
}

/// What is known of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredMeta {
    /// Bytes of content.
    pub size: u64,
    /// Equal versions of a path mean equal content.
    pub version: Version,
    /// When the file was made, where it is known.
    pub created_at: Option<DateTime<Utc>>,
    /// When its content was last changed.
    pub modified_at: DateTime<Utc>,
}

impl StoredMeta {
    /// A value of `size` bytes.
    pub fn new(size: u64, version: Version, modified_at: DateTime<Utc>) -> Self {
        Self { size, version, created_at: None, modified_at }
    }

    /// Sets the creation time of the file.
    #[must_use]
    pub fn created_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.created_at = at.into();
        self
    }

    /// Returns the creation time, or the modification time if the store does not know it.
    pub(crate) fn creation_time(&self) -> DateTime<Utc> {
        self.created_at.unwrap_or(self.modified_at)
    }
}

/// A value that was got.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredValue {
    /// What is known of it, as a whole.
    pub stored: StoredMeta,
    /// The content, or the part that was asked for.
    pub content: Bytes,
}

impl StoredValue {
    /// `content` of `stored`.
    pub fn new(stored: StoredMeta, content: Bytes) -> Self {
        Self { stored, content }
    }
}

/// What is at a path, and below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStat {
    /// The value at the path, if there is one.
    pub stored: Option<StoredMeta>,
    /// Whether there are values below the path.
    pub has_below: bool,
}

impl PathStat {
    /// What a store found.
    pub fn new(stored: Option<StoredMeta>, has_below: bool) -> Self {
        Self { stored, has_below }
    }
}

/// What must be there for a change to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// Anything, or nothing.
    Any,
    /// No value.
    Absent,
    /// A value of this version.
    Version(Version),
}

impl Precondition {
    /// Whether `found` is what is expected.
    pub fn holds(&self, found: Option<&StoredMeta>) -> bool {
        match self {
            Precondition::Any => true,
            Precondition::Absent => found.is_none(),
            Precondition::Version(version) => found.is_some_and(|stored| stored.version == *version),
        }
    }
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum PutOutcome {
    /// It was made. What is there now; of a removal, what was there.
    Applied(StoredMeta),
    /// It was not made, as something else is there than was expected: this, or nothing.
    PreconditionFailed(Option<StoredMeta>),
}

/// What a whole batch depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// At the path there is what is expected.
    At(VfsPath, Precondition),
    /// Below the path there is no value; at the path itself there may be one.
    NothingBelow(VfsPath),
}

/// One change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Puts a value in place of what is there.
    Put(VfsPath, NewValue),
    /// Removes a value.
    Delete(VfsPath),
    /// Moves a value with all that is known of it, in place of what is there.
    Move {
        /// Where it is.
        from: VfsPath,
        /// Where it will be.
        to: VfsPath,
    },
    /// Copies a value in place of what is there; the copy is made at `at`.
    Copy {
        /// Where it is.
        from: VfsPath,
        /// Where it will be too.
        to: VfsPath,
        /// When the copy is made and changed.
        at: DateTime<Utc>,
    },
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum BatchOutcome {
    /// All of it was made. What is there now for each write, in their order; of a removal, what was there.
    Applied(Vec<StoredMeta>),
    /// Nothing was made, as the first condition that did not hold is about this path, where this was found.
    PreconditionFailed(VfsPath, Option<StoredMeta>),
}

/// Asks for a page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListRequest {
    /// The directory to list below; the value at this path itself is not listed.
    pub below: VfsPath,
    /// One level, or all.
    pub depth: ListDepth,
    /// Where to begin: [`Page::next`] of the page before.
    pub from: Option<PageToken>,
    /// The most entries and directories in all; at least one. A page may have fewer.
    pub limit: usize,
}

impl ListRequest {
    /// The default of [`limit`](Self::limit).
    pub const DEFAULT_LIMIT: usize = 1000;

    /// All values below `below`, at any depth.
    pub fn all(below: VfsPath) -> Self {
        Self { below, depth: ListDepth::All, from: None, limit: Self::DEFAULT_LIMIT }
    }

    /// One level of `below`: its values, and the names that others are below.
    pub fn level(below: VfsPath) -> Self {
        Self { depth: ListDepth::Level, ..Self::all(below) }
    }

    /// The page that begins at `token`.
    #[must_use]
    pub fn from(mut self, token: PageToken) -> Self {
        self.from = Some(token);
        self
    }

    /// At most `limit` in a page.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit.max(1);
        self
    }
}

/// How deep a listing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListDepth {
    /// One level: deeper values stand for the directory they are in.
    Level,
    /// Every value, however deep.
    All,
}

/// One value of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub path: VfsPath,
    /// What is known of it.
    pub stored: StoredMeta,
}

/// Where a page of a listing begins, in the words of the store that gave it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PageToken(String);

impl PageToken {
    /// A token of a store's own text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A page of a listing.
///
/// Its entries are sorted by path, and its directories too. The entries of all pages of a [`ListDepth::All`] listing are sorted
/// together. What is there from the first page to the last is on one page, once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// Values.
    pub entries: Vec<Entry>,
    /// Directories of a [`ListDepth::Level`] listing. One may have the path of a value.
    pub directories: Vec<VfsPath>,
    /// What is there and cannot be named as a path, or read.
    pub problems: Vec<Problem>,
    /// Where the next page begins. `None` at the end; a page that is not the last may be empty.
    pub next: Option<PageToken>,
}

/// Texts of which a searched file holds at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextQuery {
    /// The texts.
    pub texts: Vec<String>,
    /// Whether letters match whatever their case.
    pub case: vfs_core::CaseMode,
    /// Upper bound on the number of candidates. If more values may hold a text, the store says only that, and the search reads all.
    pub max_candidates: usize,
}

impl TextQuery {
    /// The default of [`max_candidates`](Self::max_candidates).
    pub const DEFAULT_MAX_CANDIDATES: usize = 400_000;

    /// At least one of `texts`.
    pub fn new(texts: Vec<String>, case: vfs_core::CaseMode) -> Self {
        Self { texts, case, max_candidates: Self::DEFAULT_MAX_CANDIDATES }
    }

    /// Where no more than `max_candidates` values may hold one.
    #[must_use]
    pub fn max_candidates(mut self, max_candidates: usize) -> Self {
        self.max_candidates = max_candidates;
        self
    }
}

/// The values that may hold a text.
pub type CandidateKeys = HashSet<VfsPath>;

/// Whether changes of several values can be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionSupport {
    /// One value at a time.
    SingleValue,
    /// All values of a namespace.
    Namespace,
}

/// The source of modification times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TimestampSource {
    /// The store keeps the times of [`NewValue`], to the microsecond.
    #[default]
    Caller,
    /// Listings return the time at which the store received the value, and no creation time, as in object storage.
    Store,
}

/// In which order the pages of a [`ListDepth::Level`] listing come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LevelOrder {
    /// In none that can be relied on: who wants the first names lists all of them.
    #[default]
    Any,
    /// By key, where a directory stands where the values below it do, as its name with a `/` after it.
    Keys,
}

/// What a store can do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCapabilities {
    /// The largest value, in bytes.
    pub max_value: u64,
    /// The longest path, in bytes.
    pub max_path: usize,
    /// Whether changes of several values can be one: then [`Store::as_batch`](super::Store::as_batch) is there.
    pub transactions: TransactionSupport,
    /// In which order the pages of one level come.
    pub level_order: LevelOrder,
    /// The source of modification times. If it is the store, [`StoreBackend`](crate::StoreBackend) refuses writes that set one.
    pub timestamps: TimestampSource,
    /// Whether [`Store::get_many`](super::Store::get_many) is faster than as many single requests: then searches prefetch files.
    pub bulk_reads: bool,
}

impl StoreCapabilities {
    /// Values of up to `max_value` bytes at any path, one change at a time.
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

    /// With batches.
    #[must_use]
    pub fn transactions(mut self, transactions: TransactionSupport) -> Self {
        self.transactions = transactions;
        self
    }

    /// With the pages of one level in this order.
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

    /// Sets whether many values are read faster by one request.
    #[must_use]
    pub fn bulk_reads(mut self, bulk_reads: bool) -> Self {
        self.bulk_reads = bulk_reads;
        self
    }

    /// With paths of up to `bytes` bytes.
    #[must_use]
    pub fn max_path(mut self, bytes: usize) -> Self {
        self.max_path = bytes;
        self
    }
}
