//! Mounts of a sandbox: open directories of the host.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use vfs_core::backend::AccessMode;
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};
use vfs_local::{LocalBackend, LocalConfig};

use crate::config::{Mount, ProtectedPath, ProtectionLevel, SandboxConfig};
use crate::file_descriptors::{duplicate, few_descriptors, is_same, path_of};
use crate::namespaces::system_files::SystemFiles;
use crate::protect::placeholders::{PlaceholderResult, Placeholders};
use crate::self_test_cache::{SelfTestCacheExposure, exposed_below};

/// A mount whose directory stays open, so that commands and file tools use the same directory after a rename.
#[derive(Debug)]
pub(crate) struct OpenMount {
    pub(crate) at: VfsPath,
    pub(crate) access: AccessMode,
    pub(crate) files: LocalBackend,
    pub(crate) root: OwnedFd,
    /// The protected paths, and those of the directory of the self-test cache, below this mount.
    pub(crate) protected: Vec<ProtectedPath>,
    /// Whether the directory of the self-test cache is, or would be, below this mount.
    pub(crate) exposes_self_test_cache: bool,
    /// Path of the directory on the host when it was opened.
    pub(crate) directory: PathBuf,
}

/// How a path below a mount is covered in commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathCover {
    /// A directory above a protected path: bound to itself, so that it cannot be moved.
    InPlace,
    ReadOnly,
    HiddenFile,
    HiddenDirectory,
    /// A missing path, covered by an empty directory that can be listed.
    Placeholder,
}

impl OpenMount {
    /// Opens all mounts.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if two mounts, or a mount and a tool, have files in common, if a mount takes the place of a system
    /// directory, or if a mount or tool shows the directory of the self-test cache and cannot hide it.
    pub(crate) async fn open_all(config: &SandboxConfig) -> Result<Vec<Self>> {
        let (mounts, tools) = (&config.mounts, &config.tools);
        if mounts.is_empty() {
            return Err(Error::invalid_argument("a sandbox needs at least one directory"));
        }
        let mut opened_mounts: Vec<Self> = Vec::new();
        for mount in mounts {
            if SystemFiles::reserves(std::path::Path::new(mount.at.as_str())) {
                let message = "a mount cannot take the place of a system directory; mount it at /workspace, or at another new path";
                return Err(Error::invalid_argument(message).with_path(&mount.at));
            }
            if let Some(other) =
                opened_mounts.iter().find(|other| other.at.starts_with(&mount.at) || mount.at.starts_with(&other.at))
            {
                let message = format!("the mount overlaps with the one at {}; mount them side by side", other.at);
                return Err(Error::invalid_argument(message).with_path(&mount.at));
            }
            let opened = Self::open(mount, config).await.map_err(|error| error.with_path(&mount.at))?;
            if let Some(other) =
                opened_mounts.iter().find(|other| opened.overlaps(&other.directory) || opened.is_same_directory(other))
            {
                let message = format!(
                    "the directory of this mount and that of {} have files in common, so files that are protected in \
                     one would be unprotected in the other; mount directories that lie side by side",
                    other.at
                );
                return Err(Error::invalid_argument(message).with_path(&mount.at));
            }
            opened_mounts.push(opened);
        }
        for tool in tools {
            // A missing tool is not shown.
            let Ok(real) = real_path(tool) else { continue };
            if exposed_below(&real) != SelfTestCacheExposure::Below(Vec::new()) {
                let message = format!("the tools at {} {EXPOSES_CACHE}", tool.display());
                return Err(Error::invalid_argument(message));
            }
            if let Some(mount) = opened_mounts.iter().find(|mount| mount.overlaps(&real)) {
                let message = format!(
                    "the tools at {} and the directory of this mount have files in common, so files that are protected \
                     in the mount would be unprotected among the tools; put the tools elsewhere",
                    tool.display()
                );
                return Err(Error::invalid_argument(message).with_path(&mount.at));
            }
        }
        Ok(opened_mounts)
    }

    /// Returns whether the directory and `other` are the same, or one lies below the other.
    fn overlaps(&self, other: &Path) -> bool {
        self.directory.starts_with(other) || other.starts_with(&self.directory)
    }

    /// Returns whether both mounts show the same directory, possibly by different paths.
    fn is_same_directory(&self, other: &Self) -> bool {
        let [own, other] = [&self.root, &other.root].map(rustix::fs::fstat);
        own.is_ok_and(|own| other.is_ok_and(|other| is_same(&own, &other)))
    }

    async fn open(mount: &Mount, settings: &SandboxConfig) -> Result<Self> {
        let cache_paths =
            real_path(&mount.directory).map_or(Ok(Vec::new()), |directory| exposed_cache_paths(&directory))?;
        let protected: Vec<_> = settings.protected.iter().cloned().chain(cache_paths.iter().cloned()).collect();
        // File tools check the real location, since commands can exchange links meanwhile.
        let config = protected.iter().fold(LocalConfig::new(&mount.directory), |config, protected| {
            config.protect(protected.path.clone(), protected.protection)
        });
        let config = settings
            .protected_names
            .iter()
            .fold(config, |config, protected| config.protect_name(protected.name.as_str(), protected.protection));
        let files = config.open()?;
        let root = files.open_directory(&OpContext::new(), &VfsPath::root()).await?;
        let directory = path_of(&root)
            .map_err(|errno| Error::new(ErrorKind::Unavailable, "/proc is not mounted").with_source(errno))?;
        if exposed_cache_paths(&directory)? != cache_paths {
            return Err(Error::new(ErrorKind::Busy, "the directory was replaced while it was opened; try again"));
        }
        let exposes_self_test_cache = !cache_paths.is_empty();
        Ok(Self {
            at: mount.at.clone(),
            access: mount.access,
            files,
            root,
            protected,
            exposes_self_test_cache,
            directory,
        })
    }

