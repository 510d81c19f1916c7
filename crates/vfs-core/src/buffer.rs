//! Buffers whose size a request or a file decides: memory that is not there is an error of the call, not the end of the
//! process.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};

/// Reserves room in `buffer` for exactly `additional` items more.
///
/// # Errors
///
/// `too_large`: the memory cannot be had.
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

/// Returns an empty buffer with room for `bytes`.
///
/// # Errors
///
/// `too_large`: the memory cannot be had.
pub fn with_capacity(bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    reserve(&mut buffer, bytes)?;
    Ok(buffer)
}

/// Sets the length of `buffer` to `bytes`; what is new is zero.
///
/// # Errors
///
/// `too_large`: the memory cannot be had.
pub fn resize(buffer: &mut Vec<u8>, bytes: usize) -> Result<()> {
    reserve(buffer, bytes.saturating_sub(buffer.len()))?;
    buffer.resize(bytes, 0);
    Ok(())
}

/// Appends `bytes` to `buffer`, which grows as a `Vec` does.
///
/// # Errors
///
/// `too_large`: the memory cannot be had.
pub fn append(buffer: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    let needed = buffer.len().saturating_add(bytes.len());
    buffer.try_reserve(bytes.len()).map_err(|error| no_memory(needed).with_source(error))?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

/// Copies `bytes`.
///
/// # Errors
///
/// `too_large`: the memory cannot be had.
pub fn copy(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut buffer = with_capacity(bytes.len())?;
    buffer.extend_from_slice(bytes);
    Ok(buffer)
}

/// Copies `text`.
///
/// # Errors
///
/// `too_large`: the memory cannot be had.
pub fn copy_text(text: &str) -> Result<String> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|error| no_memory(text.len()).with_source(error))?;
    copy.push_str(text);
    Ok(copy)
}

/// Returns `first` and `second`, one after the other. `second` alone is not copied.
///
/// # Errors
///
/// `too_large`: the memory cannot be had.
pub fn join(first: &Bytes, second: &Bytes) -> Result<Bytes> {
    if first.is_empty() {
        return Ok(second.clone());
    }
    let mut joined = with_capacity(first.len().saturating_add(second.len()))?;
    joined.extend_from_slice(first);
    joined.extend_from_slice(second);
    Ok(joined.into())
}

fn no_memory(bytes: usize) -> Error {
    Error::new(ErrorKind::TooLarge, format!("no memory for {bytes} bytes; ask for a smaller part"))
}
