//! Windows by lines.

use bytes::Bytes;

use super::block_reader::{BlockReader, MemoryBlockReader};
use super::content_source::{BLOCK_BYTES, max_bytes};
use super::encoded_newline::EncodedNewline;
use super::line_index::{LineIndex, LineIndexMark};
use crate::error::{Error, ErrorDetail, Result};
use crate::fallible_alloc;
use crate::requests::{
    ByteRange, Content, ContentForm, Encoding, LineEnding, ReadRequest, ReadResult, TruncationReason, Version,
};
use crate::text::{self, SAMPLE, SampleExtent, Sniffed};

/// Reads lines of a small file in memory.
pub(super) fn read_small(content: &[u8], request: &ReadRequest, version: Version) -> Result<ReadResult> {
    let file = &mut MemoryBlockReader(content);
    let (encoding, valid) = match text::utf8_text(content, SampleExtent::Whole) {
        Some((text, encoding)) => (encoding, Some(text)),
        None => match text::sniff(content, SampleExtent::Whole) {
            Sniffed::Text(encoding) => (encoding, None),
            Sniffed::Binary => return binary(file, request, version),
        },
    };
    let first = first_byte(encoding);
    let after_first = content.get(first as usize..).unwrap_or_default();
    let total_lines = count_lines(EncodedNewline::of(encoding), after_first);
    LineWindowReader { file, index: None, request, encoding, valid, total_lines: Some(total_lines) }.read(version)
}

/// Reads lines of a file of any size.
pub(super) fn read_large(
    file: &mut impl BlockReader,
    index: Option<&mut LineIndex>,
    request: &ReadRequest,
    version: Version,
) -> Result<ReadResult> {
    match text::sniff(file.part(0, SAMPLE)?, SampleExtent::Beginning) {
        Sniffed::Text(encoding) => {
            LineWindowReader { file, index, request, encoding, valid: None, total_lines: None }.read(version)
        }
        Sniffed::Binary => binary(file, request, version),
    }
}

/// Returns the start of the first line, after the byte order mark of UTF-16, which decoding removes.
fn first_byte(encoding: Encoding) -> u64 {
    if matches!(encoding, Encoding::Utf16Le | Encoding::Utf16Be) { 2 } else { 0 }
}

fn count_lines(line_ends: EncodedNewline, bytes: &[u8]) -> u64 {
    let ended = line_ends.count(bytes);
    let last = line_ends.last(bytes).unwrap_or(0);
    if last < bytes.len() { ended + 1 } else { ended }
}

/// Reads binary content, which has no lines, from its beginning.
fn binary(file: &mut impl BlockReader, request: &ReadRequest, version: Version) -> Result<ReadResult> {
    let max = max_bytes(request);
    let bytes = Bytes::from(fallible_alloc::copy(file.part(0, max)?)?);
    let end = bytes.len() as u64;
    let has_more = !file.part(end, 1)?.is_empty();
    let mime_type = text::mime_type(if bytes.len() < SAMPLE { file.part(0, SAMPLE)? } else { &bytes }).to_owned();
    Ok(ReadResult {
        path: request.path.clone(),
        content: Content::Binary { bytes, mime_type },
        start_line: 0,
        end_line: 0,
        total_lines: None,
        next_offset: None,
        next_byte: has_more.then_some(end),
        bytes: ByteRange { start: 0, end: Some(end) },
        truncated: has_more.then_some(TruncationReason::MaxBytes),
        encoding: None,
        line_ending: LineEnding::None,
        size: file.size(),
        version,
    })
}

/// A reader of one window of lines of a text file.
struct LineWindowReader<'a, F> {
    file: &'a mut F,
    index: Option<&'a mut LineIndex>,
    request: &'a ReadRequest,
    encoding: Encoding,
    /// The whole file, if it is in memory and UTF-8.
    valid: Option<&'a str>,
    total_lines: Option<u64>,
}

/// The range of bytes and lines of a window.
struct WindowSpan {
    start: u64,
    length: usize,
    lines: u64,
    cut: Option<TruncationReason>,
}

impl WindowSpan {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.length as u64)
    }
}

