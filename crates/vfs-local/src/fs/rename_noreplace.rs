//! A rename that replaces nothing.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{self, RenameFlags};
use rustix::io::{self, Errno};

use super::entry::{Entry, file_type_at};

/// Renames `from` to `to` where nothing is, in one step.
pub(crate) fn rename_new(from: &Entry, to: &Entry) -> io::Result<()> {
    rename_new_at((from.parent.as_fd(), from.name.as_bytes()), (to.parent.as_fd(), to.name.as_bytes()))
}

/// As [`rename_new`], of names in directories.
pub(crate) fn rename_new_at(from: (BorrowedFd<'_>, &[u8]), to: (BorrowedFd<'_>, &[u8])) -> io::Result<()> {
    match fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // A file system without this flag, or a filter of system calls that refuses it: looking first leaves a gap, which is the
        // best that they offer.
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => match file_type_at(to.0, to.1)? {
            None => fs::renameat(from.0, from.1, to.0, to.1),
            Some(_) => Err(Errno::EXIST),
        },
        renamed => renamed,
    }
}
