//! Whole files in and out, many at a time.

use std::fmt;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer};

use super::entry::Version;
use super::state::FilesUpdate;
use super::wire;
use super::write::{WriteMode, WriteRequest, WriteResult};
use crate::error::{Error, ErrorKind};
use crate::path::VfsPath;

/// A file to be uploaded. In JSON the content is `content` or `content_base64`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "WireUpload", try_from = "WireUpload")]
#[non_exhaustive]
pub struct FileUpload {
    /// Where it goes.
    pub path: VfsPath,
    /// Its bytes.
    pub content: Bytes,
    /// When the file was changed last, as in [`WriteRequest::modified_at`]. Default the time of the upload.
    pub modified_at: Option<DateTime<Utc>>,
}

impl FileUpload {
    /// `content` for `path`.
    pub fn new(path: VfsPath, content: impl Into<Bytes>) -> Self {
        Self { path, content: content.into(), modified_at: None }
    }

    /// Sets when the file was changed last.
    #[must_use]
    pub fn modified_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.modified_at = at.into();
        self
    }
}

/// Converts an upload to a write that overwrites.
impl From<FileUpload> for WriteRequest {
    fn from(upload: FileUpload) -> Self {
        Self::new(upload.path, upload.content).mode(WriteMode::Overwrite).modified_at(upload.modified_at)
    }
}

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

impl From<FileUpload> for WireUpload {
    fn from(upload: FileUpload) -> Self {
        let (content, content_base64) = wire::split(upload.content);
        Self { path: upload.path, content, content_base64, modified_at: upload.modified_at }
    }
}

impl TryFrom<WireUpload> for FileUpload {
    type Error = String;

    fn try_from(fields: WireUpload) -> Result<Self, String> {
        let content = wire::join((fields.content, fields.content_base64))?;
        Ok(Self { path: fields.path, content, modified_at: fields.modified_at })
    }
}

/// Asks for one file of a download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DownloadRequest {
    /// The file.
    pub path: VfsPath,
}

impl DownloadRequest {
    /// Asks for the bytes of `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path }
    }
}

/// What an upload or download can fail with, in the four words that agents are taught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOperationError {
    /// Nothing is there.
    FileNotFound,
    /// It may not be read or written.
    PermissionDenied,
    /// It is a directory.
    IsDirectory,
    /// The path cannot name a file here; also every other failure, which the typed error beside it tells apart.
    InvalidPath,
}

impl FileOperationError {
    /// The word for a failure of `kind`.
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

    /// The word.
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

/// What became of one uploaded file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileUploadResponse {
    /// Where it went.
    pub path: VfsPath,
    /// The version it has, where it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The word for what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FileOperationError>,
    /// The typed error behind the word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Error>,
    /// On an agent's state: the change to merge into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_update: Option<FilesUpdate>,
}

impl FileUploadResponse {
    /// `path` was written and has `version`.
    pub fn ok(path: VfsPath, version: Version) -> Self {
        Self { path, version: Some(version), error: None, cause: None, files_update: None }
    }

    /// `path` was not written.
    pub fn failed(path: VfsPath, cause: Error) -> Self {
        Self {
            path,
            version: None,
            error: Some(FileOperationError::from_kind(cause.kind())),
            cause: Some(cause),
            files_update: None,
        }
    }

    /// Returns the response of an upload that was performed as a write of `path`.
    pub fn of_write(path: VfsPath, written: Result<WriteResult, Error>) -> Self {
        match written {
            Ok(written) => Self::ok(written.path, written.version),
            Err(error) => Self::failed(path, error),
        }
    }
}

/// One downloaded file. In JSON the content is `content` or `content_base64`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WireDownload")]
#[non_exhaustive]
pub struct FileDownloadResponse {
    /// The file.
    pub path: VfsPath,
    /// Its bytes, where it was read.
    pub content: Option<Bytes>,
    /// The version those bytes are, where it was read.
    pub version: Option<Version>,
    /// The word for what went wrong.
    pub error: Option<FileOperationError>,
    /// The typed error behind the word.
    pub cause: Option<Error>,
}

impl FileDownloadResponse {
    /// `path` holds `content`.
    pub fn ok(path: VfsPath, content: Bytes, version: Version) -> Self {
        Self { path, content: Some(content), version: Some(version), error: None, cause: None }
    }

    /// `path` was not read.
    pub fn failed(path: VfsPath, cause: Error) -> Self {
        let error = Some(FileOperationError::from_kind(cause.kind()));
        Self { path, content: None, version: None, error, cause: Some(cause) }
    }
}

impl Serialize for FileDownloadResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            path: &'a VfsPath,
            #[serde(skip_serializing_if = "Option::is_none")]
            content: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            content_base64: Option<wire::Base64<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            version: Option<&'a Version>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<FileOperationError>,
            #[serde(skip_serializing_if = "Option::is_none")]
            cause: Option<&'a Error>,
        }
        let content = self.content.as_deref();
        let text = content.and_then(|bytes| std::str::from_utf8(bytes).ok());
        Fields {
            path: &self.path,
            content: text,
            content_base64: content.filter(|_| text.is_none()).map(wire::Base64),
            version: self.version.as_ref(),
            error: self.error,
            cause: self.cause.as_ref(),
        }
        .serialize(serializer)
    }
}

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
