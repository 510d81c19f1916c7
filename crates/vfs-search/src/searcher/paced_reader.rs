//! How much is searched between two looks at the clock.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use memchr::{memchr, memrchr};

/// A piece that takes longer is halved.
const SLOW: Duration = Duration::from_millis(10);

/// A piece that takes less is doubled.
const FAST: Duration = Duration::from_millis(1);

/// The size of pieces, learned from how long they take.
///
/// A regular expression takes linear time, but may do so at half a megabyte a second, and cannot be interrupted within a
/// piece.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes: usize,
}

impl Pace {
    const START: usize = 64 << 10;
    const MIN: usize = 4 << 10;
    const MAX: usize = 256 << 10;

    pub(crate) fn new() -> Self {
        Self { bytes: Self::START }
    }

    /// The size of the next piece.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Learns that `bytes` took `time`.
    pub(crate) fn took(&mut self, bytes: usize, time: Duration) {
        if time > SLOW {
            self.bytes = (self.bytes / 2).max(Self::MIN);
        } else if time < FAST && bytes >= self.bytes {
            self.bytes = (self.bytes * 2).min(Self::MAX);
        }
    }
}

/// Why a paced reader ended early.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Nobody wants the rest.
    Interrupted,
    /// There is more than the size limit.
    TooLarge,
    /// There is a line over the limit.
    LongLine,
    /// Reading failed.
    Io(io::Error),
}

/// A reader that hands out pieces, and looks between them whether to go on.
pub(crate) struct PacedReader<'a, R> {
    inner: R,
    pace: &'a mut Pace,
    interrupted: &'a dyn Fn() -> bool,
    /// How many bytes there may be.
    room: u64,
    /// How long lines are looked at.
    lines: Option<LineLimit>,
    last: Option<(usize, Instant)>,
    halt: Option<Halt>,
}

impl<'a, R: Read> PacedReader<'a, R> {
    pub(crate) fn new(inner: R, pace: &'a mut Pace, interrupted: &'a dyn Fn() -> bool, room: u64) -> Self {
        Self { inner, pace, interrupted, room, lines: None, last: None, halt: None }
    }

    /// Ends where a line is over `limit` bytes, of which no more are handed out at once.
    pub(crate) fn with_line_limit(self, limit: Option<usize>) -> Self {
        Self { lines: limit.map(|most| LineLimit { most, begun: 0 }), ..self }
    }

    /// Why it ended early, if it did.
    pub(crate) fn into_halt(self) -> Option<Halt> {
        self.halt
    }

    fn stop(&mut self, halt: Halt) -> io::Error {
        self.halt = Some(halt);
        io::Error::other("the search ends here")
    }
}

impl<R: Read> Read for PacedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some((bytes, start)) = self.last.take() {
            self.pace.took(bytes, start.elapsed());
        }
        if (self.interrupted)() {
            return Err(self.stop(Halt::Interrupted));
        }
        let most = self.lines.as_ref().map_or(usize::MAX, |lines| lines.most);
        let size = buffer.len().min(self.pace.bytes()).min(most);
        let read = loop {
            match self.inner.read(&mut buffer[..size]) {
                Ok(read) => break read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.stop(Halt::Io(error))),
            }
        };
        let Some(room) = self.room.checked_sub(read as u64) else {
            return Err(self.stop(Halt::TooLarge));
        };
        self.room = room;
        if self.lines.as_mut().is_some_and(|lines| lines.is_exceeded(&buffer[..read])) {
            return Err(self.stop(Halt::LongLine));
        }
        self.last = Some((read, Instant::now()));
        Ok(read)
    }
}

/// How long lines may be, in pieces that are not longer than that.
#[derive(Debug)]
struct LineLimit {
    most: usize,
    /// How long the line is that the next piece goes on with.
    begun: usize,
}

impl LineLimit {
    /// Whether a line that goes on in `piece` is over the limit.
    fn is_exceeded(&mut self, piece: &[u8]) -> bool {
        let line = self.begun + memchr(b'\n', piece).unwrap_or(piece.len());
        self.begun = memrchr(b'\n', piece).map_or(line, |end| piece.len() - end - 1);
        line > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_pieces_shrink_and_fast_ones_grow_within_bounds() {
        let mut pace = Pace::new();
        for _ in 0..20 {
            pace.took(pace.bytes(), Duration::from_millis(11));
        }
        assert_eq!(pace.bytes(), Pace::MIN);
        for _ in 0..20 {
            pace.took(pace.bytes(), Duration::ZERO);
        }
        assert_eq!(pace.bytes(), Pace::MAX);
        pace.took(10, Duration::from_millis(5));
        assert_eq!(pace.bytes(), Pace::MAX);
    }

    #[test]
    fn a_paced_reader_stops_at_its_limit_and_when_interrupted() {
        let mut pace = Pace::new();
        let mut reader = PacedReader::new(&b"abcdef"[..], &mut pace, &|| false, 5);
        assert!(reader.read(&mut [0; 3]).is_ok_and(|read| read == 3));
        assert!(reader.read(&mut [0; 3]).is_err());
        assert!(matches!(reader.into_halt(), Some(Halt::TooLarge)));
        let mut reader = PacedReader::new(&b"abcdef"[..], &mut pace, &|| true, 100);
        assert!(reader.read(&mut [0; 3]).is_err());
        assert!(matches!(reader.into_halt(), Some(Halt::Interrupted)));
    }

    #[test]
    fn a_paced_reader_stops_at_a_long_line() {
        for (text, expected) in
            [("abcd\nabcd\n\nabcd", true), ("ab\nabcde\n", false), ("abcde", false), ("abcd\r\n", false), ("", true)]
        {
            let mut pace = Pace::new();
            let mut reader = PacedReader::new(text.as_bytes(), &mut pace, &|| false, 100).with_line_limit(Some(4));
            assert_eq!(reader.read_to_end(&mut Vec::new()).is_ok(), expected, "{text:?}");
            assert_eq!(matches!(reader.into_halt(), Some(Halt::LongLine)), !expected, "{text:?}");
        }
    }
}
