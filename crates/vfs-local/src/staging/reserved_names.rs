//! Reserved names: what is under way stands under one, out of every listing.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::{self, Errno};
use vfs_core::{ErrorKind, Result};

use crate::fs::entry::Entry;
use crate::fs::errno::error;
use crate::fs::remove_tree::remove_hidden;
use crate::fs::root::{RESERVED, Root};
use crate::fs::syscall_probes::is_flock_refused;

/// A file or link under a reserved name, which is removed again unless it becomes an entry.
#[derive(Debug)]
pub(crate) struct ReservedName(Entry);

impl ReservedName {
    /// Takes care of `hidden`, which has come into being.
    pub(crate) fn of(hidden: Entry) -> Self {
        Self(hidden)
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.0
    }

    /// Renames it to `entry`, over what is there.
    pub(crate) fn become_entry(self, entry: &Entry) -> io::Result<()> {
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
/// What is put there must be locked with [`mark_alive`] before, and stay so while it is there: an unlocked file or
/// directory under that name was left by a process that died, and is removed. If a filter refuses
/// `flock`, the name is unique instead.
pub(crate) fn place_beside(
    root: &Root,
    entry: &Entry,
    mut place: impl FnMut(&Entry) -> io::Result<()>,
) -> Result<Entry> {
    if is_flock_refused() {
        return place_anywhere(entry, place);
    }
    let usual = entry.sibling(format!("{RESERVED}{:016x}", name_hash(&entry.name))).map_err(error)?;
    for _ in 0..2 {
        match place(&usual) {
            Ok(()) => return Ok(usual),
            Err(Errno::EXIST) => remove_leftover(root, &usual)?,
            Err(errno) => return Err(error(errno)),
        }
    }
    place_anywhere(entry, place)
}

/// Puts something under a reserved name that nothing else has.
pub(crate) fn place_anywhere(entry: &Entry, mut place: impl FnMut(&Entry) -> io::Result<()>) -> Result<Entry> {
    loop {
        let random = RandomState::new().build_hasher().finish();
        let hidden =
            entry.sibling(format!("{RESERVED}{:016x}-{random:016x}", name_hash(&entry.name))).map_err(error)?;
        match place(&hidden) {
            Ok(()) => return Ok(hidden),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(error(errno)),
        }
    }
}

/// Locks a file or directory that is to stand under a reserved name, so that no other process takes it for a leftover.
pub(crate) fn mark_alive(fd: &OwnedFd) -> io::Result<()> {
    match fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
        // Where there are no locks, nobody can find this one missing: a leftover is one that can be locked.
        Err(
            Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL | Errno::BADF | Errno::PERM,
        ) => Ok(()),
        locked => locked,
    }
}

/// Removes what a dead process left. Only who holds its lock removes it, so that two do not remove one another's.
pub(crate) fn remove_leftover(root: &Root, hidden: &Entry) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let left = match fs::openat(&hidden.parent, &hidden.name, flags, Mode::empty()) {
        Ok(left) => left,
        // A link cannot be locked, and holds nothing: whoever is about to remove it finds it gone.
        Err(Errno::LOOP) => {
            return is_gone(fs::unlinkat(&hidden.parent, &hidden.name, AtFlags::empty()).map_err(error));
        }
        Err(_) => return Ok(()),
    };
    match fs::flock(&left, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => is_gone(remove_hidden(root, hidden)),
        Err(_) => Ok(()),
    }
}

/// Whether something was removed, by whomever.
fn is_gone(removed: Result<()>) -> Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The same for a name in every process and every version of this library (the 64-bit FNV-1a hash).
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
