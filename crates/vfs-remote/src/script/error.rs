//! Classification of tool diagnostics and script failures as errors.

use std::fmt;

use bytes::Bytes;
use vfs_core::error::PathFault;
use vfs_core::{Error, ErrorKind, VfsPath};

use crate::exec::RemoteExit;
use crate::script::entry_metadata::special_file;

/// Error messages of tools, in the words of glibc and of musl, with their kinds.
const MESSAGES: &[(&str, ErrorKind)] = &[
    ("No such file or directory", ErrorKind::NotFound),
    ("nonexistent directory", ErrorKind::NotFound),
    ("Directory nonexistent", ErrorKind::NotFound),
    ("File exists", ErrorKind::AlreadyExists),
    ("Is a directory", ErrorKind::IsADirectory),
    ("Not a directory", ErrorKind::NotADirectory),
    ("Directory not empty", ErrorKind::NotEmpty),
    ("Permission denied", ErrorKind::PermissionDenied),
    ("Operation not permitted", ErrorKind::PermissionDenied),
    ("Read-only file system", ErrorKind::PermissionDenied),
    ("Disk quota exceeded", ErrorKind::QuotaExceeded),
    ("Quota exceeded", ErrorKind::QuotaExceeded),
    ("No space left", ErrorKind::StorageFull),
    ("File too large", ErrorKind::TooLarge),
    ("ile name too long", ErrorKind::InvalidPath),
    ("ilename too long", ErrorKind::InvalidPath),
    ("Too many levels of symbolic links", ErrorKind::InvalidPath),
    ("Symbolic link loop", ErrorKind::InvalidPath),
    ("esource busy", ErrorKind::Busy),
    ("Text file busy", ErrorKind::Busy),
    ("Too many open files", ErrorKind::Busy),
    ("Resource temporarily unavailable", ErrorKind::Busy),
    ("Cannot fork", ErrorKind::Busy),
    ("Not supported", ErrorKind::Unsupported),
    ("not supported", ErrorKind::Unsupported),
    ("not found", ErrorKind::Unsupported),
    ("Input/output error", ErrorKind::Unavailable),
    ("I/O error", ErrorKind::Unavailable),
    ("Argument list too long", ErrorKind::TooLarge),
];

/// Returns whether a concurrent change overtook an operation, so that the operation may start again.
pub(crate) fn is_overtaken(label: &[u8], stderr: &[u8]) -> bool {
    // `NotFound` means that a directory was removed after the script had entered it.
    matches!(label, b"again" | b"raced") || (label == b"os" && kind_of(stderr) == Some(ErrorKind::NotFound))
}

/// Returns the error at `path` for a failure that the script reported as `label`.
pub(crate) fn labelled(label: &[u8], stderr: &Bytes, path: &VfsPath) -> Error {
    let at = |kind| Error::at(kind, path);
    let with_message = |kind, message: &'static str| Error::new(kind, message).with_path(path);
    match label {
        b"missing" => Error::not_found(path),
        b"notdir" | b"notdirto" => at(ErrorKind::NotADirectory),
        b"isdir" | b"isdirto" => at(ErrorKind::IsADirectory),
        b"exists" | b"existsto" => Error::already_exists(path),
        b"notempty" => at(ErrorKind::NotEmpty),
        b"denied" => at(ErrorKind::PermissionDenied),
        b"fixed" => with_message(
            ErrorKind::PermissionDenied,
            "nothing may be removed from this directory: permission denied; nothing was deleted",
        ),
        b"escape" => at(ErrorKind::PathEscape),
        b"loop" => PathFault::LinkLoop.error().with_path(path),
        b"special" => special_file().with_path(path),
        b"linked" => Error::invalid_argument("a directory or link has no version to expect").with_path(path),
        b"same" => Error::invalid_argument("source and target are the same").with_path(path),
        b"inside" => Error::invalid_argument("a directory cannot be put into itself").with_path(path),
        b"large" => at(ErrorKind::TooLarge),
        b"outrun" => with_message(
            ErrorKind::Conflict,
            "the change was made, but the file was changed or removed right after; read it before the next change",
        ),
        b"busy" | b"again" | b"raced" => {
            with_message(ErrorKind::Busy, "another change of the same file or its directories is in the way; try again")
        }
        b"cut" => with_message(
            ErrorKind::Unavailable,
            "the content did not arrive complete in the sandbox; nothing was changed",
        ),
        b"noroot" => with_message(
            ErrorKind::Unavailable,
            "the root directory of the sandbox does not exist, or is not accessible",
        ),
        _ => tool_error(stderr, path),
    }
}

/// Returns the error that the tools of the place printed.
fn tool_error(stderr: &Bytes, path: &VfsPath) -> Error {
    let error = match kind_of(stderr) {
        Some(ErrorKind::NotFound) => return Error::not_found(path),
        Some(ErrorKind::Unsupported) => Error::new(
            ErrorKind::Unsupported,
            "a program that the operation needs is missing in the sandbox, or lacks a feature",
        ),
        Some(ErrorKind::InvalidPath) if !contains(stderr, "name too long") => PathFault::LinkLoop.error(),
        Some(ErrorKind::InvalidPath) => {
            Error::new(ErrorKind::InvalidPath, "the name is too long for the file system; use a shorter one")
        }
        Some(ErrorKind::PermissionDenied) if contains(stderr, "Read-only file system") => {
            Error::new(ErrorKind::PermissionDenied, "the file system is read-only")
        }
        Some(kind) => Error::of(kind),
        None => Error::new(ErrorKind::Unavailable, "a command of the operation failed in the sandbox"),
    };
    error.with_path(path).with_source(StderrExcerpt::of(stderr))
}

