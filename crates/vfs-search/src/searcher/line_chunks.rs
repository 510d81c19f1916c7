//! Chunked file reading: the head in one buffer, the rest in chunks of whole lines.
//!
//! Only literal searches read the rest this way.

use std::io::{self, Read};
use std::ops::Range;

use memchr::{memchr, memrchr};
use vfs_core::Error;

use crate::read_error::read_error;
use crate::searcher::aligned_buffer::{AlignedBuffer, PAGE_BYTES};
use crate::searcher::encoding::BINARY_WINDOW;

/// Initial size of the head in bytes; it grows up to the window for NUL bytes.
const INITIAL_READ_BYTES: usize = 64 << 10;

/// Number of bytes that are read at once from a long file, so few that they stay in the processor's cache while they
/// are searched.
const READ_BYTES: usize = 256 << 10;

/// Why a file was not searched to its end.
pub(crate) enum FileSearchAbort {
    Interrupted,
    Problem(Error),
}

/// Whether the buffer contains the whole content of the reader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReachedEnd {
    Yes,
    No,
}

/// Reads the head of `reader`, whose stated size is `size` bytes, up to the window for NUL bytes.
pub(crate) fn read_head(
    buffer: &mut AlignedBuffer,
    reader: &mut dyn Read,
    size: u64,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(usize, ReachedEnd), FileSearchAbort> {
    let mut filled = 0;
    loop {
        if is_interrupted() {
            return Err(FileSearchAbort::Interrupted);
        }
        if filled == buffer.len() {
            if filled >= BINARY_WINDOW {
                return Ok((filled, ReachedEnd::No));
            }
            let stated = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1);
            buffer.grow(stated.max(filled * 2).clamp(INITIAL_READ_BYTES, BINARY_WINDOW));
        }
        match reader.read(&mut buffer.bytes_mut()[filled..]) {
            Ok(0) => return Ok((filled, ReachedEnd::Yes)),
            Ok(read) => {
                filled += read;
                // The reader has returned its stated size although there was room for more, so no further read is
                // needed.
                if filled as u64 == size && filled < buffer.len() {
                    return Ok((filled, ReachedEnd::Yes));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FileSearchAbort::Problem(read_error(error))),
        }
    }
}

/// Reads the rest of a long text in chunks of whole lines.
pub(crate) struct LineChunks<'a, R> {
    buffer: &'a mut AlignedBuffer,
    reader: R,
    /// The part of the buffer with the line whose end has not been read yet.
    unfinished: Range<usize>,
    max_line_bytes: usize,
    has_ended: bool,
}

impl<'a, R: Read> LineChunks<'a, R> {
    /// Creates the chunks of `start`, the beginning of a line, followed by the content of `reader`. No line may be
    /// longer than `max_line_bytes`, which is more than one read returns.
    pub(crate) fn new(buffer: &'a mut AlignedBuffer, start: &[u8], reader: R, max_line_bytes: usize) -> Self {
        buffer.grow(start.len());
        buffer.bytes_mut()[..start.len()].copy_from_slice(start);
        Self { buffer, reader, unfinished: 0..start.len(), max_line_bytes, has_ended: false }
    }

