//! Memory for the texts of found lines.

use std::str::Utf8Error;

use bytes::{Bytes, BytesMut};
use vfs_core::LineText;

/// How much memory lines share. A consumer that keeps one line keeps as much.
const SHARED: usize = 8 << 10;

/// From this length on a line has memory of its own.
const LONG: usize = SHARED / 8;

/// Keeps the texts of lines next to each other, so that there is no allocation for each, nor a release, which costs most
/// where another thread does it.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    room: BytesMut,
}

impl Texts {
    /// A text that is `line`.
    ///
    /// # Errors
    ///
    /// It is not UTF-8.
    #[inline]
    pub(crate) fn keep(&mut self, line: &[u8]) -> Result<LineText, Utf8Error> {
        if line.is_empty() {
            return Ok(LineText::default());
        }
        if line.len() >= LONG {
            return Bytes::copy_from_slice(line).try_into();
        }
        if line.len() > self.room.capacity() {
            // What nobody has kept of the memory before is used again.
            self.room.reserve(SHARED);
        }
        self.room.extend_from_slice(line);
        self.room.split().freeze().try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_what_they_are_while_others_are_kept_and_dropped() {
        let mut texts = Texts::default();
        let lengths = [0, 1, 30, LONG - 1, LONG, 3 * SHARED];
        let line = |at: usize| char::from(b'a' + (at % 26) as u8).to_string().repeat(lengths[at % lengths.len()]);
        let mut kept: Vec<_> =
            (0..5_000).map(|at| (at, texts.keep(line(at).as_bytes()).expect("it is UTF-8"))).collect();
        kept.retain(|(at, _)| at % 7 == 0);
        kept.extend((5_000..6_000).map(|at| (at, texts.keep(line(at).as_bytes()).expect("it is UTF-8"))));
        for (at, text) in kept {
            assert_eq!(text, line(at), "{at}");
        }
    }

    #[test]
    fn what_is_not_utf_8_is_refused_and_does_no_harm() {
        let mut texts = Texts::default();
        let before = texts.keep(b"before").expect("it is UTF-8");
        texts.keep(b"a\xff").expect_err("it is not UTF-8");
        texts.keep(&[0xff; 2 * LONG]).expect_err("it is not UTF-8");
        assert_eq!((before, texts.keep(b"after").expect("it is UTF-8")), ("before".into(), "after".into()));
    }

    #[test]
    fn memory_of_lines_that_nobody_keeps_is_used_again() {
        let mut texts = Texts::default();
        let place = |texts: &mut Texts| texts.keep(&[b'x'; 100]).expect("it is UTF-8").as_ptr().addr();
        let first = place(&mut texts);
        assert!((0..10_000).all(|_| place(&mut texts).abs_diff(first) < SHARED));
    }
}
