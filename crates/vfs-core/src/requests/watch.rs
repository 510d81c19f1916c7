//! Requests and events of change feeds.

use serde::{Deserialize, Serialize};

use super::version::Version;
use super::wire;
use crate::path::VfsPath;

/// A position in a change feed. A cursor is valid only for the backend that issued it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WatchCursor(String);

impl WatchCursor {
    /// Creates a cursor from the text of a backend.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text of the cursor.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request for [`Watch::watch`](crate::Watch::watch).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WatchRequest {
    /// The file or directory. Default: the root.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub path: VfsPath,
    /// The cursor of the last event that the caller received. Default: the feed starts now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<WatchCursor>,
}

impl WatchRequest {
    /// Creates a request for the changes at and below `path` from now on.
    pub fn new(path: VfsPath) -> Self {
        Self { path, since: None }
    }

    /// Resumes the feed after `cursor`.
    #[must_use]
    pub fn since(mut self, cursor: WatchCursor) -> Self {
        self.since = Some(cursor);
        self
    }
}

/// A change of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// A file or directory was created.
    Created {
        /// The path.
        path: VfsPath,
        /// The version of a file, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// The content of a file changed.
    Changed {
        /// The file.
        path: VfsPath,
        /// The version, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// A file or directory was removed.
    Removed {
        /// The path.
        path: VfsPath,
    },
    /// A file, or a directory with all entries below it, was renamed.
    Renamed {
        /// The old path.
        from: VfsPath,
        /// The new path.
        to: VfsPath,
        /// The version of a file, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// Events were lost. The caller has to list the files again.
    Overflow,
}

/// An event of a change feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WatchEvent {
    /// The cursor after this event.
    pub cursor: WatchCursor,
    /// The change.
    pub change: Change,
}

impl WatchEvent {
    /// Creates an event.
    pub fn new(cursor: WatchCursor, change: Change) -> Self {
        Self { cursor, change }
    }
}
