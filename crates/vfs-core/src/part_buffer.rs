//! Buffer that cuts chunks into parts of one size.

use bytes::{Bytes, BytesMut};

/// Cuts chunks of any size into parts of one size, for backends that store a content in parts.
///
/// A full part is returned only once there are bytes after it, so that the last part of a content is never empty.
///
/// ```
/// use bytes::Bytes;
/// use vfs_core::part_buffer::PartBuffer;
///
/// let mut parts = PartBuffer::new(4);
/// let mut chunk = Bytes::from("abcdef");
/// assert_eq!(parts.next_part(&mut chunk).as_deref(), Some(&b"abcd"[..]));
/// assert_eq!(parts.next_part(&mut chunk), None);
/// assert_eq!(parts.take_rest(), "ef");
/// ```
#[derive(Debug)]
pub struct PartBuffer {
    part_size: usize,
    rest: BytesMut,
}

impl PartBuffer {
    /// Returns an empty buffer for parts of `part_size` bytes, at least 1.
    pub fn new(part_size: usize) -> Self {
        Self { part_size: part_size.max(1), rest: BytesMut::new() }
    }

    /// Returns the number of bytes that are not part of a full part yet.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Returns `true` if there are no bytes beyond the parts that were returned.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes bytes from the beginning of `chunk`, and returns a full part, or `None` if all of the chunk is taken.
    pub fn next_part(&mut self, chunk: &mut Bytes) -> Option<Bytes> {
        let room = self.part_size.saturating_sub(self.rest.len());
        if chunk.len() <= room {
            self.rest.extend_from_slice(chunk);
            chunk.clear();
            return None;
        }
        let end = chunk.split_to(room);
        if self.rest.is_empty() {
            return Some(end);
        }
        self.rest.extend_from_slice(&end);
        Some(self.rest.split().freeze())
    }

    /// Takes the bytes after the last full part.
    pub fn take_rest(&mut self) -> Bytes {
        self.rest.split().freeze()
    }

    /// Puts back the bytes that [`take_rest`](Self::take_rest) returned.
    pub fn restore(&mut self, rest: &Bytes) {
        self.rest.extend_from_slice(rest);
    }
}
