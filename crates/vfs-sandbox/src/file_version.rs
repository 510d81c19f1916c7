//! Version of a file of the host, from its metadata.

use std::path::Path;

use rustix::fs::Stat;

/// Version of a file, from its metadata. Any change of the content changes the version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileVersion {
    device: u64,
    inode: u64,
    bytes: i64,
    mode: u32,
    owner: u32,
    modified: (i64, u64),
    /// Time of the last change, which no process can set.
    changed: (i64, u64),
}

impl FileVersion {
    /// Returns the version of the file at `path`, following links.
    pub(crate) fn at(path: impl AsRef<Path>) -> Option<Self> {
        rustix::fs::stat(path.as_ref()).ok().as_ref().map(Self::from)
    }
}

impl From<&Stat> for FileVersion {
    fn from(status: &Stat) -> Self {
        Self {
            device: status.st_dev,
            inode: status.st_ino,
            bytes: status.st_size,
            mode: status.st_mode,
            owner: status.st_uid,
            modified: (status.st_mtime, status.st_mtime_nsec),
            changed: (status.st_ctime, status.st_ctime_nsec),
        }
    }
}
