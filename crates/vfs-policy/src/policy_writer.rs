//! Writer whose commit the policy checks again.

use async_trait::async_trait;
use bytes::Bytes;
use vfs_core::{FileWriter, OpContext, OpenWriterRequest, Result, WriteResult};

use crate::backend::PolicyBackend;
use crate::masked_error::missing_as_conflict;

/// A writer that a policy permitted.
#[derive(Debug)]
pub(crate) struct PolicyWriter {
    pub(crate) files: PolicyBackend,
    pub(crate) cx: OpContext,
    pub(crate) request: OpenWriterRequest,
    pub(crate) writer: Box<dyn FileWriter>,
}

#[async_trait]
impl FileWriter for PolicyWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<()> {
        self.writer.write(chunk).await
    }

    async fn commit(&mut self) -> Result<WriteResult> {
        let path = &self.request.path;
        // Check again, since links may have changed. An approval was obtained when the writer was opened.
        self.files.enforcer.check(&self.cx, &self.request).await?;
        match self.writer.commit().await {
            Ok(written) => Ok(written),
            Err(error) => {
                let error = self.files.enforcer.without_hidden_files(&self.cx, error, path).await;
                Err(missing_as_conflict(error, &self.request.mode, path))
            }
        }
    }
}
