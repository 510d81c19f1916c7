//! What is known of one file, and what a listing or search could not show.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::error::{Error, ErrorKind};
use crate::path::VfsPath;

/// An opaque mark of a file's content: equal versions mean equal content.
///
/// It is the precondition of conditional writes, and means something only to the backend that gave it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(Arc<str>);

impl Version {
    /// A version from a backend's own text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// Asks what is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StatRequest {
    /// The file or directory.
    pub path: VfsPath,
}

impl StatRequest {
    /// Asks about `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path }
    }
}

/// One file or directory.
///
/// A link inside the root is described by what it leads to, under its own path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileInfo {
    /// Where it is, in the caller's namespace.
    pub path: VfsPath,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Bytes; 0 for a directory.
    pub size: u64,
    /// When the content last changed, in UTC; RFC 3339 in JSON. `None` for a directory that exists only through its files.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "wire::time")]
    pub modified_at: Option<DateTime<Utc>>,
    /// When it was made, where the backend knows. On a disk a change puts a new file in the place of the old, which is made
    /// then.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "wire::time")]
    pub created_at: Option<DateTime<Utc>>,
    /// The version of a file's content; `None` for a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

impl FileInfo {
    /// A file of `size` bytes.
    pub fn file(path: VfsPath, size: u64, version: Version) -> Self {
        Self { path, is_dir: false, size, modified_at: None, created_at: None, version: Some(version) }
    }

    /// A directory.
    pub fn directory(path: VfsPath) -> Self {
        Self { path, is_dir: true, size: 0, modified_at: None, created_at: None, version: None }
    }

    /// The same with the time of its last change.
    #[must_use]
    pub fn modified_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.modified_at = at.into();
        self
    }

    /// The same with the time of its making.
    #[must_use]
    pub fn created_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.created_at = at.into();
        self
    }
}

/// One entry that a listing or search could not show or open, beside the results that it could.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The entry, as near as it can be spelled: a name that is not UTF-8 has U+FFFD where it is not.
    pub path: String,
    /// Why.
    pub code: ErrorKind,
    /// Why, in words for the model.
    pub message: String,
}

impl Problem {
    /// `path` could not be shown because of `error`.
    pub fn new(path: impl Into<String>, error: &Error) -> Self {
        Self { path: path.into(), code: error.kind(), message: error.for_model() }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::new(error.path().unwrap_or_default(), &error)
    }
}

/// Why a result is not all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Truncation {
    /// The request's own count limit was reached.
    Limit,
    /// The result's size limit was reached.
    MaxBytes,
    /// A line is longer than the size limit; `next_byte` says where it goes on.
    LongLine,
    /// The depth limit was reached, or the tree goes deeper than a path can name.
    Depth,
    /// The search listed as many entries as any search does, and entered no further directory.
    MaxEntries,
    /// There was no memory for a longer result.
    Memory,
}

/// How many entries a search left out, so that silence is never mistaken for absence.
///
/// A directory that is left out counts once, whatever it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Skipped {
    /// Names that start with a dot.
    pub hidden: u64,
    /// Excluded by an ignore file.
    pub ignored: u64,
    /// Files with NUL bytes.
    pub binary: u64,
    /// Files over the size limit.
    pub too_large: u64,
    /// Links that were left out, where links are not followed at all.
    pub links: u64,
}

impl Skipped {
    /// Whether nothing was left out.
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
