//! Sealed copies of programs in memory, which nobody can change.
#![expect(unsafe_code, reason = "no crate closes a descriptor that was inherited by its number")]

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

/// Returns a sealed copy of the program at `path`.
pub(crate) fn copy(path: &Path) -> io::Result<OwnedFd> {
    let program = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let copy = match memfd_create("vfs-confine", flags | MemfdFlags::EXEC) {
        // Linux before 6.3 neither supports nor needs the flag.
        Err(Errno::INVAL) => memfd_create("vfs-confine", flags),
        made => made,
    };
    let mut copy = File::from(copy?);
    io::copy(&mut File::from(program), &mut copy)?;
    fcntl_add_seals(&copy, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(copy.into())
}

/// Returns the path of a descriptor that a process has inherited.
pub(crate) fn path(number: i32) -> String {
    format!("/proc/self/fd/{number}")
}

/// Closes an inherited descriptor, so that the program that this process becomes does not inherit it.
pub(crate) fn close(number: i32) -> io::Result<()> {
    // SAFETY: the descriptor was inherited, so nothing in this process owns it.
    if unsafe { libc::close(number) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
