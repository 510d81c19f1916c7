//! Listing a directory.

use serde::{Deserialize, Serialize};

use super::entry::{FileInfo, Problem, Truncation};
use super::wire;
use crate::path::VfsPath;

/// Asks for the entries of a directory.
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
    /// The directory; the root where JSON leaves it out.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub path: VfsPath,
    /// Whether everything below is listed too. Default: one level.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub recursive: bool,
    /// With `recursive`, how many levels; 1 is one level. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_depth: Option<u32>,
    /// Most entries. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub limit: Option<u64>,
}

impl LsRequest {
    /// Asks for one level of `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path, recursive: false, max_depth: None, limit: None }
    }

    /// Lists everything below, too.
    #[must_use]
    pub fn recursive(mut self) -> Self {
        self.recursive = true;
        self
    }

    /// Ends a recursive listing `levels` below the directory.
    #[must_use]
    pub fn max_depth(mut self, levels: u32) -> Self {
        self.max_depth = Some(levels);
        self
    }

    /// Ends the listing after `entries`.
    #[must_use]
    pub fn limit(mut self, entries: u64) -> Self {
        self.limit = Some(entries);
        self
    }

    /// How many levels the request reaches down: 1 where it is not recursive, `None` where nothing bounds it.
    pub fn depth(&self) -> Option<u32> {
        if self.recursive { self.max_depth } else { Some(1) }
    }
}

/// The entries of a directory, sorted by the bytes of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LsResult {
    /// The entries.
    pub entries: Vec<FileInfo>,
    /// Why there are more entries than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
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
