//! JSON encoder with bounded, fallible allocation.

use std::io::{self, Write};

use serde::Serialize;
use vfs_core::{Error, ErrorKind, Result, fallible_alloc};

/// Maximum size of a result as JSON in bytes, 512 MiB.
const MAX_RESULT_SIZE: usize = 512 << 20;

/// Initial capacity in bytes, sufficient for most results.
const INITIAL_CAPACITY: usize = 1 << 10;

/// Encodes `result` as JSON.
///
/// # Errors
///
/// `too_large`: the JSON exceeds the limit, or no memory is available.
pub(super) fn encode(result: &impl Serialize) -> Result<Vec<u8>> {
    encode_within(result, MAX_RESULT_SIZE)
}

fn encode_within(result: &impl Serialize, max: usize) -> Result<Vec<u8>> {
    let mut buffer = BoundedJsonBuffer { bytes: Vec::new(), max, error: None };
    match serde_json::to_writer(&mut buffer, result) {
        Ok(()) => Ok(buffer.bytes),
        Err(error) => Err(buffer.error.unwrap_or_else(|| {
            Error::new(ErrorKind::Internal, "the result cannot be written as JSON").with_source(error)
        })),
    }
}

/// Buffer of encoded JSON, which refuses to grow beyond its maximum size.
struct BoundedJsonBuffer {
    /// The capacity never exceeds `max`.
    bytes: Vec<u8>,
    max: usize,
    /// The reason of a failed write.
    error: Option<Error>,
}

impl BoundedJsonBuffer {
    /// Reserves at least `additional` bytes, and doubles the capacity if possible.
    #[cold]
    fn grow(&mut self, additional: usize) -> io::Result<()> {
        let length = self.bytes.len();
        let grown = if additional > self.max.saturating_sub(length) {
            let message = format!("the answer exceeds {} bytes as JSON; request less at once", self.max);
            Err(Error::new(ErrorKind::TooLarge, message))
        } else {
            let doubled = additional.max(length).max(INITIAL_CAPACITY).min(self.max - length);
            fallible_alloc::reserve(&mut self.bytes, doubled)
        };
        grown.map_err(|error| {
            self.error = Some(error);
            io::ErrorKind::OutOfMemory.into()
        })
    }
}

impl Write for BoundedJsonBuffer {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// The serializer writes a few bytes at a time, so each write is only one comparison and a copy.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.bytes.capacity() - self.bytes.len() {
            self.grow(bytes.len())?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_over_the_limit_is_refused() {
        let long = "x".repeat(3 * INITIAL_CAPACITY);
        assert_eq!(encode_within(&long, long.len() + 2).expect("it fits").len(), long.len() + 2);
        encode_within(&[&long, &long], 2 * long.len() + 6).expect_err("it does not fit");
        let whole = encode_within(&"0123456789", 12).expect("it fits");
        assert_eq!(whole, b"\"0123456789\"");
        let error = encode_within(&"0123456789", 11).expect_err("it does not fit");
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("11 bytes"), "{error}");
    }
}
