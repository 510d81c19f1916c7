//! Location of a store on the host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_core::{Backend, DeleteRequest, ErrorKind, OpContext, StatRequest, VfsPath, WriteMode, WriteRequest};
use vfs_local::LocalBackend;

use crate::host_paths::{directory_of, real_directory};

/// The location of a store on the host, which may not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct HostStorageLocation {
    /// The innermost existing directory that is, or contains, the location.
    pub(crate) local: LocalBackend,
    /// The path of the location in `local`.
    pub(crate) path: VfsPath,
    /// The real path on the host.
    pub(crate) real: PathBuf,
}

impl HostStorageLocation {
    /// Returns the backend that [`path`](Self::path) belongs to.
    pub(crate) fn files(&self) -> Arc<dyn Backend> {
        Arc::new(self.local.clone())
    }

    /// Creates the directory if it is missing. A policy can protect only an existing directory together with its parents.
    pub(crate) async fn create_directory(&self) -> vfs_core::Result<()> {
        let cx = OpContext::new();
        match Backend::stat(&self.local, &cx, StatRequest::new(self.path.clone())).await {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // A backend creates a directory only together with a file in it.
        let file = self.path.child(".vfs-directory")?;
        self.local.write(&cx, WriteRequest::new(file.clone(), "").mode(WriteMode::Overwrite)).await?;
        self.local.delete(&cx, DeleteRequest::new(file)).await.map(drop)
    }

    /// Creates the file if it is missing, for the same reason.
    pub(crate) async fn create_file(&self) -> vfs_core::Result<()> {
        match self.local.write(&OpContext::new(), WriteRequest::new(self.path.clone(), "")).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Locates the directory `path` in its innermost existing ancestor, or itself.
    pub(crate) fn directory(path: &Path) -> vfs_core::Result<Self> {
        Self::locate(path, path)
    }

    /// Locates the file `path` in the innermost existing ancestor of its directory.
    pub(crate) fn file(path: &Path) -> vfs_core::Result<Self> {
        Self::locate(path, &directory_of(path))
    }

    fn locate(path: &Path, nearest: &Path) -> vfs_core::Result<Self> {
        for ancestor in nearest.ancestors() {
            let ancestor = if ancestor == Path::new("") { Path::new(".") } else { ancestor };
            let files = match LocalBackend::open(ancestor) {
                Ok(files) => files,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let rest = path.strip_prefix(ancestor).unwrap_or(path);
            let rest = rest.to_str().ok_or_else(|| vfs_core::Error::of(ErrorKind::InvalidPath))?;
            let inner = VfsPath::root().join(rest)?;
            // Collecting the components removes a trailing slash.
            let real = real_directory(ancestor)?.join(inner.relative()).components().collect();
            return Ok(Self { local: files, path: inner, real });
        }
        Err(vfs_core::Error::of(ErrorKind::NotFound))
    }
}
