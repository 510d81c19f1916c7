//! Requests and results of writes.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::agent_state::FilesUpdate;
use super::version::Version;
use super::wire;
use crate::error::{Error, ErrorKind, Result as VfsResult};
use crate::path::VfsPath;

/// How a write treats an existing file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WriteMode {
    /// The write fails with `already_exists`. Of several concurrent writes, exactly one succeeds.
    #[default]
    CreateNew,
    /// The write replaces the file.
    Overwrite,
    /// The write appends to the file, or creates it.
    Append,
    /// The write replaces the file if it has this version, and fails with `conflict` otherwise.
    IfVersion(Version),
}

/// A request for [`Backend::write`](crate::Backend::write).
///
/// In JSON, the content is `content` (a string) or `content_base64` (any bytes); the mode is `"create_new"`, `"overwrite"`,
/// `"append"` or `{"if_version": "..."}`.
///
/// ```
/// use vfs_core::{VfsPath, WriteMode, WriteRequest};
///
/// let request = WriteRequest::new(VfsPath::parse("/a.txt")?, "hello\n").mode(WriteMode::Overwrite);
/// assert_eq!(request.content.len(), 6);
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "WireWrite", try_from = "WireWrite")]
#[non_exhaustive]
pub struct WriteRequest {
    /// The file. Missing parent directories are created.
    pub path: VfsPath,
    /// The content.
    pub content: Bytes,
    /// How an existing file is treated. Default: [`WriteMode::CreateNew`].
    pub mode: WriteMode,
    /// The modification time to set, for imports, with a precision of microseconds. Default: the time of the write.
    ///
    /// The write fails with `unsupported` unless the backend has [`Capabilities::set_times`](crate::Capabilities::set_times).
    pub modified_at: Option<DateTime<Utc>>,
}

impl WriteRequest {
    /// Creates a request to write `content` to the new file `path`.
    pub fn new(path: VfsPath, content: impl Into<Bytes>) -> Self {
        Self { path, content: content.into(), mode: WriteMode::CreateNew, modified_at: None }
    }

    /// Sets how an existing file is treated.
    #[must_use]
    pub fn mode(mut self, mode: WriteMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the modification time.
    #[must_use]
    pub fn modified_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.modified_at = at.into();
        self
    }

    /// Rejects a modification time, for backends that cannot set one.
    ///
    /// # Errors
    ///
    /// `unsupported` if `modified_at` is set.
    pub fn refuse_modified_at(&self) -> VfsResult<()> {
        match self.modified_at {
            None => Ok(()),
            Some(_) => {
                let message = "this backend cannot set the modification time; omit `modified_at`";
                Err(Error::new(ErrorKind::Unsupported, message).with_path(&self.path))
            }
        }
    }
}

/// The JSON form of a write.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireWrite {
    path: VfsPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_base64: Option<String>,
    #[serde(default, deserialize_with = "wire::or_default")]
    mode: WriteMode,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "wire::time")]
    modified_at: Option<DateTime<Utc>>,
}

impl From<WriteRequest> for WireWrite {
    fn from(request: WriteRequest) -> Self {
        let (content, content_base64) = wire::split(request.content);
        Self { path: request.path, content, content_base64, mode: request.mode, modified_at: request.modified_at }
    }
}

impl TryFrom<WireWrite> for WriteRequest {
    type Error = String;

    fn try_from(fields: WireWrite) -> Result<Self, String> {
        let content = wire::join((fields.content, fields.content_base64))?;
        Ok(Self { path: fields.path, content, mode: fields.mode, modified_at: fields.modified_at })
    }
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WriteResult {
    /// The file.
    pub path: VfsPath,
    /// Whether the file is new.
    pub created: bool,
    /// The new version.
    pub version: Version,
    /// The size of the file in bytes.
    pub size: u64,
    /// The update to merge into the caller's state, from a backend with [`MutationMode::Returned`](crate::backend::MutationMode::Returned).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_update: Option<FilesUpdate>,
}

impl WriteResult {
    /// Creates the result of a write.
    pub fn new(path: VfsPath, created: bool, version: Version, size: u64) -> Self {
        Self { path, created, version, size, files_update: None }
    }
}
