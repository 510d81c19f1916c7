//! Fallible allocation, for implementers: lack of memory fails the call, not the process.

use bytes::{Bytes, BytesMut};

use crate::error::{Error, ErrorKind, Result};

/// Reserves capacity in `buffer` for exactly `additional` more items.
///
/// # Errors
///
/// `too_large` if the allocation fails.
///
/// ```
/// use vfs_core::{ErrorKind, buffer};
///
/// let error = buffer::reserve(&mut Vec::<u8>::new(), usize::MAX).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::TooLarge);
/// ```
pub fn reserve<T>(buffer: &mut Vec<T>, additional: usize) -> Result<()> {
    let needed = buffer.len().saturating_add(additional).saturating_mul(size_of::<T>());
    buffer.try_reserve_exact(additional).map_err(|error| no_memory(needed).with_source(error))
}

/// Returns an empty buffer with a capacity of `bytes`.
///
/// # Errors
///
/// `too_large` if the allocation fails.
pub fn with_capacity(bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    reserve(&mut buffer, bytes)?;
    Ok(buffer)
}

/// Sets the length of `buffer` to `bytes`; new bytes are zero.
///
/// # Errors
///
/// `too_large` if the allocation fails.
pub fn resize(buffer: &mut Vec<u8>, bytes: usize) -> Result<()> {
    reserve(buffer, bytes.saturating_sub(buffer.len()))?;
    buffer.resize(bytes, 0);
    Ok(())
}

/// Appends `bytes` to `buffer`, with amortised growth.
///
/// # Errors
///
/// `too_large` if the allocation fails.
pub fn append(buffer: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    let needed = buffer.len().saturating_add(bytes.len());
    buffer.try_reserve(bytes.len()).map_err(|error| no_memory(needed).with_source(error))?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

/// Returns a copy of `bytes`.
///
/// # Errors
///
/// `too_large` if the allocation fails.
pub fn copy(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut buffer = with_capacity(bytes.len())?;
    buffer.extend_from_slice(bytes);
    Ok(buffer)
}

/// Returns a copy of `text`.
///
/// # Errors
///
/// `too_large` if the allocation fails.
pub fn copy_text(text: &str) -> Result<String> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|error| no_memory(text.len()).with_source(error))?;
    copy.push_str(text);
    Ok(copy)
}

/// Returns `first` followed by `second`. If `first` is empty, `second` is not copied.
///
/// # Errors
///
/// `too_large` if the allocation fails.
pub fn join(first: &Bytes, second: &Bytes) -> Result<Bytes> {
    if first.is_empty() {
        return Ok(second.clone());
    }
    let mut joined = with_capacity(first.len().saturating_add(second.len()))?;
    joined.extend_from_slice(first);
    joined.extend_from_slice(second);
    Ok(joined.into())
}

/// Cuts chunks of any size into parts of one size, for backends that store a content in parts.
///
/// A full part is returned only once there are bytes after it, so that the last part of a content is never empty.
///
/// ```
/// use bytes::Bytes;
/// use vfs_core::buffer::PartBuffer;
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

fn no_memory(bytes: usize) -> Error {
    Error::new(ErrorKind::TooLarge, format!("cannot allocate {bytes} bytes; request a smaller part"))
}
