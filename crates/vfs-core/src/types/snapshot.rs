//! States that are remembered, and what lies between two of them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::entry::Version;
use crate::path::VfsPath;

/// Names a snapshot within its backend.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SnapshotId(String);

impl SnapshotId {
    /// The snapshot of that name.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Asks for the state of now to be remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SnapshotRequest {
    /// What a person calls it. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl SnapshotRequest {
    /// Asks for a snapshot without a label.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives it a label, which need not be unique.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

/// A state that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// Its name.
    pub id: SnapshotId,
    /// What a person calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it was taken.
    pub taken_at: DateTime<Utc>,
    /// How many files it has.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
}

impl SnapshotInfo {
    /// A snapshot that was taken at `taken_at`, with nothing in it.
    pub fn new(id: SnapshotId, taken_at: DateTime<Utc>) -> Self {
        Self { id, label: None, taken_at, files: 0, bytes: 0 }
    }

    /// The same with a label.
    #[must_use]
    pub fn label(mut self, label: Option<String>) -> Self {
        self.label = label;
        self
    }

    /// The same with `files` files of `bytes` bytes.
    #[must_use]
    pub fn holding(mut self, files: u64, bytes: u64) -> Self {
        (self.files, self.bytes) = (files, bytes);
        self
    }
}

/// Asks for the files to be made those of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RestoreRequest {
    /// The snapshot.
    pub id: SnapshotId,
}

impl RestoreRequest {
    /// Goes back to `id`.
    pub fn new(id: SnapshotId) -> Self {
        Self { id }
    }
}

/// Asks for a snapshot to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ForgetRequest {
    /// The snapshot.
    pub id: SnapshotId,
}

impl ForgetRequest {
    /// Forgets `id`.
    pub fn new(id: SnapshotId) -> Self {
        Self { id }
    }
}

/// Asks what lies between two states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DiffRequest {
    /// The earlier snapshot.
    pub from: SnapshotId,
    /// The later snapshot. Default: the state of now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<SnapshotId>,
}

impl DiffRequest {
    /// Asks what has changed since `from`.
    pub fn since(from: SnapshotId) -> Self {
        Self { from, to: None }
    }

    /// Asks what changed between `from` and `to`.
    pub fn between(from: SnapshotId, to: SnapshotId) -> Self {
        Self { from, to: Some(to) }
    }
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// It has another content.
    Changed,
    /// It is no longer there.
    Removed,
}

/// One file that differs between two states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileChange {
    /// The file.
    pub path: VfsPath,
    /// What became of it.
    pub kind: ChangeKind,
    /// The version that it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Version>,
    /// The version that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Version>,
    /// The unified diff; empty where it is left out because of its size.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

impl FileChange {
    /// The largest file, in bytes, of which [`between`](Self::between) makes a diff.
    pub const MAX_DIFFED: usize = 1 << 20;

    /// What became of the file at `path`, given its content and version on either side, where it is there; `None` where
    /// nothing did. Files over [`MAX_DIFFED`](Self::MAX_DIFFED) have no diff, but their versions.
    pub fn between(path: &VfsPath, before: Option<(&[u8], Version)>, after: Option<(&[u8], Version)>) -> Option<Self> {
        let kind = match (&before, &after) {
            (None, None) => return None,
            (Some((old, _)), Some((new, _))) if old == new => return None,
            (None, Some(_)) => ChangeKind::Added,
            (Some(_), Some(_)) => ChangeKind::Changed,
            (Some(_), None) => ChangeKind::Removed,
        };
        let content = |side: &Option<(&'_ [u8], Version)>| side.as_ref().map_or(0, |(content, _)| content.len());
        let diff = if content(&before).max(content(&after)) > Self::MAX_DIFFED {
            String::new()
        } else {
            crate::edit::diff_files(path, before.as_ref().map(|(old, _)| *old), after.as_ref().map(|(new, _)| *new))
        };
        let versions = (before.map(|(_, version)| version), after.map(|(_, version)| version));
        Some(Self::new(path.clone(), kind).versions(versions.0, versions.1).diff(diff))
    }

    /// `path` became `kind`.
    pub fn new(path: VfsPath, kind: ChangeKind) -> Self {
        Self { path, kind, before: None, after: None, diff: String::new() }
    }

    /// The same with the versions on either side.
    #[must_use]
    pub fn versions(mut self, before: Option<Version>, after: Option<Version>) -> Self {
        (self.before, self.after) = (before, after);
        self
    }

    /// The same with a unified diff.
    #[must_use]
    pub fn diff(mut self, diff: String) -> Self {
        self.diff = diff;
        self
    }
}

/// The files that differ between two states, sorted by the bytes of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChangeSet {
    /// The files.
    pub changes: Vec<FileChange>,
}

impl ChangeSet {
    /// These changes, which are sorted by path.
    pub fn new(changes: Vec<FileChange>) -> Self {
        Self { changes }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// All unified diffs, one after the other.
    pub fn unified(&self) -> String {
        self.changes.iter().map(|change| change.diff.as_str()).collect()
    }
}
