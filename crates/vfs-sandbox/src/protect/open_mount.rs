//! The directories of the host that a sandbox shows, held open.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use vfs_core::{Access, Error, ErrorKind, OpContext, Result, VfsPath};
use vfs_local::{LocalBackend, LocalConfig};

use crate::config::{Mount, Protected, Protection, SandboxConfig};
use crate::descriptors::{duplicate, few_descriptors, is_same, place};
use crate::namespaces::system::System;
use crate::protect::placeholders::{Placeholders, There};
use crate::stamp::{Exposed, exposed_below};

/// A mount whose directory is held open, so that commands and file tools mean the same one whatever is renamed.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) at: VfsPath,
    pub(crate) access: Access,
    pub(crate) files: LocalBackend,
    pub(crate) root: OwnedFd,
    /// The protected paths, and those of the directory of stamps, below this mount.
    pub(crate) protected: Vec<Protected>,
    /// Whether the directory of stamps is, or would be, below this mount.
    pub(crate) exposes_stamps: bool,
    /// Where the host had it when it was opened.
    pub(crate) directory: PathBuf,
}

/// What becomes of a path below a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is not protected, but something below it is: it stays where it is.
    InPlace,
    ReadOnly,
    HiddenFile,
    HiddenDirectory,
    /// A missing path, covered by an empty directory that can be listed.
    Missing,
}

