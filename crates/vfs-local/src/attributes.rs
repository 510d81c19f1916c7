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
    let has_group = keep_owner(from, to)?;
    keep_extended(from.fd.as_fd(), to)?;
    let mode = from.metadata.mode() & KEPT_MODE;
    // What was for one group is not for another: that gets what everybody has.
    let mode = if has_group { mode } else { mode & (!0o070 | (mode & 0o007) << 3) };
    fs::fchmod(to, Mode::from_raw_mode(mode)).map_err(error)
}

/// Gives `to` the owner of `from`, and says whether it has its group, too: a user can give files to their own groups only.
fn keep_owner(from: &HeldFile, to: BorrowedFd<'_>) -> Result<bool> {
    let (owner, mine) = (from.metadata.owner(), Metadata::of(to).map_err(error)?.owner());
    if owner == mine {
        return Ok(true);
    }
    match fs::fchown(to, Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1))) {
        Ok(()) => Ok(true),
        Err(Errno::PERM) if owner.0 == mine.0 => Ok(false),
        Err(Errno::PERM) => Err(Error::new(
            ErrorKind::PermissionDenied,
            "the file belongs to another user, and replacing it would take it from them",
        )),
        Err(errno) => Err(error(errno)),
    }
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
