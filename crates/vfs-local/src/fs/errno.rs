//! Conversion of system call errors, and retries of interrupted calls.

use rustix::io::{self, Errno};
use vfs_core::error::PathFault;
use vfs_core::{Error, ErrorKind, VfsPath};

/// Upper bound on retries. Resolution fails with `EAGAIN` if a rename happens meanwhile, which an attacker who swaps
/// entries repeatedly could cause forever.
const MAX_RETRIES: usize = 128;

/// Converts `errno` to the error of an operation on `path`.
pub(crate) fn from_errno_at(errno: Errno, path: &VfsPath) -> Error {
    match errno {
        Errno::NOENT => Error::not_found(path),
        _ => from_errno(errno).with_path(path),
    }
}

/// Converts `errno` to an error without a path.
pub(crate) fn from_errno(errno: Errno) -> Error {
    let error = match classify(errno) {
        _ if errno == Errno::LOOP => PathFault::LinkLoop.error(),
        (kind, Some(message)) => Error::new(kind, message),
        (kind, None) => Error::of(kind),
    };
    error.with_source(std::io::Error::from(errno))
}

fn classify(errno: Errno) -> (ErrorKind, Option<&'static str>) {
    use ErrorKind as K;
    match errno {
        Errno::NOENT => (K::NotFound, None),
        Errno::EXIST => (K::AlreadyExists, None),
        Errno::ISDIR => (K::IsADirectory, None),
        Errno::NOTDIR => (K::NotADirectory, None),
        Errno::NOTEMPTY => (K::NotEmpty, None),
        Errno::ACCESS => {
            (K::PermissionDenied, Some("permission denied; choose another path, or have its owner or mode changed"))
        }
        // It has other causes, such as an immutable file.
        Errno::PERM => (K::PermissionDenied, None),
        Errno::ROFS => (K::PermissionDenied, Some("the file system is read-only")),
        // Resolution below the root fails with `EXDEV` if a component or link would leave it.
        Errno::XDEV => (K::PathEscape, None),
        Errno::NAMETOOLONG => (K::InvalidPath, Some("the name is too long for the file system; use a shorter one")),
        Errno::NOSPC => (K::StorageFull, None),
        Errno::DQUOT => (K::QuotaExceeded, None),
        Errno::FBIG => (
            K::TooLarge,
            Some("the file would be larger than this process (ulimit -f) or file system allows; write less"),
        ),
        Errno::OVERFLOW => (K::TooLarge, None),
        Errno::NXIO | Errno::OPNOTSUPP | Errno::NODEV | Errno::NOSYS => (K::Unsupported, None),
        Errno::BUSY | Errno::TXTBSY | Errno::AGAIN | Errno::INTR => (K::Busy, None),
        Errno::MFILE | Errno::NFILE => (K::Busy, Some("too many open files; try again")),
        Errno::INVAL => (K::InvalidArgument, Some("the file system refused the name or the operation")),
        Errno::IO | Errno::NOMEM | Errno::STALE => (K::Unavailable, None),
        _ => (K::Internal, None),
    }
}

/// Repeats a call that was interrupted by a signal or a concurrent rename, up to [`MAX_RETRIES`] times.
pub(crate) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..MAX_RETRIES {
        match call() {
            Err(Errno::INTR | Errno::AGAIN) => {}
            done => return done,
        }
    }
    call()
}
