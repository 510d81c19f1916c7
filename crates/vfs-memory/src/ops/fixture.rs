//! Small maps for the tests of the operations.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use vfs_core::VfsPath;

use crate::config::{MemoryConfig, MutationContext};
use crate::file_map::FileMap;
use crate::memory_file::{MemoryFile, StateContentFormat};

/// Creation time of the files of [`map`].
pub(super) const CREATED_AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

pub(super) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

pub(super) fn file(content: &str) -> MemoryFile {
    MemoryFile::new(content.to_owned().into(), CREATED_AT, StateContentFormat::Text)
}

pub(super) fn map(files: &[(&str, &str)]) -> FileMap {
    let mut map = FileMap::default();
    map.apply(files.iter().map(|(at, content)| (path(at), Some(Arc::new(file(content))))).collect());
    map
}

/// Returns the rules one hour after the files were created.
pub(super) fn rules(config: &MemoryConfig) -> MutationContext<'_> {
    MutationContext { now: CREATED_AT + TimeDelta::hours(1), config, format: StateContentFormat::Text }
}

/// Returns every path with its content.
pub(super) fn contents(map: &FileMap) -> Vec<(String, String)> {
    map.iter().map(|(path, file)| (path.to_string(), String::from_utf8_lossy(file.content()).into_owned())).collect()
}
