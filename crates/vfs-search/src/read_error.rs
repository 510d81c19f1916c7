//! Translation of IO errors from readers.

use std::io;

use vfs_core::{Error, ErrorKind};

/// What a failed read means, in words that name no host path.
pub(crate) fn read_error(error: io::Error) -> Error {
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        return inner.clone();
    }
    let (kind, message) = match error.kind() {
        io::ErrorKind::NotFound => (ErrorKind::NotFound, "it is gone"),
        io::ErrorKind::PermissionDenied => (ErrorKind::PermissionDenied, "permission denied"),
        io::ErrorKind::IsADirectory => (ErrorKind::IsADirectory, "it is a directory"),
        _ => (ErrorKind::Unavailable, "it could not be read"),
    };
    Error::new(kind, message).with_source(error)
}
