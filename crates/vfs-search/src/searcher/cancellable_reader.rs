//! Paced reader: chunks of adaptive size, with a check for interruptions before each one.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use memchr::{memchr, memrchr};

/// Search time above which the chunk size is halved.
const SLOW_CHUNK_THRESHOLD: Duration = Duration::from_millis(10);

/// Search time below which the chunk size is doubled.
const FAST_CHUNK_THRESHOLD: Duration = Duration::from_millis(1);

/// The size of chunks, adapted to the duration of their search.
///
/// A regular expression takes linear time, but possibly at only half a megabyte a second, and cannot be interrupted
/// within a chunk.
#[derive(Debug)]
pub(crate) struct AdaptiveChunkSize {
    bytes: usize,
}

impl AdaptiveChunkSize {
    const START: usize = 64 << 10;
    const MIN: usize = 4 << 10;
    const MAX: usize = 256 << 10;

    pub(crate) fn new() -> Self {
        Self { bytes: Self::START }
    }

    /// Returns the size of the next chunk.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records that searching `bytes` took `time`, and adapts the size.
    pub(crate) fn record(&mut self, bytes: usize, time: Duration) {
        if time > SLOW_CHUNK_THRESHOLD {
            self.bytes = (self.bytes / 2).max(Self::MIN);
        } else if time < FAST_CHUNK_THRESHOLD && bytes >= self.bytes {
            self.bytes = (self.bytes * 2).min(Self::MAX);
        }
    }
}

/// Why a paced reader stopped before the end.
#[derive(Debug)]
pub(crate) enum ReaderStopReason {
    /// The search was interrupted.
    Interrupted,
    /// The file exceeds the size limit.
    TooLarge,
    /// A line exceeds the limit on lines.
    LongLine,
    /// Reading failed.
    Io(io::Error),
}

/// A reader that returns chunks and checks before each one whether the search was interrupted.
pub(crate) struct CancellableReader<'a, R> {
    inner: R,
    chunk_size: &'a mut AdaptiveChunkSize,
    is_interrupted: &'a dyn Fn() -> bool,
    /// Number of bytes that may still be read.
    remaining: u64,
    /// Limit on the length of lines, if any.
    lines: Option<LineLengthLimit>,
    last: Option<(usize, Instant)>,
    stop_reason: Option<ReaderStopReason>,
}

impl<'a, R: Read> CancellableReader<'a, R> {
    pub(crate) fn new(
        inner: R,
        chunk_size: &'a mut AdaptiveChunkSize,
        is_interrupted: &'a dyn Fn() -> bool,
        remaining: u64,
    ) -> Self {
        Self { inner, chunk_size, is_interrupted, remaining, lines: None, last: None, stop_reason: None }
    }

    /// Stops at a line of more than `limit` bytes, and returns no larger chunk.
    pub(crate) fn with_line_limit(self, limit: Option<usize>) -> Self {
        Self { lines: limit.map(|max_line_bytes| LineLengthLimit { max_line_bytes, begun: 0 }), ..self }
    }

    /// Returns why the reader stopped before the end, if it did.
    pub(crate) fn into_stop_reason(self) -> Option<ReaderStopReason> {
        self.stop_reason
    }

    fn stop(&mut self, stop_reason: ReaderStopReason) -> io::Error {
        self.stop_reason = Some(stop_reason);
        io::Error::other("the search was stopped")
    }
}

impl<R: Read> Read for CancellableReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some((bytes, start)) = self.last.take() {
            self.chunk_size.record(bytes, start.elapsed());
        }
        if (self.is_interrupted)() {
            return Err(self.stop(ReaderStopReason::Interrupted));
        }
        let max_line_bytes = self.lines.as_ref().map_or(usize::MAX, |lines| lines.max_line_bytes);
        let size = buffer.len().min(self.chunk_size.bytes()).min(max_line_bytes);
        let read = loop {
            match self.inner.read(&mut buffer[..size]) {
                Ok(read) => break read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.stop(ReaderStopReason::Io(error))),
            }
        };
        let Some(remaining) = self.remaining.checked_sub(read as u64) else {
            return Err(self.stop(ReaderStopReason::TooLarge));
        };
        self.remaining = remaining;
        if self.lines.as_mut().is_some_and(|lines| lines.is_exceeded(&buffer[..read])) {
            return Err(self.stop(ReaderStopReason::LongLine));
        }
        self.last = Some((read, Instant::now()));
        Ok(read)
    }
}

/// A limit on the length of lines, for chunks that are not longer than the limit.
#[derive(Debug)]
struct LineLengthLimit {
    max_line_bytes: usize,
    /// Length so far of the line that the next chunk continues.
    begun: usize,
}

impl LineLengthLimit {
    /// Returns whether the line that continues in `piece` exceeds the limit, as far as it was read.
    fn is_exceeded(&mut self, piece: &[u8]) -> bool {
        let line = self.begun + memchr(b'\n', piece).unwrap_or(piece.len());
        self.begun = memrchr(b'\n', piece).map_or(line, |end| piece.len() - end - 1);
        line > self.max_line_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_pieces_shrink_and_fast_ones_grow_within_bounds() {
        let mut chunk_size = AdaptiveChunkSize::new();
        for _ in 0..20 {
            chunk_size.record(chunk_size.bytes(), Duration::from_millis(11));
        }
        assert_eq!(chunk_size.bytes(), AdaptiveChunkSize::MIN);
        for _ in 0..20 {
            chunk_size.record(chunk_size.bytes(), Duration::ZERO);
        }
        assert_eq!(chunk_size.bytes(), AdaptiveChunkSize::MAX);
        chunk_size.record(10, Duration::from_millis(5));
        assert_eq!(chunk_size.bytes(), AdaptiveChunkSize::MAX);
    }

    #[test]
    fn a_paced_reader_stops_at_its_limit_and_when_interrupted() {
        let mut chunk_size = AdaptiveChunkSize::new();
        let mut reader = CancellableReader::new(&b"abcdef"[..], &mut chunk_size, &|| false, 5);
        assert!(reader.read(&mut [0; 3]).is_ok_and(|read| read == 3));
        assert!(reader.read(&mut [0; 3]).is_err());
        assert!(matches!(reader.into_stop_reason(), Some(ReaderStopReason::TooLarge)));
        let mut reader = CancellableReader::new(&b"abcdef"[..], &mut chunk_size, &|| true, 100);
        assert!(reader.read(&mut [0; 3]).is_err());
        assert!(matches!(reader.into_stop_reason(), Some(ReaderStopReason::Interrupted)));
    }

    #[test]
    fn a_paced_reader_stops_at_a_long_line() {
        for (text, expected) in
            [("abcd\nabcd\n\nabcd", true), ("ab\nabcde\n", false), ("abcde", false), ("abcd\r\n", false), ("", true)]
        {
            let mut chunk_size = AdaptiveChunkSize::new();
            let mut reader =
                CancellableReader::new(text.as_bytes(), &mut chunk_size, &|| false, 100).with_line_limit(Some(4));
            assert_eq!(reader.read_to_end(&mut Vec::new()).is_ok(), expected, "{text:?}");
            assert_eq!(matches!(reader.into_stop_reason(), Some(ReaderStopReason::LongLine)), !expected, "{text:?}");
        }
    }
}
