//! Translation of IO errors from readers.

use std::io;

use vfs_core::{Error, ErrorKind};

/// Converts the error of a failed read to one whose message names no host path.
pub(crate) fn read_error(error: io::Error) -> Error {
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        return inner.clone();
    }
    let converted = match error.kind() {
        io::ErrorKind::NotFound => Error::new(ErrorKind::NotFound, "the file no longer exists"),
        io::ErrorKind::PermissionDenied => Error::of(ErrorKind::PermissionDenied),
        io::ErrorKind::IsADirectory => Error::of(ErrorKind::IsADirectory),
        _ => Error::new(ErrorKind::Unavailable, "the file could not be read"),
    };
    converted.with_source(error)
}
