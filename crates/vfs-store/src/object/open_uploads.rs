//! Multipart uploads of this process that are neither completed nor aborted.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use object_store::MultipartUpload;
use object_store::path::Path;
use tokio::sync::Mutex as AsyncMutex;
use vfs_core::Result;

use crate::store::{StagingToken, WriteId};

/// Registry of the open uploads by token.
#[derive(Default)]
pub(super) struct OpenUploads(Mutex<HashMap<StagingToken, Arc<AsyncMutex<OpenUpload>>>>);

/// Upload with the metadata with which it began.
pub(super) struct OpenUpload {
    pub(super) location: Path,
    pub(super) upload: Box<dyn MultipartUpload>,
    pub(super) size: u64,
    /// Whether a completion without a clear response may have been applied.
    pub(super) is_doubtful: bool,
    pub(super) id: WriteId,
    pub(super) created_at: DateTime<Utc>,
    pub(super) modified_at: DateTime<Utc>,
}

impl OpenUploads {
    pub(super) fn get(&self, token: &StagingToken) -> Result<Arc<AsyncMutex<OpenUpload>>> {
        let uploads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uploads.get(token).cloned().ok_or_else(StagingToken::unknown)
    }

    pub(super) fn insert(&self, token: StagingToken, upload: OpenUpload) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token, Arc::new(AsyncMutex::new(upload)));
    }

    pub(super) fn remove(&self, token: &StagingToken) -> Option<Arc<AsyncMutex<OpenUpload>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(token)
    }
}

impl fmt::Debug for OpenUploads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenUploads")
    }
}