impl Held {
    /// Opens all mounts. No two of them show the same of the host, nor does one of `tools` together with a mount.
    pub(crate) async fn open_all(config: &SandboxConfig) -> Result<Vec<Self>> {
        let (mounts, tools) = (&config.mounts, &config.tools);
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
            let opened = Self::open(mount, config).await.map_err(|error| error.with_path(&mount.at))?;
            if let Some(other) = held.iter().find(|other| opened.meets(&other.directory) || opened.is(other)) {
                let message = format!(
                    "its directory and that of {} have files in common, which one would show without what protects \
                     them in the other; mount directories that lie side by side",
                    other.at
                );
                return Err(Error::invalid_argument(message).with_path(&mount.at));
            }
            held.push(opened);
        }
        for tool in tools {
            // One that is not there is not shown.
            let Ok(real) = real(tool) else { continue };
            if exposed_below(&real) != Exposed::Below(Vec::new()) {
                let message = format!("the tools at {} {EXPOSES_STAMPS}", tool.display());
                return Err(Error::invalid_argument(message));
            }
            if let Some(mount) = held.iter().find(|mount| mount.meets(&real)) {
                let message = format!(
                    "the tools at {} and the directory of this mount have files in common, which one would show \
                     without what protects them in the other; keep tools elsewhere",
                    tool.display()
                );
                return Err(Error::invalid_argument(message).with_path(&mount.at));
            }
        }
        Ok(held)
    }

    /// Whether one of its directory and `other` lies below the other.
    fn meets(&self, other: &Path) -> bool {
        self.directory.starts_with(other) || other.starts_with(&self.directory)
    }

    /// Whether both have the same directory, by whatever path.
    fn is(&self, other: &Self) -> bool {
        let [own, other] = [&self.root, &other.root].map(rustix::fs::fstat);
        own.is_ok_and(|own| other.is_ok_and(|other| is_same(&own, &other)))
    }

    async fn open(mount: &Mount, settings: &SandboxConfig) -> Result<Self> {
        let stamps = real(&mount.directory).map_or(Ok(Vec::new()), |directory| exposed_stamps(&directory))?;
        let protected: Vec<_> = settings.protected.iter().cloned().chain(stamps.iter().cloned()).collect();
        // What file tools may reach is looked at where it really is, as commands can swap links meanwhile.
        let config = protected.iter().fold(LocalConfig::new(&mount.directory), |config, protected| {
            config.protect(protected.path.clone(), protected.protection)
        });
        let config = settings
            .protected_names
            .iter()
            .fold(config, |config, protected| config.protect_name(protected.name.as_str(), protected.protection));
        let files = config.open()?;
        let root = files.open_directory(&OpContext::new(), &VfsPath::root()).await?;
        let directory = place(&root)
            .map_err(|errno| Error::new(ErrorKind::Unavailable, "/proc is not there").with_source(errno))?;
        if exposed_stamps(&directory)? != stamps {
            return Err(Error::new(ErrorKind::Busy, "the directory was replaced while it was opened; try again"));
        }
        let exposes_stamps = !stamps.is_empty();
        Ok(Self { at: mount.at.clone(), access: mount.access, files, root, protected, exposes_stamps, directory })
    }

    /// Where the host has it, and which directory it is, whatever is in it.
    pub(crate) fn identity(&self) -> (&Path, Option<(u64, u64)>) {
        let status = rustix::fs::fstat(&self.root).ok();
        (&self.directory, status.map(|status| (status.st_dev, status.st_ino)))
    }

    /// Whether commands see it where the host has it.
    pub(crate) fn is_in_place(&self) -> bool {
        self.directory.to_str() == Some(self.at.as_str())
    }

    /// What keeps the protected paths, each before what is below it, by their paths below the mount. What is not there
    /// is left out, or with `placeholders` made for the time being where commands could make it.
    pub(crate) fn kept(&self, placeholders: Option<&Placeholders>) -> Result<Vec<(String, Kept, OwnedFd)>> {
        let placeholders = placeholders.filter(|_| self.access == Access::ReadWrite);
        let mut kept = BTreeMap::new();
        let mut protected: Vec<_> = self.protected.iter().collect();
        protected.sort_by(|one, other| one.path.cmp(&other.path));
        for one in protected {
            self.look_for(one, placeholders, &mut kept).map_err(|error| error.with_path(&self.path_of(one)))?;
        }
        Ok(kept.into_iter().map(|(path, (what, held))| (path, what, held)).collect())
    }

    fn look_for(
        &self,
        protected: &Protected,
        mut placeholders: Option<&Placeholders>,
        kept: &mut BTreeMap<String, (Kept, OwnedFd)>,
    ) -> Result<()> {
        let mut path = String::new();
        let mut directory: Option<OwnedFd> = None;
        let mut components = protected.path.components().peekable();
        let unknown = |errno: Errno| unprotectable("it cannot be looked at", errno);
        let unmade = |errno: Errno| unprotectable("nothing can be put in its place while it is missing", errno);
        while let Some(component) = components.next() {
            let below = directory.as_ref().unwrap_or(&self.root);
            let leads_on = components.peek().is_some();
            path.push('/');
            path.push_str(component);
            match kept.get(&path) {
                // Nothing of what is below is there for commands.
                Some((Kept::HiddenFile | Kept::HiddenDirectory | Kept::Missing, _)) => return Ok(()),
                // Nothing can be made there by commands.
                Some((Kept::ReadOnly, _)) => placeholders = None,
                _ => {}
            }
            let there = match placeholders {
                Some(placeholders) if leads_on => Some(placeholders.lead(below, component).map_err(unmade)?),
                Some(placeholders) => Some(placeholders.put(below, component).map_err(unmade)?),
                None => None,
            };
            match there {
                Some(There::Nothing) => return Ok(()),
                Some(There::Placeholder(held)) => {
                    kept.insert(path, (Kept::Missing, held));
                    return Ok(());
                }
                Some(There::Another) | None => {}
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = match rustix::fs::openat(below, component, flags, Mode::empty()) {
                Ok(found) => found,
                Err(Errno::NOENT | Errno::NOTDIR) if placeholders.is_none() => return Ok(()),
                Err(errno) => return Err(unknown(errno)),
            };
            let status = rustix::fs::fstat(&found).map_err(unknown)?;
            if FileType::from_raw_mode(status.st_mode) == FileType::Symlink {
                let why = "it is a link, or below one; protect what it leads to, or replace it";
                return Err(unprotectable(why, Errno::LOOP));
            }
            if leads_on {
                let held = duplicate(&found)?;
                kept.entry(path.clone()).or_insert((Kept::InPlace, held));
                directory = Some(found);
                continue;
            }
            let what = match protected.protection {
                Protection::ReadOnly => Kept::ReadOnly,
                Protection::Hidden if FileType::from_raw_mode(status.st_mode).is_dir() => Kept::HiddenDirectory,
                Protection::Hidden => Kept::HiddenFile,
            };
            kept.insert(path.clone(), (what, found));
        }
        Ok(())
    }

    fn path_of(&self, protected: &Protected) -> VfsPath {
        self.at.join(protected.path.relative()).unwrap_or_else(|_| self.at.clone())
    }
}

const EXPOSES_STAMPS: &str = "would show commands the directory in which sandboxes record that their self-test passed; show a \
                              directory beside it or below it";

/// Returns the paths of the directory of stamps below `directory`, to be hidden.
fn exposed_stamps(directory: &Path) -> Result<Vec<Protected>> {
    match exposed_below(directory) {
        Exposed::Below(paths) => {
            let hidden = |path| Protected { path, protection: Protection::Hidden };
            Ok(paths.into_iter().map(hidden).collect())
        }
        Exposed::Whole => Err(Error::invalid_argument(format!("the directory {EXPOSES_STAMPS}"))),
    }
}

fn real(path: &Path) -> std::result::Result<PathBuf, Errno> {
    place(&rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

fn unprotectable(why: &str, errno: Errno) -> Error {
    let error = match errno {
        Errno::MFILE | Errno::NFILE => few_descriptors(),
        _ => Error::new(
            ErrorKind::Unsupported,
            format!("this path is to be protected from commands and cannot be: {why}"),
        ),
    };
    error.with_source(errno)
}
