//! Generations of contents: one directory of the store each, named by the record.

use std::sync::Arc;

use vfs_core::{Backend, DeleteRequest, Error, ErrorKind, LsRequest, OpContext, Result, VfsPath};

use crate::content_store::ContentStore;

/// Prefix of the directory name of a generation; 16 hexadecimal digits follow.
const DIRECTORY_PREFIX: &str = "contents-";

/// Generations of contents below a directory.
#[derive(Debug, Clone)]
pub(super) struct ContentGenerations {
    backend: Arc<dyn Backend>,
    directory: VfsPath,
}

impl ContentGenerations {
    pub(super) fn new(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self { backend, directory }
    }

    /// Returns the content store of `generation`.
    pub(super) fn get(&self, generation: u64) -> Result<ContentStore> {
        let directory = self.directory.child(&format!("{DIRECTORY_PREFIX}{generation:016x}"))?;
        Ok(ContentStore::new(Arc::clone(&self.backend), directory))
    }

    /// Returns the directories of all generations, or none if they cannot be listed.
    pub(super) async fn list(&self, cx: &OpContext) -> Vec<VfsPath> {
        match self.backend.ls(cx, LsRequest::new(self.directory.clone())).await {
            Ok(listed) => {
                let paths = listed.entries.into_iter().filter(|entry| entry.is_dir).map(|entry| entry.path);
                paths.filter(|path| path.name().is_some_and(is_generation)).collect()
            }
            Err(error) => {
                log_failure(&error);
                Vec::new()
            }
        }
    }

    /// Removes `directories`, which no record names. A failure is only logged, since the record was written.
    pub(super) async fn remove(&self, cx: &OpContext, directories: Vec<VfsPath>) {
        for path in directories {
            if let Err(error) = self.backend.delete(cx, DeleteRequest::new(path).recursive()).await {
                log_failure(&error);
            }
        }
    }
}

/// Returns whether `name` is that of a generation. Other directories may exist beside those.
fn is_generation(name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.strip_prefix(DIRECTORY_PREFIX).is_some_and(|digits| digits.len() == 16 && digits.bytes().all(is_digit))
}

/// Logs that unused contents could not be removed, unless another process has removed them already.
fn log_failure(error: &Error) {
    if error.kind() != ErrorKind::NotFound {
        tracing::warn!(%error, "failed to remove unused contents of an overlay");
    }
}