impl<F: BlockReader> LineWindowReader<'_, F> {
    fn read(mut self, version: Version) -> Result<ReadResult> {
        let start = self.skip()?;
        let mut span = self.take(start)?;
        let (content, encoding) = self.content(&mut span)?;
        let has_more = !self.file.part(span.end(), 1)?.is_empty();
        let offset = self.request.offset;
        let next_line = offset.saturating_add(span.lines);
        let mut result = ReadResult {
            path: self.request.path.clone(),
            line_ending: content.as_text().map_or(LineEnding::None, |text| text::line_ending(text.as_bytes())),
            content,
            start_line: offset.saturating_add(1),
            end_line: next_line,
            total_lines: self.total_lines,
            next_offset: None,
            next_byte: None,
            bytes: ByteRange { start: span.start, end: Some(span.end()) },
            truncated: None,
            encoding,
            size: 0,
            version,
        };
        if has_more {
            result.truncated = span.cut.or(Some(TruncationReason::Limit));
            if span.cut == Some(TruncationReason::LongLine) {
                result.next_byte = Some(span.end());
                result.next_offset = self.line_follows(span.end())?.then_some(next_line);
            } else {
                result.next_offset = Some(next_line);
            }
        } else {
            result.total_lines = Some(next_line);
        }
        if encoding.is_none() {
            (result.start_line, result.end_line) = (0, 0);
        }
        if self.request.form == ContentForm::Raw && result.content.as_text().is_some() {
            self.replace_by_raw(&mut result, &span)?;
        }
        result.size = self.file.size();
        Ok(result)
    }

    /// Replaces the decoded text of `span` by its bytes, with a byte order mark before the first line.
    fn replace_by_raw(&mut self, result: &mut ReadResult, span: &WindowSpan) -> Result<()> {
        let is_first = span.length > 0 && span.start == first_byte(self.encoding);
        let start = if is_first { 0 } else { span.start };
        let length = usize::try_from(span.end() - start).unwrap_or(usize::MAX);
        let bytes = Bytes::from(fallible_alloc::copy(self.file.part(start, length)?)?);
        let mime_type = text::mime_type(self.file.part(0, SAMPLE)?).to_owned();
        result.content = Content::Binary { bytes, mime_type };
        result.bytes.start = start;
        Ok(())
    }

    fn line_ends(&self) -> EncodedNewline {
        EncodedNewline::of(self.encoding)
    }

    /// Finds the start of the window by counting line ends.
    fn skip(&mut self) -> Result<u64> {
        let line_ends = self.line_ends();
        let offset = self.request.offset;
        let beginning = LineIndexMark { at: first_byte(self.encoding), lines: 0 };
        let indexed = self.index.as_ref().and_then(|index| index.before(offset));
        let LineIndexMark { mut at, lines: mut skipped } = indexed.unwrap_or(beginning);
        let mut in_line = false;
        loop {
            let block = self.file.part(at, if skipped == offset { 1 } else { BLOCK_BYTES })?;
            if block.is_empty() {
                let total_lines = skipped + u64::from(in_line);
                return if offset == 0 { Ok(at) } else { Err(self.past_end(total_lines)) };
            }
            if skipped == offset {
                return Ok(at);
            }
            if let Some(index) = &mut self.index {
                index.add(LineIndexMark { at, lines: skipped });
            }
            let ended = line_ends.count(block);
            let length = if ended < offset - skipped {
                skipped += ended;
                in_line = line_ends.last(block) != Some(block.len());
                block.len()
            } else {
                let last_skipped = offset - skipped - 1;
                skipped = offset;
                in_line = false;
                line_ends.nth(block, last_skipped).unwrap_or(block.len())
            };
            at += length as u64;
        }
    }

    fn past_end(&self, total_lines: u64) -> Error {
        let offset = self.request.offset;
        let words = format!("Line offset {offset} exceeds file length ({total_lines} lines)");
        Error::invalid_argument(words.clone())
            .with_path(&self.request.path)
            .with_model_message(format!("Error: {words}"))
            .with_detail(ErrorDetail::OffsetOutOfRange { total_lines })
    }

    /// Finds the end of the window.
    fn take(&mut self, start: u64) -> Result<WindowSpan> {
        let line_ends = self.line_ends();
        let max = max_bytes(self.request);
        let limit = self.request.limit.unwrap_or(u64::MAX);
        if limit == 0 {
            return Ok(WindowSpan { start, length: 0, lines: 0, cut: None });
        }
        if let Some(rest) = self.rest(start, limit, max)? {
            return Ok(rest);
        }
        // One byte over the limit shows whether the file continues.
        let most = max.saturating_add(1);
        let mut want = if self.request.limit.is_some() { most.min(SAMPLE) } else { most };
        loop {
            let part = self.file.part(start, want)?;
            let within = &part[..part.len().min(max)];
            let ended = line_ends.count(within);
            if ended >= limit {
                let length = line_ends.nth(within, limit - 1).unwrap_or(within.len());
                return Ok(WindowSpan { start, length, lines: limit, cut: None });
            }
            if part.len() > max {
                return Ok(match line_ends.last(within) {
                    Some(length) => WindowSpan { start, length, lines: ended, cut: Some(TruncationReason::MaxBytes) },
                    None => WindowSpan { start, length: max, lines: 1, cut: Some(TruncationReason::LongLine) },
                });
            }
            if part.len() < want {
                let lines = count_lines(line_ends, part);
                return Ok(WindowSpan { start, length: part.len(), lines, cut: None });
            }
            want = want.saturating_mul(2).min(most);
        }
    }

    /// Returns the rest of the file from `start`, if it is within all limits, so that no lines need be counted.
    fn rest(&mut self, start: u64, limit: u64, max: usize) -> Result<Option<WindowSpan>> {
        let Some(lines) = self.total_lines.map(|total| total.saturating_sub(self.request.offset)) else {
            return Ok(None);
        };
        let part = self.file.part(start, max.saturating_add(1))?;
        let fits = lines <= limit && part.len() <= max;
        Ok(fits.then_some(WindowSpan { start, length: part.len(), lines, cut: None }))
    }

    /// Returns the content of the window; a cut line ends after a whole character.
    fn content(&mut self, span: &mut WindowSpan) -> Result<(Content, Option<Encoding>)> {
        if let Some(text) = self.valid {
            let start = usize::try_from(span.start).unwrap_or(usize::MAX);
            let end = boundary(text, start, start.saturating_add(span.length));
            span.length = end - start;
            return Ok((Content::Text(fallible_alloc::copy_text(&text[start..end])?), Some(self.encoding)));
        }
        let (part, lengths) = match span.cut {
            Some(TruncationReason::LongLine) => {
                let part = self.file.part(span.start, span.length.saturating_add(3))?;
                let nearest = (1..=span.length).rev().take(4);
                (part, nearest.chain(span.length + 1..=part.len()).collect())
            }
            _ => (self.file.part(span.start, span.length)?, vec![span.length]),
        };
        let guess = || match text::sniff(&part[..span.length.min(part.len())], SampleExtent::Beginning) {
            Sniffed::Text(encoding @ Encoding::Legacy(_)) => Some(encoding),
            _ => None,
        };
        let decoded = decode_one_of(part, &lengths, self.encoding)
            .map(|(text, length)| (text, length, self.encoding))
            .or_else(|| {
                let encoding = guess()?;
                decode_one_of(part, &lengths, encoding).map(|(text, length)| (text, length, encoding))
            });
        if let Some((text, length, encoding)) = decoded {
            span.length = length;
            return Ok((Content::Text(text), Some(encoding)));
        }
        let bytes = Bytes::from(fallible_alloc::copy(&part[..span.length.min(part.len())])?);
        let mime_type = text::mime_type(self.file.part(0, SAMPLE)?).to_owned();
        Ok((Content::Binary { bytes, mime_type }, None))
    }

    /// Returns whether another line starts after the one that is cut at `at`, within one block.
    fn line_follows(&mut self, at: u64) -> Result<bool> {
        let line_ends = self.line_ends();
        let block = self.file.part(at, BLOCK_BYTES)?;
        let Some(end) = line_ends.nth(block, 0) else { return Ok(false) };
        Ok(!self.file.part(at + end as u64, 1)?.is_empty())
    }
}

/// Returns the last character boundary at or before `end`, or the next one if that is `start`.
fn boundary(text: &str, start: usize, end: usize) -> usize {
    let before = text.floor_char_boundary(end);
    if before > start || start == end { before } else { text.ceil_char_boundary(end) }
}

/// Decodes `part` up to the first of `lengths` at which it is valid.
fn decode_one_of(part: &[u8], lengths: &[usize], encoding: Encoding) -> Option<(String, usize)> {
    lengths.iter().find_map(|length| Some((text::decode_part(part.get(..*length)?, encoding)?, *length)))
}
