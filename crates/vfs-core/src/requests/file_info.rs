//! File metadata, versions, and the problems and omissions of listings and searches.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::error::{Error, ErrorKind};
use crate::path::VfsPath;

/// An opaque version of a file's content: equal versions mean equal content.
///
/// Versions are preconditions of conditional writes. A version is valid only for the backend that issued it. Those of this library's
/// backends consist of visible ASCII characters without quotation marks, so that they can be an entity tag of HTTP, except that the
/// versions of a bucket are the tags of its service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(Arc<str>);

impl Version {
    /// Creates a version from the text of a backend.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text of the version.
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

/// A request for [`Backend::stat`](crate::Backend::stat).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StatRequest {
    /// The file or directory.
    pub path: VfsPath,
}

impl StatRequest {
    /// Creates a request for the metadata of `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path }
    }
}

/// The metadata of a file or directory.
///
/// A link inside the root has the metadata of its target, under the link's own path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileInfo {
    /// The path in the caller's namespace.
    pub path: VfsPath,
    /// Whether the entry is a directory.
    pub is_dir: bool,
    /// The size in bytes; 0 for a directory.
    pub size: u64,
    /// The modification time in UTC; RFC 3339 in JSON. `None` for a directory that exists only through its files.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "wire::time")]
    pub modified_at: Option<DateTime<Utc>>,
    /// The creation time, if the backend knows it. On a local disk, each change replaces the file, so that its creation time is
    /// that of the change.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "wire::time")]
    pub created_at: Option<DateTime<Utc>>,
    /// The version of the content; `None` for a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

impl FileInfo {
    /// Creates the metadata of a file.
    pub fn file(path: VfsPath, size: u64, version: Version) -> Self {
        Self { path, is_dir: false, size, modified_at: None, created_at: None, version: Some(version) }
    }

    /// Creates the metadata of a directory.
    pub fn directory(path: VfsPath) -> Self {
        Self { path, is_dir: true, size: 0, modified_at: None, created_at: None, version: None }
    }

    /// Sets the modification time.
    #[must_use]
    pub fn modified_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.modified_at = at.into();
        self
    }

    /// Sets the creation time.
    #[must_use]
    pub fn created_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.created_at = at.into();
        self
    }
}

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
pub enum Truncation {
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
