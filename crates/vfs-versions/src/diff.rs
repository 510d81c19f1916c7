//! Differences of an overlay from its base, and between snapshots.

use std::collections::{BTreeMap, BTreeSet};

use vfs_core::snapshots::{SnapshotDiffEntry, SnapshotDiffRequest, SnapshotDiffResult, SnapshotId};
use vfs_core::{OpContext, Result, Version, VfsPath};

use crate::content_store::ObjectId;
use crate::overlay::backend::OverlayBackend;
use crate::overlay::base_access::base_entry;
use crate::overlay::commit_plan::{base_entry_below_links, file_change};
use crate::snapshots::caller_files::CallerFiles;
use crate::snapshots::checkpoint_store::CheckpointStore;
use crate::versioned_entry::{VersionedContent, fetch_if_exists};

impl OverlayBackend {
    /// Returns the files that differ from the present base. A deleted link is listed without content.
    ///
    /// # Errors
    ///
    /// The errors of reading the files.
    pub async fn diff(&self, cx: &OpContext) -> Result<SnapshotDiffResult> {
        let state = self.state();
        let mut changes = Vec::new();
        for path in state.originals.keys() {
            cx.check()?;
            let before = match base_entry_below_links(cx, &state, path).await? {
                Some(before) => before,
                // A commit is a conflict here. The file that the path leads to now is the one that it would change.
                None => base_entry(&*state.base, cx, path).await?,
            };
            let after = fetch_if_exists(&state.upper, cx, path).await?;
            changes.extend(file_change(path, &before, after.as_ref().map(VersionedContent::as_bytes_and_version)));
        }
        Ok(SnapshotDiffResult::new(changes))
    }
}

/// Files on one side of a comparison: their versions, and their contents if those are stored.
type ComparedFiles = BTreeMap<VfsPath, (Version, Option<ObjectId>)>;

impl CheckpointStore {
    /// Compares a snapshot with another one or with the present files.
    pub(crate) async fn compare(
        &self,
        files: &CallerFiles<'_>,
        request: &SnapshotDiffRequest,
    ) -> Result<SnapshotDiffResult> {
        let before = self.side(files, Some(&request.from)).await?;
        let after = self.side(files, request.to.as_ref()).await?;
        let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let mut changes = Vec::new();
        for path in paths.into_iter().filter(|path| !files.is_excluded(path)) {
            files.cx.check()?;
            let is_same = match (before.get(path), after.get(path)) {
                (Some((_, Some(before))), Some((_, Some(after)))) => before == after,
                (before, after) => before.map(|(version, _)| version) == after.map(|(version, _)| version),
            };
            if is_same {
                continue;
            }
            let before = self.side_content(files, path, &before).await?;
            let after = self.side_content(files, path, &after).await?;
            let (before, after) = (before.as_ref(), after.as_ref());
            changes.extend(SnapshotDiffEntry::between(
                path,
                before.map(VersionedContent::as_bytes_and_version),
                after.map(VersionedContent::as_bytes_and_version),
            ));
        }
        Ok(SnapshotDiffResult::new(changes))
    }

    /// Returns the files of the snapshot `id`, or the present files.
    async fn side(&self, files: &CallerFiles<'_>, id: Option<&SnapshotId>) -> Result<ComparedFiles> {
        let Some(id) = id else {
            let present = files.below(&VfsPath::root()).await?.into_iter();
            return Ok(present.map(|(path, current)| (path, (current.version, None))).collect());
        };
        let stored = self.manifest(files.cx, id).await?.files.into_iter();
        Ok(stored.map(|(path, file)| (path, (file.version, Some(file.object)))).collect())
    }

    async fn side_content(
        &self,
        files: &CallerFiles<'_>,
        path: &VfsPath,
        side: &ComparedFiles,
    ) -> Result<Option<VersionedContent>> {
        let Some((version, object)) = side.get(path) else { return Ok(None) };
        let content = match object {
            Some(object) => Some(self.content(files.cx, path, object).await?),
            None => files.content(path).await?,
        };
        Ok(content.map(|content| VersionedContent { content, version: version.clone() }))
    }
}
