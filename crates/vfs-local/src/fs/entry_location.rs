//! A directory entry: an open parent directory and a name in it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::{self, Errno};

use super::errno::retry;

/// Flags of every open: the descriptor is not inherited by child processes, and no terminal becomes the controlling
/// one.
pub(super) const COMMON_FLAGS: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY);

/// An open parent directory, and the name of an entry in it.
#[derive(Debug)]
pub(crate) struct EntryLocation {
    pub(crate) parent: OwnedFd,
    pub(crate) name: String,
}

impl EntryLocation {
    /// Returns the entry with another name in the same directory.
    pub(crate) fn sibling(&self, name: String) -> io::Result<EntryLocation> {
        Ok(EntryLocation { parent: io::fcntl_dupfd_cloexec(&self.parent, 0)?, name })
    }

    /// Returns the type of the entry without following a link, or `None` if nothing exists there.
    pub(crate) fn file_type(&self) -> io::Result<Option<FileType>> {
        file_type_at(self.parent.as_fd(), self.name.as_bytes())
    }

    /// Fails if this process may not write to the entry.
    pub(crate) fn check_writable(&self) -> io::Result<()> {
        check_access(self.parent.as_fd(), &self.name, Access::WRITE_OK)
    }
}

/// Fails if this process may not use the entry `name` of `dir` for `access`.
pub(crate) fn check_access(dir: BorrowedFd<'_>, name: &str, access: Access) -> io::Result<()> {
    let check = |flags| fs::accessat(dir, name, access, flags);
    match check(AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW) {
        // `faccessat2`, which supports these flags, needs Linux 5.8, and some sandboxes refuse it. The older call
        // checks the real user instead of the effective one.
        Err(Errno::NOSYS | Errno::PERM) if has_real_ids() => check(AtFlags::empty()),
        outcome => outcome,
    }
}

/// Returns whether the effective user and group of this process, by which the kernel checks permissions, are the real
/// ones.
fn has_real_ids() -> bool {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    getuid() == geteuid() && getgid() == getegid()
}

pub(crate) fn file_type_at(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<FileType>> {
    match fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Syncs a directory that is open with `O_PATH`: such a descriptor cannot be synced itself.
pub(crate) fn sync_directory(dir: BorrowedFd<'_>) -> io::Result<()> {
    let readable = fs::openat(dir, ".", OFlags::RDONLY | OFlags::DIRECTORY | COMMON_FLAGS, Mode::empty())?;
    retry(|| fs::fsync(&readable))
}
