//! What a file keeps when its content is replaced: owner, mode, access control lists and extended attributes.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{self, Gid, Mode, Uid, XattrFlags};
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, Result};

use crate::errno::error;
use crate::lock::HeldFile;
use crate::metadata::Metadata;

/// Set-user-id and set-group-id go, as they do on any write: new content must not run with the old content's rights.
const KEPT_MODE: u32 = 0o1777;

/// An attribute that the kernel drops from any file that is written.
const CAPABILITY: &[u8] = b"security.capability";

/// The access control list of a file.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Gives the new file `to` what `from` has beside its content.
pub(crate) fn keep(from: &HeldFile, to: BorrowedFd<'_>) -> Result<()> {
    let owner = from.metadata.owner();
    let mine = Metadata::of(to).map_err(error)?.owner();
    if owner != mine {
        fs::fchown(to, Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1))).map_err(|errno| match errno {
            Errno::PERM => Error::new(
                ErrorKind::PermissionDenied,
                "the file belongs to another user, and replacing it would take it from them",
            ),
            errno => error(errno),
        })?;
    }
    keep_extended(from.fd.as_fd(), to)?;
    fs::fchmod(to, Mode::from_raw_mode(from.metadata.mode() & KEPT_MODE)).map_err(error)
}

fn keep_extended(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<()> {
    let names = match read_whole(|buffer| fs::flistxattr(from, buffer)) {
        Ok(names) => names,
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(errno) => return Err(error(errno)),
    };
    // A new file takes its directory's default list, which the old one need not have had.
    match fs::fremovexattr(to, ACCESS_LIST) {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(error(errno)),
    }
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty() && *name != CAPABILITY) {
        let value = match read_whole(|buffer| fs::fgetxattr(from, name, buffer)) {
            Ok(value) => value,
            // It went away, or is not ours to read.
            Err(Errno::NODATA | Errno::ACCESS | Errno::PERM) => continue,
            Err(errno) => return Err(error(errno)),
        };
        match fs::fsetxattr(to, name, &value, XattrFlags::empty()) {
            Ok(()) => {}
            // The system's own labels are set by its policy, not by us.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::ACCESS) if !name.starts_with(b"user.") => {}
            Err(errno) => return Err(error(errno)),
        }
    }
    Ok(())
}

/// Reads a list or value, both of which the kernel bounds at 64 KiB.
fn read_whole(call: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> rustix::io::Result<Vec<u8>> {
    let mut buffer = vec![0; 1 << 10];
    loop {
        match call(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < 64 << 10 => buffer.resize(64 << 10, 0),
            Err(errno) => return Err(errno),
        }
    }
}