    /// Returns the next lines. Only the last line of the text may lack its ending.
    ///
    /// # Errors
    ///
    /// The errors of reading, and `FileTooLarge` if a line is too long.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        while !self.has_ended {
            let at = self.make_room();
            let read = self.reader.read(&mut self.buffer.bytes_mut()[at..at + READ_BYTES])?;
            self.has_ended = read == 0;
            self.unfinished.end += read;
            let new = &self.buffer.bytes()[at..at + read];
            // Only the first line continues an earlier read, so only that one can be longer than one read.
            if self.unfinished.len() > self.max_line_bytes {
                let end = memchr(b'\n', new).map_or(self.unfinished.end, |end| at + end);
                if end - self.unfinished.start > self.max_line_bytes {
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a line is too long"));
                }
            }
            if let Some(newline) = memrchr(b'\n', new) {
                let end = at + newline + 1;
                let lines = self.unfinished.start..end;
                self.unfinished.start = end;
                return Ok(Some(&self.buffer.bytes()[lines]));
            }
        }
        let rest = std::mem::take(&mut self.unfinished);
        Ok((!rest.is_empty()).then(|| &self.buffer.bytes()[rest]))
    }

    /// Makes room for a read after the unfinished line, and returns the position of the read.
    fn make_room(&mut self) -> usize {
        let pending = self.unfinished.len();
        if pending > READ_BYTES && self.unfinished.end + READ_BYTES <= self.buffer.len() {
            return self.unfinished.end;
        }
        // The line moves so that it ends on a page boundary, and the read starts on one.
        let at = pending.next_multiple_of(PAGE_BYTES);
        if at + READ_BYTES > self.buffer.len() {
            let doubled = (2 * self.buffer.len()).min(self.max_line_bytes.saturating_add(READ_BYTES));
            self.buffer.grow(doubled.max(at + READ_BYTES));
        }
        self.buffer.bytes_mut().copy_within(self.unfinished.clone(), at - pending);
        self.unfinished = at - pending..at;
        at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reader that returns at most the given number of bytes at a time.
    struct ShortReader<'a>(&'a [u8], usize);

    impl Read for ShortReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let limit = buffer.len().min(self.1);
            self.0.read(&mut buffer[..limit])
        }
    }

    fn chunks(text: &[u8], start: usize, at_once: usize, max_line_bytes: usize) -> io::Result<Vec<Vec<u8>>> {
        let (start, rest) = text.split_at(start);
        let mut buffer = AlignedBuffer::default();
        let mut chunks = LineChunks::new(&mut buffer, start, ShortReader(rest, at_once), max_line_bytes);
        let mut all = Vec::new();
        while let Some(piece) = chunks.next()? {
            all.push(piece.to_vec());
        }
        Ok(all)
    }

    /// Returns lines of these lengths; the last one has no ending unless it is empty.
    fn text(lengths: &[usize]) -> Vec<u8> {
        let lines: Vec<_> =
            lengths.iter().enumerate().map(|(at, length)| vec![b'a' + (at % 26) as u8; *length]).collect();
        lines.join(&b'\n')
    }

    #[test]
    fn a_line_that_is_too_long_is_an_error_and_one_that_is_not_is_whole() {
        let length = 3 * READ_BYTES + 7;
        for after in [vec![], vec![10], vec![10, 2 * READ_BYTES, 10]] {
            let long = text(&[vec![10, length], after].concat());
            for at_once in [1000, 100_001, READ_BYTES] {
                assert_eq!(chunks(&long, 0, at_once, length).expect("it reads").concat(), long);
                let error = chunks(&long, 0, at_once, length - 1).expect_err("it is too long");
                assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            }
        }
    }

    #[test]
    fn nothing_has_no_pieces() {
        assert_eq!(chunks(b"", 0, 1, 10).expect("it reads"), Vec::<Vec<u8>>::new());
        assert_eq!(chunks(b"ab", 2, 1, 10).expect("it reads"), [b"ab"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pieces_are_the_text_in_whole_lines(
            lengths in prop::collection::vec(prop_oneof![0_usize..20, 0_usize..10_000, 200_000_usize..600_000], 1..8),
            start in 0_usize..300_000,
            at_once in prop_oneof![500_usize..10_000, Just(READ_BYTES), Just(usize::MAX)],
        ) {
            let text = text(&lengths);
            // `start` is the beginning of one line.
            let start = start.min(lengths[0]);
            let chunks = chunks(&text, start, at_once, usize::MAX).expect("it reads");
            prop_assert_eq!(chunks.concat(), text);
            let all_but_last = &chunks[..chunks.len().saturating_sub(1)];
            prop_assert!(all_but_last.iter().all(|piece| piece.ends_with(b"\n")));
        }
    }
}
