//! Space that is set aside on the disk, for the removal of files once it is full.
//!
//! SQLite writes the pages that a removal changes to its log before any are free, and the log to the file before it is short
//! again: nothing can be removed from a file on a full disk.

#![expect(clippy::disallowed_methods, reason = "the file is beside that of SQLite, and in no backend")]

use std::path::PathBuf;

use super::config::Location;

/// The most that is set aside, in bytes: what the log has before SQLite writes it to the file (4 MiB), and what removals add.
const MAX_BYTES: u64 = 6 << 20;
/// The least that is worth it, in bytes.
const MIN_BYTES: u64 = 256 << 10;
/// The part of the free space that is set aside at most.
const SHARE: u64 = 2;

/// A file beside that of the store, which holds nothing and has its space on the disk.
#[derive(Debug)]
pub(super) struct Reserve {
    /// `None` in memory.
    path: Option<PathBuf>,
}

impl Reserve {
    pub(super) fn new(location: &Location) -> Self {
        let Location::File(file) = location else { return Self { path: None } };
        let mut path = file.clone().into_os_string();
        path.push("-reserve");
        Self { path: Some(path.into()) }
    }

    /// Sets space aside where there is none yet, and enough is free. The store works without, so that a failure is not reported.
    #[cfg(target_os = "linux")]
    pub(super) fn set_aside(&self) {
        use rustix::fs::{FallocateFlags, fallocate, statvfs};
        use vfs_search::without_size_signal;

        let Some(path) = self.path.as_ref().filter(|path| !path.exists()) else { return };
        let free = path.parent().and_then(|directory| statvfs(directory).ok());
        let bytes = free.map_or(0, |free| (free.f_bavail.saturating_mul(free.f_frsize) / SHARE).min(MAX_BYTES));
        if bytes < MIN_BYTES {
            return;
        }
        let Ok(file) = std::fs::File::create_new(path) else { return };
        // A process may be limited to smaller files, and ended by a signal where it makes a larger one.
        let (made, _met_limit) = without_size_signal(|| fallocate(&file, FallocateFlags::empty(), 0, bytes));
        if made.is_err() {
            self.give_back();
        }
    }

    /// Only Linux can set space aside without writing all of it.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn set_aside(&self) {}

    /// Gives the space back to the disk, if there is any.
    pub(super) fn give_back(&self) {
        if let Some(path) = &self.path
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::debug!(%error, "no space was set aside beside a SQLite file");
        }
    }
}
