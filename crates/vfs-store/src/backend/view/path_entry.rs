//! Entries at paths: a file, or a directory that the paths of files imply.

use vfs_core::{FileInfo, VfsPath};

use crate::store::StoredMeta;

/// Entry at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathEntry {
    File(StoredMeta),
    Directory,
}

impl PathEntry {
    /// Returns the information about this entry at `path`.
    pub(crate) fn info(&self, path: VfsPath) -> FileInfo {
        match self {
            PathEntry::File(stored) => file_info(path, stored),
            PathEntry::Directory => FileInfo::directory(path),
        }
    }
}

/// Returns the information about a file at `path`.
pub(crate) fn file_info(path: VfsPath, stored: &StoredMeta) -> FileInfo {
    FileInfo::file(path, stored.size, stored.version.clone())
        .modified_at(stored.modified_at)
        .created_at(stored.created_at)
}

/// Returns the directories above `path`, nearest first, without the root.
pub(crate) fn above(path: &VfsPath) -> impl Iterator<Item = VfsPath> + use<> {
    std::iter::successors(path.parent(), VfsPath::parent).filter(|path| !path.is_root())
}
