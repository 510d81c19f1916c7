//! Fallible allocation, for implementers: lack of memory fails the call, not the process.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};

/// Reserves capacity in `buffer` for exactly `additional` more items.
///
/// # Errors
///
/// `too_large` if the allocation fails.
///
/// ```
/// use vfs_core::{ErrorKind, fallible_alloc};
///
/// let error = fallible_alloc::reserve(&mut Vec::<u8>::new(), usize::MAX).unwrap_err();
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

fn no_memory(bytes: usize) -> Error {
    Error::new(ErrorKind::TooLarge, format!("cannot allocate {bytes} bytes; request a smaller part"))
}
