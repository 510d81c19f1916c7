//! A program as it was when it was trusted: a copy in memory that nobody can change.
#![expect(unsafe_code, reason = "no crate closes a descriptor that was inherited by its number")]

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

/// A copy of the program at `path`.
pub(crate) fn copy(path: &Path) -> io::Result<OwnedFd> {
    let program = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let copy = match memfd_create("vfs-confine", flags | MemfdFlags::EXEC) {
        // Before Linux 6.3 there was no need to say so.
        Err(Errno::INVAL) => memfd_create("vfs-confine", flags),
        made => made,
    };
    let mut copy = File::from(copy?);
    io::copy(&mut File::from(program), &mut copy)?;
    fcntl_add_seals(&copy, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(copy.into())
}

/// Where a process that has inherited a copy under `number` finds it.
pub(crate) fn path(number: i32) -> String {
    format!("/proc/self/fd/{number}")
}

/// Closes what this process was started from, so that what it becomes does not inherit it.
pub(crate) fn close(number: i32) -> io::Result<()> {
    // SAFETY: the descriptor was inherited, so that nothing in this process owns it.
    if unsafe { libc::close(number) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
