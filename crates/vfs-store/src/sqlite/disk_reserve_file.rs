//! Disk space reserved for removals from a full disk.
//!
//! SQLite writes the pages that a removal changes to its log before it frees any, and the log to the file before it
//! truncates the log. Without a reserve, nothing can be removed from a file on a full disk.

use super::config::DatabaseLocation;

/// File of zeros next to that of the store, which occupies disk space. Only Linux can allocate the space without
/// writing it.
#[derive(Debug)]
pub(super) struct DiskReserveFile {
    /// `None` for a database in memory, and if the path of the file cannot be resolved.
    #[cfg(target_os = "linux")]
    path: Option<std::path::PathBuf>,
}

#[cfg(not(target_os = "linux"))]
impl DiskReserveFile {
    pub(super) fn beside(_location: &DatabaseLocation) -> Self {
        Self {}
    }

    pub(super) fn allocate(&self) {}

    pub(super) fn release(&self) {}
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

    use super::{DatabaseLocation, DiskReserveFile};

    /// Maximum size of the reserve in bytes: the size of the log at which SQLite writes it to the file (4 MiB), and the
    /// pages that removals add.
    const MAX_BYTES: u64 = 6 << 20;
    /// Minimum size of a useful reserve in bytes.
    const MIN_BYTES: u64 = 128 << 10;
    /// Size in bytes of the blocks that `st_blocks` counts.
    const BLOCK: u64 = 512;

    impl DiskReserveFile {
        /// Returns the reserve of the file at `location`, which must exist.
        pub(in super::super) fn beside(location: &DatabaseLocation) -> Self {
            let DatabaseLocation::File(file) = location else { return Self { path: None } };
            // SQLite puts its own files next to the file itself, and not next to a link to it.
            let path = fs::canonicalize(file).ok().map(|file| {
                let mut path = file.into_os_string();
                path.push("-reserve");
                path.into()
            });
            Self { path }
        }

        /// Allocates the reserve if there is none yet and enough space is free. The store works without one, so a
        /// failure is not an error.
        pub(in super::super) fn allocate(&self) {
            let Some(path) = &self.path else { return };
            // A file without disk space was left by a process that crashed, or is a copy.
            match fs::symlink_metadata(path) {
                Ok(found) if found.st_blocks() * BLOCK >= MIN_BYTES => return,
                Ok(_) => self.release(),
                Err(_) => {}
            }
            // A quarter of the free space is left to other writers.
            let free = path.parent().and_then(|directory| statvfs(directory).ok());
            let bytes = free.map_or(0, |free| (free.f_bavail.saturating_mul(free.f_frsize) / 4 * 3).min(MAX_BYTES));
            if bytes < MIN_BYTES {
                return;
            }
            // A file that exceeds the file size limit of the process would raise a signal that ends it.
            let (result, _hit_limit) = without_size_signal(|| create(path, bytes));
            if let Err(error) = result {
                tracing::debug!(%error, "no disk space is reserved for a SQLite file");
                self.release();
            }
        }

        /// Frees the space of the reserve, if there is one. A file of the same name that is not a reserve is left
        /// alone.
        pub(in super::super) fn release(&self) {
            let Some(path) = &self.path else { return };
            if let Err(error) = remove(path) {
                tracing::debug!(%error, "the disk space reserved for a SQLite file is not released");
            }
        }
    }

    fn create(path: &Path, bytes: u64) -> io::Result<()> {
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
            return Err(io::Error::other("the file is not a reserve of this store"));
        }
        fs::remove_file(path)
    }
}
