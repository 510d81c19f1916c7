//! Writing a file in chunks, which are staged in an unnamed file until one write publishes its content.

use std::iter;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use vfs_core::{Error, ErrorKind, FileWriter, OpContext, OpenWriterRequest, Result, VfsPath, WriteResult};

use crate::backend::blocking_pool::run_on_blocking_pool;
use crate::local_fs::LocalFs;
use crate::ops::write::{FileWrite, NewContent};
use crate::staging::staged_file::StagedFile;

/// A file that is written in chunks.
#[derive(Debug)]
pub(crate) struct LocalWriter {
    local_fs: Arc<LocalFs>,
    cx: OpContext,
    request: OpenWriterRequest,
    staged: Arc<StagedFile>,
    /// The number of staged bytes; `None` during a write, after one that failed or was dropped, and after the commit unless it can
    /// be repeated.
    size: Option<u64>,
}

impl LocalFs {
    /// Creates a file for the chunks of a writer, on the file system of the nearest existing directory above `path`.
    fn stage_chunks(&self, path: &VfsPath) -> Result<StagedFile> {
        let mut nearest = Err(Error::not_found(path));
        for at in iter::successors(Some(path.clone()), VfsPath::parent).filter(|at| !at.is_root()) {
            nearest = self.root.entry(&at);
            match &nearest {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                _ => break,
            }
        }
        StagedFile::create(&nearest.map_err(|error| error.with_path(path))?, None, self.durability)
    }
}

impl LocalWriter {
    pub(crate) async fn open(local_fs: Arc<LocalFs>, cx: &OpContext, request: OpenWriterRequest) -> Result<Self> {
        request.check()?;
        let (fs, path) = (Arc::clone(&local_fs), request.path.clone());
        let staged = run_on_blocking_pool(cx, move |_| fs.stage_chunks(&path)).await;
        let staged = Arc::new(staged.map_err(|error| error.or_path(&request.path))?);
        Ok(Self { local_fs, cx: cx.clone(), request, staged, size: Some(0) })
    }

    fn check_usable(&self, size: Option<u64>) -> Result<u64> {
        size.ok_or_else(|| self.request.unusable_writer_error())
    }
}

#[async_trait]
impl FileWriter for LocalWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<()> {
        let taken = self.size.take();
        let size = self.check_usable(taken)? + chunk.len() as u64;
        let max = self.local_fs.max_streamed_size;
        if size > max {
            let message = format!("the file would be over the limit of {max} bytes");
            return Err(Error::new(ErrorKind::TooLarge, message).with_path(&self.request.path));
        }
        let staged = Arc::clone(&self.staged);
        let written = run_on_blocking_pool(&self.cx, move |cx| staged.write(&chunk, cx)).await;
        written.map_err(|error| error.or_path(&self.request.path))?;
        self.size = Some(size);
        Ok(())
    }

    async fn commit(&mut self) -> Result<WriteResult> {
        let taken = self.size.take();
        let size = self.check_usable(taken)?;
        let local_fs = Arc::clone(&self.local_fs);
        let OpenWriterRequest { path, mode, modified_at, .. } = self.request.clone();
        let content = NewContent::Staged(Arc::clone(&self.staged), size);
        let write = FileWrite { path, mode, modified_at, content };
        let written = run_on_blocking_pool(&self.cx, move |cx| local_fs.write_file(write, cx)).await;
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy) {
            self.size = Some(size);
        }
        written.map_err(|error| error.or_path(&self.request.path))
    }
}
