//! View of the files under checkpoints, without the excluded paths.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use vfs_core::is_link::is_link;
use vfs_core::operation::UnaryRequest as _;
use vfs_core::transfer::{FileDownloadRequest, remove_empty_dirs};
use vfs_core::{
    Backend, Error, ErrorKind, FileInfo, LsRequest, LsResult, OpContext, Problem, ResolveRequest, Result, StatRequest,
    Version, VfsPath,
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

/// Files and broken links at and below a path, as they are now.
#[derive(Debug)]
pub(crate) struct CurrentTree {
    pub(crate) files: CurrentFiles,
    /// Links that lead nowhere, in a circle, or out of the backend.
    pub(crate) broken_links: BTreeSet<VfsPath>,
}

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
        Ok(self.tree(path).await?.files)
    }

    /// Returns all files and broken links at and below `path`, without excluded ones.
    pub(crate) async fn tree(&self, path: &VfsPath) -> Result<CurrentTree> {
        let (entries, problems) = match self.entry(path).await? {
            None => (Vec::new(), Vec::new()),
            Some(info) if info.is_dir => self.list(path).await?,
            Some(info) => (vec![info], Vec::new()),
        };
        let files = entries.into_iter().filter(|entry| !self.is_excluded(&entry.path));
        let files = files.filter_map(|entry| current_file(&entry).map(|file| (entry.path, file))).collect();
        let broken_links = problems.iter().filter_map(|problem| VfsPath::parse(&problem.path).ok());
        let broken_links = broken_links.filter(|path| !self.is_excluded(path)).collect();
        Ok(CurrentTree { files, broken_links })
    }

    /// Returns the entries below `directory`, and the problems of broken links and excluded paths.
    async fn list(&self, directory: &VfsPath) -> Result<(Vec<FileInfo>, Vec<Problem>)> {
        let listing = self.inner.ls(self.cx, LsRequest::new(directory.clone()).recursive()).await?;
        if listing.truncated.is_some() {
            let message = "the directory has more files than a listing returns, so it cannot be recorded as a whole";
            return Err(Error::new(ErrorKind::Unsupported, message).with_path(directory));
        }
        if let Some(problem) = self.hidden_content(&listing).await? {
            let message = "the entry cannot be read, so its content cannot be stored; make it readable, or exclude \
                           it from the checkpoints";
            return Err(Error::new(ErrorKind::Unsupported, message).with_path_text(&problem.path));
        }
        Ok((listing.entries, listing.problems))
    }

    /// Returns a problem of `listing` whose entry may have a content that cannot be stored. A broken link has none.
    async fn hidden_content<'a>(&self, listing: &'a LsResult) -> Result<Option<&'a Problem>> {
        let mut possible_links = Vec::new();
        for problem in &listing.problems {
            if matches!(problem.code, ErrorKind::NotFound | ErrorKind::PathEscape) {
                continue;
            }
            match (problem.code, VfsPath::parse(&problem.path)) {
                (_, Ok(path)) if self.is_excluded(&path) => {}
                // A link in a circle, or through a file.
                (ErrorKind::InvalidPath | ErrorKind::NotADirectory, Ok(path)) => possible_links.push((problem, path)),
                _ => return Ok(Some(problem)),
            }
        }
        // A name that is not UTF-8 is reported under a path that may be that of a link, and a directory under that of a file that
        // shadows it.
        let mut counts: BTreeMap<_, u32> = possible_links.iter().map(|(_, path)| (path.as_str(), 0)).collect();
        let listed = listing.entries.iter().map(|entry| entry.path.as_str());
        for path in listed.chain(listing.problems.iter().map(|problem| &*problem.path)) {
            if let Some(count) = counts.get_mut(path) {
                *count += 1;
            }
        }
        if let Some((problem, _)) = possible_links.iter().find(|(_, path)| counts[path.as_str()] > 1) {
            return Ok(Some(problem));
        }
        for (problem, path) in &possible_links {
            if !is_link(self.inner, self.cx, path).await? {
                return Ok(Some(problem));
            }
        }
        Ok(None)
    }

    pub(crate) fn is_excluded(&self, path: &VfsPath) -> bool {
        self.excluded.iter().any(|excluded| path.starts_with(excluded))
    }

    /// Returns the content of `path`, or `None` if there is no file.
    pub(crate) async fn content(&self, path: &VfsPath) -> Result<Option<Bytes>> {
        match FileDownloadRequest::new(path.clone()).send(self.inner, self.cx).await {
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
