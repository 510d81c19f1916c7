//! Private directory of the host that can be removed with any content that commands left in it.

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, Result};

/// Maximum number of passes over the directory if commands still create entries.
const MAX_PASSES: usize = 100;

const PATH_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const LIST_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory that is removed with its contents when this value is dropped.
#[derive(Debug)]
pub(super) struct PrivateDirectory {
    path: PathBuf,
    descriptor: OwnedFd,
    /// Whether the removal was attempted, so that it is attempted once.
    is_done: bool,
}

impl PrivateDirectory {
    /// Creates a directory in `parent` that only this user may enter.
    pub(super) fn create(parent: &Path) -> Result<Self> {
        let not_created = || Error::new(ErrorKind::Unavailable, "the directory of a workspace cannot be created");
        let made = tempfile::Builder::new().prefix("vfs-workspace-").tempdir_in(parent);
        let made = made.map_err(|source| not_created().with_source(source))?;
        let descriptor =
            fs::open(made.path(), PATH_FLAGS, Mode::empty()).map_err(|errno| not_created().with_source(errno))?;
        // `TempDir` is not used for the removal: it stops at the first directory without permissions, and recurses.
        Ok(Self { path: made.keep(), descriptor, is_done: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory, and returns an error if that fails.
    pub(super) fn remove(mut self) -> Result<()> {
        self.remove_all().map_err(|errno| {
            let kind = match errno {
                Errno::ACCESS | Errno::PERM => ErrorKind::PermissionDenied,
                Errno::BUSY => ErrorKind::Busy,
                _ => ErrorKind::Unavailable,
            };
            let message = "the files that commands left in the workspace cannot all be removed; end those that still run, and \
                           remove the rest of its directory on the host";
            Error::new(kind, message).with_source(errno)
        })
    }

    fn remove_all(&mut self) -> io::Result<()> {
        self.is_done = true;
        // A running command may create entries meanwhile.
        for _ in 0..MAX_PASSES {
            self.remove_entries()?;
            match fs::rmdir(&self.path) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(Errno::NOENT) => return Ok(()),
                removed => return removed,
            }
        }
        Err(Errno::BUSY)
    }

    /// Removes as many entries as possible, and returns the first failure.
    fn remove_entries(&self) -> io::Result<()> {
        grant(&self.descriptor)?;
        let top = fs::openat(&self.descriptor, ".", LIST_FLAGS, Mode::empty())?;
        let mut pending = PendingRemovals::default();
        pending.remove_entries(&top, &top)?;
        while let Some(name) = pending.names.pop() {
            let emptied =
                fs::openat(&top, &name, LIST_FLAGS, Mode::empty()).and_then(|dir| pending.remove_entries(&dir, &top));
            match emptied.and_then(|()| fs::unlinkat(&top, &name, AtFlags::REMOVEDIR)) {
                // The next pass finds entries that were created meanwhile.
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(errno) => pending.record_failure(errno),
            }
        }
        pending.failure.map_or(Ok(()), Err)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        if !self.is_done {
            // There is no caller to report an error to.
            let _ = self.remove_all();
        }
    }
}

/// Directories that were moved to the top to be emptied there, so that a tree of any depth takes two descriptors and no recursion.
#[derive(Debug, Default)]
struct PendingRemovals {
    names: Vec<String>,
    last: u64,
    failure: Option<Errno>,
}

impl PendingRemovals {
    /// Removes the entries of `dir`, except its directories, which are moved to `top`.
    fn remove_entries(&mut self, dir: &OwnedFd, top: &OwnedFd) -> io::Result<()> {
        // Read all names first: the listing of a directory that changes meanwhile may be incomplete.
        let listed: Vec<_> = fs::Dir::read_from(dir)?.collect::<io::Result<_>>()?;
        for entry in listed {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let removed = match fs::unlinkat(dir, name, AtFlags::empty()) {
                Err(Errno::ISDIR) => self.move_to_top(dir, name, top),
                removed => removed,
            };
            match removed {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => self.record_failure(errno),
            }
        }
        Ok(())
    }

    fn move_to_top(&mut self, dir: &OwnedFd, name: &CStr, top: &OwnedFd) -> io::Result<()> {
        // Moving a directory changes its `..`, which needs write permission.
        grant(&fs::openat(dir, name, PATH_FLAGS, Mode::empty())?)?;
        loop {
            self.last += 1;
            let new = format!("{:x}", self.last);
            match fs::renameat_with(dir, name, top, &new, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                moved => return moved.map(|()| self.names.push(new)),
            }
        }
    }

    fn record_failure(&mut self, errno: Errno) {
        self.failure.get_or_insert(errno);
    }
}

/// Grants the owner of a directory all permissions on it.
fn grant(descriptor: &OwnedFd) -> io::Result<()> {
    if Mode::from_raw_mode(fs::fstat(descriptor)?.st_mode).contains(Mode::RWXU) {
        return Ok(());
    }
    // An unlistable directory can only be opened as `O_PATH`, and such a descriptor is changed through its path in /proc.
    fs::chmod(format!("/proc/self/fd/{}", descriptor.as_raw_fd()), Mode::RWXU)
}
