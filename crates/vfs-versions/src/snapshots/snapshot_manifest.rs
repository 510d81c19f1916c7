//! Manifest of a snapshot: its files, by path and content.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::snapshots::{SnapshotId, SnapshotInfo};

use crate::versioned_entry::StoredFiles;

/// Manifest of one snapshot: `snapshots/<number>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotManifest {
    pub(crate) id: SnapshotId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    pub(crate) taken_at: DateTime<Utc>,
    pub(crate) files: StoredFiles,
}

impl SnapshotManifest {
    pub(crate) fn info(&self) -> SnapshotInfo {
        let bytes = self.files.values().map(|file| file.size).sum();
        let info = SnapshotInfo::new(self.id.clone(), self.taken_at).label(self.label.clone());
        info.holding(self.files.len() as u64, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_written_with_the_names_with_which_it_is_read() {
        let golden = include_str!("../../tests/golden/snapshot_manifest.json");
        for json in [golden.to_owned(), golden.replace("  \"label\": \"before\",\n", "")] {
            let manifest: SnapshotManifest = serde_json::from_str(&json).expect("a manifest");
            assert_eq!(serde_json::to_string_pretty(&manifest).expect("JSON") + "\n", json);
        }
    }
}
