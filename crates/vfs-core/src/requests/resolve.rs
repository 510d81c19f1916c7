//! Request and result of path resolution.

use serde::{Deserialize, Serialize};

use crate::path::VfsPath;

/// A request for [`Backend::resolve`](crate::Backend::resolve).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ResolveRequest {
    /// The path, which need not exist.
    pub path: VfsPath,
}

impl ResolveRequest {
    /// Creates a request to resolve `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path }
    }
}

/// The result of path resolution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResolveResult {
    /// The path with all links resolved. If the path does not exist, the path at which a file would be created.
    pub path: VfsPath,
    /// The number of hard links of the file; 1 for a directory, for a missing path, and if the number is unknown.
    pub names: u64,
    /// Whether no operation succeeds through the requested path, even if something exists at [`path`](Self::path): the target of a
    /// link has `..` after a missing component or a file, or ends with `/` and leads to no directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leads_nowhere: bool,
}

impl ResolveResult {
    /// Creates the result for a path with one hard link.
    pub fn at(path: VfsPath) -> Self {
        Self { path, names: 1, leads_nowhere: false }
    }

    /// Sets whether the requested path leads nowhere.
    #[must_use]
    pub fn leads_nowhere(mut self, leads_nowhere: bool) -> Self {
        self.leads_nowhere = leads_nowhere;
        self
    }

    /// Sets the number of hard links.
    #[must_use]
    pub fn names(mut self, names: u64) -> Self {
        self.names = names;
        self
    }
}
