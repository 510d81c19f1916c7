//! Reserved names for pending writes, which no listing shows, and cleanup of leftovers.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::{ErrorKind, Result};

use crate::fs::entry_location::EntryLocation;
use crate::fs::errno::from_errno;
use crate::fs::remove_tree::remove_staged;
use crate::fs::root::{RESERVED_PREFIX, Root};
use crate::fs::syscall_probes::is_flock_refused;

/// An entry under a reserved name, which is removed on drop unless it is renamed to its final name.
#[derive(Debug)]
pub(crate) struct ReservedEntry(EntryLocation);

impl ReservedEntry {
    /// Takes ownership of `reserved`, which was created before.
    pub(crate) fn new(reserved: EntryLocation) -> Self {
        Self(reserved)
    }

    pub(crate) fn entry(&self) -> &EntryLocation {
        &self.0
    }

    /// Renames the entry to `entry`, and replaces what exists there.
    pub(crate) fn rename_to(self, entry: &EntryLocation) -> io::Result<()> {
        fs::renameat(&self.0.parent, &self.0.name, &entry.parent, &entry.name)
    }
}

impl Drop for ReservedEntry {
    fn drop(&mut self) {
        // If this fails, a file remains that no listing shows.
        let _removed = fs::unlinkat(&self.0.parent, &self.0.name, AtFlags::empty());
    }
}

/// Creates an entry under the one reserved name that belongs to `entry`, or under a unique one if that is in use.
///
/// The new entry must be locked with [`lock_against_cleanup`] before, and stay locked as long as it has that name: an
/// unlocked file or directory under the name was left by a dead process, and is removed. If a seccomp filter refuses
/// `flock`, the name is unique instead.
pub(crate) fn create_reserved(
    root: &Root,
    entry: &EntryLocation,
    mut create: impl FnMut(&EntryLocation) -> io::Result<()>,
) -> Result<EntryLocation> {
    if is_flock_refused() {
        return create_unique_reserved(entry, create);
    }
    let default = entry.sibling(format!("{RESERVED_PREFIX}{:016x}", name_hash(&entry.name))).map_err(from_errno)?;
    for _ in 0..2 {
        match create(&default) {
            Ok(()) => return Ok(default),
            Err(Errno::EXIST) => remove_leftover(root, &default)?,
            Err(errno) => return Err(from_errno(errno)),
        }
    }
    create_unique_reserved(entry, create)
}

/// Creates an entry under a unique reserved name.
pub(crate) fn create_unique_reserved(
    entry: &EntryLocation,
    mut create: impl FnMut(&EntryLocation) -> io::Result<()>,
) -> Result<EntryLocation> {
    loop {
        let random = RandomState::new().build_hasher().finish();
        let reserved = entry
            .sibling(format!("{RESERVED_PREFIX}{:016x}-{random:016x}", name_hash(&entry.name)))
            .map_err(from_errno)?;
        match create(&reserved) {
            Ok(()) => return Ok(reserved),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(from_errno(errno)),
        }
    }
}

/// Locks a file or directory for a reserved name, so that no other process removes it as a leftover.
pub(crate) fn lock_against_cleanup(fd: &OwnedFd) -> io::Result<()> {
    match fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
        // If the file system has no locks, no process removes the entry as a leftover, since a leftover is an entry
        // that can be locked.
        Err(
            Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL | Errno::BADF | Errno::PERM,
        ) => Ok(()),
        locked => locked,
    }
}

/// Removes a leftover of a dead process. Only the holder of its lock removes it, so that two processes do not remove
/// each other's entries.
pub(crate) fn remove_leftover(root: &Root, reserved: &EntryLocation) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let leftover = match fs::openat(&reserved.parent, &reserved.name, flags, Mode::empty()) {
        Ok(leftover) => leftover,
        // A link cannot be locked and has no content of its own, so concurrent removals are harmless.
        Err(Errno::LOOP) => {
            return ignore_not_found(
                fs::unlinkat(&reserved.parent, &reserved.name, AtFlags::empty()).map_err(from_errno),
            );
        }
        Err(_) => return Ok(()),
    };
    match fs::flock(&leftover, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => ignore_not_found(remove_staged(root, reserved)),
        Err(_) => Ok(()),
    }
}

/// Treats `not_found` as success: the entry has been removed already.
fn ignore_not_found(removed: Result<()>) -> Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Hashes a name by 64-bit FNV-1a, with the same result in every process and every version of this library.
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
