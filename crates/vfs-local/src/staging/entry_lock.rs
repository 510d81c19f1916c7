//! Per-entry locks that serialise changes, within the process and by `flock` across processes.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{self, FileType, FlockOperation, OFlags};
use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, OpContext, Result};

use crate::config::policies::HardLinks;
use crate::fs::entry_location::EntryLocation;
use crate::fs::errno::from_errno;
use crate::fs::metadata::{Metadata, special_file_error};
use crate::fs::root::Root;

/// The device and inode of a directory, and a name in it.
type EntryKey = (u64, u64, String);

/// The entries that threads of this process are changing, through any backend.
///
/// The std lock covers a lookup or change of the set only, never a system call on a file or an await.
static LOCKED_ENTRIES: LazyLock<(Mutex<HashSet<EntryKey>>, Condvar)> = LazyLock::new(Default::default);

/// Longest sleep of a waiting thread before it checks its context again.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The lock of one directory entry for one change.
#[derive(Debug)]
pub(crate) struct InProcessEntryLock(EntryKey);

impl InProcessEntryLock {
    /// Waits for the lock until `deadline`, or until the context is cancelled or its own deadline passes.
    pub(crate) fn acquire(entry: &EntryLocation, cx: &OpContext, deadline: Instant) -> Result<Self> {
        let (device, inode) = Metadata::from_fd(entry.parent.as_fd()).map_err(from_errno)?.identity();
        let key = (device, inode, entry.name.clone());
        let (locked, released) = &*LOCKED_ENTRIES;
        let mut entries = locked.lock().unwrap_or_else(PoisonError::into_inner);
        while !entries.insert(key.clone()) {
            entries = released.wait_timeout(entries, MAX_POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
            cx.check()?;
            check_deadline(deadline)?;
        }
        Ok(Self(key))
    }

    /// Returns the key of the entry, by which two entries are locked in the same order everywhere.
    pub(crate) fn order_key(entry: &EntryLocation) -> io::Result<(u64, u64, &str)> {
        let (device, inode) = Metadata::from_fd(entry.parent.as_fd())?.identity();
        Ok((device, inode, &entry.name))
    }
}

impl Drop for InProcessEntryLock {
    fn drop(&mut self) {
        let (locked, released) = &*LOCKED_ENTRIES;
        locked.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        released.notify_all();
    }
}

/// The purpose that a file is locked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockPurpose {
    /// Its content is changed or replaced, which requires write permission.
    Change,
    /// The file is removed.
    Removal,
    /// The file is only read.
    Inspect,
}

/// The open and locked regular file of an entry.
///
/// The lock is taken by `flock`: it is advisory, and the kernel releases it when the process ends.
#[derive(Debug)]
pub(crate) struct LockedFile {
    pub(crate) fd: OwnedFd,
    pub(crate) metadata: Metadata,
    /// Whether other processes are excluded; some network file systems cannot do that.
    pub(crate) exclusive: bool,
}

impl LockedFile {
    /// Opens and locks the file of `entry`. Returns `None` if nothing exists there.
    ///
    /// The file is opened for reading only. Opening for writing changes layered file systems: they copy a file of a
    /// lower layer to the upper one, and the copy would no longer be the file that the caller has read.
    ///
    /// # Errors
    ///
    /// `is_a_directory`, `unsupported` for a FIFO, socket, device or link; `permission_denied` if the file may not be
    /// read or, for a change, not be written, although replacing it would not need that; `busy` if another process
    /// has it locked until the deadline.
    pub(crate) fn acquire(
        root: &Root,
        entry: &EntryLocation,
        purpose: LockPurpose,
        hard_links: HardLinks,
        cx: &OpContext,
        deadline: Instant,
    ) -> Result<Option<Self>> {
        loop {
            cx.check()?;
            let metadata = match Metadata::at(entry.parent.as_fd(), &entry.name) {
                Ok(metadata) => metadata,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(from_errno(errno)),
            };
            match metadata.file_type() {
                FileType::RegularFile => {}
                FileType::Directory => return Err(Error::of(ErrorKind::IsADirectory)),
                _ => return Err(special_file_error()),
            }
            let Some((fd, exclusive)) = open_and_lock(root, entry, cx, deadline)? else { continue };
            let metadata = Metadata::from_fd(fd.as_fd()).map_err(from_errno)?;
            // The previous holder of the lock may have put another file in its place.
            match Metadata::at(entry.parent.as_fd(), &entry.name) {
                Ok(now) if now.identity() == metadata.identity() => {
                    metadata.check_readable_file(hard_links)?;
                    if purpose == LockPurpose::Change {
                        entry.check_writable().map_err(from_errno)?;
                    }
                    return Ok(Some(Self { fd, metadata, exclusive }));
                }
                Ok(_) | Err(Errno::NOENT) => check_deadline(deadline)?,
                Err(errno) => return Err(from_errno(errno)),
            }
        }
    }
}

/// Opens the file, and returns whether it is locked; `None` if it was removed.
fn open_and_lock(
    root: &Root,
    entry: &EntryLocation,
    cx: &OpContext,
    deadline: Instant,
) -> Result<Option<(OwnedFd, bool)>> {
    let open = |access| root.open_child(entry.parent.as_fd(), entry.name.as_bytes(), access);
    let fd = match open(OFlags::RDONLY) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(from_errno(errno)),
    };
    let fd = match lock_exclusive(&fd, cx, deadline)? {
        FlockOutcome::Locked => return Ok(Some((fd, true))),
        FlockOutcome::Unsupported => return Ok(Some((fd, false))),
        FlockOutcome::NeedsWriteAccess => fd,
    };
    match open(OFlags::RDWR) {
        Ok(writable) => {
            let locking = lock_exclusive(&writable, cx, deadline)?;
            Ok(Some((writable, locking == FlockOutcome::Locked)))
        }
        Err(Errno::NOENT) => Ok(None),
        // Without write permission, the file cannot be locked there. The caller checks separately whether it may be
        // changed.
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::TXTBSY) => Ok(Some((fd, false))),
        Err(errno) => Err(from_errno(errno)),
    }
}

/// The result of an attempt to lock a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlockOutcome {
    Locked,
    /// A network file system grants locks only for files that are open for writing.
    NeedsWriteAccess,
    Unsupported,
}

fn lock_exclusive(fd: &OwnedFd, cx: &OpContext, deadline: Instant) -> Result<FlockOutcome> {
    let mut interval = Duration::from_micros(200);
    loop {
        match fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(FlockOutcome::Locked),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                cx.check()?;
                check_deadline(deadline)?;
                std::thread::sleep(interval);
                interval = (interval * 2).min(MAX_POLL_INTERVAL);
            }
            Err(Errno::BADF) => return Ok(FlockOutcome::NeedsWriteAccess),
            // A seccomp filter refuses the call with `EPERM`.
            Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
                return Ok(FlockOutcome::Unsupported);
            }
            Err(errno) => return Err(from_errno(errno)),
        }
    }
}

fn check_deadline(deadline: Instant) -> Result<()> {
    if Instant::now() < deadline {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Busy, "another change of the same file takes too long; try again"))
}
