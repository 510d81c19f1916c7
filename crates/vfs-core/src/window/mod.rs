//! Reading a window of a file, by lines or bytes, at a cost that follows the window.

mod blocks;
mod line_ends;
mod line_index;
mod lines;
mod range;
mod source;
#[cfg(test)]
mod tests;

use bytes::Bytes;

pub use self::line_index::LineIndex;
pub use self::source::Source;

use self::blocks::{Buffered, Memory, Opening, open};
use self::source::SMALL_SOURCE_BYTES;
use crate::error::{Error, Result};
use crate::types::{ReadRequest, ReadResult, Version};

/// Reads the window that `request` asks for from `source`, whose content is `version`.
///
/// # Behaviour
///
/// * Memory is bounded by the window: beside it, at most 1 MiB of the file is held.
/// * A window of lines is cut after the last line that fits into `max_bytes`. A first line that does not fit is cut
///   itself, after a whole character and never before the first one.
/// * `total_lines` is known for a file up to 1 MiB, and where the window reaches the end.
/// * Binary content is returned from its beginning, whatever `limit` says.
/// * A file that has more content than its size says is read until it ends, up to 64 MiB beyond that size.
///
/// # Errors
///
/// * `invalid_argument`: `bytes` beside `offset` or `limit`; a range that ends before it starts, or starts past the end;
///   `max_bytes` of 0; an `offset` past the end, with the line count in its detail.
/// * `not_text`: lines were skipped in binary content.
/// * `too_large`: the file goes on more than 64 MiB beyond its size.
/// * Those of `source`.
///
/// All of them name the request's path.
pub fn read(source: &mut dyn Source, request: &ReadRequest, version: Version) -> Result<ReadResult> {
    read_source(source, None, request, version)
}

/// [`read`] that starts where `index` knows a place before the window, and adds to it what it finds on the way, also where
/// it fails.
///
/// # Behaviour
///
/// * The result is that of [`read`], whatever the index knows. It must have been filled from the same content only.
/// * Nothing is added of a file up to 1 MiB by its own size.
///
/// # Errors
///
/// Those of [`read`].
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
/// assert!(index.reach() > 1 << 20, "the second page was found by what the first one knew");
/// # Ok::<(), vfs_core::Error>(())
/// ```
pub fn read_indexed(
    source: &mut dyn Source,
    index: &mut LineIndex,
    request: &ReadRequest,
    version: Version,
) -> Result<ReadResult> {
    read_source(source, Some(index), request, version)
}

fn read_source(
    source: &mut dyn Source,
    index: Option<&mut LineIndex>,
    request: &ReadRequest,
    version: Version,
) -> Result<ReadResult> {
    let read = || {
        check(request)?;
        if let Some(asked) = request.bytes {
            return range::read(&mut Buffered::new(source), asked, request, version);
        }
        // A file that says less than it has may well say the same when it has something else.
        let index = index.filter(|_| source.size() > SMALL_SOURCE_BYTES as u64);
        match open(source)? {
            Opening::Small(content) => lines::read_small(&content, request, version),
            Opening::Large(mut file) => lines::read_large(&mut file, index, request, version),
        }
    };
    read().map_err(|error: Error| error.or_path(&request.path))
}

/// [`read`] of bytes that are in memory, of which no more than the window is copied.
///
/// # Errors
///
/// Those of [`read`].
pub fn read_bytes(content: &Bytes, request: &ReadRequest, version: Version) -> Result<ReadResult> {
    let read = || {
        check(request)?;
        match request.bytes {
            Some(asked) => range::read(&mut Memory(content), asked, request, version),
            None if content.len() <= SMALL_SOURCE_BYTES => lines::read_small(content, request, version),
            None => lines::read_large(&mut Memory(content), None, request, version),
        }
    };
    read().map_err(|error: Error| error.or_path(&request.path))
}

fn check(request: &ReadRequest) -> Result<()> {
    if request.max_bytes == Some(0) {
        return Err(Error::invalid_argument("`max_bytes` is 0; ask for at least one byte"));
    }
    let Some(range) = request.bytes else { return Ok(()) };
    if request.offset != 0 || request.limit.is_some() {
        return Err(Error::invalid_argument("give either `bytes`, or `offset` and `limit`, not both"));
    }
    if range.end.is_some_and(|end| end < range.start) {
        return Err(Error::invalid_argument("the range of `bytes` ends before it starts"));
    }
    Ok(())
}
