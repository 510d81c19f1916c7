//! Attributes that are preserved when a file is replaced: owner, mode, access control lists, xattrs.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{self, Gid, Mode, Uid, XattrFlags};
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, Result};

use crate::fs::errno::from_errno;
use crate::fs::metadata::Metadata;
use crate::staging::entry_lock::LockedFile;

/// The mode bits that a new file inherits. Set-user-id and set-group-id are cleared, as by any write: new content must
/// not run with the rights of the old content's owner.
const PRESERVED_MODE_BITS: u32 = 0o1777;

/// The attribute for file capabilities, which the kernel drops from any file that is written.
const CAPABILITY_XATTR: &[u8] = b"security.capability";

/// The attribute for a file's access control list.
const ACL_XATTR: &str = "system.posix_acl_access";

/// Copies owner, mode and extended attributes of `from` to the new file `to`.
pub(crate) fn copy_attributes(from: &LockedFile, to: BorrowedFd<'_>) -> Result<()> {
    let has_group = copy_owner(from, to)?;
    copy_extended_attributes(from.fd.as_fd(), to)?;
    let mode = from.metadata.mode() & PRESERVED_MODE_BITS;
    let mode = if has_group { mode } else { restrict_mode_for_new_group(from, mode)? };
    fs::fchmod(to, Mode::from_raw_mode(mode)).map_err(from_errno)
}

/// Returns `mode` restricted for a file that gets another group, so that nobody gains access: members of the old group
/// now have the rights of others, and members of the new group had them before.
fn restrict_mode_for_new_group(from: &LockedFile, mode: u32) -> Result<u32> {
    match fs::fgetxattr(&from.fd, ACL_XATTR, &mut [0_u8; 0]) {
        Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
        _ => {
            let message =
                "the file has an access control list and a group that is not yours, which the new file cannot get";
            return Err(Error::new(ErrorKind::PermissionDenied, message));
        }
    }
    let common = (mode >> 3) & mode & 0o007;
    Ok(mode & !0o077 | common << 3 | common)
}

/// Copies the owner of `from` to `to`, and returns whether the group was copied, too: a user can give files only to
/// their own groups.
fn copy_owner(from: &LockedFile, to: BorrowedFd<'_>) -> Result<bool> {
    let (owner, own) = (from.metadata.owner(), Metadata::from_fd(to).map_err(from_errno)?.owner());
    if owner == own {
        return Ok(true);
    }
    match fs::fchown(to, Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1))) {
        Ok(()) => Ok(true),
        // In a user namespace, a group may have no number, and `fchown` then fails with `EINVAL`.
        Err(Errno::PERM | Errno::INVAL) if owner.0 == own.0 => Ok(false),
        Err(Errno::PERM) => Err(Error::new(
            ErrorKind::PermissionDenied,
            "the file belongs to another user, and a replacement would belong to you",
        )),
        Err(errno) => Err(from_errno(errno)),
    }
}

fn copy_extended_attributes(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<()> {
    let names = match read_xattr(|buffer| fs::flistxattr(from, buffer)) {
        Ok(names) => names,
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(errno) => return Err(from_errno(errno)),
    };
    // A new file inherits the default access control list of its directory, which the old file need not have had.
    match fs::fremovexattr(to, ACL_XATTR) {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(from_errno(errno)),
    }
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty() && *name != CAPABILITY_XATTR) {
        let value = match read_xattr(|buffer| fs::fgetxattr(from, name, buffer)) {
            Ok(value) => value,
            // The attribute was removed meanwhile, or may not be read by this process.
            Err(Errno::NODATA | Errno::ACCESS | Errno::PERM) => continue,
            Err(errno) => return Err(from_errno(errno)),
        };
        match fs::fsetxattr(to, name, &value, XattrFlags::empty()) {
            Ok(()) => {}
            // The labels of the system are set by its policy, not by this library.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::ACCESS) if !name.starts_with(b"user.") => {}
            Err(errno) => return Err(from_errno(errno)),
        }
    }
    Ok(())
}

/// Reads a list or value of attributes, whose size the kernel limits to 64 KiB.
fn read_xattr(call: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> rustix::io::Result<Vec<u8>> {
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
