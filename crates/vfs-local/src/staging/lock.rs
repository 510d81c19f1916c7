//! One change at a time for each directory entry: within the process and, where the file system can, across processes.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{self, FileType, FlockOperation, OFlags};
use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, OpContext, Result};

use crate::config::options::HardLinks;
use crate::fs::entry::Entry;
use crate::fs::errno::error;
use crate::fs::metadata::{Metadata, special_file};
use crate::fs::root::Root;

/// The device and inode of a directory, and a name in it.
type Key = (u64, u64, String);

/// The entries that some thread of this process is changing, through whichever backend.
///
/// A std lock, held for a set operation only, never across a system call on a file or an await.
static HELD: LazyLock<(Mutex<HashSet<Key>>, Condvar)> = LazyLock::new(Default::default);

/// How long a waiting thread sleeps before it looks at its context again.
const WAIT: Duration = Duration::from_millis(20);

/// Holds one directory entry for one change.
#[derive(Debug)]
pub(crate) struct EntryLock(Key);

impl EntryLock {
    /// Waits for the entry, until `until` or the end of the context.
    pub(crate) fn acquire(entry: &Entry, cx: &OpContext, until: Instant) -> Result<Self> {
        let (device, inode) = Metadata::of(entry.parent.as_fd()).map_err(error)?.identity();
        let key = (device, inode, entry.name.clone());
        let (held, freed) = &*HELD;
        let mut guard = held.lock().unwrap_or_else(PoisonError::into_inner);
        while !guard.insert(key.clone()) {
            guard = freed.wait_timeout(guard, WAIT).unwrap_or_else(PoisonError::into_inner).0;
            cx.check()?;
            require_time(until)?;
        }
        Ok(Self(key))
    }

    /// What the entry is keyed by, to take two in one order everywhere.
    pub(crate) fn order(entry: &Entry) -> io::Result<(u64, u64, &str)> {
        let (device, inode) = Metadata::of(entry.parent.as_fd())?.identity();
        Ok((device, inode, &entry.name))
    }
}

impl Drop for EntryLock {
    fn drop(&mut self) {
        let (held, freed) = &*HELD;
        held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        freed.notify_all();
    }
}

/// What a file is held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its content is changed or replaced, for which one has to be allowed to write into it.
    Change,
    /// It is removed.
    Removal,
    /// Nothing becomes of it.
    Look,
}

/// The regular file that an entry named when it was locked, held open.
///
/// The lock is `flock`'s: advisory, and gone with the process that held it.
#[derive(Debug)]
pub(crate) struct HeldFile {
    pub(crate) fd: OwnedFd,
    pub(crate) metadata: Metadata,
    /// Whether other processes are really kept out; some network file systems cannot.
    pub(crate) exclusive: bool,
}

impl HeldFile {
    /// Opens and locks what `entry` names; `None` where nothing is there.
    ///
    /// It is opened for reading alone. To open for writing is a change to layered file systems: they make a file of their own
    /// of one that lies in a lower layer, which would no longer be what the caller has read.
    ///
    /// # Errors
    ///
    /// `is_a_directory`, `unsupported` for a FIFO, socket, device or link; `permission_denied` where the file may not be
    /// read, or, to be changed, not written, although replacing it would not need that; `busy` where another process
    /// keeps it locked.
    pub(crate) fn acquire(
        root: &Root,
        entry: &Entry,
        purpose: Purpose,
        hard_links: HardLinks,
        cx: &OpContext,
        until: Instant,
    ) -> Result<Option<Self>> {
        loop {
            cx.check()?;
            let metadata = match Metadata::at(entry.parent.as_fd(), &entry.name) {
                Ok(metadata) => metadata,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(error(errno)),
            };
            match metadata.file_type() {
                FileType::RegularFile => {}
                FileType::Directory => return Err(Error::of(ErrorKind::IsADirectory)),
                _ => return Err(special_file()),
            }
            let Some((fd, exclusive)) = open_locked(root, entry, cx, until)? else { continue };
            let metadata = Metadata::of(fd.as_fd()).map_err(error)?;
            // Whoever held the lock before may have put another file in its place.
            match Metadata::at(entry.parent.as_fd(), &entry.name) {
                Ok(now) if now.identity() == metadata.identity() => {
                    metadata.require_readable_file(hard_links)?;
                    if purpose == Purpose::Change {
                        entry.require_writable().map_err(error)?;
                    }
                    return Ok(Some(Self { fd, metadata, exclusive }));
                }
                Ok(_) | Err(Errno::NOENT) => require_time(until)?,
                Err(errno) => return Err(error(errno)),
            }
        }
    }
}

/// The file, and whether it is locked; `None` where it has gone.
fn open_locked(root: &Root, entry: &Entry, cx: &OpContext, until: Instant) -> Result<Option<(OwnedFd, bool)>> {
    let open = |access| root.open_child(entry.parent.as_fd(), entry.name.as_bytes(), access);
    let fd = match open(OFlags::RDONLY) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(error(errno)),
    };
    let fd = match lock(&fd, cx, until)? {
        Locking::Done => return Ok(Some((fd, true))),
        Locking::Impossible => return Ok(Some((fd, false))),
        Locking::NeedsWriting => fd,
    };
    match open(OFlags::RDWR) {
        Ok(writable) => {
            let locking = lock(&writable, cx, until)?;
            Ok(Some((writable, locking == Locking::Done)))
        }
        Err(Errno::NOENT) => Ok(None),
        // Who may not write it cannot lock it there; whether it may be changed is asked for otherwise.
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::TXTBSY) => Ok(Some((fd, false))),
        Err(errno) => Err(error(errno)),
    }
}

/// How a lock was asked for in vain, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Locking {
    Done,
    /// A network file system locks only what is open for writing.
    NeedsWriting,
    Impossible,
}

fn lock(fd: &OwnedFd, cx: &OpContext, until: Instant) -> Result<Locking> {
    let mut pause = Duration::from_micros(200);
    loop {
        match fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Locking::Done),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                cx.check()?;
                require_time(until)?;
                std::thread::sleep(pause);
                pause = (pause * 2).min(WAIT);
            }
            Err(Errno::BADF) => return Ok(Locking::NeedsWriting),
            // The last one is the answer of a filter of system calls.
            Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
                return Ok(Locking::Impossible);
            }
            Err(errno) => return Err(error(errno)),
        }
    }
}

fn require_time(until: Instant) -> Result<()> {
    if Instant::now() < until {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Busy, "another change of the same file is taking too long; try again"))
}
