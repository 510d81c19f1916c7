//! Writer of a file in chunks, which are staged in the store.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::Utc;
use tokio::runtime::Handle;
use vfs_core::part_buffer::PartBuffer;
use vfs_core::{Error, ErrorKind, FileWriter, OpenWriterRequest, Operation, Result, WriteResult};

use super::view::namespace_view::NamespaceView;
use super::write::{NewContent, put_content};
use crate::pinned_value::discard;
use crate::store::{
    STAGED_PART_BYTES, StagedContent, Staging, StagingToken, Store, StoredMeta, TimestampSource, ValueContent,
    version_of_hash,
};

/// A file that is written in chunks.
pub(super) struct StoreFileWriter<S: Store> {
    view: NamespaceView<S>,
    request: OpenWriterRequest,
    parts: PartBuffer,
    staged: StagedParts,
    /// Whether all chunks are staged or in `parts`: `false` during a write, after one that failed or was dropped, and after the
    /// commit unless it can be repeated.
    is_usable: bool,
}

/// Parts that are staged in the store; `token` is `None` before the first.
#[derive(Default)]
struct StagedParts {
    token: Option<StagingToken>,
    size: u64,
    hasher: blake3::Hasher,
}

impl<S: Store> StoreFileWriter<S> {
    pub(super) fn open(view: NamespaceView<S>, request: OpenWriterRequest) -> Result<Self> {
        request.check()?;
        view.check_path(&request.path)?;
        if view.store().capabilities().timestamps == TimestampSource::Store {
            request.clone().into_write(Bytes::new()).refuse_modified_at()?;
        }
        let parts = PartBuffer::new(STAGED_PART_BYTES);
        Ok(Self { view, request, parts, staged: StagedParts::default(), is_usable: true })
    }

    fn check_usable(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_usable) {
            return Err(self.request.unusable_writer_error());
        }
        self.view.cx.check().map_err(|error| error.or_path(&self.request.path))
    }

    fn check_size(&self, size: u64) -> Result<()> {
        let max = self.view.shared.max_streamed_size();
        if size <= max {
            return Ok(());
        }
        let message = format!("the file would be over the limit of {max} bytes");
        Err(Error::new(ErrorKind::TooLarge, message).with_path(&self.request.path))
    }

    async fn append(&mut self, part: Bytes) -> Result<()> {
        let path = &self.request.path;
        let token = match &self.staged.token {
            Some(token) => token,
            None => self.staged.token.insert(begin(&self.view, &self.request).await?),
        };
        self.view.ask(path, staging(self.view.store())?.append(token, self.staged.size, part.clone())).await?;
        self.staged.hasher.update(&part);
        self.staged.size += part.len() as u64;
        Ok(())
    }

    /// Returns the content of all chunks; `rest` has the bytes that are not staged.
    async fn content(&mut self, rest: &Bytes) -> Result<ValueContent> {
        if self.staged.token.is_some() && !rest.is_empty() {
            self.append(rest.clone()).await?;
        }
        let Some(token) = self.staged.token.clone() else { return Ok(rest.clone().into()) };
        let version = version_of_hash(self.staged.hasher.finalize());
        Ok(ValueContent::Staged(StagedContent { token, size: self.staged.size, version }))
    }

    /// Makes all chunks the content of the file.
    async fn publish(&mut self, rest: &Bytes) -> Result<WriteResult> {
        let content = self.content(rest).await?;
        self.view.shared.feed_barrier.wait().await;
        let OpenWriterRequest { path, mode, modified_at, .. } = self.request.clone();
        let request = (&self.request, content.size(), content.version());
        let view = self.view.clone().for_operation(Operation::CommitWriter, &[&path], &request)?;
        let new = NewContent { content, modified_at, is_streamed: true };
        let written = view.once(put_content(&view, &path, new, mode)).await?;
        // The staged content is now that of the file. With an operation id an earlier call may have written the file instead.
        if view.operation.is_none() {
            self.staged.token = None;
        }
        Ok(written)
    }
}

/// Begins a content with the times of the file as it is now.
async fn begin<S: Store>(view: &NamespaceView<S>, request: &OpenWriterRequest) -> Result<StagingToken> {
    let path = &request.path;
    let old = view.head(path).await?;
    let now = Utc::now();
    let created_at = old.as_ref().map_or(now, StoredMeta::creation_time);
    let modified_at = old.map_or(now, |old| now.max(old.modified_at));
    let key = view.key(path);
    view.ask(path, staging(view.store())?.begin(&key, created_at, request.modified_at.unwrap_or(modified_at))).await
}

fn staging<S: Store>(store: &S) -> Result<&dyn Staging> {
    store.as_staging().ok_or_else(|| Error::new(ErrorKind::Internal, "the store stages no contents"))
}

#[async_trait]
impl<S: Store> FileWriter for StoreFileWriter<S> {
    async fn write(&mut self, mut chunk: Bytes) -> Result<()> {
        self.check_usable()?;
        if !self.staged.size.is_multiple_of(STAGED_PART_BYTES as u64) {
            let message =
                "the last part is stored, and only the commit can be repeated; open another writer and start again";
            return Err(Error::invalid_argument(message).with_path(&self.request.path));
        }
        self.check_size(self.staged.size + (self.parts.len() + chunk.len()) as u64)?;
        while let Some(part) = self.parts.next_part(&mut chunk) {
            self.append(part).await?;
        }
        self.is_usable = true;
        Ok(())
    }

    async fn commit(&mut self) -> Result<WriteResult> {
        self.check_usable()?;
        let (rest, staged_size) = (self.parts.take_rest(), self.staged.size);
        let written = self.publish(&rest).await;
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy) {
            if self.staged.size == staged_size {
                self.parts.restore(&rest);
            }
            self.is_usable = true;
        }
        written
    }
}

impl<S: Store> Drop for StoreFileWriter<S> {
    fn drop(&mut self) {
        let (Some(token), Ok(runtime)) = (self.staged.token.take(), Handle::try_current()) else { return };
        let shared = Arc::clone(&self.view.shared);
        runtime.spawn(async move {
            if let Some(staging) = shared.store.as_staging() {
                discard(staging, &token).await;
            }
        });
    }
}

impl<S: Store> fmt::Debug for StoreFileWriter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreFileWriter")
            .field("request", &self.request)
            .field("staged", &self.staged.size)
            .finish_non_exhaustive()
    }
}
