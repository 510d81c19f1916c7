//! JSON record of an overlay in its store.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::content_store::ObjectId;
use crate::overlay::merged::Before;

/// The changes of an overlay, and the commit that is under way. Contents are objects.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    /// Random, so that no two notes are equal or share a version.
    #[serde(default)]
    pub(super) mark: u64,
    /// The generation of the contents: each has a directory of its own.
    #[serde(default)]
    pub(super) generation: u64,
    pub(super) files: BTreeMap<VfsPath, ObjectId>,
    pub(super) touched: BTreeMap<VfsPath, Before>,
    pub(super) gone: BTreeSet<VfsPath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<NotedCommit>,
}

/// A commit that is under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NotedCommit {
    #[serde(flatten)]
    pub(super) phase: Phase,
    pub(super) steps: Vec<Step>,
}

/// Which commit is under way, and in which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Phase {
    /// Random, and the same in every note of the commit.
    pub(super) id: u64,
    /// Whether the process that began the commit rolls it back.
    pub(super) is_rolling_back: bool,
}

/// One file of a commit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) path: VfsPath,
    pub(super) before: Before,
    /// The content of a file before, which is another version where it was rolled back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) was: Option<ObjectId>,
    pub(super) after: Option<ObjectId>,
}

/// Returns a random number that no other process uses.
pub(super) fn random_id() -> u64 {
    Uuid::new_v4().as_u64_pair().0
}

impl Note {
    pub(super) fn phase(&self) -> Option<Phase> {
        self.commit.as_ref().map(|commit| commit.phase)
    }

    /// This, where its commit is rolled back or not.
    pub(super) fn with_rollback(mut self, is_rolling_back: bool) -> Self {
        if let Some(commit) = &mut self.commit {
            commit.phase.is_rolling_back = is_rolling_back;
        }
        self
    }

    /// Whether it names no content.
    pub(super) fn is_without_contents(&self) -> bool {
        self.files.is_empty() && self.commit.is_none()
    }

    /// Whether there is neither a change nor a commit.
    pub(super) fn is_empty(&self) -> bool {
        self.is_without_contents() && self.touched.is_empty() && self.gone.is_empty()
    }

    /// The note of `text`, which is the file at `path`.
    pub(super) fn decode(text: &[u8], path: &VfsPath) -> Result<Self> {
        serde_json::from_slice(text).map_err(|source| {
            Error::invalid_argument("this is not the note of an overlay; another program wrote it")
                .with_path(path)
                .with_source(source)
        })
    }

    /// The text of this, for the file at `path`.
    pub(super) fn encode(&self, path: &VfsPath) -> Result<Bytes> {
        let text = serde_json::to_vec(self).map_err(|source| {
            Error::new(ErrorKind::Internal, "the overlay cannot be noted").with_path(path).with_source(source)
        })?;
        Ok(Bytes::from(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_written_with_the_names_with_which_it_is_read() {
        let (golden, at) = (include_str!("../../../tests/golden/overlay_note.json"), VfsPath::root());
        let note = Note::decode(golden.as_bytes(), &at).expect("a note");
        assert_eq!(serde_json::to_string_pretty(&note).expect("JSON") + "\n", golden);
        let empty = Note::default().encode(&at).expect("JSON");
        assert_eq!(empty, r#"{"mark":0,"generation":0,"files":{},"touched":{},"gone":[]}"#);
    }
}
