//! Writing a whole file, or to its end.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::entry::Version;
use super::state::FilesUpdate;
use super::wire;
use crate::error::{Error, ErrorKind, Result as VfsResult};
use crate::path::VfsPath;

/// What a write does with a file that is there already.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WriteMode {
    /// Refuses: only a new file is written. Of many at once, exactly one wins.
    #[default]
    CreateNew,
    /// Replaces it.
    Overwrite,
    /// Adds to its end; makes it where it is not there.
    Append,
    /// Replaces it if it is this version, and refuses if it is another or gone.
    IfVersion(Version),
}

/// Asks for a file's whole content to be written.
///
/// In JSON the content is `content` (a string) or `content_base64` (any bytes); the mode is `"create_new"`, `"overwrite"`,
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
    /// The file; directories above it are made.
    pub path: VfsPath,
    /// The bytes.
    pub content: Bytes,
    /// What happens to a file that is there already. Default [`WriteMode::CreateNew`].
    pub mode: WriteMode,
    /// When the file was changed last, for imports; kept to the microsecond. Default the time of the write.
    ///
    /// `unsupported` where [`Capabilities::set_times`](crate::Capabilities::set_times) is not set.
    pub modified_at: Option<DateTime<Utc>>,
}

impl WriteRequest {
    /// Writes `content` to a new file at `path`.
    pub fn new(path: VfsPath, content: impl Into<Bytes>) -> Self {
        Self { path, content: content.into(), mode: WriteMode::CreateNew, modified_at: None }
    }

    /// Sets what happens to a file that is there already.
    #[must_use]
    pub fn mode(mut self, mode: WriteMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets when the file was changed last.
    #[must_use]
    pub fn modified_at(mut self, at: impl Into<Option<DateTime<Utc>>>) -> Self {
        self.modified_at = at.into();
        self
    }

    /// Refuses a request that sets the time, for backends that cannot.
    ///
    /// # Errors
    ///
    /// `unsupported` where `modified_at` is set.
    pub fn refuse_modified_at(&self) -> VfsResult<()> {
        match self.modified_at {
            None => Ok(()),
            Some(_) => {
                let message = "the time of a file cannot be set here: leave out `modified_at`";
                Err(Error::new(ErrorKind::Unsupported, message).with_path(&self.path))
            }
        }
    }
}

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

/// A file was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WriteResult {
    /// The file.
    pub path: VfsPath,
    /// Whether it is new; else it was replaced or added to.
    pub created: bool,
    /// The version that it now has.
    pub version: Version,
    /// Its size in bytes.
    pub size: u64,
    /// On an agent's state: the change to merge into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_update: Option<FilesUpdate>,
}

impl WriteResult {
    /// `path` now has `version` and `size` bytes.
    pub fn new(path: VfsPath, created: bool, version: Version, size: u64) -> Self {
        Self { path, created, version, size, files_update: None }
    }
}
