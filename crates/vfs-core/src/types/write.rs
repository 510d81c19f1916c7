//! Writing a whole file, or to its end.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::entry::Version;
use super::state::FilesUpdate;
use super::wire;
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
}

impl WriteRequest {
    /// Writes `content` to a new file at `path`.
    pub fn new(path: VfsPath, content: impl Into<Bytes>) -> Self {
        Self { path, content: content.into(), mode: WriteMode::CreateNew }
    }

    /// Sets what happens to a file that is there already.
    #[must_use]
    pub fn mode(mut self, mode: WriteMode) -> Self {
        self.mode = mode;
        self
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
}

impl From<WriteRequest> for WireWrite {
    fn from(request: WriteRequest) -> Self {
        let (content, content_base64) = wire::split(request.content);
        Self { path: request.path, content, content_base64, mode: request.mode }
    }
}

impl TryFrom<WireWrite> for WriteRequest {
    type Error = String;

    fn try_from(fields: WireWrite) -> Result<Self, String> {
        let content = wire::join((fields.content, fields.content_base64))?;
        Ok(Self { path: fields.path, content, mode: fields.mode })
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
