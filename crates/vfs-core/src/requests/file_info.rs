//! Metadata of a file, and the request for it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::version::Version;
use super::wire;
use crate::path::VfsPath;

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
