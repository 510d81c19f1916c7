//! Bringing the copy of a tree to the disk, in as few steps as its file system allows.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs;
use rustix::io;

use crate::config::options::Durability;
use crate::fs::errno::retry;
use crate::fs::file_systems;

/// Up to so many files and directories are synced one by one, so that a small copy does not wait for what all other programs
/// have written to the file system.
const MAX_ENTRY_SYNCS: usize = 128;

/// What of a copy has to be synced, and how.
#[derive(Debug)]
pub(crate) enum TreeSync {
    Skip,
    /// Each file and directory by itself, once it is written: where a sync of the whole file system need not tell what failed
    /// to be written. It does so on the disks of this machine, but not through an overlay, which keeps the errors of its upper
    /// layer to itself.
    PerEntry,
    /// All at the end. To sync each of many files is to wait for the disk that many times.
    AtEnd {
        /// The topmost directory, opened before anything was written: what fails to be written later is told here.
        top: OwnedFd,
        /// What was written, unless that is too much to be synced one by one.
        written: Option<Vec<OwnedFd>>,
    },
}

impl TreeSync {
    /// For a copy into the directory `top`.
    pub(crate) fn new(durability: Durability, top: &OwnedFd) -> io::Result<Self> {
        Ok(match durability {
            Durability::Atomic => Self::Skip,
            Durability::Full if !(file_systems::is_on_local_disk(top) && file_systems::syncfs_reports_errors()) => {
                Self::PerEntry
            }
            Durability::Full => Self::AtEnd { top: io::fcntl_dupfd_cloexec(top, 0)?, written: Some(Vec::new()) },
        })
    }

    /// Takes note of a file or directory of the copy to which nothing is written any more.
    pub(crate) fn add(&mut self, entry: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Self::PerEntry => retry(|| fs::fsync(entry))?,
            Self::AtEnd { written, .. } => {
                let room = written.as_mut().filter(|entries| entries.len() < MAX_ENTRY_SYNCS);
                match room.map(|entries| (entries, io::fcntl_dupfd_cloexec(entry, 0))) {
                    Some((entries, Ok(entry))) => entries.push(entry),
                    // There are too many for that, or too many files are open to hold another.
                    _ => *written = None,
                }
            }
            Self::Skip => {}
        }
        Ok(())
    }

    /// Returns when all of the copy is on the disk.
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
