//! Durability of a copied tree: one sync per entry, or one for its whole file system.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs;
use rustix::io;

use crate::config::policies::Durability;
use crate::fs::errno::retry;
use crate::fs::file_systems;

/// Maximum number of files and directories that are synced one by one, so that a small copy does not wait for the data
/// that other programs have written to the file system.
const MAX_ENTRY_SYNCS: usize = 128;

/// The entries of a copy that have to be synced, and how.
#[derive(Debug)]
pub(crate) enum TreeSync {
    Skip,
    /// Sync each file and directory once it is written, for file systems on which a sync of the whole file system need
    /// not report write errors. It does so on the disks of this machine, but not through an overlay, which does not
    /// report the errors of its upper layer.
    PerEntry,
    /// Sync everything at the end: syncing many files one by one would wait for the disk for each of them.
    AtEnd {
        /// The topmost directory, opened before anything was written, so that a sync through it reports all later write
        /// errors.
        top: OwnedFd,
        /// The written files and directories, unless there are too many to sync them one by one.
        written: Option<Vec<OwnedFd>>,
    },
}

impl TreeSync {
    /// Chooses how to sync a copy into the directory `top`.
    pub(crate) fn new(durability: Durability, top: &OwnedFd) -> io::Result<Self> {
        Ok(match durability {
            Durability::Atomic => Self::Skip,
            Durability::Full if !(file_systems::is_on_local_disk(top) && file_systems::syncfs_reports_errors()) => {
                Self::PerEntry
            }
            Durability::Full => Self::AtEnd { top: io::fcntl_dupfd_cloexec(top, 0)?, written: Some(Vec::new()) },
        })
    }

    /// Adds a file or directory of the copy that will not be written to any more.
    pub(crate) fn add(&mut self, entry: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Self::PerEntry => retry(|| fs::fsync(entry))?,
            Self::AtEnd { written, .. } => {
                let room = written.as_mut().filter(|entries| entries.len() < MAX_ENTRY_SYNCS);
                match room.map(|entries| (entries, io::fcntl_dupfd_cloexec(entry, 0))) {
                    Some((entries, Ok(entry))) => entries.push(entry),
                    // There are too many entries, or too many open files for another descriptor.
                    _ => *written = None,
                }
            }
            Self::Skip => {}
        }
        Ok(())
    }

    /// Syncs the added entries, and returns when the whole copy is on the disk.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Skip | Self::PerEntry => Ok(()),
            Self::AtEnd { written: Some(entries), .. } => {
                entries.iter().try_for_each(|entry| retry(|| fs::fsync(entry.as_fd())))
            }
            Self::AtEnd { top, written: None } => retry(|| fs::syncfs(&top)),
        }
    }
}
