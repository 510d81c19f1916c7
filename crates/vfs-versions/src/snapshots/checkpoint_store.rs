//! Store of checkpoints: contents, manifests and undo records in a directory of a backend.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, Version, VfsPath};

use super::caller_files::{CallerFiles, CurrentFiles};
use super::snapshot_manifest::SnapshotManifest;
use crate::content_store::{ContentStore, ObjectId};
use crate::record_directory::{RecordDirectory, store_failure};
use crate::undo_log::undo_record::UndoRecord;
use crate::versioned_entry::{StoredFile, StoredFiles, is_no_file};

/// Maximum number of files, and of their bytes, that are buffered in memory to be stored at once.
const BATCH_FILES: usize = 32;
const BATCH_BYTES: u64 = 32 << 20;

/// Contents, manifests and undo records in a directory of a backend.
///
/// Errors of the store have no path, unless they are about a file of the caller.
#[derive(Debug)]
pub(crate) struct CheckpointStore {
    pub(crate) manifests: RecordDirectory<SnapshotManifest>,
    pub(crate) undo_records: RecordDirectory<UndoRecord>,
    contents: ContentStore,
}

impl CheckpointStore {
    pub(crate) fn new(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self {
            manifests: RecordDirectory::new(Arc::clone(&backend), directory.clone(), "snapshots"),
            undo_records: RecordDirectory::new(Arc::clone(&backend), directory.clone(), "undo"),
            contents: ContentStore::new(backend, directory),
        }
    }

    /// Returns the content `object` of the file at `path`.
    pub(crate) async fn content(&self, cx: &OpContext, path: &VfsPath, object: &ObjectId) -> Result<Bytes> {
        self.contents.get(cx, object).await.map_err(|error| store_failure(error).with_path(path))
    }

    /// Returns the files of the newest snapshot, or none if there is no snapshot.
    pub(crate) async fn newest_files(&self, cx: &OpContext) -> Result<StoredFiles> {
        let numbers = self.manifests.numbers(cx).await?;
        let Some((number, _)) = numbers.iter().rev().find(|(_, has_record)| *has_record) else {
            return Ok(StoredFiles::new());
        };
        Ok(self.manifests.load(cx, *number).await?.map(|manifest| manifest.files).unwrap_or_default())
    }

    /// Stores the contents of the files `present`, without reading those that `stored` has in the same version. A file that has
    /// been removed meanwhile is left out, and a file that has changed is stored in its present state.
    pub(crate) async fn capture(
        &self,
        files: &CallerFiles<'_>,
        present: CurrentFiles,
        stored: &StoredFiles,
    ) -> Result<StoredFiles> {
        let (mut captured, mut batch, mut bytes) = (StoredFiles::new(), Vec::new(), 0_u64);
        for (path, current) in present {
            if let Some(file) = stored.get(&path).filter(|file| file.version == current.version) {
                captured.insert(path, file.clone());
                continue;
            }
            bytes = bytes.saturating_add(current.size);
            batch.push((path, current.version));
            if batch.len() >= BATCH_FILES || bytes >= BATCH_BYTES {
                captured.extend(self.capture_batch(files, std::mem::take(&mut batch)).await?);
                bytes = 0;
            }
        }
        captured.extend(self.capture_batch(files, batch).await?);
        Ok(captured)
    }

    async fn capture_batch(&self, files: &CallerFiles<'_>, batch: Vec<(VfsPath, Version)>) -> Result<StoredFiles> {
        if batch.is_empty() {
            return Ok(StoredFiles::new());
        }
        files.cx.check()?;
        let paths = batch.iter().map(|(path, _)| path.clone()).collect();
        let responses = files.inner.download_files(files.cx, paths).await;
        if responses.len() != batch.len() {
            return Err(Error::new(ErrorKind::Internal, "the backend did not respond for each file of a download"));
        }
        let mut contents = Vec::with_capacity(batch.len());
        for ((path, listed), response) in batch.into_iter().zip(responses) {
            match (response.content, response.cause) {
                (Some(content), _) => contents.push((path, response.version.unwrap_or(listed), content)),
                (None, Some(error)) if is_no_file(&error) => {}
                (None, error) => {
                    return Err(error.unwrap_or_else(|| Error::of(ErrorKind::Internal)).or_path(&path));
                }
            }
        }
        let objects = contents.iter().map(|(path, _, content)| async move {
            self.contents.put(files.cx, content).await.map_err(|error| store_failure(error).with_path(path))
        });
        let objects = try_join_all(objects).await?;
        let captured = contents.into_iter().zip(objects).map(|((path, version, content), object)| {
            (path, StoredFile { object, size: content.len() as u64, version })
        });
        Ok(captured.collect())
    }

    /// Removes the contents that neither a snapshot nor an undo record names. A failure only costs space.
    pub(crate) async fn collect_garbage(&self, cx: &OpContext) {
        let collected = async {
            let mut live = HashSet::new();
            for manifest in self.manifests.load_all(cx).await? {
                live.extend(manifest.files.into_values().map(|file| file.object));
            }
            for record in self.undo_records.load_all(cx).await? {
                live.extend(record.files.into_values().filter_map(|touched| Some(touched.before?.object)));
            }
            self.contents.retain(cx, &live).await.map_err(store_failure)
        };
        match collected.await {
            Ok(removed) => tracing::debug!(removed, "removed unreferenced contents of checkpoints"),
            Err(error) => tracing::warn!(%error, "failed to remove unreferenced contents of checkpoints"),
        }
    }
}
