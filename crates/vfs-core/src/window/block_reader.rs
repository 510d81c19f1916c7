//! Block access to files in memory or behind a source.

use super::content_source::{BLOCK_BYTES, ContentSource, SMALL_SOURCE_BYTES};
use crate::error::{Error, ErrorKind, Result};
use crate::fallible_alloc;

/// The maximum number of bytes beyond the reported size of a file: 64 MiB.
pub(super) const MAX_BYTES_BEYOND_SIZE: u64 = 64 << 20;

/// The minimum read from a file beyond its reported size: 4 KiB.
const MIN_READ_BYTES: usize = 4 << 10;

/// A reader of parts of one file.
pub(super) trait BlockReader {
    /// Returns the `want` bytes from `start`; fewer only at the end of the file.
    fn part(&mut self, start: u64, want: usize) -> Result<&[u8]>;

    /// Returns the best known size of the file.
    fn size(&self) -> u64;
}

/// A reader of a file in memory.
pub(super) struct MemoryBlockReader<'a>(pub(super) &'a [u8]);

impl BlockReader for MemoryBlockReader<'_> {
    fn part(&mut self, start: u64, want: usize) -> Result<&[u8]> {
        let start = usize::try_from(start).unwrap_or(usize::MAX).min(self.0.len());
        Ok(&self.0[start..start.saturating_add(want).min(self.0.len())])
    }

    fn size(&self) -> u64 {
        self.0.len() as u64
    }
}

/// A reader of a file behind a source, which buffers the last part.
pub(super) struct SourceBlockReader<'a> {
    source: &'a mut dyn ContentSource,
    buffer: Vec<u8>,
    filled: usize,
    start: u64,
    end: Option<u64>,
}

impl<'a> SourceBlockReader<'a> {
    pub(super) fn new(source: &'a mut dyn ContentSource) -> Self {
        Self { source, buffer: Vec::new(), filled: 0, start: 0, end: None }
    }

    /// Moves the buffered bytes from `start` on to the beginning of the buffer.
    fn seek(&mut self, start: u64) {
        let skip = start.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        match skip.filter(|skip| *skip <= self.filled) {
            Some(skip) => {
                self.buffer.copy_within(skip..self.filled, 0);
                self.filled -= skip;
            }
            None => self.filled = 0,
        }
        self.start = start;
    }

    /// Reads once, and returns whether the file continues.
    fn fill(&mut self, want: usize) -> Result<bool> {
        let at = self.start.saturating_add(self.filled as u64);
        if at > self.source.size().saturating_add(MAX_BYTES_BEYOND_SIZE) {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "the file is much longer than its reported size; read a range of `bytes`",
            ));
        }
        if self.buffer.len() == self.filled {
            // Bounds the zeroed memory if the file ends long before `want`.
            let rest = usize::try_from(self.source.size().saturating_sub(at)).unwrap_or(usize::MAX);
            let step = rest.saturating_add(1).clamp(MIN_READ_BYTES, BLOCK_BYTES);
            fallible_alloc::resize(&mut self.buffer, want.min(self.filled.saturating_add(self.filled.max(step))))?;
        }
        let until = self.buffer.len().min(want);
        let room = &mut self.buffer[self.filled..until];
        let requested = room.len();
        let count = self.source.read_at(at, room)?;
        self.filled += count;
        let reached = at + count as u64;
        let is_end = match count {
            // An empty read far past the end does not show where the end is.
            0 => self.filled > 0 || at <= self.source.size(),
            _ => count < requested && reached == self.source.size(),
        };
        if is_end {
            self.end = Some(reached);
        }
        Ok(count > 0)
    }

    fn has_ended(&self) -> bool {
        self.end.is_some_and(|end| end <= self.start.saturating_add(self.filled as u64))
    }
}

impl BlockReader for SourceBlockReader<'_> {
    fn part(&mut self, start: u64, want: usize) -> Result<&[u8]> {
        if start != self.start {
            self.seek(start);
        }
        while self.filled < want && !self.has_ended() && self.fill(want)? {}
        Ok(&self.buffer[..self.filled.min(want)])
    }

    fn size(&self) -> u64 {
        let buffered_end = if self.filled > 0 { self.start + self.filled as u64 } else { 0 };
        self.end.unwrap_or_else(|| self.source.size().max(buffered_end))
    }
}

/// The content of a source: whole if it is small, else a reader.
pub(super) enum SourceBySize<'a> {
    /// The whole content.
    Small(Vec<u8>),
    /// Block by block.
    Large(SourceBlockReader<'a>),
}

/// Reads a small file whole; if it is longer than its reported size, returns block access instead.
pub(super) fn open(source: &mut dyn ContentSource) -> Result<SourceBySize<'_>> {
    let size = usize::try_from(source.size()).unwrap_or(usize::MAX);
    let mut file = SourceBlockReader::new(source);
    if size > SMALL_SOURCE_BYTES {
        return Ok(SourceBySize::Large(file));
    }
    // Request one byte more than the size: a read that does not fill it has reached the end.
    file.buffer = vec![0; size + 1];
    if file.part(0, SMALL_SOURCE_BYTES + 1)?.len() > SMALL_SOURCE_BYTES {
        return Ok(SourceBySize::Large(file));
    }
    let mut content = file.buffer;
    content.truncate(file.filled);
    Ok(SourceBySize::Small(content))
}
