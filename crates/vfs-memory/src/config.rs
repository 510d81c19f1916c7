//! Limits and search workers of a store in memory.

use chrono::{DateTime, Utc};
use vfs_core::{Error, ErrorKind, Result, VfsPath};
use vfs_search::Pool;

use crate::file_map::FileMap;
use crate::memory_file::StateContentFormat;

/// Limits and search workers of a store in memory.
///
/// ```
/// use vfs_memory::{MemoryBackend, MemoryConfig};
///
/// let config = MemoryConfig::new().max_file_size(1 << 20).max_total_size(64 << 20);
/// let files = MemoryBackend::with_config(config);
/// # let _ = files;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryConfig {
    /// Maximum size of a file, in bytes. Default [`MemoryConfig::DEFAULT_MAX_FILE_SIZE`].
    pub max_file_size: u64,
    /// Maximum size of all files together, in bytes; copies count in full. Default: no limit.
    pub max_total_size: Option<u64>,
    /// Worker pool of `grep`. Default: [`Pool::global`], which all searches of the process share.
    pub search_pool: Option<Pool>,
}

impl MemoryConfig {
    /// Default maximum size of a file: 256 MiB.
    pub const DEFAULT_MAX_FILE_SIZE: u64 = 256 << 20;

    /// Returns the default settings.
    pub fn new() -> Self {
        Self { max_file_size: Self::DEFAULT_MAX_FILE_SIZE, max_total_size: None, search_pool: None }
    }

    /// Sets the maximum size of a file, in bytes.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self
    }

    /// Sets the maximum size of all files together, in bytes.
    #[must_use]
    pub fn max_total_size(mut self, bytes: u64) -> Self {
        self.max_total_size = Some(bytes);
        self
    }

    /// Sets the worker pool of `grep`.
    #[must_use]
    pub fn search_pool(mut self, pool: Pool) -> Self {
        self.search_pool = Some(pool);
        self
    }

    /// Returns the worker pool of `grep`.
    pub(crate) fn pool(&self) -> &Pool {
        self.search_pool.as_ref().unwrap_or_else(|| Pool::global())
    }
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// The time, the limits and the content format that a mutation applies.
#[derive(Debug)]
pub(crate) struct MutationContext<'a> {
    /// Time of creation and modification.
    pub(crate) now: DateTime<Utc>,
    /// Limits of the store.
    pub(crate) config: &'a MemoryConfig,
    /// Content format of new files in an agent's state.
    pub(crate) format: StateContentFormat,
}

impl<'a> MutationContext<'a> {
    /// Returns the rules at the current time.
    pub(crate) fn now(config: &'a MemoryConfig, format: StateContentFormat) -> Self {
        Self { now: Utc::now(), config, format }
    }

    /// Returns an error if a file of `size` bytes is too large.
    pub(crate) fn check_file(&self, path: &VfsPath, size: u64) -> Result<()> {
        let max = self.config.max_file_size;
        if size <= max {
            return Ok(());
        }
        let message = format!(
            "the file would be over the limit of {max} bytes: it would have {size}; split it into several files"
        );
        Err(Error::new(ErrorKind::TooLarge, message).with_path(path))
    }

    /// Returns an error if replacing `removed` by `added` bytes would exceed the total limit. A change that does not
    /// grow is never refused.
    pub(crate) fn check_total(&self, files: &FileMap, path: &VfsPath, removed: u64, added: u64) -> Result<()> {
        let total = files.bytes().saturating_sub(removed).saturating_add(added);
        match self.config.max_total_size {
            Some(max) if total > max && added > removed => {
                let message = format!(
                    "all files together would be over the limit of {max} bytes: they would have {total}; delete files first"
                );
                Err(Error::new(ErrorKind::QuotaExceeded, message).with_path(path))
            }
            _ => Ok(()),
        }
    }
}
