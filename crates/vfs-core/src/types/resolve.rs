//! Where a path really is, and lending a tree.

use serde::{Deserialize, Serialize};

use super::GrepRequest;
use crate::path::VfsPath;

/// Asks where a path really is: what it names when all links in it are followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ResolveRequest {
    /// The path, at which nothing need be.
    pub path: VfsPath,
}

impl ResolveRequest {
    /// Asks about `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path }
    }
}

/// Where a path really is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Resolved {
    /// The path without links. Where nothing is there, what an operation that makes a file would make.
    pub path: VfsPath,
    /// How many names the file there has, as hard links; 1 for a directory, for nothing, and where it cannot be known.
    pub names: u64,
    /// Whether no operation succeeds through the requested path, even if something exists at [`path`](Self::path): the target of a
    /// link has `..` after a missing component or a file, or ends with `/` and leads to no directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leads_nowhere: bool,
}

impl Resolved {
    /// `path` is a real one, and of one name.
    pub fn at(path: VfsPath) -> Self {
        Self { path, names: 1, leads_nowhere: false }
    }

    /// Sets whether the requested path leads nowhere.
    #[must_use]
    pub fn leads_nowhere(mut self, leads_nowhere: bool) -> Self {
        self.leads_nowhere = leads_nowhere;
        self
    }

    /// The same of a file that has `names` names.
    #[must_use]
    pub fn names(mut self, names: u64) -> Self {
        self.names = names;
        self
    }
}

/// What a lent tree is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TreeUse {
    /// A listing: names and what is known of them.
    List,
    /// A glob: names and what is known of them.
    Glob,
    /// A search: contents too.
    Grep,
}

/// Asks a backend for its tree, so that it can be searched as a part of a larger one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OpenTreeRequest {
    /// Where the search will start.
    pub path: VfsPath,
    /// What the tree is for.
    pub purpose: TreeUse,
    /// The one search that the tree is for, where that is known: its pattern and its options, but none of its paths. A file
    /// that holds nothing of it may then be shown empty, so that the tree is for no other. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Box<GrepRequest>>,
}

impl OpenTreeRequest {
    /// Asks for a tree to be used for `purpose` from `path` down.
    pub fn new(path: VfsPath, purpose: TreeUse) -> Self {
        Self { path, purpose, search: None }
    }

    /// Asks for a tree to be used for `search` alone, from its path down.
    pub fn for_grep(search: &GrepRequest) -> Self {
        let path = search.path.clone();
        Self { path, purpose: TreeUse::Grep, search: Some(Box::new(search.clone())) }
    }

    /// Asks for the same of a tree that is used from `path` down.
    #[must_use]
    pub fn at(mut self, path: VfsPath) -> Self {
        self.path = path;
        self
    }
}
