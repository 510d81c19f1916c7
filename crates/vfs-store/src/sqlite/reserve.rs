//! Disk space reserved for removals from a full disk.
//!
//! SQLite writes the pages that a removal changes to its log before any are free, and the log to the file before it is short
//! again: nothing can be removed from a file on a full disk.

use super::config::DatabaseLocation;

/// A file of zeros beside that of the store, which has its space on the disk. Only Linux can make one without writing all of it.
#[derive(Debug)]
pub(super) struct DiskReserve {
    /// `None` in memory, and where it cannot be made.
    #[cfg(target_os = "linux")]
    path: Option<std::path::PathBuf>,
}

#[cfg(not(target_os = "linux"))]
impl DiskReserve {
    pub(super) fn beside(_location: &DatabaseLocation) -> Self {
        Self {}
    }

    pub(super) fn set_aside(&self) {}

    pub(super) fn give_back(&self) {}
}

#[cfg(target_os = "linux")]
mod linux {
    #![expect(clippy::disallowed_methods, reason = "the file is beside that of SQLite, and in no backend")]

    use std::fs::{self, File};
    use std::io::{self, Read as _};
    use std::os::linux::fs::MetadataExt as _;
    use std::path::Path;

    use rustix::fs::{FallocateFlags, OFlags, fallocate, statvfs};
    use vfs_search::without_size_signal;

    use super::{DatabaseLocation, DiskReserve};

    /// The most that is set aside, in bytes: what the log has before SQLite writes it to the file (4 MiB), and what removals add.
    const MAX_BYTES: u64 = 6 << 20;
    /// The least that is worth it, in bytes.
    const MIN_BYTES: u64 = 128 << 10;
    /// Bytes of a block in what the system counts.
    const BLOCK: u64 = 512;

    impl DiskReserve {
        /// For the file at `location`, which is there.
        pub(in super::super) fn beside(location: &DatabaseLocation) -> Self {
            let DatabaseLocation::File(file) = location else { return Self { path: None } };
            // SQLite has its own files beside the file itself, and not beside a link to it.
            let path = fs::canonicalize(file).ok().map(|file| {
                let mut path = file.into_os_string();
                path.push("-reserve");
                path.into()
            });
            Self { path }
        }

        /// Sets space aside where there is none yet, and enough is free. The store works without, so that a failure is no error.
        pub(in super::super) fn set_aside(&self) {
            let Some(path) = &self.path else { return };
            // One that has no space is of a process that ended in between, or a copy.
            match fs::symlink_metadata(path) {
                Ok(found) if found.st_blocks() * BLOCK >= MIN_BYTES => return,
                Ok(_) => self.give_back(),
                Err(_) => {}
            }
            // Removals that need it come again, and others go on writing: a quarter is left to them.
            let free = path.parent().and_then(|directory| statvfs(directory).ok());
            let bytes = free.map_or(0, |free| (free.f_bavail.saturating_mul(free.f_frsize) / 4 * 3).min(MAX_BYTES));
            if bytes < MIN_BYTES {
                return;
            }
            // A process may be limited to smaller files, and ended by a signal where it makes a larger one.
            let (made, _met_limit) = without_size_signal(|| make(path, bytes));
            if let Err(error) = made {
                tracing::debug!(%error, "no space is set aside beside a SQLite file");
                self.give_back();
            }
        }

        /// Gives the space back to the disk, if there is any. A file of others that has its name is left.
        pub(in super::super) fn give_back(&self) {
            let Some(path) = &self.path else { return };
            if let Err(error) = remove(path) {
                tracing::debug!(%error, "no space is given back beside a SQLite file");
            }
        }
    }

    fn make(path: &Path, bytes: u64) -> io::Result<()> {
        Ok(fallocate(File::create_new(path)?, FallocateFlags::empty(), 0, bytes)?)
    }

    fn remove(path: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
        let found = file.metadata()?;
        let mut content = Vec::new();
        if found.is_file() && found.len() <= MAX_BYTES {
            file.take(MAX_BYTES).read_to_end(&mut content)?;
        }
        if content.len() as u64 != found.len() || content.iter().any(|byte| *byte != 0) {
            return Err(io::Error::other("the file beside it is none of this store"));
        }
        fs::remove_file(path)
    }
}
