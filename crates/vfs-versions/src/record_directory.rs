//! Numbered JSON records in a directory of a backend.

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use vfs_core::{
    Backend, DeleteRequest, Error, ErrorKind, LsRequest, OpContext, Result, VfsPath, WriteMode, WriteRequest,
};

/// Maximum number of records that are read at once.
const BATCH_RECORDS: usize = 256;

/// Records of type `T`, each a file `<number>.json`. An empty file reserves its number.
///
/// Errors have no path, since a path of the store means nothing to a caller.
#[derive(Debug)]
pub(crate) struct RecordDirectory<T> {
    backend: Arc<dyn Backend>,
    parent: VfsPath,
    /// Name of the directory of the records, below `parent`.
    name: &'static str,
    record: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> RecordDirectory<T> {
    pub(crate) fn new(backend: Arc<dyn Backend>, parent: VfsPath, name: &'static str) -> Self {
        Self { backend, parent, name, record: PhantomData }
    }

    /// Returns the numbers in use, the lowest first, and whether each has a record or is only reserved.
    pub(crate) async fn numbers(&self, cx: &OpContext) -> Result<Vec<(u64, bool)>> {
        let entries = match self.backend.ls(cx, LsRequest::new(self.parent.child(self.name)?)).await {
            Ok(listing) => listing.entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(store_failure(error)),
        };
        let number = |path: &VfsPath| path.name()?.strip_suffix(".json")?.parse::<u64>().ok();
        let files = entries.iter().filter(|entry| !entry.is_dir);
        let mut numbers: Vec<_> = files.filter_map(|file| Some((number(&file.path)?, file.size > 0))).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the record of `number`, or `None`.
    pub(crate) async fn load(&self, cx: &OpContext, number: u64) -> Result<Option<T>> {
        Ok(self.load_many(cx, &[number]).await?.pop())
    }

    /// Returns all records, the lowest number first.
    pub(crate) async fn load_all(&self, cx: &OpContext) -> Result<Vec<T>> {
        let numbers: Vec<_> = self.numbers(cx).await?.into_iter().map(|(number, _)| number).collect();
        self.load_many(cx, &numbers).await
    }

    /// Returns the records of `numbers`, in that order, without missing ones.
    async fn load_many(&self, cx: &OpContext, numbers: &[u64]) -> Result<Vec<T>> {
        let mut records = Vec::with_capacity(numbers.len());
        for batch in numbers.chunks(BATCH_RECORDS) {
            let paths = batch.iter().map(|number| self.path(*number)).collect::<Result<Vec<_>>>()?;
            for (number, file) in batch.iter().zip(self.backend.download_files(cx, paths).await) {
                let content = match (file.content, file.cause) {
                    (Some(content), _) => content,
                    (None, Some(error)) if error.kind() == ErrorKind::NotFound => continue,
                    (None, error) => {
                        return Err(store_failure(error.unwrap_or_else(|| Error::of(ErrorKind::Internal))));
                    }
                };
                if content.is_empty() {
                    continue;
                }
                records.push(serde_json::from_slice(&content).map_err(|error| {
                    let message = format!("record {number} of {} is damaged in the store", self.name);
                    Error::new(ErrorKind::Internal, message).with_source(error)
                })?);
            }
        }
        Ok(records)
    }

    /// Appends a record under the first free number from `number` on, and returns the number.
    pub(crate) async fn append(
        &self,
        cx: &OpContext,
        mut number: u64,
        mut record: impl FnMut(u64) -> T + Send,
    ) -> Result<u64> {
        loop {
            let content = encode(&record(number))?;
            match self.write(cx, number, content, WriteMode::CreateNew).await {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                written => return written.map(|()| number).map_err(store_failure),
            }
        }
    }

    /// Overwrites the record of `number`.
    pub(crate) async fn save(&self, cx: &OpContext, number: u64, record: &T) -> Result<()> {
        self.write(cx, number, encode(record)?, WriteMode::Overwrite).await.map_err(store_failure)
    }

    /// Removes the record of `number`, which stays reserved.
    pub(crate) async fn clear(&self, cx: &OpContext, number: u64) -> Result<()> {
        self.write(cx, number, Bytes::new(), WriteMode::Overwrite).await.map_err(store_failure)
    }

    /// Removes the record of `number`, if there is one, and frees the number.
    pub(crate) async fn remove(&self, cx: &OpContext, number: u64) -> Result<()> {
        match self.backend.delete(cx, DeleteRequest::new(self.path(number)?)).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(store_failure(error)),
            _ => Ok(()),
        }
    }

    async fn write(&self, cx: &OpContext, number: u64, content: Bytes, mode: WriteMode) -> Result<()> {
        let request = WriteRequest::new(self.path(number)?, content).mode(mode);
        self.backend.write(cx, request).await.map(drop)
    }

    fn path(&self, number: u64) -> Result<VfsPath> {
        self.parent.child(self.name)?.child(&format!("{number}.json"))
    }
}

/// Serialises `record`.
pub(crate) fn encode<T: Serialize>(record: &T) -> Result<Bytes> {
    serde_json::to_vec(record).map(Bytes::from).map_err(|error| {
        Error::new(ErrorKind::Internal, "failed to serialise a record of the store").with_source(error)
    })
}

/// Returns a failure of the store as an error of the layer: paths and kinds of the store do not describe files of the caller.
pub(crate) fn store_failure(error: Error) -> Error {
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
