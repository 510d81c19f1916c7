//! Requests and results of listings.

use serde::{Deserialize, Serialize};

use super::file_info::FileInfo;
use super::incomplete_results::{Problem, TruncationReason};
use super::wire;
use crate::path::VfsPath;

/// A request for [`Backend::ls`](crate::Backend::ls).
///
/// ```
/// use vfs_core::{LsRequest, VfsPath};
///
/// let request = LsRequest::new(VfsPath::root()).recursive().max_depth(3).limit(1_000);
/// assert_eq!(request.limit, Some(1_000));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LsRequest {
    /// The directory. Default in JSON: the root.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub path: VfsPath,
    /// Whether subdirectories are listed too. Default: one level.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub recursive: bool,
    /// The number of levels of a recursive listing. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_depth: Option<u32>,
    /// The maximum number of entries. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub limit: Option<u64>,
}

impl LsRequest {
    /// Creates a request for the entries of the directory `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path, recursive: false, max_depth: None, limit: None }
    }

    /// Lists subdirectories too.
    #[must_use]
    pub fn recursive(mut self) -> Self {
        self.recursive = true;
        self
    }

    /// Limits the number of levels of a recursive listing.
    #[must_use]
    pub fn max_depth(mut self, levels: u32) -> Self {
        self.max_depth = Some(levels);
        self
    }

    /// Limits the number of entries.
    #[must_use]
    pub fn limit(mut self, entries: u64) -> Self {
        self.limit = Some(entries);
        self
    }

    /// Returns the number of levels to list: 1 unless the request is recursive, `None` if it is unlimited.
    pub fn depth(&self) -> Option<u32> {
        if self.recursive { self.max_depth } else { Some(1) }
    }
}

/// The result of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LsResult {
    /// The entries, sorted by the bytes of their paths.
    pub entries: Vec<FileInfo>,
    /// The reason for which there are more entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<TruncationReason>,
    /// Entries that could not be shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

impl LsResult {
    /// A complete listing of `entries`.
    pub fn new(entries: Vec<FileInfo>) -> Self {
        Self { entries, truncated: None, problems: Vec::new() }
    }
}
