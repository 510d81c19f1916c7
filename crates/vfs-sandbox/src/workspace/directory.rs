//! Private directory of the host, removed whatever commands left in it.

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, Result};

/// Maximum number of rounds of emptying, if commands still create entries.
const MAX_ROUNDS: usize = 100;

const HELD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory that is removed with its contents when this value is dropped.
#[derive(Debug)]
pub(super) struct PrivateDirectory {
    path: PathBuf,
    held: OwnedFd,
    /// Whether the removal was attempted, so that it is attempted once.
    is_done: bool,
}

impl PrivateDirectory {
    /// Creates a directory in `parent` that only this user may enter.
    pub(super) fn create(parent: &Path) -> Result<Self> {
        let unmade = || Error::new(ErrorKind::Unavailable, "the directory of a workspace cannot be created");
        let made = tempfile::Builder::new().prefix("vfs-workspace-").tempdir_in(parent);
        let made = made.map_err(|source| unmade().with_source(source))?;
        let held = fs::open(made.path(), HELD, Mode::empty()).map_err(|errno| unmade().with_source(errno))?;
        // `TempDir` would stop at the first directory without permissions, and recurses.
        Ok(Self { path: made.keep(), held, is_done: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory, and reports an error.
    pub(super) fn remove(mut self) -> Result<()> {
        self.end().map_err(|errno| {
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

    fn end(&mut self) -> io::Result<()> {
        self.is_done = true;
        // A running command may create entries meanwhile.
        for _ in 0..MAX_ROUNDS {
            self.empty()?;
            match fs::rmdir(&self.path) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(Errno::NOENT) => return Ok(()),
                removed => return removed,
            }
        }
        Err(Errno::BUSY)
    }

    /// Removes as many of its entries as possible, and returns the first failure.
    fn empty(&self) -> io::Result<()> {
        grant(&self.held)?;
        let top = fs::openat(&self.held, ".", LISTED, Mode::empty())?;
        let mut pending = PendingDirectories::default();
        pending.remove_entries(&top, &top)?;
        while let Some(name) = pending.names.pop() {
            let emptied =
                fs::openat(&top, &name, LISTED, Mode::empty()).and_then(|dir| pending.remove_entries(&dir, &top));
            match emptied.and_then(|()| fs::unlinkat(&top, &name, AtFlags::REMOVEDIR)) {
                // The next round finds entries that were created meanwhile.
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(errno) => pending.failed(errno),
            }
        }
        pending.failure.map_or(Ok(()), Err)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        if !self.is_done {
            // There is nobody to report it to.
            let _left = self.end();
        }
    }
}

/// Directories that were moved to the top to be emptied there, so that a tree of any depth takes two descriptors and no recursion.
#[derive(Debug, Default)]
struct PendingDirectories {
    names: Vec<String>,
    last: u64,
    failure: Option<Errno>,
}

impl PendingDirectories {
    /// Removes the entries of `dir`, except its directories, which are moved to `top`.
    fn remove_entries(&mut self, dir: &OwnedFd, top: &OwnedFd) -> io::Result<()> {
        // All names first: a directory that changes while it is listed may be listed in part.
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
                Err(errno) => self.failed(errno),
            }
        }
        Ok(())
    }

    fn move_to_top(&mut self, dir: &OwnedFd, name: &CStr, top: &OwnedFd) -> io::Result<()> {
        // Moving a directory changes its `..`, which needs write permission.
        grant(&fs::openat(dir, name, HELD, Mode::empty())?)?;
        loop {
            self.last += 1;
            let new = format!("{:x}", self.last);
            match fs::renameat_with(dir, name, top, &new, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                moved => return moved.map(|()| self.names.push(new)),
            }
        }
    }

    fn failed(&mut self, errno: Errno) {
        self.failure.get_or_insert(errno);
    }
}

/// Gives the owner of a directory all permissions on it.
fn grant(held: &OwnedFd) -> io::Result<()> {
    if Mode::from_raw_mode(fs::fstat(held)?.st_mode).contains(Mode::RWXU) {
        return Ok(());
    }
    // An unlistable directory can only be opened as `O_PATH`, and such a descriptor is changed through its path in /proc.
    fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::RWXU)
}
