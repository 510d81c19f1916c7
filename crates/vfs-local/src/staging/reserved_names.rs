//! Reserved names: what is under way stands under one, out of every listing.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::{ErrorKind, Result};

use crate::fs::entry::Entry;
use crate::fs::errno::from_errno;
use crate::fs::remove_tree::remove_staged;
use crate::fs::root::{RESERVED_PREFIX, Root};
use crate::fs::syscall_probes::is_flock_refused;

/// A file or link under a reserved name, which is removed again unless it becomes an entry.
#[derive(Debug)]
pub(crate) struct ReservedName(Entry);

impl ReservedName {
    /// Takes care of `reserved`, which has come into being.
    pub(crate) fn new(reserved: Entry) -> Self {
        Self(reserved)
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.0
    }

    /// Renames it to `entry`, over what is there.
    pub(crate) fn rename_to(self, entry: &Entry) -> io::Result<()> {
        fs::renameat(&self.0.parent, &self.0.name, &entry.parent, &entry.name)
    }
}

impl Drop for ReservedName {
    fn drop(&mut self) {
        // A failure leaves a file that no listing shows.
        let _removed = fs::unlinkat(&self.0.parent, &self.0.name, AtFlags::empty());
    }
}

/// Puts something under the one reserved name that `entry` has, or under another where that is in use.
///
/// What is put there must be locked with [`lock_against_cleanup`] before, and stay so while it is there: an unlocked file or
/// directory under that name was left by a process that died, and is removed. If a filter refuses
/// `flock`, the name is unique instead.
pub(crate) fn create_reserved(
    root: &Root,
    entry: &Entry,
    mut create: impl FnMut(&Entry) -> io::Result<()>,
) -> Result<Entry> {
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

/// Puts something under a reserved name that nothing else has.
pub(crate) fn create_unique_reserved(entry: &Entry, mut create: impl FnMut(&Entry) -> io::Result<()>) -> Result<Entry> {
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

/// Locks a file or directory that is to stand under a reserved name, so that no other process takes it for a leftover.
pub(crate) fn lock_against_cleanup(fd: &OwnedFd) -> io::Result<()> {
    match fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
        // Where there are no locks, nobody can find this one missing: a leftover is one that can be locked.
        Err(
            Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL | Errno::BADF | Errno::PERM,
        ) => Ok(()),
        locked => locked,
    }
}

/// Removes what a dead process left. Only who holds its lock removes it, so that two do not remove one another's.
pub(crate) fn remove_leftover(root: &Root, reserved: &Entry) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let leftover = match fs::openat(&reserved.parent, &reserved.name, flags, Mode::empty()) {
        Ok(leftover) => leftover,
        // A link cannot be locked, and holds nothing: whoever is about to remove it finds it gone.
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

/// Whether something was removed, by whomever.
fn ignore_not_found(removed: Result<()>) -> Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The same for a name in every process and every version of this library (the 64-bit FNV-1a hash).
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
