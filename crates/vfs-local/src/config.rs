//! Configuration of a [`LocalBackend`](crate::LocalBackend), fixed when the backend is opened.

pub(crate) mod policies;

use std::path::{Path, PathBuf};
use std::time::Duration;

use vfs_core::VfsPath;
use vfs_search::Pool;

use self::policies::{Confinement, Durability, HardLinks, MountPolicy, PathResolutionMode, ProtectionLevel};
use crate::SearchCache;

/// Settings of a [`LocalBackend`](crate::LocalBackend).
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
    /// The files that a path may reach. Default: those below the root.
    pub confinement: Confinement,
    /// The failures that an acknowledged write survives. Default: a power cut.
    pub durability: Durability,
    /// Whether files with more than one hard link may be read. Default: they may.
    pub hard_links: HardLinks,
    /// Whether other file systems mounted below the root belong to it. Default: they do.
    pub mounts: MountPolicy,
    /// Protected paths below the root; everything below them is protected, too. Default: none.
    pub protected: Vec<(VfsPath, ProtectionLevel)>,
    /// Names that are protected at any depth, with everything below such an entry. Default: none.
    pub protected_names: Vec<(String, ProtectionLevel)>,
    /// How paths are resolved. Default: by the kernel.
    pub resolution: PathResolutionMode,
    /// Maximum size of a file that is written, edited, copied or downloaded whole, in bytes; holes count. Default: 256
    /// MiB.
    pub max_file_size: u64,
    /// Maximum size of a file that is written in chunks, in bytes. Default: 1 PiB.
    pub max_streamed_size: u64,
    /// How long a change waits for another change of the same file before it fails as `busy`. Default: 10 s.
    pub lock_timeout: Duration,
    /// The worker pool of `glob` and `grep`. Default: [`Pool::global`], which all searches of the process share.
    pub search_pool: Option<Pool>,
    /// The cache of searches. Default: [`SearchCache::global`], which all backends of the process share.
    pub search_cache: Option<SearchCache>,
}

impl LocalConfig {
    /// Creates the configuration of a backend confined to `root`.
    pub fn new(root: impl AsRef<Path>) -> Self {
        Self {
            root: root.as_ref().to_owned(),
            confinement: Confinement::default(),
            durability: Durability::default(),
            hard_links: HardLinks::default(),
            mounts: MountPolicy::default(),
            protected: Vec::new(),
            protected_names: Vec::new(),
            resolution: PathResolutionMode::default(),
            max_file_size: 256 << 20,
            max_streamed_size: 1 << 50,
            lock_timeout: Duration::from_secs(10),
            search_pool: None,
            search_cache: None,
        }
    }

    /// Creates the configuration of a backend over the whole host, with relative paths under `base`. It gives no
    /// security at all.
    pub fn host(base: impl AsRef<Path>) -> Self {
        Self { confinement: Confinement::None, ..Self::new(base) }
    }

    /// Sets the failures that an acknowledged write survives.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether files with more than one hard link may be read.
    #[must_use]
    pub fn hard_links(mut self, hard_links: HardLinks) -> Self {
        self.hard_links = hard_links;
        self
    }

    /// Sets whether other file systems mounted below the root belong to it.
    #[must_use]
    pub fn mounts(mut self, mounts: MountPolicy) -> Self {
        self.mounts = mounts;
        self
    }

    /// Protects a path below the root, with everything below it.
    ///
    /// The check uses the real location of an opened descriptor, not the path that led there, so that swapping a link
    /// or directory at that moment does not get past it; upper and lower case are treated as equal. A hidden entry is
    /// named in listings; searches skip it and report a problem, and no directory above it can be copied. Nothing above
    /// a protected path can be replaced, moved or removed. If the protected path is a link, its target is protected
    /// only under that path; other names of a file (hard links) and other mounts of a directory are other paths.
    /// Refusals are `policy_denied`. Protection needs `/proc`.
    #[must_use]
    pub fn protect(mut self, path: VfsPath, protection: ProtectionLevel) -> Self {
        self.protected.push((path, protection));
        self
    }

    /// Protects a name at any depth, with everything below an entry of that name. The check uses the real location, as
    /// for [`protect`](Self::protect). A directory above such an entry can be moved and copied together with it, but
    /// not removed while the entry exists.
    #[must_use]
    pub fn protect_name(mut self, name: impl Into<String>, protection: ProtectionLevel) -> Self {
        self.protected_names.push((name.into(), protection));
        self
    }

    /// Sets how paths are resolved.
    #[must_use]
    pub fn resolution(mut self, resolution: PathResolutionMode) -> Self {
        self.resolution = resolution;
        self
    }

    /// Sets the maximum size of a file that is written, edited, copied or downloaded whole, in bytes, and of one that is written in
    /// chunks.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self.max_streamed_size = bytes;
        self
    }

    /// Sets the maximum size of a file that is written in chunks, in bytes.
    #[must_use]
    pub fn max_streamed_size(mut self, bytes: u64) -> Self {
        self.max_streamed_size = bytes;
        self
    }

    /// Sets how long a change waits for another change of the same file.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets the worker pool of `glob` and `grep`.
    #[must_use]
    pub fn search_pool(mut self, pool: Pool) -> Self {
        self.search_pool = Some(pool);
        self
    }

    /// Sets the cache of searches; a cache of 0 bytes disables caching.
    #[must_use]
    pub fn search_cache(mut self, cache: SearchCache) -> Self {
        self.search_cache = Some(cache);
        self
    }
}
