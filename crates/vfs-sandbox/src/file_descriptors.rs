//! Identity, path and duplicates of open files.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use rustix::fs::Stat;
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, Result};

/// Returns whether both statuses are those of the same file.
pub(crate) fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Returns the path of an open file on the host.
pub(crate) fn path_of(file: &OwnedFd) -> std::result::Result<PathBuf, Errno> {
    let path = rustix::fs::readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(path.into_bytes())))
}

/// Returns the error for a process that cannot open enough files to start a command.
pub(crate) fn few_descriptors() -> Error {
    let message = "too few file descriptors are left to start a command; close files, or raise the limit (ulimit -n)";
    Error::new(ErrorKind::Busy, message)
}

/// Returns another descriptor of the same open file.
pub(crate) fn duplicate(file: &OwnedFd) -> Result<OwnedFd> {
    file.try_clone().map_err(|source| few_descriptors().with_source(source))
}
