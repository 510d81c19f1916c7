//! Bringing the copy of a tree to the disk, in as few steps as its file system allows.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs;
use rustix::io;

use crate::config::options::Durability;
use crate::fs::errno::retry;
use crate::fs::file_systems;

/// Up to so many files and directories are synced one by one, so that a small copy does not wait for what all other programs
/// have written to the file system.
const MAX_SINGLE_SYNCS: usize = 128;

/// What of a copy has to be synced, and how.
#[derive(Debug)]
pub(crate) enum TreeSync {
    Nothing,
    /// Each file and directory by itself, once it is written: where a sync of the whole file system need not tell what failed
    /// to be written. It does so on the disks of this machine, but not through an overlay, which keeps the errors of its upper
    /// layer to itself.
    Each,
    /// All at the end. To sync each of many files is to wait for the disk that many times.
    Together {
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
            Durability::Atomic => Self::Nothing,
            Durability::Full if !(file_systems::is_on_disk(top) && file_systems::syncs_tell_errors()) => Self::Each,
            Durability::Full => Self::Together { top: io::fcntl_dupfd_cloexec(top, 0)?, written: Some(Vec::new()) },
        })
    }

    /// Takes note of a file or directory of the copy to which nothing is written any more.
    pub(crate) fn add(&mut self, entry: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Self::Each => retry(|| fs::fsync(entry))?,
            Self::Together { written, .. } => {
                let room = written.as_mut().filter(|entries| entries.len() < MAX_SINGLE_SYNCS);
                match room.map(|entries| (entries, io::fcntl_dupfd_cloexec(entry, 0))) {
                    Some((entries, Ok(entry))) => entries.push(entry),
                    // There are too many for that, or too many files are open to hold another.
                    _ => *written = None,
                }
            }
            Self::Nothing => {}
        }
        Ok(())
    }

    /// Returns when all of the copy is on the disk.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Nothing | Self::Each => Ok(()),
            Self::Together { written: Some(entries), .. } => {
                entries.iter().try_for_each(|entry| retry(|| fs::fsync(entry.as_fd())))
            }
            Self::Together { top, written: None } => retry(|| fs::syncfs(&top)),
        }
    }
}
