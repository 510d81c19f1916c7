//! Renames that never replace an existing entry.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{self, RenameFlags};
use rustix::io::{self, Errno};

use super::entry_location::{EntryLocation, file_type_at};

/// Renames `from` to `to` atomically. Fails with `EEXIST` if something exists there.
pub(crate) fn rename_new(from: &EntryLocation, to: &EntryLocation) -> io::Result<()> {
    rename_new_at((from.parent.as_fd(), from.name.as_bytes()), (to.parent.as_fd(), to.name.as_bytes()))
}

/// As [`rename_new`], for names in open directories.
pub(crate) fn rename_new_at(from: (BorrowedFd<'_>, &[u8]), to: (BorrowedFd<'_>, &[u8])) -> io::Result<()> {
    match fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // The file system lacks this flag, or a seccomp filter refuses it. Checking first leaves a race, but nothing
        // better is available.
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => match file_type_at(to.0, to.1)? {
            None => fs::renameat(from.0, from.1, to.0, to.1),
            Some(_) => Err(Errno::EXIST),
        },
        renamed => renamed,
    }
}
