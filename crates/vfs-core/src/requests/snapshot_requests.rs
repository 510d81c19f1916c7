//! Requests and results of snapshots and their differences.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::version::Version;
use crate::path::VfsPath;

/// The id of a snapshot, unique within its backend.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SnapshotId(String);

impl SnapshotId {
    /// Creates an id from its text.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A request for [`Snapshots::snapshot`](crate::Snapshots::snapshot).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SnapshotRequest {
    /// A label for people. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl SnapshotRequest {
    /// Creates a request for a snapshot without a label.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the label, which need not be unique.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

/// A snapshot of all files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// The id of the snapshot.
    pub id: SnapshotId,
    /// The label for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The time at which the snapshot was taken.
    pub taken_at: DateTime<Utc>,
    /// The number of files.
    pub files: u64,
    /// The total size of the files in bytes.
    pub bytes: u64,
}

impl SnapshotInfo {
    /// Creates the description of an empty snapshot without a label.
    pub fn new(id: SnapshotId, taken_at: DateTime<Utc>) -> Self {
        Self { id, label: None, taken_at, files: 0, bytes: 0 }
    }

    /// Sets the label.
    #[must_use]
    pub fn label(mut self, label: Option<String>) -> Self {
        self.label = label;
        self
    }

    /// Sets the number and total size of the files.
    #[must_use]
    pub fn holding(mut self, files: u64, bytes: u64) -> Self {
        (self.files, self.bytes) = (files, bytes);
        self
    }
}

/// A request for [`Snapshots::restore`](crate::Snapshots::restore).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RestoreRequest {
    /// The snapshot.
    pub id: SnapshotId,
}

impl RestoreRequest {
    /// Creates a request to restore the snapshot `id`.
    pub fn new(id: SnapshotId) -> Self {
        Self { id }
    }
}

/// A request for [`Snapshots::forget`](crate::Snapshots::forget).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ForgetRequest {
    /// The snapshot.
    pub id: SnapshotId,
}

impl ForgetRequest {
    /// Creates a request to delete the snapshot `id`.
    pub fn new(id: SnapshotId) -> Self {
        Self { id }
    }
}

/// A request for [`Snapshots::diff`](crate::Snapshots::diff).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SnapshotDiffRequest {
    /// The earlier snapshot.
    pub from: SnapshotId,
    /// The later snapshot. Default: the current files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<SnapshotId>,
}

impl SnapshotDiffRequest {
    /// Creates a request for the changes since the snapshot `from`.
    pub fn since(from: SnapshotId) -> Self {
        Self { from, to: None }
    }

    /// Creates a request for the changes between the snapshots `from` and `to`.
    pub fn between(from: SnapshotId, to: SnapshotId) -> Self {
        Self { from, to: Some(to) }
    }
}

/// The kind of a change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SnapshotDiffKind {
    /// The file is new.
    Added,
    /// The content of the file changed.
    Changed,
    /// The file was removed.
    Removed,
}

/// A file that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SnapshotDiffEntry {
    /// The file.
    pub path: VfsPath,
    /// The kind of the change.
    pub kind: SnapshotDiffKind,
    /// The version before the change; `None` for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Version>,
    /// The version after the change; `None` for a removed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Version>,
    /// The unified diff; empty if the file is too large for one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

impl SnapshotDiffEntry {
    /// The maximum size in bytes of a file for which [`between`](Self::between) creates a diff.
    pub const MAX_DIFFED: usize = 1 << 20;

    /// Compares the content and version of a file before and after, each `None` if the file does not exist.
    ///
    /// Returns `None` if the contents are equal. The change has no diff if the file is over [`MAX_DIFFED`](Self::MAX_DIFFED).
    pub fn between(path: &VfsPath, before: Option<(&[u8], Version)>, after: Option<(&[u8], Version)>) -> Option<Self> {
        let kind = match (&before, &after) {
            (None, None) => return None,
            (Some((old, _)), Some((new, _))) if old == new => return None,
            (None, Some(_)) => SnapshotDiffKind::Added,
            (Some(_), Some(_)) => SnapshotDiffKind::Changed,
            (Some(_), None) => SnapshotDiffKind::Removed,
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

    /// Creates a change without versions and diff.
    pub fn new(path: VfsPath, kind: SnapshotDiffKind) -> Self {
        Self { path, kind, before: None, after: None, diff: String::new() }
    }

    /// Sets the versions before and after the change.
    #[must_use]
    pub fn versions(mut self, before: Option<Version>, after: Option<Version>) -> Self {
        (self.before, self.after) = (before, after);
        self
    }

    /// Sets the unified diff.
    #[must_use]
    pub fn diff(mut self, diff: String) -> Self {
        self.diff = diff;
        self
    }
}

/// The differences between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SnapshotDiffResult {
    /// The changed files, sorted by the bytes of their paths.
    pub changes: Vec<SnapshotDiffEntry>,
}

impl SnapshotDiffResult {
    /// Creates a set of changes, which must be sorted by path.
    pub fn new(changes: Vec<SnapshotDiffEntry>) -> Self {
        Self { changes }
    }

    /// Returns whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the concatenated unified diffs.
    pub fn unified(&self) -> String {
        self.changes.iter().map(|change| change.diff.as_str()).collect()
    }
}
