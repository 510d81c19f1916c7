//! Numbered records and contents of checkpoints in a directory of a backend.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;
use vfs_core::{
    Backend, DeleteRequest, Error, ErrorKind, LsRequest, OpContext, Result, VfsPath, WriteMode, WriteRequest,
};

use super::files::{Files, Image, Images, Tree, is_absent};
use crate::content_store::{ContentStore, ObjectId};

/// Maximum number of files, and of their bytes, that are held in memory to be stored at once.
const BATCH_FILES: usize = 32;
const BATCH_BYTES: u64 = 32 << 20;

/// Maximum number of records that are read at once.
const BATCH_RECORDS: usize = 256;

/// Kind of numbered records, each a directory of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    Snapshots,
    Undo,
}

impl RecordKind {
    fn name(self) -> &'static str {
        match self {
            Self::Snapshots => "snapshots",
            Self::Undo => "undo",
        }
    }
}

/// Contents and numbered records in a directory of a backend.
///
/// Errors have no path: a path of the store means nothing to a caller, and the user of this type knows the affected file of the
/// caller.
#[derive(Debug)]
pub(super) struct CheckpointStore {
    backend: Arc<dyn Backend>,
    directory: VfsPath,
    objects: ContentStore,
}

impl CheckpointStore {
    pub(super) fn new(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        let objects = ContentStore::new(Arc::clone(&backend), directory.clone());
        Self { backend, directory, objects }
    }

