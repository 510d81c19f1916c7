//! Checks of the source and target of a rename or copy, and the path that an error is about.

use rustix::fs::FileType;
use vfs_core::transfer::TransferTargetMode;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::fs::entry_location::EntryLocation;
use crate::fs::errno::{from_errno, from_errno_at};
use crate::fs::metadata::special_file_error;

/// Returns the error for two spellings of one entry, such as by way of a link to its directory.
pub(crate) fn same_path_error() -> Error {
    Error::invalid_argument("source and target are the same entry")
}

/// Returns the type of the entry at the source, if it can be renamed or copied.
pub(crate) fn check_source(entry: &EntryLocation, path: &VfsPath) -> Result<FileType> {
    match entry.file_type().map_err(|errno| from_errno_at(errno, path))? {
        None => Err(Error::not_found(path)),
        Some(kind @ (FileType::RegularFile | FileType::Directory | FileType::Symlink)) => Ok(kind),
        Some(_) => Err(special_file_error().with_path(path)),
    }
}

/// Returns the type of the entry that is to be replaced at the target, or `None` if nothing exists there. Fails if the
/// entry must not be replaced.
pub(crate) fn check_target(
    target: &EntryLocation,
    source: FileType,
    mode: TransferTargetMode,
) -> Result<Option<FileType>> {
    let Some(existing) = target.file_type().map_err(from_errno)? else {
        return Ok(None);
    };
    if mode != TransferTargetMode::Overwrite {
        return Err(Error::of(ErrorKind::AlreadyExists));
    }
    match (source, existing) {
        (FileType::Directory, FileType::Directory) => {}
        (FileType::Directory, _) => return Err(Error::of(ErrorKind::NotADirectory)),
        (_, FileType::Directory) => return Err(Error::of(ErrorKind::IsADirectory)),
        (_, FileType::RegularFile) => target.check_writable().map_err(from_errno)?,
        (_, FileType::Symlink) => {}
        _ => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "the target is a FIFO, socket or device; choose another target",
            ));
        }
    }
    Ok(Some(existing))
}

/// Attaches the path that a failure is about: the target if something there prevents the operation, otherwise the
/// source.
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
