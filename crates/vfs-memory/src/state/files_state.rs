//! Files of an agent's state, and the reducer that merges updates into them.

use std::fmt;
use std::sync::Arc;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vfs_core::state::{FileData, FilesUpdate};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::file_map::{FileMap, MapChanges};
use crate::memory_file::MemoryFile;

/// The files of an agent's state, as a runtime stores them in its checkpoints. A clone takes constant time.
///
/// # Behaviour
///
/// * In JSON it is an object from paths to files, `{"/a.txt": {"content": ["line"], "created_at": "...",
///   "modified_at": "..."}}`. The content may be a list of lines or a string; each file keeps its format. Unknown
///   fields are dropped.
/// * Contents are decoded when they are added, so every file of a state can be read.
/// * [`merge`](Self::merge) is the reducer for a runtime's `files` channel.
///
/// ```
/// use vfs_memory::FilesState;
///
/// let state: FilesState = serde_json::from_str(
///     r##"{"/README.md": {"content": ["# Project", "A test."], "created_at": "2025-01-15T10:00:00Z",
///         "modified_at": "2025-01-15T10:00:00Z"}}"##,
/// )?;
/// assert_eq!(state.len(), 1);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilesState {
    pub(super) files: FileMap,
}

impl FilesState {
    /// Returns a state without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the file at `path`.
    pub fn get(&self, path: &VfsPath) -> Option<FileData> {
        self.files.get(path).map(|file| file.to_data())
    }

    /// Returns all files, ordered by the bytes of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&VfsPath, FileData)> {
        self.files.iter().map(|(path, file)| (path, file.to_data()))
    }

    /// Adds a file at `path`, or replaces the one that is there.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if the content cannot be decoded, `is_a_directory` for the root.
    pub fn insert(&mut self, path: VfsPath, data: FileData) -> Result<()> {
        self.merge(FilesUpdate::from([(path, Some(data))]))
    }

    /// Applies `update`: the reducer of an agent's state.
    ///
    /// # Behaviour
    ///
    /// * A file replaces the one at its path; `None` deletes the file, and does nothing if there is none.
    /// * Of two updates of one path the later one wins. Merging two updates in turn equals merging [`merge_updates`]
    ///   of them.
    /// * Concurrent updates can put a file where another has a directory. Nothing is lost then: a backend shows the
    ///   file, its listing reports the directory as a problem, and the files below can be read, renamed and deleted
    ///   by their own paths.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert); the state is then unchanged.
    pub fn merge(&mut self, update: FilesUpdate) -> Result<()> {
        let change: MapChanges = update
            .into_iter()
            .map(|(path, data)| {
                let file = data.map(|data| decode(&path, &data)).transpose()?;
                Ok((path, file))
            })
            .collect::<Result<_>>()?;
        self.files.apply(change);
        Ok(())
    }

    /// Returns this state with `update` applied; see [`merge`](Self::merge).
    ///
    /// # Errors
    ///
    /// The errors of [`merge`](Self::merge).
    pub fn apply(&self, update: FilesUpdate) -> Result<Self> {
        let mut state = self.clone();
        state.merge(update)?;
        Ok(state)
    }
}

/// Returns one update with the effect of `first` and then `second`.
pub fn merge_updates(mut first: FilesUpdate, second: FilesUpdate) -> FilesUpdate {
    first.extend(second);
    first
}

fn decode(path: &VfsPath, data: &FileData) -> Result<Arc<MemoryFile>> {
    if path.is_root() {
        return Err(Error::at(ErrorKind::IsADirectory, path));
    }
    MemoryFile::from_data(path, data).map(Arc::new)
}

impl Serialize for FilesState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for FilesState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FilesStateVisitor)
    }
}

/// Deserialises the files of a state from a map.
struct FilesStateVisitor;

impl<'de> Visitor<'de> for FilesStateVisitor {
    type Value = FilesState;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object from paths to files")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<FilesState, A::Error> {
        let mut state = FilesState::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = VfsPath::parse(&key).map_err(A::Error::custom)?;
            let data: FileData =
                entries.next_value().map_err(|error| A::Error::custom(format_args!("{path:?}: {error}")))?;
            if state.files.get(&path).is_some() {
                return Err(A::Error::custom(format_args!("{path:?}: the path occurs twice")));
            }
            state.insert(path, data).map_err(A::Error::custom)?;
        }
        Ok(state)
    }
}
