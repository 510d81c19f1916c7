//! Real paths of files and directories of the host.

use std::path::{Path, PathBuf};

use vfs_core::{Backend, ErrorKind, OpContext, ResolveRequest, VfsPath};
use vfs_local::LocalBackend;

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
pub(crate) fn open_parent(path: &Path) -> vfs_core::Result<(LocalBackend, VfsPath)> {
    let directory = LocalBackend::host(directory_of(path))?;
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| vfs_core::Error::of(ErrorKind::InvalidPath))?;
    let file = directory.resolve(".")?.child(name)?;
    Ok((directory, file))
}