    /// Returns the taken numbers, the lowest first, and whether each has a record: the number of a forgotten one can stay taken.
    pub(super) async fn numbers(&self, cx: &OpContext, part: RecordKind) -> Result<Vec<(u64, bool)>> {
        let directory = self.directory.child(part.name())?;
        let entries = match self.backend.ls(cx, LsRequest::new(directory)).await {
            Ok(listing) => listing.entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let number = |path: &VfsPath| path.name()?.strip_suffix(".json")?.parse::<u64>().ok();
        let files = entries.iter().filter(|entry| !entry.is_dir);
        let mut numbers: Vec<_> = files.filter_map(|file| Some((number(&file.path)?, file.size > 0))).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the record of `number`, or `None`.
    pub(super) async fn load<T: DeserializeOwned>(
        &self,
        cx: &OpContext,
        part: RecordKind,
        number: u64,
    ) -> Result<Option<T>> {
        Ok(self.load_many(cx, part, &[number]).await?.pop())
    }

    /// Returns the records of `numbers`, in that order, without missing ones.
    pub(super) async fn load_many<T>(&self, cx: &OpContext, part: RecordKind, numbers: &[u64]) -> Result<Vec<T>>
    where
        T: DeserializeOwned,
    {
        let mut records = Vec::with_capacity(numbers.len());
        for batch in numbers.chunks(BATCH_RECORDS) {
            let paths = batch.iter().map(|number| self.record(part, *number)).collect::<Result<Vec<_>>>()?;
            for (number, file) in batch.iter().zip(self.backend.download_files(cx, paths).await) {
                let content = match (file.content, file.cause) {
                    (Some(content), _) => content,
                    (None, Some(error)) if error.kind() == ErrorKind::NotFound => continue,
                    (None, error) => return Err(failed(error.unwrap_or_else(|| Error::of(ErrorKind::Internal)))),
                };
                if content.is_empty() {
                    continue;
                }
                records.push(serde_json::from_slice(&content).map_err(|error| {
                    let message = format!("number {number} of {} is damaged in the store", part.name());
                    Error::new(ErrorKind::Internal, message).with_source(error)
                })?);
            }
        }
        Ok(records)
    }

    /// Adds a record under the first free number from `number` on, and returns the number.
    pub(super) async fn add<T: Serialize>(
        &self,
        cx: &OpContext,
        part: RecordKind,
        mut number: u64,
        mut record: impl FnMut(u64) -> T + Send,
    ) -> Result<u64> {
        loop {
            let request = WriteRequest::new(self.record(part, number)?, json(&record(number))?);
            match self.backend.write(cx, request).await {
                Ok(_) => return Ok(number),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Overwrites the record of `number`.
    pub(super) async fn save<T: Serialize>(
        &self,
        cx: &OpContext,
        part: RecordKind,
        number: u64,
        record: &T,
    ) -> Result<()> {
        let content = json(record)?;
        self.replace(cx, part, number, content).await
    }

    async fn replace(&self, cx: &OpContext, part: RecordKind, number: u64, content: Bytes) -> Result<()> {
        let request = WriteRequest::new(self.record(part, number)?, content).mode(WriteMode::Overwrite);
        self.backend.write(cx, request).await.map(drop).map_err(failed)
    }

    /// Removes the record of `number`, if there is one.
    pub(super) async fn remove(&self, cx: &OpContext, part: RecordKind, number: u64) -> Result<()> {
        match self.backend.delete(cx, DeleteRequest::new(self.record(part, number)?)).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Removes the record of `number`, whose number stays taken.
    pub(super) async fn clear(&self, cx: &OpContext, part: RecordKind, number: u64) -> Result<()> {
        self.replace(cx, part, number, Bytes::new()).await
    }

    pub(super) async fn get(&self, cx: &OpContext, object: &ObjectId) -> Result<Bytes> {
        self.objects.get(cx, object).await.map_err(failed)
    }

    /// Stores the contents of the files `seen`, without reading those that `known` has in the same version. A file that has been
    /// removed meanwhile is left out, and a file that has changed is stored in its present state.
    pub(super) async fn keep(&self, files: &Files<'_>, seen: Tree, known: &Images) -> Result<Images> {
        let (mut images, mut batch, mut bytes) = (Images::new(), Vec::new(), 0_u64);
        for (path, seen) in seen {
            if let Some(image) = known.get(&path).filter(|image| image.version == seen.version) {
                images.insert(path, image.clone());
                continue;
            }
            bytes = bytes.saturating_add(seen.size);
            batch.push((path, seen.version));
            if batch.len() >= BATCH_FILES || bytes >= BATCH_BYTES {
                images.extend(self.keep_batch(files, std::mem::take(&mut batch)).await?);
                bytes = 0;
            }
        }
        images.extend(self.keep_batch(files, batch).await?);
        Ok(images)
    }

    async fn keep_batch(&self, files: &Files<'_>, batch: Vec<(VfsPath, vfs_core::Version)>) -> Result<Images> {
        if batch.is_empty() {
            return Ok(Images::new());
        }
        files.cx.check()?;
        let answers = files.download(batch.iter().map(|(path, _)| path.clone()).collect()).await;
        if answers.len() != batch.len() {
            return Err(Error::new(ErrorKind::Internal, "the backend did not answer for each file of a download"));
        }
        let mut contents = Vec::with_capacity(batch.len());
        for ((path, listed), answer) in batch.into_iter().zip(answers) {
            match answer {
                Ok((content, version)) => contents.push((path, version.unwrap_or(listed), content)),
                Err(error) if is_absent(error.kind()) => {}
                Err(error) => return Err(error.or_path(&path)),
            }
        }
        let kept = contents.iter().map(|(path, _, content)| async move {
            self.objects.put(files.cx, content).await.map_err(|error| failed(error).with_path(path))
        });
        let ids = try_join_all(kept).await?;
        let images = contents.into_iter().zip(ids);
        Ok(images
            .map(|((path, version, content), object)| (path, Image { object, size: content.len() as u64, version }))
            .collect())
    }

    /// Removes the contents that are not in `keep`.
    pub(super) async fn retain(&self, cx: &OpContext, keep: &HashSet<ObjectId>) -> Result<u64> {
        self.objects.retain(cx, keep).await.map_err(failed)
    }

    fn record(&self, part: RecordKind, number: u64) -> Result<VfsPath> {
        self.directory.child(part.name())?.child(&format!("{number}.json"))
    }
}

fn json<T: Serialize>(record: &T) -> Result<Bytes> {
    let json = serde_json::to_vec(record);
    json.map(Bytes::from)
        .map_err(|error| Error::new(ErrorKind::Internal, "a record of the store has no JSON").with_source(error))
}

/// Returns a failure of the store as an error of the layer: paths and kinds of the store do not describe files of the caller.
fn failed(error: Error) -> Error {
    use ErrorKind::{Cancelled, QuotaExceeded, StorageFull, TooLarge};
    let kind = match error.kind() {
        kind @ (Cancelled | QuotaExceeded | StorageFull | TooLarge) => kind,
        kind if kind.is_temporary() => kind,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, format!("the store of checkpoints failed: {}", error.message()))
        .with_generic_model_message()
        .with_source(error)
}
