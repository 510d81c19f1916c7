//! The shared state of a backend: the root, the settings and the caches that its operations use.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use vfs_core::{FileInfo, OpContext, ResolveResult, Result, VfsPath};

use crate::config::LocalConfig;
use crate::config::policies::{Durability, HardLinks, MountPolicy};
use crate::fs::entry_location::EntryLocation;
use crate::fs::errno::from_errno_at;
use crate::fs::metadata::Metadata;
use crate::fs::nowait_reads::NowaitReads;
use crate::fs::root::{Root, RootOptions};
use crate::ops::line_index_cache::LineIndexCache;
use crate::search::search_cache::{FileIdentity, SearchCache};
use crate::staging::entry_lock::{InProcessEntryLock, LockPurpose, LockedFile};

/// Longest wait for a lock, used if the configured timeout exceeds the range of the clock.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The root directory, the settings and the caches that every operation uses.
#[derive(Debug)]
pub(crate) struct LocalFs {
    pub(crate) root: Root,
    pub(crate) durability: Durability,
    pub(crate) hard_links: HardLinks,
    pub(crate) max_file_size: u64,
    pub(crate) max_streamed_size: u64,
    pub(crate) nowait_reads: NowaitReads,
    pub(crate) line_indexes: LineIndexCache,
    /// The cache of searches, if enabled, and the identity of the root as its key.
    pub(crate) search_cache: Option<(SearchCache, FileIdentity)>,
    lock_timeout: Duration,
}

/// An entry that is locked for a change, and the file that exists there.
#[derive(Debug)]
pub(crate) struct LockedEntry<'a> {
    pub(crate) entry: &'a EntryLocation,
    pub(crate) file: Option<LockedFile>,
    _lock: InProcessEntryLock,
}

impl LocalFs {
    pub(crate) fn open(config: &LocalConfig) -> Result<Self> {
        let root = Root::open(RootOptions {
            path: &config.root,
            confinement: config.confinement,
            mounts: config.mounts,
            resolution: config.resolution,
            protected: &config.protected,
            protected_names: &config.protected_names,
        })?;
        let nowait_reads = NowaitReads::new(&root);
        // Only opening a file shows whether another file system is mounted over it, so cached facts cannot enforce
        // `MountPolicy::Stay`.
        let cache = config.search_cache.as_ref().unwrap_or_else(|| SearchCache::global());
        let search_cache = if config.mounts == MountPolicy::Stay || cache.is_disabled() {
            None
        } else {
            Some((cache.clone(), root.identity().map_err(|errno| from_errno_at(errno, &VfsPath::root()))?))
        };
        Ok(Self {
            root,
            durability: config.durability,
            hard_links: config.hard_links,
            max_file_size: config.max_file_size,
            max_streamed_size: config.max_streamed_size,
            nowait_reads,
            line_indexes: LineIndexCache::new(),
            search_cache,
            lock_timeout: config.lock_timeout,
        })
    }

    pub(crate) fn stat(&self, path: &VfsPath) -> Result<FileInfo> {
        let fd = self.root.open_at(path, OFlags::PATH)?;
        Metadata::from_fd(fd.as_fd()).map_err(|errno| from_errno_at(errno, path))?.file_info(path.clone())
    }

    pub(crate) fn resolve(&self, path: &VfsPath) -> Result<ResolveResult> {
        let real = self.root.real_path(path)?;
        let names = match self.root.open_at(&real.path, OFlags::PATH) {
            Ok(fd) => Metadata::from_fd(fd.as_fd()).map_err(|errno| from_errno_at(errno, path))?.name_count(),
            Err(error) if error.is_absence() => 1,
            Err(error) => return Err(error.with_path(path)),
        };
        Ok(real.names(names))
    }

    /// Locks `entry`, and the regular file that exists there, for one change.
    ///
    /// If the file's content becomes part of the result or of a copy, `hard_links` must be the setting for reading.
    pub(crate) fn lock_entry<'a>(
        &self,
        purpose: LockPurpose,
        entry: &'a EntryLocation,
        hard_links: HardLinks,
        cx: &OpContext,
    ) -> Result<LockedEntry<'a>> {
        let deadline = self.lock_deadline();
        let lock = InProcessEntryLock::acquire(entry, cx, deadline)?;
        let file = LockedFile::acquire(&self.root, entry, purpose, hard_links, cx, deadline)?;
        Ok(LockedEntry { entry, file, _lock: lock })
    }

    /// Returns the deadline until which a change waits for other changes.
    pub(crate) fn lock_deadline(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.lock_timeout).unwrap_or(now + MAX_LOCK_WAIT)
    }
}
