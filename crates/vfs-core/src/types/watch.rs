//! Changes as they happen.

use serde::{Deserialize, Serialize};

use super::entry::Version;
use super::wire;
use crate::path::VfsPath;

/// A place in a change feed, to go on from. It means something only to the backend that gave it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl Cursor {
    /// A cursor from a backend's own text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Asks for the changes at and below a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WatchRequest {
    /// The file or directory. Default: the root.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub path: VfsPath,
    /// The cursor of the last event that was seen. Default: only what happens from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Cursor>,
}

impl WatchRequest {
    /// Asks for what happens at and below `path` from now on.
    pub fn new(path: VfsPath) -> Self {
        Self { path, since: None }
    }

    /// Asks for what happened after `cursor` too.
    #[must_use]
    pub fn since(mut self, cursor: Cursor) -> Self {
        self.since = Some(cursor);
        self
    }
}

/// What happened to a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// A file or directory was made.
    Created {
        /// It.
        path: VfsPath,
        /// The version of a file, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// A file has another content.
    Changed {
        /// The file.
        path: VfsPath,
        /// Its version, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// A file or directory is gone.
    Removed {
        /// It.
        path: VfsPath,
    },
    /// A file or directory has another name; of a directory, all that lies below it has.
    Renamed {
        /// Where it was.
        from: VfsPath,
        /// Where it is.
        to: VfsPath,
        /// The version of a file, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// Events were lost; list again.
    Overflow,
}

/// One event of a change feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WatchEvent {
    /// Where to go on after it.
    pub cursor: Cursor,
    /// What happened.
    pub change: Change,
}

impl WatchEvent {
    /// `change`, with `cursor` to go on from.
    pub fn new(cursor: Cursor, change: Change) -> Self {
        Self { cursor, change }
    }
}
