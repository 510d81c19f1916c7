//! Memory that files are read into.

/// A page. Some processors copy many times slower to an address that is a few bytes beyond the beginning of one, which is
/// just where an allocator puts what is large.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes that begin at the beginning of a page.
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedBuffer {
    /// How many bytes there is room for.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Makes room for `len` bytes, if there is less; what is in it stays.
    pub(crate) fn grow(&mut self, len: usize) {
        if len <= self.len() {
            return;
        }
        let mut bytes = vec![0; len + PAGE_BYTES];
        // Where it cannot be told it is as good as any.
        let start = bytes.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        let held = self.bytes();
        bytes[start..start + held.len()].copy_from_slice(held);
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
    fn a_buffer_begins_with_a_page_and_keeps_what_is_in_it() {
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
