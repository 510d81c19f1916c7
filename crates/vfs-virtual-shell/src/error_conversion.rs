//! Conversion of backend errors to errors of the interpreter.

use std::io;

use vfs_core::{Error, ErrorKind};

/// Converts `error` to an error with the C library's words, if there are some for its kind.
pub(crate) fn shell_error(error: &Error) -> bashkit::Error {
    let with = |kind, text: &str| bashkit::Error::Io(io::Error::new(kind, text.to_owned()));
    // For these kinds the message adds to the usual words.
    let why = |kind, text: &str| with(kind, &format!("{text} ({})", error.message()));
    match error.kind() {
        ErrorKind::NotFound => with(io::ErrorKind::NotFound, "No such file or directory"),
        ErrorKind::AlreadyExists => with(io::ErrorKind::AlreadyExists, "File exists"),
        // The interpreter recognises this error by its text.
        ErrorKind::IsADirectory => with(io::ErrorKind::IsADirectory, "is a directory"),
        ErrorKind::NotADirectory => with(io::ErrorKind::NotADirectory, "Not a directory"),
        ErrorKind::NotEmpty => with(io::ErrorKind::DirectoryNotEmpty, "Directory not empty"),
        ErrorKind::PermissionDenied => with(io::ErrorKind::PermissionDenied, "Permission denied"),
        ErrorKind::PolicyDenied | ErrorKind::ApprovalRequired | ErrorKind::PathEscape => {
            why(io::ErrorKind::PermissionDenied, "Permission denied")
        }
        ErrorKind::InvalidPath | ErrorKind::InvalidArgument => why(io::ErrorKind::InvalidInput, "Invalid argument"),
        ErrorKind::TooLarge => with(io::ErrorKind::FileTooLarge, "File too large"),
        ErrorKind::QuotaExceeded => why(io::ErrorKind::QuotaExceeded, "Disk quota exceeded"),
        ErrorKind::StorageFull => with(io::ErrorKind::StorageFull, "No space left on device"),
        ErrorKind::CrossBackend => with(io::ErrorKind::CrossesDevices, "Invalid cross-device link"),
        ErrorKind::Busy => with(io::ErrorKind::ResourceBusy, "Device or resource busy"),
        ErrorKind::Unsupported => why(io::ErrorKind::Unsupported, "Operation not supported"),
        ErrorKind::Timeout => with(io::ErrorKind::TimedOut, "Connection timed out"),
        ErrorKind::Cancelled => with(io::ErrorKind::Other, "Operation canceled"),
        // These messages are for operators and may name a server.
        ErrorKind::Unavailable | ErrorKind::Internal => with(io::ErrorKind::Other, "Input/output error"),
        _ => why(io::ErrorKind::Other, "Input/output error"),
    }
}

/// Returns the error of an operation that the file system lacks.
pub(crate) fn unsupported_error() -> bashkit::Error {
    io::Error::new(io::ErrorKind::Unsupported, "Operation not supported").into()
}
