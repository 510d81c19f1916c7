//! Results as JSON, in memory that is bounded and reserved fallibly.

use std::io::{self, Write};

use serde::Serialize;
use vfs_core::{Error, ErrorKind, Result, buffer};

/// 512 MiB, the most bytes of one result as JSON.
const MAX_RESULT: usize = 512 << 20;

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
    bytes: Vec<u8>,
    max: usize,
    /// Why it took no more.
    error: Option<Error>,
}

impl JsonBuffer {
    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let length = self.bytes.len().saturating_add(bytes.len());
        if length > self.max {
            let message = format!("the answer is over {} bytes as JSON; ask for less at once", self.max);
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        buffer::append(&mut self.bytes, bytes)
    }
}

impl Write for JsonBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.push(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.error = Some(error);
                Err(io::ErrorKind::OutOfMemory.into())
            }
        }
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
        let whole = encode_within(&"0123456789", 12).expect("it fits");
        assert_eq!(whole, b"\"0123456789\"");
        let error = encode_within(&"0123456789", 11).expect_err("it does not fit");
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("11 bytes"), "{error}");
    }
}
