//! Access to host files and directories through local backends.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_core::{
    Backend, DeleteRequest, ErrorKind, OpContext, ResolveRequest, StatRequest, VfsPath, WriteMode, WriteRequest,
};
use vfs_local::LocalBackend;

use crate::config_text::ConfigText;
use crate::error::{ConfigError, ConfigErrorKind};

/// Maximum length of a configuration file in bytes, 1 MiB.
pub(crate) const MAX_CONFIG_LEN: u64 = 1 << 20;

/// Returns the directory of a file.
pub(crate) fn directory_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns the real path of the directory `path`, without links and dots.
pub(crate) fn real_directory(path: &Path) -> vfs_core::Result<PathBuf> {
    Ok(LocalBackend::host(path)?.config().root.clone())
}

/// Reads the text of the file `path`.
pub(crate) async fn read_source(path: &Path) -> Result<ConfigText, ConfigError> {
    let unreadable = |message: &str| ConfigError::new(ConfigErrorKind::Unreadable, message).in_file(path);
    let failed = |error: vfs_core::Error| {
        let reason = match error.kind() {
            ErrorKind::NotFound => "the file does not exist; create it, or name another one",
            ErrorKind::IsADirectory => "it is a directory; name a file",
            ErrorKind::PermissionDenied => "permission denied; make it readable, or name another one",
            _ => error.message(),
        };
        let mut unreadable = unreadable(&format!("the file cannot be read: {reason}"));
        unreadable.cause = Some(error);
        unreadable
    };
    let (files, name) = open_parent(path).map_err(failed)?;
    let cx = OpContext::new();
    let download = files.download_files(&cx, vec![name]).await.pop();
    let content = match download.map(|download| (download.content, download.cause)) {
        Some((Some(content), _)) => content,
        Some((None, Some(cause))) => return Err(failed(cause)),
        Some((None, None)) | None => return Err(unreadable("the file cannot be read")),
    };
    if content.len() as u64 > MAX_CONFIG_LEN {
        return Err(unreadable("the file is longer than 1 MiB; a configuration is shorter"));
    }
    let text = std::str::from_utf8(&content).map_err(|_| unreadable("the file is not UTF-8; save it as UTF-8"))?;
    Ok(ConfigText::new(Some(path.to_owned()), text.trim_start_matches('\u{feff}')))
}

/// Returns the real path of the file `path`, and also that of the link if `path` is one.
pub(crate) async fn real_names(path: &Path) -> vfs_core::Result<Vec<PathBuf>> {
    let (files, name) = open_parent(path)?;
    let real = Backend::resolve(&files, &OpContext::new(), ResolveRequest::new(name.clone())).await?.path;
    let mut names = vec![PathBuf::from(name.as_str())];
    if real != name {
        names.push(PathBuf::from(real.as_str()));
    }
    Ok(names)
}

/// Opens the directory of `path` in host mode, and returns it with the path of the file.
fn open_parent(path: &Path) -> vfs_core::Result<(LocalBackend, VfsPath)> {
    let directory = LocalBackend::host(directory_of(path))?;
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| vfs_core::Error::of(ErrorKind::InvalidPath))?;
    let file = directory.resolve(".")?.child(name)?;
    Ok((directory, file))
}

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
