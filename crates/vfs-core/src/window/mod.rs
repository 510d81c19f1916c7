//! Windows of files by lines or bytes, at a cost proportional to the window.

mod block_reader;
mod byte_window;
mod content_source;
mod encoded_newline;
mod line_index;
mod line_window;
#[cfg(test)]
mod tests;

use bytes::Bytes;

pub use self::content_source::ContentSource;
pub use self::line_index::LineIndex;
pub use crate::requests::{ByteRange, ContentForm};

use self::block_reader::{MemoryBlockReader, SourceBlockReader, SourceBySize, open};
use self::content_source::SMALL_SOURCE_BYTES;
use crate::error::{Error, Result};
use crate::requests::{ReadRequest, ReadResult, Version};

/// Reads the window of `request` from `source`, whose content has `version`.
///
/// # Behaviour
///
/// * Memory is bounded by the size of the window plus 1 MiB.
/// * A window of lines is cut after the last line that fits into `max_bytes`. If the first line does not fit, it is cut itself,
///   after at least one whole character.
/// * `total_lines` is set for a file of up to 1 MiB, and if the window reaches the end of the file.
/// * Binary content is returned from its beginning; `limit` has no effect.
/// * If a file has more content than its reported size, it is read to its end, up to 64 MiB beyond that size.
///
/// # Errors
///
/// All errors name the path of the request.
///
/// * `invalid_argument`: both `bytes` and `offset` or `limit` are set; the range ends before it starts, or starts past the end;
///   `max_bytes` is 0; the `offset` is past the end, with the number of lines in the detail.
/// * `not_text`: the `offset` of a binary file is not 0.
/// * `too_large`: the file has more than 64 MiB beyond its reported size.
/// * Errors of `source`.
pub fn read(source: &mut dyn ContentSource, request: &ReadRequest, version: Version) -> Result<ReadResult> {
    read_source(source, None, request, version)
}

/// Reads as [`read`] does, from the last indexed position before the window, and adds new positions to `index`.
///
/// # Behaviour
///
/// * The result is that of [`read`]. The index must be of the same version of the same file.
/// * Positions are added even if the read fails. A file of up to 1 MiB is not indexed.
///
/// # Errors
///
/// The errors of [`read`].
///
/// ```
/// use vfs_core::window::{LineIndex, read_indexed};
/// use vfs_core::{ReadRequest, Version, VfsPath};
///
/// let log = "one line of many\n".repeat(100_000);
/// let mut index = LineIndex::new();
/// for page in [80_000, 80_100] {
///     let request = ReadRequest::new(VfsPath::parse("/log")?).lines(page, 100);
///     let window = read_indexed(&mut log.as_bytes(), &mut index, &request, Version::new("1"))?;
///     assert_eq!(window.start_line, page + 1);
/// }
/// assert!(index.reach() > 1 << 20, "the second page starts from the index of the first one");
/// # Ok::<(), vfs_core::Error>(())
/// ```
pub fn read_indexed(
    source: &mut dyn ContentSource,
    index: &mut LineIndex,
    request: &ReadRequest,
    version: Version,
) -> Result<ReadResult> {
    read_source(source, Some(index), request, version)
}

fn read_source(
    source: &mut dyn ContentSource,
    index: Option<&mut LineIndex>,
    request: &ReadRequest,
    version: Version,
) -> Result<ReadResult> {
    let read = || {
        check(request)?;
        if let Some(range) = request.bytes {
            return byte_window::read(&mut SourceBlockReader::new(source), range, request, version);
        }
        // A file that reports a wrong size may report the same size for another content.
        let index = index.filter(|_| source.size() > SMALL_SOURCE_BYTES as u64);
        match open(source)? {
            SourceBySize::Small(content) => line_window::read_small(&content, request, version),
            SourceBySize::Large(mut file) => line_window::read_large(&mut file, index, request, version),
        }
    };
    read().map_err(|error: Error| error.or_path(&request.path))
}

/// Reads as [`read`] does, from bytes in memory, and copies only the window.
///
/// # Errors
///
/// The errors of [`read`].
pub fn read_bytes(content: &Bytes, request: &ReadRequest, version: Version) -> Result<ReadResult> {
    let read = || {
        check(request)?;
        match request.bytes {
            Some(range) => byte_window::read(&mut MemoryBlockReader(content), range, request, version),
            None if content.len() <= SMALL_SOURCE_BYTES => line_window::read_small(content, request, version),
            None => line_window::read_large(&mut MemoryBlockReader(content), None, request, version),
        }
    };
    read().map_err(|error: Error| error.or_path(&request.path))
}

fn check(request: &ReadRequest) -> Result<()> {
    if request.max_bytes == Some(0) {
        return Err(Error::invalid_argument("`max_bytes` is 0; request at least one byte"));
    }
    let Some(range) = request.bytes else { return Ok(()) };
    if request.offset != 0 || request.limit.is_some() {
        return Err(Error::invalid_argument(
            "the request has both `bytes` and `offset` or `limit`; give either a range of bytes or lines",
        ));
    }
    if range.end.is_some_and(|end| end < range.start) {
        return Err(Error::invalid_argument("the range of `bytes` ends before it starts; give an end after the start"));
    }
    Ok(())
}
