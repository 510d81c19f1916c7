//! One file.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use chrono::{DateTime, SubsecRound, Utc};
use vfs_core::tree::{Learn, Opened, Sketch};
use vfs_core::{Error, FileData, FileInfo, FileText, Result, Version, VfsPath};

/// How an agent's state spells the content of a file.
///
/// Bytes that are not UTF-8 are spelled in base64 as a string, whatever the format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StateFormat {
    /// As a string, with its encoding beside it.
    #[default]
    Text,
    /// As a list of lines.
    Lines,
}

/// A file's content and what is known of it; it never changes, a changed file is another one.
#[derive(Clone)]
pub(crate) struct File {
    content: Bytes,
    created_at: DateTime<Utc>,
    modified_at: DateTime<Utc>,
    /// How an agent's state spells it; of no meaning elsewhere.
    format: StateFormat,
    /// Hashed when it is first asked for, as many files are only ever searched.
    version: OnceLock<Version>,
    /// Whether a search takes it for binary; looked at by the first.
    is_binary: OnceLock<bool>,
    /// What searches remember of it; made by the second at the soonest.
    sketch: OnceLock<Sketch>,
}

impl File {
    /// A file made at `now`.
    pub(crate) fn new(content: Bytes, now: DateTime<Utc>, format: StateFormat) -> Self {
        Self::of(content, now, now, format)
    }

    fn of(content: Bytes, created_at: DateTime<Utc>, modified_at: DateTime<Utc>, format: StateFormat) -> Self {
        let (version, is_binary, sketch) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { content, created_at, modified_at, format, version, is_binary, sketch }
    }

    /// The file that `data` spells; `path` is where it is, for the error.
    pub(crate) fn from_data(path: &VfsPath, data: &FileData) -> Result<Self> {
        let content = data.to_bytes().map_err(|reason| Error::invalid_argument(reason).with_path(path))?;
        let format = match data.content {
            FileText::Lines(_) => StateFormat::Lines,
            FileText::Text(_) => StateFormat::Text,
        };
        Ok(Self::of(content, data.created_at, data.modified_at, format))
    }

    /// This file, changed at `now` to hold `content`.
    pub(crate) fn changed(&self, content: Bytes, now: DateTime<Utc>) -> Self {
        Self::of(content, self.created_at, now, self.format)
    }

    /// Returns this file with the modification time `at`, truncated to microseconds.
    pub(crate) fn modified_at(mut self, at: DateTime<Utc>) -> Self {
        self.modified_at = at.trunc_subsecs(6);
        self
    }

    /// A copy of this file, made at `now`.
    pub(crate) fn copied(&self, now: DateTime<Utc>) -> Self {
        Self { created_at: now, modified_at: now, ..self.clone() }
    }

    pub(crate) fn content(&self) -> &Bytes {
        &self.content
    }

    /// Whether a search takes it for binary.
    fn is_binary(&self) -> bool {
        *self.is_binary.get_or_init(|| vfs_search::is_binary(&self.content))
    }

    /// What searches remember of its content.
    pub(crate) fn sketch(&self) -> Option<&Sketch> {
        self.sketch.get()
    }

    /// The content for a search, which learns it where it is not the first one.
    pub(crate) fn opened(self: &Arc<Self>) -> Opened {
        let is_first = self.is_binary.get().is_none();
        let learn = (!is_first && self.sketch.get().is_none()).then(|| {
            let file = Arc::clone(self);
            Box::new(move |sketch| drop(file.sketch.set(sketch))) as Learn
        });
        Opened::Bytes { bytes: self.content.clone(), is_binary: Some(self.is_binary()), learn }
    }

    pub(crate) fn size(&self) -> u64 {
        self.content.len() as u64
    }

    /// The first half of the content's hash: equal versions mean equal content, in this process and in any other.
    pub(crate) fn version(&self) -> &Version {
        self.version.get_or_init(|| Version::new(&blake3::hash(&self.content).to_hex()[..32]))
    }

    /// This file as an entry at `path`.
    pub(crate) fn info(&self, path: VfsPath) -> FileInfo {
        FileInfo::file(path, self.size(), self.version().clone())
            .modified_at(self.modified_at)
            .created_at(self.created_at)
    }

    /// This file as an agent's state holds it.
    pub(crate) fn to_data(&self) -> FileData {
        match self.format {
            StateFormat::Text => FileData::text(&self.content, self.created_at, self.modified_at),
            StateFormat::Lines => FileData::lines(&self.content, self.created_at, self.modified_at),
        }
    }
}

/// Versions are left out: they follow from the content.
impl PartialEq for File {
    fn eq(&self, other: &Self) -> bool {
        (self.created_at, self.modified_at, self.format) == (other.created_at, other.modified_at, other.format)
            && self.content == other.content
    }
}

impl Eq for File {}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("size", &self.content.len())
            .field("modified_at", &self.modified_at)
            .finish_non_exhaustive()
    }
}
