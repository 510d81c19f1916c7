//! What may be used.

use std::time::Duration;

use vfs_core::{Error, ErrorKind, Result, VfsPath};

/// Limits of a [`Quota`](super::Quota), for all callers in this process together or for each actor.
///
/// Every limit is off unless it is set. A limit of 0 lets nothing grow.
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
    /// Most bytes of all files together. Default: no limit.
    pub bytes: Option<u64>,
    /// Most files, directories not counted. Default: no limit.
    pub files: Option<u64>,
    /// Most bytes of a file that is made or grows. Default: no limit.
    pub file_size: Option<u64>,
    /// Most operations in a window of time, and how long that is. Default: no limit.
    pub operations: Option<(u64, Duration)>,
}

impl QuotaLimits {
    /// No limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most bytes of all files together.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Sets the most files.
    #[must_use]
    pub fn max_files(mut self, files: u64) -> Self {
        self.files = Some(files);
        self
    }

    /// Sets the most bytes of one file.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.file_size = Some(bytes);
        self
    }

    /// Sets the most operations in `window`. A window begins with the first operation after the last one ended.
    #[must_use]
    pub fn max_operations(mut self, operations: u64, window: Duration) -> Self {
        self.operations = Some((operations, window));
        self
    }

    /// Whether what is stored has to be known.
    pub(super) fn is_of_storage(&self) -> bool {
        self.bytes.is_some() || self.files.is_some()
    }

    pub(super) fn check_file(&self, path: &VfsPath, size: u64) -> Result<()> {
        match self.file_size {
            Some(most) if size > most => {
                let message = format!("{size} bytes are over the limit of {most} for one file; split it over several");
                Err(Error::new(ErrorKind::TooLarge, message).with_path(path))
            }
            _ => Ok(()),
        }
    }
}
