//! Entries of the undo history, and the report of an undo.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{Operation, VfsPath};

use super::undo_record::UndoRecord;

/// An operation that can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UndoEntry {
    /// Number of the operation: later operations have higher numbers.
    pub number: u64,
    /// Start of the operation, in UTC; RFC 3339 in JSON.
    pub time: DateTime<Utc>,
    /// Actor of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The operation; its code in JSON.
    pub operation: Operation,
    /// Paths of the request; the root for the restore of a snapshot.
    pub paths: Vec<VfsPath>,
}

/// The operation in words: `rename /a to /b`.
impl fmt::Display for UndoEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<_> = self.paths.iter().map(|path| path.as_str()).collect();
        write!(f, "{} {}", self.operation, paths.join(" to "))
    }
}

impl From<&UndoRecord> for UndoEntry {
    fn from(record: &UndoRecord) -> Self {
        let UndoRecord { number, time, actor, operation, paths, .. } = record.clone();
        Self { number, time, actor, operation, paths }
    }
}

/// Report of an undo.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UndoReport {
    /// The undone operations, the newest first.
    pub entries: Vec<UndoEntry>,
    /// Number of changed files; a file that was changed twice counts twice.
    pub files: u64,
}
