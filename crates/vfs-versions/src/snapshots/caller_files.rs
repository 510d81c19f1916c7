//! View of the files under checkpoints, without the excluded paths.

use std::collections::BTreeMap;

use bytes::Bytes;
use vfs_core::links::is_link;
use vfs_core::operation::UnaryRequest as _;
use vfs_core::transfer::{DownloadRequest, remove_empty_dirs};
use vfs_core::{
    Backend, Error, ErrorKind, FileInfo, LsRequest, OpContext, Problem, ResolveRequest, Result, StatRequest, Version,
    VfsPath,
};

use crate::content_store::ObjectId;
use crate::versioned_entry::{StoredFile, VersionedEntry, is_no_file, replace};

/// Size and version of a file as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CurrentFile {
    pub(crate) size: u64,
    pub(crate) version: Version,
}

/// Files as they are now, by path.
pub(crate) type CurrentFiles = BTreeMap<VfsPath, CurrentFile>;

/// Files of a backend, as one caller sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallerFiles<'a> {
    pub(crate) inner: &'a dyn Backend,
    pub(crate) cx: &'a OpContext,
    pub(crate) excluded: &'a [VfsPath],
}

impl CallerFiles<'_> {
    /// Returns the entry at `path`, or `None`, also for a link that leads nowhere, in a circle, or out of the backend.
    pub(crate) async fn entry(&self, path: &VfsPath) -> Result<Option<FileInfo>> {
        match self.inner.stat(self.cx, StatRequest::new(path.clone())).await {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidPath | ErrorKind::PathEscape) => {
                if is_link(self.inner, self.cx, path).await? { Ok(None) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the file at `path`, or `None`.
    pub(crate) async fn file(&self, path: &VfsPath) -> Result<Option<CurrentFile>> {
        Ok(self.entry(path).await?.as_ref().and_then(current_file))
    }

    /// Returns all files at and below `path`, without excluded ones.
    pub(crate) async fn below(&self, path: &VfsPath) -> Result<CurrentFiles> {
        let entries = match self.entry(path).await? {
            None => Vec::new(),
            Some(info) if info.is_dir => self.list(path).await?,
            Some(info) => vec![info],
        };
        let files = entries.into_iter().filter(|entry| !self.is_excluded(&entry.path));
        Ok(files.filter_map(|entry| current_file(&entry).map(|file| (entry.path, file))).collect())
    }

    async fn list(&self, directory: &VfsPath) -> Result<Vec<FileInfo>> {
        let listing = self.inner.ls(self.cx, LsRequest::new(directory.clone()).recursive()).await?;
        if listing.truncated.is_some() {
            let message = "the directory has more files than a listing returns, so it cannot be recorded as a whole";
            return Err(Error::new(ErrorKind::Unsupported, message).with_path(directory));
        }
        for problem in &listing.problems {
            if self.hides_content(problem).await? {
                let message = "the entry cannot be read, so its content cannot be stored; make it readable, or exclude \
                               it from the checkpoints";
                return Err(Error::new(ErrorKind::Unsupported, message).with_path_text(&problem.path));
            }
        }
        Ok(listing.entries)
    }

    /// Returns whether the entry of a listing's problem has a content that cannot be stored. A link that leads nowhere, in a circle or
    /// out of the backend has none.
    async fn hides_content(&self, problem: &Problem) -> Result<bool> {
        let Ok(path) = VfsPath::parse(&problem.path) else { return Ok(true) };
        Ok(match problem.code {
            _ if self.is_excluded(&path) => false,
            ErrorKind::NotFound | ErrorKind::PathEscape => false,
            ErrorKind::InvalidPath => !is_link(self.inner, self.cx, &path).await?,
            _ => true,
        })
    }

    pub(crate) fn is_excluded(&self, path: &VfsPath) -> bool {
        self.excluded.iter().any(|excluded| path.starts_with(excluded))
    }

    /// Returns the content of `path`, or `None` if there is no file.
    pub(crate) async fn content(&self, path: &VfsPath) -> Result<Option<Bytes>> {
        match DownloadRequest::new(path.clone()).send(self.inner, self.cx).await {
            Ok(response) => Ok(response.content),
            Err(error) if is_no_file(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether `present`, the file at `path`, has the expected content. The content is read only if version and size do
    /// not decide.
    pub(crate) async fn has_content(
        &self,
        path: &VfsPath,
        present: Option<&CurrentFile>,
        expected: Option<&StoredFile>,
    ) -> Result<bool> {
        let (present, expected) = match (present, expected) {
            (None, None) => return Ok(true),
            (Some(present), Some(expected)) => (present, expected),
            _ => return Ok(false),
        };
        if present.version == expected.version || present.size != expected.size {
            return Ok(present.version == expected.version);
        }
        Ok(self.content(path).await?.is_some_and(|content| ObjectId::of(&content) == expected.object))
    }

    /// Returns the real path of `path`, or `path` if it cannot be resolved.
    pub(crate) async fn real(&self, path: &VfsPath) -> VfsPath {
        if !self.inner.capabilities(path).links {
            return path.clone();
        }
        let resolved = self.inner.resolve(self.cx, ResolveRequest::new(path.clone())).await;
        resolved.map_or_else(|_| path.clone(), |resolved| resolved.path)
    }

    /// Returns the real path like [`real`](Self::real), without following a link in the last component.
    pub(crate) async fn real_entry(&self, path: &VfsPath) -> VfsPath {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return path.clone() };
        self.real(&parent).await.child(name).unwrap_or_else(|_| path.clone())
    }

    /// Replaces the entry `before` at `path` by a file with the content `after` or by nothing, and returns the new version. A
    /// file may also take the place of a directory that contains only directories: such a directory remains when its files are
    /// removed, on backends that have empty directories.
    pub(crate) async fn replace(
        &self,
        path: &VfsPath,
        before: &VersionedEntry<Version>,
        after: Option<Bytes>,
    ) -> Result<Option<Version>> {
        match replace(self.inner, self.cx, path, before, after.clone()).await {
            Err(error) if error.kind() == ErrorKind::IsADirectory && after.is_some() => {
                match remove_empty_dirs(self.inner, self.cx, path).await {
                    Ok(()) => replace(self.inner, self.cx, path, before, after).await,
                    Err(cause) if cause.is_temporary() || cause.kind() == ErrorKind::Cancelled => Err(cause),
                    // The error of the write describes other cases better.
                    Err(_) => Err(error),
                }
            }
            replaced => replaced,
        }
    }
}

fn current_file(info: &FileInfo) -> Option<CurrentFile> {
    let version = info.version.clone().filter(|_| !info.is_dir)?;
    Some(CurrentFile { size: info.size, version })
}