/// Returns whether `stderr` contains `message`, which distinguishes errors of one kind.
fn contains(stderr: &[u8], message: &str) -> bool {
    String::from_utf8_lossy(stderr).contains(message)
}

/// Returns whether a failed listing lacks only entries that were removed meanwhile or may not be read.
pub(crate) fn only_gaps(stderr: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stderr);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| matches!(kind_of(line.as_bytes()), Some(ErrorKind::NotFound | ErrorKind::PermissionDenied)))
}

/// Returns the kind of the last error in `stderr`.
pub(crate) fn kind_of(stderr: &[u8]) -> Option<ErrorKind> {
    let text = String::from_utf8_lossy(stderr);
    text.lines()
        .rev()
        .find_map(|line| {
            // The message is at the end of the line, after a name that may contain any text.
            let at = |message: &str| line.rfind(message);
            MESSAGES.iter().filter_map(|(message, kind)| Some((at(message)?, *kind))).max_by_key(|found| found.0)
        })
        .map(|found| found.1)
}

/// Returns the error for a script whose response did not arrive complete.
pub(crate) fn unanswered(exit: RemoteExit, stderr: &Bytes) -> Error {
    let error = match exit {
        RemoteExit::TimedOut => {
            Error::new(ErrorKind::Timeout, "the sandbox took too long to answer; the request may have been carried out")
        }
        RemoteExit::Signalled(signal) => Error::new(
            ErrorKind::Unavailable,
            format!("the shell of the sandbox was ended by signal {signal} before it had answered"),
        ),
        RemoteExit::Exited(code @ (126 | 127)) => Error::new(
            ErrorKind::Unavailable,
            format!("the sandbox could not run a shell, or a tool that it needs (exit code {code})"),
        ),
        RemoteExit::Exited(code) => Error::new(
            ErrorKind::Unavailable,
            format!(
                "the answer of the sandbox was cut short (exit code {code}); the request may have been carried out"
            ),
        ),
    };
    error.with_source(StderrExcerpt::of(stderr))
}

/// The end of the standard error of a script, for operators.
#[derive(Debug)]
struct StderrExcerpt(String);

/// Maximum size of the excerpt, in bytes.
const MAX_EXCERPT_BYTES: usize = 500;

impl StderrExcerpt {
    fn of(stderr: &Bytes) -> Self {
        let start = stderr.len().saturating_sub(MAX_EXCERPT_BYTES);
        Self(String::from_utf8_lossy(&stderr[start..]).trim().to_owned())
    }
}

impl fmt::Display for StderrExcerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "nothing was printed to standard error" } else { &self.0 })
    }
}

impl std::error::Error for StderrExcerpt {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_tools_are_classified() {
        for (stderr, expected) in [
            ("cat: ./a: No such file or directory\n", Some(ErrorKind::NotFound)),
            ("sh: 1: cannot create ./a: Permission denied", Some(ErrorKind::PermissionDenied)),
            ("sh: 1: cannot create ./x/a: Directory nonexistent", Some(ErrorKind::NotFound)),
            ("sh: 3: stat: not found", Some(ErrorKind::Unsupported)),
            ("mv: cannot move './a' to './Is a directory': Directory not empty", Some(ErrorKind::NotEmpty)),
            ("cat: write error: No space left on device\n12+0 records in\n", Some(ErrorKind::StorageFull)),
            ("banner: File exists\ncat: ./a: Input/output error\n", Some(ErrorKind::Unavailable)),
            ("cp: './a': Symbolic link loop", Some(ErrorKind::InvalidPath)),
            ("1+0 records in\n", None),
            ("", None),
        ] {
            assert_eq!(kind_of(stderr.as_bytes()), expected, "{stderr}");
        }
    }

    #[test]
    fn a_file_system_that_is_read_only_is_named_as_the_cause() {
        let path = VfsPath::parse("/a").expect("a path");
        let error = labelled(b"os", &Bytes::from_static(b"touch: ./a: Read-only file system"), &path);
        assert_eq!(error.to_string(), "permission_denied: /a: the file system is read-only");
    }

    #[test]
    fn a_loop_of_links_is_distinguished_from_a_name_that_is_too_long() {
        let path = VfsPath::parse("/a").expect("a path");
        for (stderr, expected) in [
            ("cp: './a': Too many levels of symbolic links", "loop"),
            ("cp: './a': Symbolic link loop", "loop"),
            ("touch: ./a: File name too long", "shorter"),
        ] {
            let error = labelled(b"os", &Bytes::from_static(stderr.as_bytes()), &path);
            assert_eq!(error.kind(), ErrorKind::InvalidPath);
            assert!(error.message().contains(expected), "{stderr}: {error}");
        }
    }

    #[test]
    fn a_failure_names_the_callers_path_and_no_other() {
        let path = VfsPath::parse("/a").expect("a path");
        for label in ["missing", "notdir", "os", "escape", "raced", "noroot", "nonsense"] {
            let stderr = Bytes::from_static(b"mv: /srv/secret/a: Operation not permitted");
            let error = labelled(label.as_bytes(), &stderr, &path);
            assert_eq!(error.path(), Some("/a"));
            assert!(!error.for_model().contains("secret") && !error.to_string().contains("secret"), "{error}");
        }
    }
}
