//! Entries of versioned files: version, content, and conditional replacement.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::is_link::is_link;
use vfs_core::operation::UnaryRequest as _;
use vfs_core::transfer::FileDownloadRequest;
use vfs_core::{
    Backend, DeleteRequest, Error, ErrorKind, OpContext, Result, Version, VfsPath, WriteMode, WriteRequest,
};

use crate::content_store::ObjectId;

/// State of a path: nothing, a file described by `F`, or a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VersionedEntry<F> {
    Nothing,
    File(F),
    /// A link, which has neither version nor content.
    Link,
}

impl<F> VersionedEntry<F> {
    pub(crate) fn file(&self) -> Option<&F> {
        match self {
            Self::File(file) => Some(file),
            Self::Nothing | Self::Link => None,
        }
    }
}

impl<F> From<Option<F>> for VersionedEntry<F> {
    fn from(file: Option<F>) -> Self {
        file.map_or(Self::Nothing, Self::File)
    }
}

impl VersionedEntry<VersionedContent> {
    pub(crate) fn version(&self) -> Option<&Version> {
        self.file().map(|file| &file.version)
    }

    pub(crate) fn content(&self) -> Option<&Bytes> {
        self.file().map(|file| &file.content)
    }

    /// Returns this entry without the content.
    pub(crate) fn to_version(&self) -> VersionedEntry<Version> {
        match self {
            Self::Nothing => VersionedEntry::Nothing,
            Self::File(file) => VersionedEntry::File(file.version.clone()),
            Self::Link => VersionedEntry::Link,
        }
    }
}

/// Content and version of a file.
#[derive(Debug, Clone)]
pub(crate) struct VersionedContent {
    pub(crate) content: Bytes,
    pub(crate) version: Version,
}

impl VersionedContent {
    pub(crate) fn as_bytes_and_version(&self) -> (&[u8], Version) {
        (&self.content, self.version.clone())
    }
}

/// File whose content is in the content store, with the size and version of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFile {
    pub(crate) object: ObjectId,
    pub(crate) size: u64,
    pub(crate) version: Version,
}

/// Stored files by path.
pub(crate) type StoredFiles = BTreeMap<VfsPath, StoredFile>;

/// Returns the file at `path`.
pub(crate) async fn fetch(backend: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<VersionedContent> {
    let response = FileDownloadRequest::new(path.clone()).send(backend, cx).await?;
    match (response.content, response.version) {
        (Some(content), Some(version)) => Ok(VersionedContent { content, version }),
        _ => Err(Error::new(ErrorKind::Internal, "the backend gave neither file nor error").with_path(path)),
    }
}

/// Returns the file at `path`, or `None` if there is no file.
pub(crate) async fn fetch_if_exists(
    backend: &dyn Backend,
    cx: &OpContext,
    path: &VfsPath,
) -> Result<Option<VersionedContent>> {
    match fetch(backend, cx, path).await {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_no_file(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether `error` says that there is no file.
pub(crate) fn is_no_file(error: &Error) -> bool {
    error.is_absence() || error.kind() == ErrorKind::IsADirectory
}

/// Replaces the entry at `path`, which must still be `before`, by a file with the content `after` or by nothing, and returns the
/// new version.
pub(crate) async fn replace(
    backend: &dyn Backend,
    cx: &OpContext,
    path: &VfsPath,
    before: &VersionedEntry<Version>,
    after: Option<Bytes>,
) -> Result<Option<Version>> {
    let delete = || DeleteRequest::new(path.clone());
    let mode = match (before, &after) {
        (VersionedEntry::Nothing, None) => return Ok(None),
        (VersionedEntry::File(version), None) => {
            return backend.delete(cx, delete().expected_version(version.clone())).await.map(|_| None);
        }
        (VersionedEntry::Link, _) => {
            // A file may have taken the place of the link. A deletion without a version would remove that file.
            if !is_link(backend, cx, path).await? {
                return Err(Error::at(ErrorKind::Conflict, path));
            }
            backend.delete(cx, delete()).await?;
            WriteMode::CreateNew
        }
        (VersionedEntry::Nothing, Some(_)) => WriteMode::CreateNew,
        (VersionedEntry::File(version), Some(_)) => WriteMode::IfVersion(version.clone()),
    };
    let Some(content) = after else { return Ok(None) };
    let written = backend.write(cx, WriteRequest::new(path.clone(), content).mode(mode)).await?;
    Ok(Some(written.version))
}
