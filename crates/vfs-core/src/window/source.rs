//! Random access to the bytes of a file, and how much of it is read at once.

use crate::error::Result;
use crate::types::ReadRequest;

/// Files up to this size, 1 MiB, are looked at whole: their line count and encoding are always known.
pub(super) const SMALL_SOURCE_BYTES: usize = 1 << 20;

/// How much of a larger file is looked at in one step: 256 KiB.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

/// The bytes of one file, for random access.
pub trait Source {
    /// The size in bytes as far as it is known; a file that says 0 may still have content.
    fn size(&self) -> u64;

    /// Fills the beginning of `buffer` from `offset` and says how far; 0 at the end of the file only.
    ///
    /// It may fill less than there is, but where it stops just at [`Source::size`] with room to spare, the file ends there,
    /// and it is not asked again.
    ///
    /// # Errors
    ///
    /// Those of the place the bytes come from, and cancellation; no path needs to be named.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize>;
}

impl Source for &[u8] {
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

/// The most bytes of the file in the result.
pub(super) fn max_bytes(request: &ReadRequest) -> usize {
    let max = request.max_bytes.unwrap_or(ReadRequest::DEFAULT_MAX_BYTES);
    usize::try_from(max).unwrap_or(usize::MAX)
}
