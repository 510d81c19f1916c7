//! Random access to the bytes of a file, and block sizes.

use crate::error::Result;
use crate::requests::ReadRequest;

/// The maximum size of a file that is read whole, to determine its line count and encoding: 1 MiB.
pub(super) const SMALL_SOURCE_BYTES: usize = 1 << 20;

/// The size of a block of a larger file: 256 KiB.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

/// Random access to the bytes of one file.
pub trait ContentSource {
    /// Returns the reported size in bytes. The content may be longer, as in special files of size 0.
    fn size(&self) -> u64;

    /// Reads bytes at `offset` into `buffer`, and returns their number; 0 only at the end of the file.
    ///
    /// A short read is not the end of the file, unless it stops exactly at [`ContentSource::size`].
    ///
    /// # Errors
    ///
    /// Errors of the storage, and cancellation. Errors need not name a path.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize>;
}

impl ContentSource for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let count = buffer.len().min(self.len() - start);
        buffer[..count].copy_from_slice(&self[start..start + count]);
        Ok(count)
    }
}

/// Returns the maximum size of the window in bytes.
pub(super) fn max_bytes(request: &ReadRequest) -> usize {
    let max = request.max_bytes.unwrap_or(ReadRequest::DEFAULT_MAX_BYTES);
    usize::try_from(max).unwrap_or(usize::MAX)
}
