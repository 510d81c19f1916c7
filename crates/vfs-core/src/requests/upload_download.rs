//! Requests and results of uploads and downloads.

use std::fmt;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer};

use super::agent_state::FilesUpdate;
use super::version::Version;
use super::wire;
use super::write::{WriteMode, WriteRequest, WriteResult};
use crate::error::{Error, ErrorKind};
use crate::path::VfsPath;

/// A file of [`Backend::upload_files`](crate::Backend::upload_files). In JSON, the content is `content` or `content_base64`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "WireUpload", try_from = "WireUpload")]
#[non_exhaustive]
pub struct FileUploadRequest {
    /// The path to write.
    pub path: VfsPath,
    /// The content.
    pub content: Bytes,
    /// The modification time, as in [`WriteRequest::modified_at`]. Default: the time of the upload.
    pub modified_at: Option<DateTime<Utc>>,
}

impl FileUploadRequest {
    /// Creates an upload of `content` to `path`.
    pub fn new(path: VfsPath, content: impl Into<Bytes>) -> Self {
        Self { path, content: content.into(), modified_at: None }
    }

    /// Sets the modification time.
    #[must_use]
    pub fn modified_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.modified_at = at.into();
        self
    }
}

/// Converts an upload to a write that overwrites.
impl From<FileUploadRequest> for WriteRequest {
    fn from(upload: FileUploadRequest) -> Self {
        Self::new(upload.path, upload.content).mode(WriteMode::Overwrite).modified_at(upload.modified_at)
    }
}

/// The JSON form of an upload.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireUpload {
    path: VfsPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "wire::time")]
    modified_at: Option<DateTime<Utc>>,
}

impl From<FileUploadRequest> for WireUpload {
    fn from(upload: FileUploadRequest) -> Self {
        let (content, content_base64) = wire::split(upload.content);
        Self { path: upload.path, content, content_base64, modified_at: upload.modified_at }
    }
}

impl TryFrom<WireUpload> for FileUploadRequest {
    type Error = String;

    fn try_from(fields: WireUpload) -> Result<Self, String> {
        let content = wire::join((fields.content, fields.content_base64))?;
        Ok(Self { path: fields.path, content, modified_at: fields.modified_at })
    }
}

/// A file of [`Backend::download_files`](crate::Backend::download_files), as an interceptor receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FileDownloadRequest {
    /// The file.
    pub path: VfsPath,
}

impl FileDownloadRequest {
    /// Creates a request for the content of `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path }
    }
}

/// The error codes of uploads and downloads that agents know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOperationError {
    /// The file does not exist.
    FileNotFound,
    /// Access is denied, by permissions or by a policy.
    PermissionDenied,
    /// The path is a directory.
    IsDirectory,
    /// The path is invalid, or the operation failed for another reason, which the `cause` of the response has.
    InvalidPath,
}

impl FileOperationError {
    /// Returns the code for an error of `kind`.
    pub fn from_kind(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound => Self::FileNotFound,
            ErrorKind::PermissionDenied | ErrorKind::PolicyDenied | ErrorKind::ApprovalRequired => {
                Self::PermissionDenied
            }
            ErrorKind::IsADirectory => Self::IsDirectory,
            _ => Self::InvalidPath,
        }
    }

    /// Returns the code as text.
    pub fn code(self) -> &'static str {
        match self {
            Self::FileNotFound => "file_not_found",
            Self::PermissionDenied => "permission_denied",
            Self::IsDirectory => "is_directory",
            Self::InvalidPath => "invalid_path",
        }
    }
}

impl fmt::Display for FileOperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// The result of one uploaded file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileUploadResponse {
    /// The path.
    pub path: VfsPath,
    /// The version of the written file; `None` if the upload failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The code of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FileOperationError>,
    /// The error of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Error>,
    /// The update to merge into the caller's state, from a backend with [`MutationMode::Returned`](crate::backend::MutationMode::Returned).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_update: Option<FilesUpdate>,
}

impl FileUploadResponse {
    /// Creates the result of a file that was written.
    pub fn ok(path: VfsPath, version: Version) -> Self {
        Self { path, version: Some(version), error: None, cause: None, files_update: None }
    }

    /// Creates the result of a file that could not be written.
    pub fn failed(path: VfsPath, cause: Error) -> Self {
        Self {
            path,
            version: None,
            error: Some(FileOperationError::from_kind(cause.kind())),
            cause: Some(cause),
            files_update: None,
        }
    }

    /// Creates the result of an upload that was performed as a write of `path`.
    pub fn of_write(path: VfsPath, written: Result<WriteResult, Error>) -> Self {
        match written {
            Ok(written) => Self::ok(written.path, written.version),
            Err(error) => Self::failed(path, error),
        }
    }
}

/// The result of one downloaded file. In JSON, the content is `content` or `content_base64`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WireDownload")]
#[non_exhaustive]
pub struct FileDownloadResponse {
    /// The file.
    pub path: VfsPath,
    /// The content; `None` if the download failed.
    pub content: Option<Bytes>,
    /// The version of the content; `None` if the download failed.
    pub version: Option<Version>,
    /// The code of the failure.
    pub error: Option<FileOperationError>,
    /// The error of the failure.
    pub cause: Option<Error>,
}

impl FileDownloadResponse {
    /// Creates the result of a file that was read.
    pub fn ok(path: VfsPath, content: Bytes, version: Version) -> Self {
        Self { path, content: Some(content), version: Some(version), error: None, cause: None }
    }

    /// Creates the result of a file that could not be read.
    pub fn failed(path: VfsPath, cause: Error) -> Self {
        let error = Some(FileOperationError::from_kind(cause.kind()));
        Self { path, content: None, version: None, error, cause: Some(cause) }
    }
}

impl Serialize for FileDownloadResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// The JSON form of a downloaded file, as it is serialised.
        #[derive(Serialize)]
        struct DownloadFields<'a> {
            path: &'a VfsPath,
            #[serde(skip_serializing_if = "Option::is_none")]
            content: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            content_base64: Option<wire::Base64Bytes<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            version: Option<&'a Version>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<FileOperationError>,
            #[serde(skip_serializing_if = "Option::is_none")]
            cause: Option<&'a Error>,
        }
        let content = self.content.as_deref();
        let text = content.and_then(|bytes| std::str::from_utf8(bytes).ok());
        DownloadFields {
            path: &self.path,
            content: text,
            content_base64: content.filter(|_| text.is_none()).map(wire::Base64Bytes),
            version: self.version.as_ref(),
            error: self.error,
            cause: self.cause.as_ref(),
        }
        .serialize(serializer)
    }
}

/// The JSON form of a downloaded file, as it is deserialised.
#[derive(Deserialize)]
struct WireDownload {
    path: VfsPath,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    content_base64: Option<String>,
    #[serde(default)]
    version: Option<Version>,
    #[serde(default)]
    error: Option<FileOperationError>,
    #[serde(default)]
    cause: Option<Error>,
}

impl TryFrom<WireDownload> for FileDownloadResponse {
    type Error = String;

    fn try_from(fields: WireDownload) -> Result<Self, String> {
        let WireDownload { path, content, content_base64, version, error, cause } = fields;
        let content = match (content, content_base64) {
            (None, None) => None,
            fields => Some(wire::join(fields)?),
        };
        Ok(Self { path, content, version, error, cause })
    }
}
