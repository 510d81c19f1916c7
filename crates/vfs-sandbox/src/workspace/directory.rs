//! A directory of the host that is ours, and its end, whatever commands made of it.

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, Result};

/// How often a directory that was emptied is found not to be empty.
const MAX_ROUNDS: usize = 100;

const HELD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory that is removed with all that is in it when this value is dropped.
#[derive(Debug)]
pub(super) struct PrivateDirectory {
    path: PathBuf,
    held: OwnedFd,
    /// Whether removing it is behind us, so that it is tried once.
    is_done: bool,
}

impl PrivateDirectory {
    /// Makes one in `parent`, which only this user may enter.
    pub(super) fn make(parent: &Path) -> Result<Self> {
        let unmade = || Error::new(ErrorKind::Unavailable, "no directory for a workspace can be made");
        let made = tempfile::Builder::new().prefix("vfs-workspace-").tempdir_in(parent);
        let made = made.map_err(|source| unmade().with_source(source))?;
        let held = fs::open(made.path(), HELD, Mode::empty()).map_err(|errno| unmade().with_source(errno))?;
        // The other crate stops at the first directory without permissions, and goes down by recursion.
        Ok(Self { path: made.keep(), held, is_done: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, and says where that cannot be.
    pub(super) fn remove(mut self) -> Result<()> {
        self.end().map_err(|errno| {
            let kind = match errno {
                Errno::ACCESS | Errno::PERM => ErrorKind::PermissionDenied,
                Errno::BUSY => ErrorKind::Busy,
                _ => ErrorKind::Unavailable,
            };
            let message = "what commands left in the workspace cannot all be removed; end those that still run, and \
                           remove the rest of its directory on the host";
            Error::new(kind, message).with_source(errno)
        })
    }

    fn end(&mut self) -> io::Result<()> {
        self.is_done = true;
        // A command that is still running may put something into it meanwhile.
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

    /// Removes everything in it that can be; the first failure is told.
    fn empty(&self) -> io::Result<()> {
        grant(&self.held)?;
        let top = fs::openat(&self.held, ".", LISTED, Mode::empty())?;
        let mut raised = Raised::default();
        raised.take_apart(&top, &top)?;
        while let Some(name) = raised.names.pop() {
            let emptied = fs::openat(&top, &name, LISTED, Mode::empty()).and_then(|dir| raised.take_apart(&dir, &top));
            match emptied.and_then(|()| fs::unlinkat(&top, &name, AtFlags::REMOVEDIR)) {
                // What came into it meanwhile is found in the next round.
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(errno) => raised.failed(errno),
            }
        }
        raised.failure.map_or(Ok(()), Err)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        if !self.is_done {
            // Nobody is there to be told.
            let _left = self.end();
        }
    }
}

/// Directories that were moved up to the top to be emptied there. So a tree of any depth takes two descriptors, and no
/// recursion.
#[derive(Debug, Default)]
struct Raised {
    names: Vec<String>,
    last: u64,
    failure: Option<Errno>,
}

impl Raised {
    /// Removes what is in `dir` but for its directories, which go up to `top`.
    fn take_apart(&mut self, dir: &OwnedFd, top: &OwnedFd) -> io::Result<()> {
        // All names first: a directory that is changed while it is listed may be told in part.
        let listed: Vec<_> = fs::Dir::read_from(dir)?.collect::<io::Result<_>>()?;
        for entry in listed {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let removed = match fs::unlinkat(dir, name, AtFlags::empty()) {
                Err(Errno::ISDIR) => self.raise(dir, name, top),
                removed => removed,
            };
            match removed {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => self.failed(errno),
            }
        }
        Ok(())
    }

    fn raise(&mut self, dir: &OwnedFd, name: &CStr, top: &OwnedFd) -> io::Result<()> {
        // Moving a directory changes what is above it, which it has to allow.
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
    // What may not be listed can only be held by its path, and what is held so is changed by its name in /proc.
    fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::RWXU)
}
