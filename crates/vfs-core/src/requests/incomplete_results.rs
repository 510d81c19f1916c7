//! Problems, truncation and omissions of listings and searches.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};

/// An entry that a listing or search could not read. Results for the other entries are still returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The path of the entry, in which invalid UTF-8 is replaced by U+FFFD.
    pub path: String,
    /// The kind of the error.
    pub code: ErrorKind,
    /// The message of the error for a model.
    pub message: String,
}

impl Problem {
    /// Creates the problem of an entry that failed with `error`.
    pub fn new(path: impl Into<String>, error: &Error) -> Self {
        Self { path: path.into(), code: error.kind(), message: error.for_model() }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::new(error.path().unwrap_or_default(), &error)
    }
}

/// The reason for which a result is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TruncationReason {
    /// The count limit of the request was reached.
    Limit,
    /// The size limit of the result was reached.
    MaxBytes,
    /// A line is longer than the size limit; `next_byte` is the position of its rest.
    LongLine,
    /// The depth limit was reached, or the tree is deeper than the longest path.
    Depth,
    /// The search listed the maximum number of entries, and entered no further directory.
    MaxEntries,
    /// A longer result could not be allocated.
    Memory,
}

/// The numbers of entries that a search skipped, by reason.
///
/// A skipped directory counts once, whatever it contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Skipped {
    /// Entries whose names start with a dot.
    pub hidden: u64,
    /// Entries that an ignore file excludes.
    pub ignored: u64,
    /// Files that contain NUL bytes.
    pub binary: u64,
    /// Files over the size limit.
    pub too_large: u64,
    /// Links, if the search follows none.
    pub links: u64,
}

impl Skipped {
    /// Returns whether no entry was skipped.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl std::ops::AddAssign for Skipped {
    fn add_assign(&mut self, other: Self) {
        self.hidden += other.hidden;
        self.ignored += other.ignored;
        self.binary += other.binary;
        self.too_large += other.too_large;
        self.links += other.links;
    }
}
