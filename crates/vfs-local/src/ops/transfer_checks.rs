//! The two ends of a rename or copy: what may be taken, what may be replaced, and which of them a failure is about.

use rustix::fs::FileType;
use vfs_core::{Error, ErrorKind, Result, TransferMode, VfsPath};

use crate::fs::entry::Entry;
use crate::fs::errno::{from_errno, from_errno_at};
use crate::fs::metadata::special_file_error;

/// Two spellings of one entry, by way of a link to its directory.
pub(crate) fn same_path_error() -> Error {
    Error::invalid_argument("source and target are the same")
}

/// What stands at `entry`, if it is something that can be renamed or copied.
pub(crate) fn check_source(entry: &Entry, path: &VfsPath) -> Result<FileType> {
    match entry.file_type().map_err(|errno| from_errno_at(errno, path))? {
        None => Err(Error::not_found(path)),
        Some(kind @ (FileType::RegularFile | FileType::Directory | FileType::Symlink)) => Ok(kind),
        Some(_) => Err(special_file_error().with_path(path)),
    }
}

/// What stands at the target and is to be replaced, or why it must not be.
pub(crate) fn check_target(target: &Entry, source: FileType, mode: TransferMode) -> Result<Option<FileType>> {
    let Some(existing) = target.file_type().map_err(from_errno)? else {
        return Ok(None);
    };
    if mode != TransferMode::Overwrite {
        return Err(Error::of(ErrorKind::AlreadyExists));
    }
    match (source, existing) {
        (FileType::Directory, FileType::Directory) => {}
        (FileType::Directory, _) => return Err(Error::of(ErrorKind::NotADirectory)),
        (_, FileType::Directory) => return Err(Error::of(ErrorKind::IsADirectory)),
        (_, FileType::RegularFile) => target.check_writable().map_err(from_errno)?,
        (_, FileType::Symlink) => {}
        _ => return Err(Error::new(ErrorKind::Unsupported, "the target is a FIFO, socket or device; name another")),
    }
    Ok(Some(existing))
}

/// Names the end that a failure is about: the target for what stands in its way, else the source.
pub(crate) fn attach_path(failure: Error, from: &VfsPath, to: &VfsPath) -> Error {
    match failure.kind() {
        ErrorKind::AlreadyExists => Error::already_exists(to),
        ErrorKind::IsADirectory | ErrorKind::NotADirectory | ErrorKind::NotEmpty | ErrorKind::StorageFull => {
            failure.or_path(to)
        }
        ErrorKind::PathEscape if failure.path().is_none() => Error::at(ErrorKind::CrossBackend, to),
        _ => failure.or_path(from),
    }
}
