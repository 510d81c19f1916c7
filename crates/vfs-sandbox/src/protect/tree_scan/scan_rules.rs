//! Rules of a scan: protected names and paths, and the shape of repositories.

use std::collections::BTreeMap;

use crate::config::{GIT, ProtectionLevel, SandboxConfig};

/// The names that a scan searches for, the paths that it skips, and its bound.
#[derive(Debug)]
pub(crate) struct ScanRules {
    /// Names in lower case, with their protection.
    names: BTreeMap<String, ProtectionLevel>,
    /// Protected paths, which are covered by themselves.
    pub(super) paths: BTreeMap<String, ProtectionLevel>,
    /// Components of the longest of these paths.
    pub(super) path_depth: usize,
    pub(super) max_entries: u64,
}

impl ScanRules {
    /// Returns the rules for a sandbox that covers protected paths separately.
    pub(crate) fn new(config: &SandboxConfig) -> Self {
        let paths = config.protected.iter();
        Self {
            paths: paths.map(|protected| (protected.path.as_str().to_owned(), protected.protection)).collect(),
            path_depth: config.protected.iter().map(|protected| protected.path.components().count()).max().unwrap_or(0),
            ..Self::without_paths(config)
        }
    }

    /// Returns the rules for a sandbox that covers no protected paths, so that protected names at such paths are found, too.
    pub(crate) fn without_paths(config: &SandboxConfig) -> Self {
        let names = config.protected_names.iter();
        Self {
            names: names.map(|protected| (protected.name.to_lowercase(), protected.protection)).collect(),
            paths: BTreeMap::new(),
            path_depth: 0,
            max_entries: config.max_scanned_entries,
        }
    }

    /// Returns whether a scan finds entries that are reported when a command leaves them.
    pub(crate) fn finds_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Returns whether a scan looks for repositories by their shape.
    pub(super) fn finds_repositories(&self) -> bool {
        self.names.contains_key(GIT)
    }

    pub(super) fn protection(&self, name: &[u8]) -> Option<ProtectionLevel> {
        // A file system may fold case, so names that differ only in case count as equal.
        std::str::from_utf8(name).ok().and_then(|name| self.names.get(&name.to_lowercase())).copied()
    }
}

/// Entries by which git recognises a repository: `HEAD`, with `objects` and `refs` or with the path of a repository
/// that has these.
#[derive(Debug, Default)]
pub(super) struct RepositoryMarkers {
    head: bool,
    objects: bool,
    refs: bool,
    common_directory: bool,
}

impl RepositoryMarkers {
    pub(super) fn add(&mut self, name: &[u8]) {
        // A file system may fold case.
        self.head |= name.eq_ignore_ascii_case(b"HEAD");
        self.objects |= name.eq_ignore_ascii_case(b"objects");
        self.refs |= name.eq_ignore_ascii_case(b"refs");
        self.common_directory |= name.eq_ignore_ascii_case(b"commondir");
    }

    pub(super) fn is_repository(&self) -> bool {
        self.head && (self.common_directory || (self.objects && self.refs))
    }
}
