//! JSON record of an overlay in its store.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use vfs_core::{Error, Result, Version, VfsPath};

use crate::content_store::ObjectId;
use crate::record_directory::encode;
use crate::versioned_entry::VersionedEntry;

/// Changes of an overlay, and the commit in progress. Contents are named by their objects.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OverlayManifest {
    /// Random number, so that no two records are equal or share a version.
    #[serde(default)]
    pub(super) mark: u64,
    /// Generation of the contents: each has a directory of its own.
    #[serde(default)]
    pub(super) generation: u64,
    pub(super) files: BTreeMap<VfsPath, ObjectId>,
    #[serde(rename = "touched")]
    pub(super) originals: BTreeMap<VfsPath, VersionedEntry<Version>>,
    #[serde(rename = "gone")]
    pub(super) hidden: BTreeSet<VfsPath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<OngoingCommit>,
}

/// A commit in progress.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OngoingCommit {
    #[serde(flatten)]
    pub(super) phase: CommitHeader,
    pub(super) steps: Vec<CommitStep>,
}

/// Identity and direction of a commit in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CommitHeader {
    /// Random number, which is the same in every record of the commit.
    pub(super) id: u64,
    /// Whether the process that began the commit rolls it back.
    pub(super) is_rolling_back: bool,
}

/// One file of a commit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommitStep {
    pub(super) path: VfsPath,
    pub(super) before: VersionedEntry<Version>,
    /// Content of the file before the commit. After a rollback the file has this content, in another version.
    #[serde(rename = "was", default, skip_serializing_if = "Option::is_none")]
    pub(super) before_content: Option<ObjectId>,
    pub(super) after: Option<ObjectId>,
}

/// Returns random bits of a UUID.
pub(super) fn random_id() -> u64 {
    Uuid::new_v4().as_u64_pair().0
}

impl OverlayManifest {
    pub(super) fn phase(&self) -> Option<CommitHeader> {
        self.commit.as_ref().map(|commit| commit.phase)
    }

    /// Returns this record with the direction of its commit set.
    pub(super) fn with_rollback(mut self, is_rolling_back: bool) -> Self {
        if let Some(commit) = &mut self.commit {
            commit.phase.is_rolling_back = is_rolling_back;
        }
        self
    }

    /// Returns whether the record names no content.
    pub(super) fn is_without_contents(&self) -> bool {
        self.files.is_empty() && self.commit.is_none()
    }

    /// Returns whether the record has neither a change nor a commit.
    pub(super) fn is_empty(&self) -> bool {
        self.is_without_contents() && self.originals.is_empty() && self.hidden.is_empty()
    }

    /// Parses `text`, the content of the file at `path`.
    pub(super) fn decode(text: &[u8], path: &VfsPath) -> Result<Self> {
        serde_json::from_slice(text).map_err(|source| {
            Error::invalid_argument(
                "the file is not the record of an overlay; choose another directory for the overlay",
            )
            .with_path(path)
            .with_source(source)
        })
    }

    /// Serialises this record for the file at `path`.
    pub(super) fn encode(&self, path: &VfsPath) -> Result<Bytes> {
        encode(self).map_err(|error| error.with_path(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_written_with_the_names_with_which_it_is_read() {
        let (golden, at) = (include_str!("../../../tests/golden/overlay_record.json"), VfsPath::root());
        let record = OverlayManifest::decode(golden.as_bytes(), &at).expect("a record");
        assert_eq!(serde_json::to_string_pretty(&record).expect("JSON") + "\n", golden);
        let empty = OverlayManifest::default().encode(&at).expect("JSON");
        assert_eq!(empty, r#"{"mark":0,"generation":0,"files":{},"touched":{},"gone":[]}"#);
    }
}
