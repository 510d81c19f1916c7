//! Chunked writer: chunks are staged in parts until one write script publishes them.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use vfs_core::part_buffer::PartBuffer;
use vfs_core::{ErrorKind, FileWriter, OpContext, OpenWriterRequest, Result, WriteResult};

use crate::exec::RemoteExec;
use crate::operations::remote_staged_content::{PartUploadMethod, RemoteStagedContent};
use crate::operations::stat::refuse_reserved;
use crate::operations::write::{NewContent, put, too_large};
use crate::remote_place_client::RemotePlaceClient;

/// A file that is written in chunks.
#[derive(Debug)]
pub(crate) struct RemoteWriter<E: RemoteExec> {
    place: Arc<RemotePlaceClient<E>>,
    cx: OpContext,
    request: OpenWriterRequest,
    transfer: PartUploadMethod,
    staged: RemoteStagedContent<E>,
    /// The end of the content, which is not staged yet.
    parts: PartBuffer,
    /// Whether all chunks are staged or in `parts`: `false` during a write, after one that failed or was dropped, and after the
    /// commit unless it can be repeated.
    is_usable: bool,
}

impl<E: RemoteExec> RemoteWriter<E> {
    pub(crate) async fn open(
        place: &Arc<RemotePlaceClient<E>>,
        cx: &OpContext,
        request: OpenWriterRequest,
    ) -> Result<Self> {
        request.check()?;
        request.clone().into_write(Bytes::new()).refuse_modified_at()?;
        refuse_reserved(&request.path)?;
        cx.check().map_err(|error| error.or_path(&request.path))?;
        let transfer = PartUploadMethod::of(place).await.map_err(|error| error.or_path(&request.path))?;
        let staged = RemoteStagedContent::new(place, &request.path);
        let (place, cx, parts) = (Arc::clone(place), cx.clone(), PartBuffer::new(transfer.max_bytes));
        Ok(Self { place, cx, request, transfer, staged, parts, is_usable: true })
    }

    fn check_usable(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_usable) {
            return Err(self.request.unusable_writer_error());
        }
        self.cx.check().map_err(|error| error.or_path(&self.request.path))
    }

    async fn append(&mut self, part: Bytes) -> Result<()> {
        self.staged.append(&self.cx, part, self.transfer).await
    }

    /// Makes all chunks the content of the file; `rest` has the bytes that are not staged.
    async fn publish(&mut self, rest: &Bytes) -> Result<WriteResult> {
        let OpenWriterRequest { path, mode, .. } = self.request.clone();
        let place = Arc::clone(&self.place);
        let _lock = place.locks.lock(&self.cx, &path).await?;
        if self.staged.size() > 0 && !rest.is_empty() {
            self.append(rest.clone()).await?;
        }
        let content = match self.staged.size() {
            0 => NewContent::Memory(rest),
            _ => NewContent::Staged(&self.staged),
        };
        let (created, facts) = put(&place, &self.cx, &path, content, &mode).await?;
        Ok(WriteResult::new(path, created, facts.version(), facts.size))
    }
}

#[async_trait]
impl<E: RemoteExec> FileWriter for RemoteWriter<E> {
    async fn write(&mut self, mut chunk: Bytes) -> Result<()> {
        self.check_usable()?;
        let max = self.place.config.max_streamed_size;
        if self.staged.size() + (self.parts.len() + chunk.len()) as u64 > max {
            return Err(too_large(max).with_path(&self.request.path));
        }
        while let Some(part) = self.parts.next_part(&mut chunk) {
            self.append(part).await?;
        }
        self.is_usable = true;
        Ok(())
    }

    async fn commit(&mut self) -> Result<WriteResult> {
        self.check_usable()?;
        let (rest, staged_size) = (self.parts.take_rest(), self.staged.size());
        let written = self.publish(&rest).await;
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy) {
            if self.staged.size() == staged_size {
                self.parts.restore(&rest);
            }
            self.is_usable = true;
        }
        written
    }
}
