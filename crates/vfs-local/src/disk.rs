//! The blocking side of a backend: one method an operation, each called in one hop.

use std::os::fd::AsFd;
use std::time::Instant;

use rustix::fs::OFlags;
use vfs_core::{FileInfo, OpContext, Result, VfsPath};

use crate::config::{Durability, HardLinks, LocalConfig};
use crate::errno::error_at;
use crate::lock::{EntryLock, HeldFile};
use crate::metadata::Metadata;
use crate::root::{Entry, Root};

/// The held root and the settings that every operation follows.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) root: Root,
    pub(crate) durability: Durability,
    pub(crate) hard_links: HardLinks,
    pub(crate) max_file_size: u64,
    lock_timeout: std::time::Duration,
}

/// An entry that is held for a change, with the file that is there.
#[derive(Debug)]
pub(crate) struct HeldEntry<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) file: Option<HeldFile>,
    _lock: EntryLock,
}

impl Disk {
    pub(crate) fn open(config: &LocalConfig) -> Result<Self> {
        Ok(Self {
            root: Root::open(config)?,
            durability: config.durability,
            hard_links: config.hard_links,
            max_file_size: config.max_file_size,
            lock_timeout: config.lock_timeout,
        })
    }

    pub(crate) fn stat(&self, path: &VfsPath) -> Result<FileInfo> {
        let fd = self.root.open_at(path, OFlags::PATH)?;
        Metadata::of(fd.as_fd()).map_err(|errno| error_at(errno, path))?.info(path.clone())
    }

    /// Holds `entry`, and the regular file that it names, for one change.
    pub(crate) fn hold<'a>(&self, entry: &'a Entry, path: &VfsPath, cx: &OpContext) -> Result<HeldEntry<'a>> {
        let until = Instant::now() + self.lock_timeout;
        let lock = EntryLock::acquire(entry, cx, until).map_err(|error| error.or_path(path))?;
        let file = HeldFile::acquire(entry, path, cx, until)?;
        Ok(HeldEntry { entry, file, _lock: lock })
    }

    /// The moment until which a change waits for others.
    pub(crate) fn wait_until(&self) -> Instant {
        Instant::now() + self.lock_timeout
    }
}
