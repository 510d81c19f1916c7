//! How a local backend behaves, decided once when it is opened.

pub(crate) mod options;

use std::path::{Path, PathBuf};
use std::time::Duration;

use vfs_core::VfsPath;
use vfs_search::Pool;

use self::options::{Confinement, Durability, HardLinks, Mounts, Protection, Resolution};
use crate::search::cache::SearchMemory;

/// The settings of a [`LocalBackend`](crate::LocalBackend).
///
/// ```no_run
/// use vfs_local::{Durability, LocalConfig};
///
/// let files = LocalConfig::new("/srv/project").durability(Durability::Atomic).open()?;
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LocalConfig {
    /// The root, or in host mode the directory that relative paths are resolved under.
    pub root: PathBuf,
    /// What a path may reach. Default: below the root.
    pub confinement: Confinement,
    /// What an acknowledged write survives. Default: a power cut.
    pub durability: Durability,
    /// Whether files with more than one name may be read. Default: they may.
    pub hard_links: HardLinks,
    /// Whether other file systems mounted below the root belong to it. Default: they do.
    pub mounts: Mounts,
    /// Paths below the root that are kept, with all that is below them. Default: none.
    pub protected: Vec<(VfsPath, Protection)>,
    /// Names that are kept at any depth, with everything below what has them. Default: none.
    pub protected_names: Vec<(String, Protection)>,
    /// How paths are resolved. Default: by the kernel.
    pub resolution: Resolution,
    /// The largest file that is written, edited, copied or downloaded whole, in bytes; holes count. Default 256 MiB.
    pub max_file_size: u64,
    /// How long a change waits for another change of the same file before it is `busy`. Default 10 s.
    pub lock_timeout: Duration,
    /// The workers that `glob` and `grep` take. Default: [`Pool::global`], which all searches of the process share.
    pub search_pool: Option<Pool>,
    /// What searches remember of the files they read. Default: [`SearchMemory::global`], which all backends of the process
    /// share.
    pub search_memory: Option<SearchMemory>,
}

impl LocalConfig {
    /// A backend confined to `root`.
    pub fn new(root: impl AsRef<Path>) -> Self {
        Self {
            root: root.as_ref().to_owned(),
            confinement: Confinement::default(),
            durability: Durability::default(),
            hard_links: HardLinks::default(),
            mounts: Mounts::default(),
            protected: Vec::new(),
            protected_names: Vec::new(),
            resolution: Resolution::default(),
            max_file_size: 256 << 20,
            lock_timeout: Duration::from_secs(10),
            search_pool: None,
            search_memory: None,
        }
    }

    /// A backend over the whole host, with relative paths under `base`. No security at all.
    pub fn host(base: impl AsRef<Path>) -> Self {
        Self { confinement: Confinement::None, ..Self::new(base) }
    }

    /// Sets what an acknowledged write survives.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether files with more than one name may be read.
    #[must_use]
    pub fn hard_links(mut self, hard_links: HardLinks) -> Self {
        self.hard_links = hard_links;
        self
    }

    /// Sets whether other file systems mounted below the root belong to it.
    #[must_use]
    pub fn mounts(mut self, mounts: Mounts) -> Self {
        self.mounts = mounts;
        self
    }

    /// Protects a path below the root, with all that is below it.
    ///
    /// It is looked at where a descriptor really is, whatever path led there, so that nobody gets past it who swaps a link
    /// or directory at that moment; upper and lower case are the same. What is hidden is named in listings; searches leave it
    /// out and tell that as a problem, and no directory above it is copied. Nothing above what is protected is replaced, moved
    /// or removed. Where it is a link, what that leads to is protected only as that path; other names of a file (hard links) and
    /// other mounts of a directory are other paths. Refusals are `policy_denied`; it needs `/proc`.
    #[must_use]
    pub fn protect(mut self, path: VfsPath, protection: Protection) -> Self {
        self.protected.push((path, protection));
        self
    }

    /// Protects a name at any depth, with everything below what has it: as [`protect`](Self::protect) does a path, and in the
    /// same way by where something really is. A directory above can be moved and copied with what has the name; it is not removed
    /// until that is gone.
    #[must_use]
    pub fn protect_name(mut self, name: impl Into<String>, protection: Protection) -> Self {
        self.protected_names.push((name.into(), protection));
        self
    }

    /// Sets how paths are resolved.
    #[must_use]
    pub fn resolution(mut self, resolution: Resolution) -> Self {
        self.resolution = resolution;
        self
    }

    /// Sets the largest file that is written, edited, copied or downloaded whole.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self
    }

    /// Sets how long a change waits for another change of the same file.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets the workers that `glob` and `grep` take.
    #[must_use]
    pub fn search_pool(mut self, pool: Pool) -> Self {
        self.search_pool = Some(pool);
        self
    }

    /// Sets what searches remember of the files they read; one of 0 bytes is none.
    #[must_use]
    pub fn search_memory(mut self, memory: SearchMemory) -> Self {
        self.search_memory = Some(memory);
        self
    }
}
