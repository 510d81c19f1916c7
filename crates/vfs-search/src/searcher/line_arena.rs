//! Arena for the texts of matched lines.

use std::str::Utf8Error;

use bytes::{Bytes, BytesMut};
use vfs_core::search::LineText;

/// Size of a block that lines share, in bytes. A consumer that retains one line retains the whole block.
const ARENA_BYTES: usize = 8 << 10;

/// Length in bytes from which on a line gets an allocation of its own.
const LARGE_LINE_THRESHOLD: usize = ARENA_BYTES / 8;

/// Stores the texts of lines next to each other. This saves an allocation for each line, and a release, which costs
/// most if another thread does it.
#[derive(Debug, Default)]
pub(crate) struct LineArena {
    buffer: BytesMut,
}

impl LineArena {
    /// Copies `line` into the arena and returns it as text.
    ///
    /// # Errors
    ///
    /// `line` is not valid UTF-8.
    #[inline]
    pub(crate) fn alloc(&mut self, line: &[u8]) -> Result<LineText, Utf8Error> {
        if line.is_empty() {
            return Ok(LineText::default());
        }
        if line.len() >= LARGE_LINE_THRESHOLD {
            return Bytes::copy_from_slice(line).try_into();
        }
        if line.len() > self.buffer.capacity() {
            // If no line of the previous block is in use any more, this reuses the block.
            self.buffer.reserve(ARENA_BYTES);
        }
        self.buffer.extend_from_slice(line);
        self.buffer.split().freeze().try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_change_while_others_are_retained_and_dropped() {
        let mut arena = LineArena::default();
        let lengths = [0, 1, 30, LARGE_LINE_THRESHOLD - 1, LARGE_LINE_THRESHOLD, 3 * ARENA_BYTES];
        let line = |at: usize| char::from(b'a' + (at % 26) as u8).to_string().repeat(lengths[at % lengths.len()]);
        let mut retained: Vec<_> =
            (0..5_000).map(|at| (at, arena.alloc(line(at).as_bytes()).expect("it is UTF-8"))).collect();
        retained.retain(|(at, _)| at % 7 == 0);
        retained.extend((5_000..6_000).map(|at| (at, arena.alloc(line(at).as_bytes()).expect("it is UTF-8"))));
        for (at, text) in retained {
            assert_eq!(text, line(at), "{at}");
        }
    }

    #[test]
    fn invalid_utf_8_is_refused_and_changes_no_other_line() {
        let mut arena = LineArena::default();
        let before = arena.alloc(b"before").expect("it is UTF-8");
        arena.alloc(b"a\xff").expect_err("it is not UTF-8");
        arena.alloc(&[0xff; 2 * LARGE_LINE_THRESHOLD]).expect_err("it is not UTF-8");
        assert_eq!((before, arena.alloc(b"after").expect("it is UTF-8")), ("before".into(), "after".into()));
    }

    #[test]
    fn memory_of_dropped_lines_is_reused() {
        let mut arena = LineArena::default();
        let place = |arena: &mut LineArena| arena.alloc(&[b'x'; 100]).expect("it is UTF-8").as_ptr().addr();
        let first = place(&mut arena);
        assert!((0..10_000).all(|_| place(&mut arena).abs_diff(first) < ARENA_BYTES));
    }
}
