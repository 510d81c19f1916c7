//! Translation of IO errors from readers.

use std::io;

use vfs_core::{Error, ErrorKind};

/// Converts the error of a failed read to one whose message names no host path.
pub(crate) fn read_error(error: io::Error) -> Error {
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        return inner.clone();
    }
    let (kind, message) = match error.kind() {
        io::ErrorKind::NotFound => (ErrorKind::NotFound, "the file no longer exists"),
        io::ErrorKind::PermissionDenied => (ErrorKind::PermissionDenied, "permission denied"),
        io::ErrorKind::IsADirectory => (ErrorKind::IsADirectory, "the path is a directory"),
        _ => (ErrorKind::Unavailable, "the file could not be read"),
    };
    Error::new(kind, message).with_source(error)
}
