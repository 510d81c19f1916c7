//! View of the files under checkpoints, without the excluded paths.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::{
    Backend, DeleteRequest, Error, ErrorKind, FileInfo, LsRequest, OpContext, Problem, ResolveRequest, Result,
    StatRequest, Version, VfsPath, WriteMode, WriteRequest, prune,
};

use crate::content_store::ObjectId;

/// Stored content of a file, with the size and version of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Image {
    pub(super) object: ObjectId,
    pub(super) size: u64,
    pub(super) version: Version,
}

/// Stored contents by path.
pub(super) type Images = BTreeMap<VfsPath, Image>;

/// Present size and version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileStamp {
    pub(super) size: u64,
    pub(super) version: Version,
}

/// Present files by path.
pub(super) type Tree = BTreeMap<VfsPath, FileStamp>;

/// The files of a backend, as one caller sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files<'a> {
    pub(super) inner: &'a dyn Backend,
    pub(super) cx: &'a OpContext,
    pub(super) excluded: &'a [VfsPath],
}

impl Files<'_> {
    /// Returns the entry at `path`, or `None`.
    pub(super) async fn at(&self, path: &VfsPath) -> Result<Option<FileInfo>> {
        match self.inner.stat(self.cx, StatRequest::new(path.clone())).await {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the file at `path`, or `None`.
    pub(super) async fn file(&self, path: &VfsPath) -> Result<Option<FileStamp>> {
        Ok(self.at(path).await?.as_ref().and_then(seen))
    }

    /// Returns all files at and below `path`, without excluded ones.
    pub(super) async fn below(&self, path: &VfsPath) -> Result<Tree> {
        let entries = match self.at(path).await? {
            None => Vec::new(),
            Some(info) if info.is_dir => self.list(path).await?,
            Some(info) => vec![info],
        };
        let files = entries.into_iter().filter(|entry| !self.is_excluded(&entry.path));
        Ok(files.filter_map(|entry| seen(&entry).map(|seen| (entry.path, seen))).collect())
    }

    async fn list(&self, directory: &VfsPath) -> Result<Vec<FileInfo>> {
        let listing = self.inner.ls(self.cx, LsRequest::new(directory.clone()).recursive()).await?;
        if listing.truncated.is_some() {
            let message = "not all files below it could be listed, and a part of them would be taken for the whole";
            return Err(Error::new(ErrorKind::Unsupported, message).with_path(directory));
        }
        // A link that leads nowhere has no content that could be kept.
        let hides_content = |problem: &Problem| !matches!(problem.code, ErrorKind::NotFound | ErrorKind::PathEscape);
        let is_excluded = |problem: &Problem| VfsPath::parse(&problem.path).is_ok_and(|path| self.is_excluded(&path));
        match listing.problems.iter().find(|problem| hides_content(problem) && !is_excluded(problem)) {
            None => Ok(listing.entries),
            Some(problem) => {
                let message = "it cannot be looked at, so its content cannot be kept; mend it, or leave it out of the \
                               checkpoints";
                Err(Error::new(ErrorKind::Unsupported, message).with_path_text(&problem.path))
            }
        }
    }

    pub(super) fn is_excluded(&self, path: &VfsPath) -> bool {
        self.excluded.iter().any(|excluded| path.starts_with(excluded))
    }

    /// Returns the contents at `paths` with their versions, in that order.
    pub(super) async fn download(&self, paths: Vec<VfsPath>) -> Vec<Result<(Bytes, Option<Version>)>> {
        let answers = self.inner.download_files(self.cx, paths).await;
        let answer = |path: &VfsPath, content, cause: Option<Error>| match content {
            Some(content) => Ok(content),
            None => Err(cause.unwrap_or_else(|| Error::at(ErrorKind::Internal, path))),
        };
        answers
            .into_iter()
            .map(|file| answer(&file.path, file.content, file.cause).map(|content| (content, file.version)))
            .collect()
    }

    /// Returns the content of `path`, or `None` if there is no file.
    pub(super) async fn content(&self, path: &VfsPath) -> Result<Option<Bytes>> {
        match self.download(vec![path.clone()]).await.pop() {
            Some(Ok((content, _))) => Ok(Some(content)),
            Some(Err(error)) if is_absent(error.kind()) => Ok(None),
            Some(Err(error)) => Err(error),
            None => Err(Error::at(ErrorKind::Internal, path)),
        }
    }

    /// Returns whether `now`, the file at `path`, has the expected content. The content is read only if version and size do not
    /// decide.
    pub(super) async fn holds(
        &self,
        path: &VfsPath,
        now: Option<&FileStamp>,
        expected: Option<&Image>,
    ) -> Result<bool> {
        let (now, expected) = match (now, expected) {
            (None, None) => return Ok(true),
            (Some(now), Some(expected)) => (now, expected),
            _ => return Ok(false),
        };
        if now.version == expected.version || now.size != expected.size {
            return Ok(now.version == expected.version);
        }
        Ok(self.content(path).await?.is_some_and(|content| ObjectId::of(&content) == expected.object))
    }

    /// Returns the real path that a change of `path` affects, with a link in the last component followed or not.
    pub(super) async fn real(&self, path: &VfsPath, last: Last) -> VfsPath {
        if !self.inner.capabilities(path).links {
            return path.clone();
        }
        let (asked, name) = match (last, path.parent(), path.name()) {
            (Last::Kept, Some(parent), Some(name)) => (parent, Some(name)),
            _ => (path.clone(), None),
        };
        let resolved = self.inner.resolve(self.cx, ResolveRequest::new(asked)).await;
        let resolved = resolved.and_then(|real| name.map_or(Ok(real.path.clone()), |name| real.path.child(name)));
        resolved.unwrap_or_else(|_| path.clone())
    }

    /// Writes `content` over the version `over`, or as a new file, and returns the new version.
    pub(super) async fn put(&self, path: &VfsPath, content: Bytes, over: Option<&Version>) -> Result<Version> {
        let mode = over.map_or(WriteMode::CreateNew, |version| WriteMode::IfVersion(version.clone()));
        let request = WriteRequest::new(path.clone(), content).mode(mode);
        match self.inner.write(self.cx, request.clone()).await {
            Err(error) if error.kind() == ErrorKind::IsADirectory && self.cleared(path).await? => {
                Ok(self.inner.write(self.cx, request).await?.version)
            }
            written => Ok(written?.version),
        }
    }

    pub(super) async fn remove(&self, path: &VfsPath, version: &Version) -> Result<()> {
        let request = DeleteRequest::new(path.clone()).expected_version(version.clone());
        self.inner.delete(self.cx, request).await.map(drop)
    }

    /// Removes the directory at `path` if it contains only directories. Such a directory remains when its files are removed, on
    /// backends that have empty directories.
    async fn cleared(&self, path: &VfsPath) -> Result<bool> {
        match prune(self.inner, self.cx, path).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_temporary() || error.kind() == ErrorKind::Cancelled => Err(error),
            // The error of the write that failed describes other cases better.
            Err(_) => Ok(false),
        }
    }
}

/// Treatment of a link in the last component of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Followed,
    Kept,
}

fn seen(info: &FileInfo) -> Option<FileStamp> {
    let version = info.version.clone().filter(|_| !info.is_dir)?;
    Some(FileStamp { size: info.size, version })
}

/// Returns whether an error of `kind` says that there is no file.
pub(super) fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

/// Returns a context of the same caller without deadline and cancellation, for work that has to be completed.
pub(super) fn for_cleanup(cx: &OpContext) -> OpContext {
    let mut fresh = OpContext::new().with_span(cx.span().clone());
    if let Some(actor) = cx.actor() {
        fresh = fresh.with_actor(actor);
    }
    match cx.session() {
        Some(session) => fresh.with_session(session),
        None => fresh,
    }
}
