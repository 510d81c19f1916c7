//! Immutable file: content, times, and lazily computed version and search data.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use chrono::{DateTime, SubsecRound, Utc};
use vfs_core::state::{FileData, FileDataContent};
use vfs_core::tree::{SearchableContent, Sketch, SketchCallback};
use vfs_core::{Error, FileInfo, Result, Version, VfsPath};

/// The format of file contents in an agent's state.
///
/// Bytes that are not UTF-8 are written as a base64 string, whatever the format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StateContentFormat {
    /// A string, with its encoding beside it.
    #[default]
    Text,
    /// A list of lines.
    Lines,
}

/// An immutable file. A change makes another one.
#[derive(Clone)]
pub(crate) struct MemoryFile {
    content: Bytes,
    created_at: DateTime<Utc>,
    modified_at: DateTime<Utc>,
    /// The format in an agent's state; unused in other stores.
    format: StateContentFormat,
    /// Hashed on first use, because many files are only searched.
    version: OnceLock<Version>,
    /// Whether a search treats the file as binary; computed by the first search.
    is_binary: OnceLock<bool>,
    /// Search data about the content; computed by the second search at the earliest.
    sketch: OnceLock<Sketch>,
}

impl MemoryFile {
    /// Returns a file created at `now`.
    pub(crate) fn new(content: Bytes, now: DateTime<Utc>, format: StateContentFormat) -> Self {
        Self::with_times(content, now, now, format)
    }

    fn with_times(
        content: Bytes,
        created_at: DateTime<Utc>,
        modified_at: DateTime<Utc>,
        format: StateContentFormat,
    ) -> Self {
        let (version, is_binary, sketch) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { content, created_at, modified_at, format, version, is_binary, sketch }
    }

    /// Decodes `data`; `path` is for the error.
    pub(crate) fn from_data(path: &VfsPath, data: &FileData) -> Result<Self> {
        let content = data.to_bytes().map_err(|reason| Error::invalid_argument(reason).with_path(path))?;
        let format = match data.content {
            FileDataContent::Lines(_) => StateContentFormat::Lines,
            FileDataContent::Text(_) => StateContentFormat::Text,
        };
        Ok(Self::with_times(content, data.created_at, data.modified_at, format))
    }

    /// Returns this file with `content`, modified at `now`.
    pub(crate) fn with_content(&self, content: Bytes, now: DateTime<Utc>) -> Self {
        Self::with_times(content, self.created_at, now, self.format)
    }

    /// Returns this file with the modification time `at`, truncated to microseconds.
    pub(crate) fn with_modified_at(mut self, at: DateTime<Utc>) -> Self {
        self.modified_at = at.trunc_subsecs(6);
        self
    }

    /// Returns a copy of this file, created at `now`.
    pub(crate) fn copy_at(&self, now: DateTime<Utc>) -> Self {
        Self { created_at: now, modified_at: now, ..self.clone() }
    }

    pub(crate) fn content(&self) -> &Bytes {
        &self.content
    }

    /// Returns whether a search treats the file as binary.
    fn is_binary(&self) -> bool {
        *self.is_binary.get_or_init(|| vfs_search::is_binary(&self.content))
    }

    /// Returns the search data, if it was computed.
    pub(crate) fn sketch(&self) -> Option<&Sketch> {
        self.sketch.get()
    }

    /// Opens the content for a search, which computes the search data unless it is the first search.
    pub(crate) fn open(self: &Arc<Self>) -> SearchableContent {
        let is_first = self.is_binary.get().is_none();
        let learn = (!is_first && self.sketch.get().is_none()).then(|| {
            let file = Arc::clone(self);
            Box::new(move |sketch| drop(file.sketch.set(sketch))) as SketchCallback
        });
        SearchableContent::Bytes { bytes: self.content.clone(), is_binary: Some(self.is_binary()), learn }
    }

    pub(crate) fn size(&self) -> u64 {
        self.content.len() as u64
    }

    /// Returns the first half of the content's hash: equal versions mean equal contents, in every process.
    pub(crate) fn version(&self) -> &Version {
        self.version.get_or_init(|| Version::new(&blake3::hash(&self.content).to_hex()[..32]))
    }

    /// Returns the metadata of this file at `path`.
    pub(crate) fn info(&self, path: VfsPath) -> FileInfo {
        FileInfo::file(path, self.size(), self.version().clone())
            .modified_at(self.modified_at)
            .created_at(self.created_at)
    }

    /// Encodes this file for an agent's state.
    pub(crate) fn to_data(&self) -> FileData {
        match self.format {
            StateContentFormat::Text => FileData::text(&self.content, self.created_at, self.modified_at),
            StateContentFormat::Lines => FileData::lines(&self.content, self.created_at, self.modified_at),
        }
    }
}

/// Compares without versions, which follow from the content.
impl PartialEq for MemoryFile {
    fn eq(&self, other: &Self) -> bool {
        (self.created_at, self.modified_at, self.format) == (other.created_at, other.modified_at, other.format)
            && self.content == other.content
    }
}

impl Eq for MemoryFile {}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryFile")
            .field("size", &self.content.len())
            .field("modified_at", &self.modified_at)
            .finish_non_exhaustive()
    }
}
