//! Advisory locks of whole files, which the kernel releases when the process ends.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{self, Access, FlockOperation, OFlags};
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath, WriteRequest};

use crate::backend::LocalBackend;
use crate::config::policies::FileLockMode;
use crate::fs::entry_location::check_access;
use crate::fs::errno::{from_errno, from_errno_at};
use crate::fs::metadata::Metadata;
use crate::local_fs::LocalFs;

/// Longest sleep between two attempts to take a lock.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A lock of a file, released when it is dropped or the process ends.
#[derive(Debug)]
pub struct FileLock {
    _file: OwnedFd,
}

impl LocalBackend {
    /// Locks the file at `path`, and creates it if it is missing.
    ///
    /// # Behaviour
    ///
    /// The lock excludes other locks of the same file, by this process and by others, and nothing else: the file can be
    /// read and written meanwhile. Do not lock a file that is also written through a backend: its writes take the same
    /// lock. The call waits as long as a change waits for another one: see
    /// [`LocalConfig::lock_timeout`](crate::LocalConfig::lock_timeout).
    ///
    /// # Errors
    ///
    /// `busy` if the file is still locked then, `unsupported` if the file system or a seccomp filter refuses locks, and
    /// the errors of creating a file.
    ///
    /// ```no_run
    /// # async fn example() -> vfs_core::Result<()> {
    /// use vfs_core::{OpContext, VfsPath};
    /// use vfs_local::{LocalBackend, FileLockMode};
    ///
    /// let files = LocalBackend::open("/srv/project")?;
    /// let lock = files.lock_file(&OpContext::new(), &VfsPath::parse("/.lock")?, FileLockMode::Shared).await?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lock_file(&self, cx: &OpContext, path: &VfsPath, mode: FileLockMode) -> Result<FileLock> {
        let lock_path = path.clone();
        let locked = self.run_blocking(cx, path.clone(), move |local_fs, cx| {
            let deadline = local_fs.lock_deadline();
            local_fs.lock_file(&lock_path, mode, Some(deadline), cx)
        });
        let busy = || Error::new(ErrorKind::Busy, "the file is still locked by another holder; try again");
        locked.await?.ok_or_else(|| busy().with_path(path))
    }

    /// Locks the file at `path` as [`lock_file`](Self::lock_file) does, without waiting. Returns `None` if another
    /// holder excludes the lock.
    ///
    /// # Errors
    ///
    /// As [`lock_file`](Self::lock_file), except for `busy`.
    pub async fn try_lock_file(&self, cx: &OpContext, path: &VfsPath, mode: FileLockMode) -> Result<Option<FileLock>> {
        let lock_path = path.clone();
        self.run_blocking(cx, path.clone(), move |local_fs, cx| local_fs.lock_file(&lock_path, mode, None, cx)).await
    }

    /// Returns whether the permissions of the directory at `path`, and its file system, let this process create files
    /// in it.
    ///
    /// # Errors
    ///
    /// The errors of opening the directory.
    ///
    /// ```no_run
    /// # async fn example() -> vfs_core::Result<()> {
    /// use vfs_core::{OpContext, VfsPath};
    /// use vfs_local::LocalBackend;
    ///
    /// let files = LocalBackend::open("/srv/project")?;
    /// assert!(files.can_create_in(&OpContext::new(), &VfsPath::root()).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn can_create_in(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        let lock_path = path.clone();
        self.run_blocking(cx, path.clone(), move |local_fs, _| local_fs.can_create_in(&lock_path)).await
    }
}

impl LocalFs {
    fn can_create_in(&self, path: &VfsPath) -> Result<bool> {
        let directory = self.root.open_at(path, OFlags::PATH | OFlags::DIRECTORY)?;
        match check_access(directory.as_fd(), ".", Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Ok(true),
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(false),
            Err(errno) => Err(from_errno_at(errno, path)),
        }
    }

    /// Locks the file at `path`. Returns `None` if it is still locked at `deadline`.
    fn lock_file(
        &self,
        path: &VfsPath,
        mode: FileLockMode,
        deadline: Option<Instant>,
        cx: &OpContext,
    ) -> Result<Option<FileLock>> {
        loop {
            let file = self.open_lock_file(path, cx)?;
            if !lock_until(&file, mode, deadline, cx)? {
                return Ok(None);
            }
            // If the file was removed or replaced meanwhile, its lock excludes nobody who opens the path now.
            if self.is_file_at(path, &file)? {
                return Ok(Some(FileLock { _file: file }));
            }
        }
    }

    fn open_lock_file(&self, path: &VfsPath, cx: &OpContext) -> Result<OwnedFd> {
        match self.open_for_locking(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        match self.write(WriteRequest::new(path.clone(), ""), cx) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => self.open_for_locking(path),
        }
    }

    /// Opens the file at `path`, for writing if permitted: network file systems grant an exclusive lock only then.
    fn open_for_locking(&self, path: &VfsPath) -> Result<OwnedFd> {
        match self.root.open_at(path, OFlags::RDWR) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => self.root.open_at(path, OFlags::RDONLY),
            opened => opened,
        }
    }

    fn is_file_at(&self, path: &VfsPath, file: &OwnedFd) -> Result<bool> {
        let identity = |file: &OwnedFd| Metadata::from_fd(file.as_fd()).map(|metadata| metadata.identity());
        let now = match self.root.open_at(path, OFlags::PATH) {
            Ok(now) => now,
            Err(error) if error.is_absence() => return Ok(false),
            Err(error) => return Err(error),
        };
        let is_same = identity(&now).and_then(|now| Ok(now == identity(file)?));
        is_same.map_err(|errno| from_errno_at(errno, path))
    }
}

fn lock_until(file: &OwnedFd, mode: FileLockMode, deadline: Option<Instant>, cx: &OpContext) -> Result<bool> {
    let operation = match mode {
        FileLockMode::Shared => FlockOperation::NonBlockingLockShared,
        FileLockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    let mut interval = Duration::from_micros(200);
    loop {
        cx.check()?;
        match fs::flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                if deadline.is_none_or(|deadline| Instant::now() >= deadline) {
                    return Ok(false);
                }
                std::thread::sleep(interval);
                interval = (interval * 2).min(MAX_POLL_INTERVAL);
            }
            // A seccomp filter refuses the call with `EPERM`.
            Err(Errno::BADF | Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
                let message = "the file cannot be locked: the file system or a seccomp filter refuses flock";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            Err(errno) => return Err(from_errno(errno)),
        }
    }
}
