//! Results as JSON, in memory that is bounded and reserved fallibly.

use std::io::{self, Write};

use serde::Serialize;
use vfs_core::{Error, ErrorKind, Result, buffer};

/// 512 MiB, the most bytes of one result as JSON.
const MAX_RESULT: usize = 512 << 20;

/// Room for the results of most requests, in bytes.
const FIRST_CAPACITY: usize = 1 << 10;

/// Returns `result` as JSON.
///
/// # Errors
///
/// `too_large`: the JSON is over the limit, or there is no memory for it.
pub(super) fn encode(result: &impl Serialize) -> Result<Vec<u8>> {
    encode_within(result, MAX_RESULT)
}

fn encode_within(result: &impl Serialize, max: usize) -> Result<Vec<u8>> {
    let mut buffer = JsonBuffer { bytes: Vec::new(), max, error: None };
    match serde_json::to_writer(&mut buffer, result) {
        Ok(()) => Ok(buffer.bytes),
        Err(error) => Err(buffer.error.unwrap_or_else(|| {
            Error::new(ErrorKind::Internal, "the result cannot be written as JSON").with_source(error)
        })),
    }
}

struct JsonBuffer {
    /// Never has room for more than `max` bytes.
    bytes: Vec<u8>,
    max: usize,
    /// Why it took no more.
    error: Option<Error>,
}

impl JsonBuffer {
    /// Makes room for `additional` bytes more, at least as much as there is already.
    #[cold]
    fn grow(&mut self, additional: usize) -> io::Result<()> {
        let length = self.bytes.len();
        let grown = if additional > self.max.saturating_sub(length) {
            let message = format!("the answer is over {} bytes as JSON; ask for less at once", self.max);
            Err(Error::new(ErrorKind::TooLarge, message))
        } else {
            let doubled = additional.max(length).max(FIRST_CAPACITY).min(self.max - length);
            buffer::reserve(&mut self.bytes, doubled)
        };
        grown.map_err(|error| {
            self.error = Some(error);
            io::ErrorKind::OutOfMemory.into()
        })
    }
}

impl Write for JsonBuffer {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// JSON comes in pieces of a few bytes, so all that is done for each is one comparison and the copy.
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
        let long = "x".repeat(3 * FIRST_CAPACITY);
        assert_eq!(encode_within(&long, long.len() + 2).expect("it fits").len(), long.len() + 2);
        encode_within(&[&long, &long], 2 * long.len() + 6).expect_err("it does not fit");
        let whole = encode_within(&"0123456789", 12).expect("it fits");
        assert_eq!(whole, b"\"0123456789\"");
        let error = encode_within(&"0123456789", 11).expect_err("it does not fit");
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("11 bytes"), "{error}");
    }
}
