//! The directories of the host that a sandbox shows, held open.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use vfs_core::{Access, Error, ErrorKind, OpContext, Result, VfsPath};
use vfs_local::LocalBackend;

use super::config::{Mount, Protected, Protection};
use super::system::System;

/// A mount whose directory is held open, so that commands and file tools mean the same one whatever is renamed.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) at: VfsPath,
    pub(super) access: Access,
    pub(super) files: LocalBackend,
    pub(super) root: OwnedFd,
    /// Where the host had it when it was opened.
    pub(super) directory: PathBuf,
}

/// What becomes of a path below a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is not protected, but something below it is: it stays where it is.
    InPlace,
    ReadOnly,
    HiddenFile,
    HiddenDirectory,
}

impl Held {
    /// Opens all mounts.
    pub(super) async fn open_all(mounts: &[Mount]) -> Result<Vec<Self>> {
        if mounts.is_empty() {
            return Err(Error::invalid_argument("a sandbox needs at least one directory"));
        }
        let mut held: Vec<Self> = Vec::new();
        for mount in mounts {
            if System::owns(std::path::Path::new(mount.at.as_str())) {
                let message =
                    "a directory cannot be shown here, where the system is; show it at /workspace, or another new path";
                return Err(Error::invalid_argument(message).with_path(&mount.at));
            }
            if let Some(other) =
                held.iter().find(|held| held.at.starts_with(&mount.at) || mount.at.starts_with(&held.at))
            {
                let message = format!("it overlaps with the directory at {}; show them side by side", other.at);
                return Err(Error::invalid_argument(message).with_path(&mount.at));
            }
            held.push(Self::open(mount).await.map_err(|error| error.with_path(&mount.at))?);
        }
        Ok(held)
    }

    async fn open(mount: &Mount) -> Result<Self> {
        let files = LocalBackend::open(&mount.directory)?;
        let root = files.open_directory(&OpContext::new(), &VfsPath::root()).await?;
        let number = std::os::fd::AsRawFd::as_raw_fd(&root);
        let directory = rustix::fs::readlink(format!("/proc/self/fd/{number}"), Vec::new())
            .map_err(|errno| Error::new(ErrorKind::Unavailable, "/proc is not there").with_source(errno))?;
        let directory = PathBuf::from(std::ffi::OsString::from_vec(directory.into_bytes()));
        Ok(Self { at: mount.at.clone(), access: mount.access, files, root, directory })
    }

    /// Whether commands see it where the host has it.
    pub(super) fn is_in_place(&self) -> bool {
        self.directory.to_str() == Some(self.at.as_str())
    }

    /// What is there of the protected paths, each before what is below it, by their paths below the mount.
    pub(super) fn kept(&self, protected: &[Protected]) -> Result<Vec<(String, Kept, OwnedFd)>> {
        let mut kept = BTreeMap::new();
        for one in protected {
            self.look_for(one, &mut kept).map_err(|error| error.with_path(&self.path_of(one)))?;
        }
        Ok(kept.into_iter().map(|(path, (what, held))| (path, what, held)).collect())
    }

    fn look_for(&self, protected: &Protected, kept: &mut BTreeMap<String, (Kept, OwnedFd)>) -> Result<()> {
        let mut path = String::new();
        let mut directory: Option<OwnedFd> = None;
        let mut components = protected.path.components().peekable();
        while let Some(component) = components.next() {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below = directory.as_ref().unwrap_or(&self.root);
            let found = match rustix::fs::openat(below, component, flags, Mode::empty()) {
                Ok(found) => found,
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
                Err(errno) => return Err(unprotectable("it cannot be looked at").with_source(errno)),
            };
            let stat = rustix::fs::fstat(&found)
                .map_err(|errno| unprotectable("it cannot be looked at").with_source(errno))?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            if kind == FileType::Symlink {
                return Err(unprotectable("it is a link, or below one; protect what it leads to, or replace it"));
            }
            path.push('/');
            path.push_str(component);
            if components.peek().is_some() {
                let held = duplicate(&found)?;
                kept.entry(path.clone()).or_insert((Kept::InPlace, held));
                directory = Some(found);
                continue;
            }
            let what = match (protected.protection, kind) {
                (Protection::ReadOnly, _) => Kept::ReadOnly,
                (Protection::Hidden, FileType::Directory) => Kept::HiddenDirectory,
                (Protection::Hidden, _) => Kept::HiddenFile,
            };
            kept.insert(path.clone(), (what, found));
        }
        Ok(())
    }

    fn path_of(&self, protected: &Protected) -> VfsPath {
        self.at.join(protected.path.relative()).unwrap_or_else(|_| self.at.clone())
    }
}

fn unprotectable(why: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("this path is to be protected from commands and cannot be: {why}"))
}

pub(super) fn duplicate(held: &OwnedFd) -> Result<OwnedFd> {
    held.try_clone()
        .map_err(|source| Error::new(ErrorKind::Unavailable, "no more files can be opened").with_source(source))
}
