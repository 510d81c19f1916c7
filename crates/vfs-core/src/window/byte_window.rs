//! Windows by bytes.

use bytes::Bytes;

use super::block_reader::{BlockReader, MAX_BYTES_BEYOND_SIZE};
use super::content_source::max_bytes;
use crate::error::{Error, Result};
use crate::fallible_alloc;
use crate::requests::{
    ByteRange, Content, ContentForm, Encoding, LineEnding, ReadRequest, ReadResult, TruncationReason, Version,
};
use crate::text::{self, SAMPLE};

/// Reads `range`; `request` is valid.
pub(super) fn read(
    file: &mut impl BlockReader,
    range: ByteRange,
    request: &ReadRequest,
    version: Version,
) -> Result<ReadResult> {
    let start = range.start;
    let size = file.size();
    if start > size && (start - size > MAX_BYTES_BEYOND_SIZE || file.part(start - 1, 1)?.is_empty()) {
        return Err(Error::invalid_argument(format!(
            "the range starts at byte {start}, but the file has {size} bytes; start within the file"
        )));
    }
    let length = range.end.map_or(usize::MAX, |end| usize::try_from(end - start).unwrap_or(usize::MAX));
    let max = max_bytes(request);
    let mut part = file.part(start, length.min(max))?;
    if max < length && part.len() == max && request.form == ContentForm::Decoded {
        part = without_cut_character(part);
    }
    let is_raw = request.form == ContentForm::Raw;
    let text = std::str::from_utf8(part).ok().filter(|_| !is_raw).map(fallible_alloc::copy_text).transpose()?;
    let bytes = if text.is_none() { Bytes::from(fallible_alloc::copy(part)?) } else { Bytes::new() };
    let read = part.len();
    let end = start.saturating_add(read as u64);
    let has_more = !file.part(end, 1)?.is_empty();
    let (content, encoding, line_ending) = match text {
        Some(text) => {
            let line_ending = text::line_ending(text.as_bytes());
            (Content::Text(text), Some(Encoding::Utf8), line_ending)
        }
        None => {
            let mime_type = text::mime_type(file.part(0, SAMPLE)?).to_owned();
            (Content::Binary { bytes, mime_type }, None, LineEnding::None)
        }
    };
    Ok(ReadResult {
        path: request.path.clone(),
        content,
        start_line: 0,
        end_line: 0,
        total_lines: None,
        next_offset: None,
        next_byte: has_more.then_some(end),
        bytes: ByteRange { start, end: Some(end) },
        truncated: (has_more && read < length).then_some(TruncationReason::MaxBytes),
        encoding,
        line_ending,
        size: file.size(),
        version,
    })
}

/// Returns `part` without a cut character at its end, if the rest is not empty and UTF-8.
fn without_cut_character(part: &[u8]) -> &[u8] {
    match std::str::from_utf8(part) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => &part[..error.valid_up_to()],
        _ => part,
    }
}
