//! Request for access to a tree of files.

use serde::{Deserialize, Serialize};

use super::GrepRequest;
use crate::path::VfsPath;

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
