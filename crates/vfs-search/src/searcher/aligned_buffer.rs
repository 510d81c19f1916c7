//! Page-aligned read buffer.

/// Size of a page in bytes. Some processors copy many times slower to an address a few bytes past the start of a page,
/// which is where allocators place large allocations.
pub(crate) const PAGE_BYTES: usize = 4096;

/// A byte buffer that starts on a page boundary.
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedBuffer {
    /// Returns the capacity in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Grows the capacity to `len` bytes if it is smaller, and keeps the contents.
    pub(crate) fn grow(&mut self, len: usize) {
        if len <= self.len() {
            return;
        }
        let mut bytes = vec![0; len + PAGE_BYTES];
        // If the alignment cannot be computed, any start will do.
        let start = bytes.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        let contents = self.bytes();
        bytes[start..start + contents.len()].copy_from_slice(contents);
        bytes.truncate(start + len);
        *self = Self { bytes, start };
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_starts_on_a_page_and_keeps_its_contents() {
        let mut buffer = AlignedBuffer::default();
        assert_eq!(buffer.bytes(), b"");
        for len in [10, 64 << 10, 100, 1 << 20] {
            buffer.grow(len);
            assert!(buffer.len() >= len);
            assert!(buffer.bytes().as_ptr().addr().is_multiple_of(PAGE_BYTES));
            buffer.bytes_mut()[..10].copy_from_slice(b"0123456789");
        }
        buffer.grow(2 << 20);
        assert_eq!((buffer.len(), &buffer.bytes()[..10]), (2 << 20, &b"0123456789"[..]));
    }
}
