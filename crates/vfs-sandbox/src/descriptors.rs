//! Identity, path and number of open files.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use rustix::fs::Stat;
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, Result};

/// Whether both are one file.
pub(crate) fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Where the host has what is held open.
pub(crate) fn place(held: &OwnedFd) -> std::result::Result<PathBuf, Errno> {
    let number = held.as_fd().as_raw_fd();
    let place = rustix::fs::readlink(format!("/proc/self/fd/{number}"), Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(place.into_bytes())))
}

/// Returns the error for a process that cannot open enough files to start a command.
pub(crate) fn few_descriptors() -> Error {
    let message = "too few file descriptors are left to start a command; close files, or raise the limit (ulimit -n)";
    Error::new(ErrorKind::Busy, message)
}

/// Returns another descriptor of the same open file.
pub(crate) fn duplicate(held: &OwnedFd) -> Result<OwnedFd> {
    held.try_clone().map_err(|source| few_descriptors().with_source(source))
}
