//! Failures of the backend as a shell tells of them.

use std::io;

use vfs_core::{Error, ErrorKind};

/// `error` as an interpreter's, in the words of the C library where there are some.
pub(crate) fn told(error: &Error) -> bashkit::Error {
    let with = |kind, text: &str| bashkit::Error::Io(io::Error::new(kind, text.to_owned()));
    // Where the library knows more than the usual words say, it is told after them.
    let why = |kind, text: &str| with(kind, &format!("{text} ({})", error.message()));
    match error.kind() {
        ErrorKind::NotFound => with(io::ErrorKind::NotFound, "No such file or directory"),
        ErrorKind::AlreadyExists => with(io::ErrorKind::AlreadyExists, "File exists"),
        // The interpreter knows this one by its text.
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
        // Their messages are for operators, and may name a server.
        ErrorKind::Unavailable | ErrorKind::Internal => with(io::ErrorKind::Other, "Input/output error"),
        _ => why(io::ErrorKind::Other, "Input/output error"),
    }
}

/// What this filesystem does not do.
pub(crate) fn unsupported() -> bashkit::Error {
    io::Error::new(io::ErrorKind::Unsupported, "Operation not supported").into()
}
