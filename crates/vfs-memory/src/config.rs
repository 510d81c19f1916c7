//! What a store in memory may hold, what searches it, and what a change to it goes by.

use chrono::{DateTime, Utc};
use vfs_core::{Error, ErrorKind, Result, VfsPath};
use vfs_search::Pool;

use crate::file::StateFormat;
use crate::map::FileMap;

/// How much a store in memory may hold, and what searches it.
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
    /// The largest file, in bytes. Default [`MemoryConfig::DEFAULT_MAX_FILE_SIZE`].
    pub max_file_size: u64,
    /// Most bytes of all files together; a file that was copied counts twice. Default: no bound.
    pub max_total_size: Option<u64>,
    /// The workers that `grep` takes. Default: [`Pool::global`], which all searches of the process share.
    pub search_pool: Option<Pool>,
}

impl MemoryConfig {
    /// 256 MiB.
    pub const DEFAULT_MAX_FILE_SIZE: u64 = 256 << 20;

    /// The defaults.
    pub fn new() -> Self {
        Self { max_file_size: Self::DEFAULT_MAX_FILE_SIZE, max_total_size: None, search_pool: None }
    }

    /// Sets the largest file, in bytes.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self
    }

    /// Sets the most bytes of all files together.
    #[must_use]
    pub fn max_total_size(mut self, bytes: u64) -> Self {
        self.max_total_size = Some(bytes);
        self
    }

    /// Sets the workers that `grep` takes.
    #[must_use]
    pub fn search_pool(mut self, pool: Pool) -> Self {
        self.search_pool = Some(pool);
        self
    }

    /// The workers that `grep` takes.
    pub(crate) fn pool(&self) -> &Pool {
        self.search_pool.as_ref().unwrap_or_else(|| Pool::global())
    }
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// What a change goes by beside its request.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    /// The time that new and changed files get.
    pub(crate) now: DateTime<Utc>,
    /// What the store may hold.
    pub(crate) config: &'a MemoryConfig,
    /// How an agent's state spells files that are new.
    pub(crate) format: StateFormat,
}

impl<'a> Rules<'a> {
    /// The rules of this moment.
    pub(crate) fn now(config: &'a MemoryConfig, format: StateFormat) -> Self {
        Self { now: Utc::now(), config, format }
    }

    /// Whether a file of `size` bytes may be at `path`.
    pub(crate) fn check_file(&self, path: &VfsPath, size: u64) -> Result<()> {
        let max = self.config.max_file_size;
        if size <= max {
            return Ok(());
        }
        let message = format!("{size} bytes are over the limit of {max} for one file; split it over several files");
        Err(Error::new(ErrorKind::TooLarge, message).with_path(path))
    }

    /// Whether `added` bytes may take the place of `removed` in `files`. What does not grow is never refused.
    pub(crate) fn check_total(&self, files: &FileMap, path: &VfsPath, removed: u64, added: u64) -> Result<()> {
        let total = files.bytes().saturating_sub(removed).saturating_add(added);
        match self.config.max_total_size {
            Some(max) if total > max && added > removed => {
                let message =
                    format!("all files together would have {total} bytes, over the quota of {max}; delete some first");
                Err(Error::new(ErrorKind::QuotaExceeded, message).with_path(path))
            }
            _ => Ok(()),
        }
    }
}
