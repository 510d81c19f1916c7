//! Requests and results of path resolution and tree access.

use serde::{Deserialize, Serialize};

use super::GrepRequest;
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

/// The purpose for which a tree is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TreeUse {
    /// A listing, which reads names and metadata.
    List,
    /// A glob, which reads names and metadata.
    Glob,
    /// A content search, which also reads files.
    Grep,
}

/// A request for [`TreeProvider::open_tree`](crate::TreeProvider::open_tree).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OpenTreeRequest {
    /// The path at which the search will start.
    pub path: VfsPath,
    /// The purpose of the tree.
    pub purpose: TreeUse,
    /// The only search for which the tree is used, if known; its path does not apply. The tree may then return a file that cannot
    /// match as empty, so that it must not be used for another search. Default: any search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Box<GrepRequest>>,
}

impl OpenTreeRequest {
    /// Creates a request for a tree that is used for `purpose` at and below `path`.
    pub fn new(path: VfsPath, purpose: TreeUse) -> Self {
        Self { path, purpose, search: None }
    }

    /// Creates a request for a tree that is used for `search` only.
    pub fn for_grep(search: &GrepRequest) -> Self {
        let path = search.path.clone();
        Self { path, purpose: TreeUse::Grep, search: Some(Box::new(search.clone())) }
    }

    /// Sets the path at which the search will start.
    #[must_use]
    pub fn at(mut self, path: VfsPath) -> Self {
        self.path = path;
        self
    }
}
