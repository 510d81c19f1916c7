//! Files and directories of this machine, which only a local backend reaches.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_core::{
    Backend, DeleteRequest, ErrorKind, OpContext, ResolveRequest, StatRequest, VfsPath, WriteMode, WriteRequest,
};
use vfs_local::LocalBackend;

use crate::config::Config;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::source::Source;

/// The directory that a file is in.
pub(crate) fn directory_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The directory `path` without links and dots.
pub(crate) fn real_directory(path: &Path) -> vfs_core::Result<PathBuf> {
    Ok(LocalBackend::host(path)?.config().root.clone())
}

/// The text of the file `path`.
pub(crate) async fn source(path: &Path) -> Result<Source, ConfigError> {
    let unreadable = |message: &str| ConfigError::new(ConfigErrorKind::Unreadable, message).in_file(path);
    let failed = |error: vfs_core::Error| {
        let reason = match error.kind() {
            ErrorKind::NotFound => "the file does not exist; create it, or name another one",
            ErrorKind::IsADirectory => "it is a directory; name a file",
            ErrorKind::PermissionDenied => "permission denied; make it readable, or name another one",
            _ => error.message(),
        };
        let mut unreadable = unreadable(&format!("it cannot be read: {reason}"));
        unreadable.cause = Some(error);
        unreadable
    };
    let (files, name) = parent_of(path).map_err(failed)?;
    let cx = OpContext::new();
    let answer = files.download_files(&cx, vec![name]).await.pop();
    let content = match answer.map(|answer| (answer.content, answer.cause)) {
        Some((Some(content), _)) => content,
        Some((None, Some(cause))) => return Err(failed(cause)),
        Some((None, None)) | None => return Err(unreadable("it cannot be read")),
    };
    if content.len() as u64 > Config::MAX_LEN {
        return Err(unreadable("it is over 1 MiB; a description of a namespace is shorter"));
    }
    let text = std::str::from_utf8(&content).map_err(|_| unreadable("it is not UTF-8; save it as that"))?;
    Ok(Source::new(Some(path.to_owned()), text.trim_start_matches('\u{feff}')))
}

/// The file `path` by its name in its directory, and by what that leads to where it is a link.
pub(crate) async fn real_names(path: &Path) -> vfs_core::Result<Vec<PathBuf>> {
    let (files, named) = parent_of(path)?;
    let real = Backend::resolve(&files, &OpContext::new(), ResolveRequest::new(named.clone())).await?.path;
    let mut names = vec![PathBuf::from(named.as_str())];
    if real != named {
        names.push(PathBuf::from(real.as_str()));
    }
    Ok(names)
}

/// The host, and what `path` is called there.
fn parent_of(path: &Path) -> vfs_core::Result<(LocalBackend, VfsPath)> {
    let directory = LocalBackend::host(directory_of(path))?;
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| vfs_core::Error::of(ErrorKind::InvalidPath))?;
    let named = directory.resolve(".")?.child(name)?;
    Ok((directory, named))
}

/// A place for a store, which need not be there yet.
#[derive(Debug, Clone)]
pub(crate) struct StorePlace {
    /// The innermost directory above it, or it itself, that is there.
    pub(crate) local: LocalBackend,
    /// Where it is in that.
    pub(crate) path: VfsPath,
    /// Where it is on the host.
    pub(crate) real: PathBuf,
}

impl StorePlace {
    /// The backend that its path is in.
    pub(crate) fn files(&self) -> Arc<dyn Backend> {
        Arc::new(self.local.clone())
    }

    /// Makes the directory, if it is not there yet: what is there can be denied to an agent with all that is above it.
    pub(crate) async fn make_directory(&self) -> vfs_core::Result<()> {
        let cx = OpContext::new();
        match Backend::stat(&self.local, &cx, StatRequest::new(self.path.clone())).await {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // No operation makes a directory but for a file in it.
        let file = self.path.child(".vfs-directory")?;
        self.local.write(&cx, WriteRequest::new(file.clone(), "").mode(WriteMode::Overwrite)).await?;
        self.local.delete(&cx, DeleteRequest::new(file)).await.map(drop)
    }

    /// Makes the file, if it is not there yet, for the same reason.
    pub(crate) async fn make_file(&self) -> vfs_core::Result<()> {
        match self.local.write(&OpContext::new(), WriteRequest::new(self.path.clone(), "")).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The directory `path`, confined to what is there of it.
    pub(crate) fn directory(path: &Path) -> vfs_core::Result<Self> {
        Self::below(path, path)
    }

    /// The file `path`, confined to what is there of its directory.
    pub(crate) fn file(path: &Path) -> vfs_core::Result<Self> {
        Self::below(path, &directory_of(path))
    }

    fn below(path: &Path, nearest: &Path) -> vfs_core::Result<Self> {
        for above in nearest.ancestors() {
            let above = if above == Path::new("") { Path::new(".") } else { above };
            let files = match LocalBackend::open(above) {
                Ok(files) => files,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let rest = path.strip_prefix(above).unwrap_or(path);
            let rest = rest.to_str().ok_or_else(|| vfs_core::Error::of(ErrorKind::InvalidPath))?;
            let inside = VfsPath::root().join(rest)?;
            // Components, so that no path ends in a slash.
            let real = real_directory(above)?.join(inside.relative()).components().collect();
            return Ok(Self { local: files, path: inside, real });
        }
        Err(vfs_core::Error::of(ErrorKind::NotFound))
    }
}