    /// Returns the path on the host, and the device and inode of the directory.
    pub(crate) fn identity(&self) -> (&Path, Option<(u64, u64)>) {
        let status = rustix::fs::fstat(&self.root).ok();
        (&self.directory, status.map(|status| (status.st_dev, status.st_ino)))
    }

    /// Returns whether commands see the directory at its path on the host.
    pub(crate) fn is_in_place(&self) -> bool {
        self.directory.to_str() == Some(self.at.as_str())
    }

    /// Returns how each protected path, relative to the mount, is covered, with the file that was checked. Parents come first.
    ///
    /// A missing path is left out. With `placeholders`, one is created if commands could create the path.
    pub(crate) fn path_covers(&self, placeholders: Option<&Placeholders>) -> Result<Vec<(String, PathCover, OwnedFd)>> {
        let placeholders = placeholders.filter(|_| self.access == AccessMode::ReadWrite);
        let mut covers = BTreeMap::new();
        let mut protected: Vec<_> = self.protected.iter().collect();
        protected.sort_by(|one, other| one.path.cmp(&other.path));
        for one in protected {
            self.cover_path(one, placeholders, &mut covers).map_err(|error| error.with_path(&self.path_of(one)))?;
        }
        Ok(covers.into_iter().map(|(path, (what, file))| (path, what, file)).collect())
    }

    fn cover_path(
        &self,
        protected: &ProtectedPath,
        mut placeholders: Option<&Placeholders>,
        covers: &mut BTreeMap<String, (PathCover, OwnedFd)>,
    ) -> Result<()> {
        let mut path = String::new();
        let mut directory: Option<OwnedFd> = None;
        let mut components = protected.path.components().peekable();
        let unknown = |errno: Errno| unprotectable("it cannot be examined", errno);
        let no_placeholder =
            |errno: Errno| unprotectable("no placeholder can be created for it while it is missing", errno);
        while let Some(component) = components.next() {
            let below = directory.as_ref().unwrap_or(&self.root);
            let is_parent = components.peek().is_some();
            path.push('/');
            path.push_str(component);
            match covers.get(&path) {
                // Commands see nothing below it.
                Some((PathCover::HiddenFile | PathCover::HiddenDirectory | PathCover::Placeholder, _)) => return Ok(()),
                // Commands cannot create anything below it.
                Some((PathCover::ReadOnly, _)) => placeholders = None,
                _ => {}
            }
            let state = match placeholders {
                Some(placeholders) if is_parent => {
                    Some(placeholders.create_parent(below, component).map_err(no_placeholder)?)
                }
                Some(placeholders) => Some(placeholders.create(below, component).map_err(no_placeholder)?),
                None => None,
            };
            match state {
                Some(PlaceholderResult::NotCreatable) => return Ok(()),
                Some(PlaceholderResult::Placeholder(file)) => {
                    covers.insert(path, (PathCover::Placeholder, file));
                    return Ok(());
                }
                Some(PlaceholderResult::Existing) | None => {}
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = match rustix::fs::openat(below, component, flags, Mode::empty()) {
                Ok(found) => found,
                Err(Errno::NOENT | Errno::NOTDIR) if placeholders.is_none() => return Ok(()),
                Err(errno) => return Err(unknown(errno)),
            };
            let status = rustix::fs::fstat(&found).map_err(unknown)?;
            if FileType::from_raw_mode(status.st_mode) == FileType::Symlink {
                let why = "it is a link, or below one; protect its target, or replace it";
                return Err(unprotectable(why, Errno::LOOP));
            }
            if is_parent {
                let file = duplicate(&found)?;
                covers.entry(path.clone()).or_insert((PathCover::InPlace, file));
                directory = Some(found);
                continue;
            }
            let what = match protected.protection {
                ProtectionLevel::ReadOnly => PathCover::ReadOnly,
                ProtectionLevel::Hidden if FileType::from_raw_mode(status.st_mode).is_dir() => {
                    PathCover::HiddenDirectory
                }
                ProtectionLevel::Hidden => PathCover::HiddenFile,
            };
            covers.insert(path.clone(), (what, found));
        }
        Ok(())
    }

    fn path_of(&self, protected: &ProtectedPath) -> VfsPath {
        self.at.join(protected.path.relative()).unwrap_or_else(|_| self.at.clone())
    }
}

/// Reason for which a directory is refused, after its name.
const EXPOSES_CACHE: &str = "would show commands the directory in which sandboxes record that their self-test passed; show a \
                              directory beside it or below it";

/// Returns the paths of the directory of the self-test cache below `directory`, to be hidden.
fn exposed_cache_paths(directory: &Path) -> Result<Vec<ProtectedPath>> {
    match exposed_below(directory) {
        SelfTestCacheExposure::Below(paths) => {
            let hidden = |path| ProtectedPath { path, protection: ProtectionLevel::Hidden };
            Ok(paths.into_iter().map(hidden).collect())
        }
        SelfTestCacheExposure::Whole => Err(Error::invalid_argument(format!("the directory {EXPOSES_CACHE}"))),
    }
}

fn real_path(path: &Path) -> std::result::Result<PathBuf, Errno> {
    path_of(&rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

fn unprotectable(why: &str, errno: Errno) -> Error {
    let error = match errno {
        Errno::MFILE | Errno::NFILE => few_descriptors(),
        _ => Error::new(ErrorKind::Unsupported, format!("this path cannot be protected from commands: {why}")),
    };
    error.with_source(errno)
}
