//! Limits of a quota.

use std::time::Duration;

use vfs_core::{Error, ErrorKind, Result, VfsPath};

/// Limits of a [`Quota`](super::Quota), for all callers in this process together or for each actor.
///
/// Every limit is off unless it is set. A limit of 0 refuses all growth.
///
/// ```
/// use std::time::Duration;
/// use vfs_layers::QuotaLimits;
///
/// let limits = QuotaLimits::new()
///     .max_bytes(1 << 30)
///     .max_files(10_000)
///     .max_file_size(8 << 20)
///     .max_operations(1_000, Duration::from_secs(60));
/// # let _ = limits;
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaLimits {
    /// Maximum bytes of all files together. Default: no limit.
    pub bytes: Option<u64>,
    /// Maximum number of files, without directories. Default: no limit.
    pub files: Option<u64>,
    /// Maximum bytes of a file that is created or grows. Default: no limit.
    pub file_size: Option<u64>,
    /// Maximum number of operations in a window of time, and its length. Default: no limit.
    pub operations: Option<(u64, Duration)>,
}

impl QuotaLimits {
    /// Returns settings without limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum bytes of all files together.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Sets the maximum number of files.
    #[must_use]
    pub fn max_files(mut self, files: u64) -> Self {
        self.files = Some(files);
        self
    }

    /// Sets the maximum bytes of one file.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.file_size = Some(bytes);
        self
    }

    /// Sets the maximum number of operations in `window`. A window begins with the first operation after the previous
    /// one has ended. Operations that a layer around the quota sends count too, such as the `stat` of an audit log
    /// before and after a change; those of a layer within do not.
    #[must_use]
    pub fn max_operations(mut self, operations: u64, window: Duration) -> Self {
        self.operations = Some((operations, window));
        self
    }

    /// Returns whether a limit needs the stored amounts.
    pub(super) fn limits_storage(&self) -> bool {
        self.bytes.is_some() || self.files.is_some()
    }

    /// Returns an error if a file of `size` bytes is too large.
    pub(super) fn check_file(&self, path: &VfsPath, size: u64) -> Result<()> {
        match self.file_size {
            Some(max) if size > max => {
                let message = format!(
                    "the file would be over the limit of {max} bytes: it would have {size}; split it into several files"
                );
                Err(Error::new(ErrorKind::TooLarge, message).with_path(path))
            }
            _ => Ok(()),
        }
    }
}
