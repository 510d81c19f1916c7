//! Creation, listing, lookup and removal of snapshots.

use chrono::Utc;
use vfs_core::snapshots::{SnapshotId, SnapshotInfo, SnapshotRequest};
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};

use super::caller_files::CallerFiles;
use super::checkpoint_store::CheckpointStore;
use super::snapshot_manifest::SnapshotManifest;

/// Prefix of the id of a snapshot; its number follows.
const ID_PREFIX: &str = "snap-";

impl CheckpointStore {
    pub(crate) async fn take_snapshot(
        &self,
        files: &CallerFiles<'_>,
        request: SnapshotRequest,
    ) -> Result<SnapshotInfo> {
        let cx = files.cx;
        let present = files.below(&VfsPath::root()).await?;
        let files = self.capture(files, present, &self.newest_files(cx).await?).await?;
        let id = SnapshotId::new("");
        let mut manifest = SnapshotManifest { id, label: request.label, taken_at: Utc::now(), files };
        let numbers = self.manifests.numbers(cx).await?;
        let next = numbers.last().map_or(0, |(number, _)| *number) + 1;
        let record = |number| {
            manifest.id = SnapshotId::new(format!("{ID_PREFIX}{number}"));
            manifest.clone()
        };
        self.manifests.append(cx, next, record).await?;
        // A number that a forgotten snapshot reserves can be freed once it is no longer the last one.
        for (number, _) in numbers.iter().filter(|(_, has_record)| !has_record) {
            if let Err(error) = self.manifests.remove(cx, *number).await {
                tracing::warn!(%error, "failed to remove the reserved number of a forgotten snapshot");
            }
        }
        Ok(manifest.info())
    }

    pub(crate) async fn list_snapshots(&self, cx: &OpContext) -> Result<Vec<SnapshotInfo>> {
        Ok(self.manifests.load_all(cx).await?.iter().map(SnapshotManifest::info).collect())
    }

    pub(crate) async fn manifest(&self, cx: &OpContext, id: &SnapshotId) -> Result<SnapshotManifest> {
        self.manifests.load(cx, parse_id(id)?).await?.ok_or_else(|| not_found(id))
    }

    pub(crate) async fn forget_snapshot(&self, cx: &OpContext, id: &SnapshotId) -> Result<()> {
        let number = parse_id(id)?;
        let numbers = self.manifests.numbers(cx).await?;
        if !numbers.contains(&(number, true)) {
            return Err(not_found(id));
        }
        // The last number stays reserved, so that no other snapshot gets this id.
        if numbers.last().is_some_and(|(last, _)| *last == number) {
            self.manifests.clear(cx, number).await?;
        } else {
            self.manifests.remove(cx, number).await?;
        }
        self.collect_garbage(cx).await;
        Ok(())
    }
}

fn parse_id(id: &SnapshotId) -> Result<u64> {
    let digits = id.as_str().strip_prefix(ID_PREFIX).ok_or_else(|| not_found(id))?;
    let number = digits.parse::<u64>().map_err(|_| not_found(id))?;
    if number.to_string() == digits { Ok(number) } else { Err(not_found(id)) }
}

fn not_found(id: &SnapshotId) -> Error {
    let message = format!("there is no snapshot with the id '{id}'; list those that exist, or take one first");
    Error::new(ErrorKind::NotFound, message).with_path(&VfsPath::root())
}
