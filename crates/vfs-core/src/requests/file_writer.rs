//! Chunked writer with an atomic commit.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use futures::lock::Mutex;
use serde::{Deserialize, Serialize};

use super::wire;
use super::write::{WriteMode, WriteRequest, WriteResult};
use crate::backend::Backend;
use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;

/// A request for [`Backend::open_writer`].
///
/// The JSON form has the fields of a [`WriteRequest`] without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OpenWriterRequest {
    /// The file. The commit creates missing parent directories.
    pub path: VfsPath,
    /// How the commit treats an existing file. Default: [`WriteMode::CreateNew`]; [`WriteMode::Append`] is invalid.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub mode: WriteMode,
    /// The modification time, as in [`WriteRequest::modified_at`]. Default: the time of the commit.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "wire::time")]
    pub modified_at: Option<DateTime<Utc>>,
}

impl OpenWriterRequest {
    /// Creates a request for a writer of the new file `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path, mode: WriteMode::CreateNew, modified_at: None }
    }

    /// Sets how the commit treats an existing file.
    #[must_use]
    pub fn mode(mut self, mode: WriteMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the modification time.
    #[must_use]
    pub fn modified_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.modified_at = at.into();
        self
    }

    /// Converts the request into an equivalent write of `content`.
    pub fn into_write(self, content: impl Into<Bytes>) -> WriteRequest {
        WriteRequest::new(self.path, content).mode(self.mode).modified_at(self.modified_at)
    }

    /// Returns the error of a chunk or commit that the writer no longer accepts: after a commit that cannot be repeated, and after a
    /// chunk that failed.
    pub fn unusable_writer_error(&self) -> Error {
        let message = "a commit was sent, or a chunk was not written; open another writer and start again";
        Error::invalid_argument(message).with_path(&self.path)
    }

    /// Validates the request: [`WriteMode::Append`] and the root are invalid.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for [`WriteMode::Append`]; `is_a_directory` at the root.
    pub fn check(&self) -> Result<()> {
        if self.mode == WriteMode::Append {
            let message = "a writer cannot append; use the mode `overwrite`, or `write` with `append`";
            return Err(Error::invalid_argument(message).with_path(&self.path));
        }
        if self.path.is_root() {
            return Err(Error::at(ErrorKind::IsADirectory, &self.path));
        }
        Ok(())
    }
}

/// A writer of one file in chunks, from [`Backend::open_writer`].
///
/// # Behaviour
///
/// * No chunk is visible before [`commit`](Self::commit), which atomically makes all chunks the content of the file, as the mode of
///   the request permits.
/// * A writer that is dropped without a commit leaves no file, and the backend deletes its chunks.
/// * Memory does not grow with the size of the file, on backends that store files outside the memory of this process.
/// * The context that opened the writer applies to it: after cancellation or the deadline, the next chunk and the commit fail.
///
/// # Errors
///
/// The errors of [`Backend::write`]. `too_large` for a chunk that exceeds
/// [`Capabilities::max_streamed_size`](crate::Capabilities::max_streamed_size) with those before it. After an error of `write`,
/// drop the writer. A commit that failed with `busy` may be retried; after any other error, and after one that succeeded, it fails with
/// `invalid_argument`.
#[async_trait]
pub trait FileWriter: fmt::Debug + Send {
    /// Appends `chunk` to the new content.
    async fn write(&mut self, chunk: Bytes) -> Result<()>;

    /// Makes the chunks the content of the file, atomically.
    async fn commit(&mut self) -> Result<WriteResult>;
}

/// A request for [`FileWriter::commit`], as interceptors receive it.
///
/// A request from JSON has no writer and cannot be performed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CommitWriterRequest {
    /// The file.
    pub path: VfsPath,
    /// How an existing file is treated.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub mode: WriteMode,
    /// The number of bytes that were written.
    #[serde(deserialize_with = "wire::required_whole")]
    pub size: u64,
    #[serde(skip)]
    writer: SharedWriter,
}

impl CommitWriterRequest {
    pub(crate) fn new(request: OpenWriterRequest, writer: Box<dyn FileWriter>) -> Self {
        let writer = SharedWriter(Some(Arc::new(Mutex::new(writer))));
        Self { path: request.path, mode: request.mode, size: 0, writer }
    }

    pub(crate) async fn write(&mut self, chunk: Bytes) -> Result<()> {
        let added = chunk.len() as u64;
        self.writer.get(&self.path)?.lock().await.write(chunk).await?;
        self.size += added;
        Ok(())
    }

    pub(crate) async fn send(self) -> Result<WriteResult> {
        self.writer.get(&self.path)?.lock().await.commit().await
    }
}

/// The writer that all clones of a commit request share.
#[derive(Clone, Default)]
struct SharedWriter(Option<Arc<Mutex<Box<dyn FileWriter>>>>);

impl SharedWriter {
    fn get(&self, path: &VfsPath) -> Result<&Mutex<Box<dyn FileWriter>>> {
        self.0.as_deref().ok_or_else(|| {
            let message = "the commit request comes from JSON and has no writer; open a writer and commit it";
            Error::invalid_argument(message).with_path(path)
        })
    }
}

impl PartialEq for SharedWriter {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for SharedWriter {}

impl fmt::Debug for SharedWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Writer" } else { "None" })
    }
}

/// A [`FileWriter`] that buffers the chunks in memory, for backends that store files in memory. A chunk that would exceed
/// [`max_file_size`](crate::Capabilities::max_file_size) is `too_large`.
#[derive(Debug)]
pub struct BufferedWriter<B> {
    backend: B,
    cx: OpContext,
    request: OpenWriterRequest,
    content: BytesMut,
    /// Whether `content` has all chunks: `false` after a chunk that was refused, and after the commit unless it can be repeated.
    is_usable: bool,
}

impl<B: Backend> BufferedWriter<B> {
    /// Returns a writer whose commit is one [`Backend::write`] of `backend`.
    ///
    /// # Errors
    ///
    /// The errors of [`OpenWriterRequest::check`], and of [`OpContext::check`].
    pub fn open(backend: B, cx: &OpContext, request: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        request.check()?;
        cx.check().map_err(|error| error.or_path(&request.path))?;
        Ok(Box::new(Self { backend, cx: cx.clone(), request, content: BytesMut::new(), is_usable: true }))
    }

    fn check_usable(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_usable) {
            return Err(self.request.unusable_writer_error());
        }
        self.cx.check().map_err(|error| error.or_path(&self.request.path))
    }
}

#[async_trait]
impl<B: Backend> FileWriter for BufferedWriter<B> {
    async fn write(&mut self, chunk: Bytes) -> Result<()> {
        self.check_usable()?;
        let path = &self.request.path;
        let max = self.backend.capabilities(path).max_file_size;
        let size = (self.content.len() + chunk.len()) as u64;
        if size > max {
            let message =
                format!("{size} bytes are over the limit of {max} for one file; split the content over several files");
            return Err(Error::new(ErrorKind::TooLarge, message).with_path(path));
        }
        self.content.extend_from_slice(&chunk);
        self.is_usable = true;
        Ok(())
    }

    async fn commit(&mut self) -> Result<WriteResult> {
        self.check_usable()?;
        let content = std::mem::take(&mut self.content).freeze();
        let written = self.backend.write(&self.cx, self.request.clone().into_write(content.clone())).await;
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy) {
            self.content.extend_from_slice(&content);
            self.is_usable = true;
        }
        written
    }
}
