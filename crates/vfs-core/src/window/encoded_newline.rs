//! Line ends in encoded text.

use memchr::{memchr_iter, memrchr_iter};

use crate::requests::Encoding;

/// The encoded form of `\n` in bytes that begin at a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EncodedNewline {
    /// One byte, in UTF-8 and legacy encodings, in which it is never a part of another character.
    Byte,
    /// Little-endian UTF-16.
    UnitLe,
    /// Big-endian UTF-16.
    UnitBe,
}

impl EncodedNewline {
    pub(super) fn of(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Utf16Le => EncodedNewline::UnitLe,
            Encoding::Utf16Be => EncodedNewline::UnitBe,
            _ => EncodedNewline::Byte,
        }
    }

    /// Returns the number of line ends in `bytes`.
    pub(super) fn count(self, bytes: &[u8]) -> u64 {
        let count = match self {
            EncodedNewline::Byte => memchr_iter(b'\n', bytes).count(),
            _ => memchr_iter(b'\n', bytes).filter_map(|at| self.end_at(bytes, at)).count(),
        };
        count as u64
    }

    /// Returns the position after the line end with the 0-based `index`.
    pub(super) fn nth(self, bytes: &[u8], index: u64) -> Option<usize> {
        memchr_iter(b'\n', bytes).filter_map(|at| self.end_at(bytes, at)).nth(usize::try_from(index).ok()?)
    }

    /// Returns the position after the last line end.
    pub(super) fn last(self, bytes: &[u8]) -> Option<usize> {
        memrchr_iter(b'\n', bytes).find_map(|at| self.end_at(bytes, at))
    }

    /// Returns the position after the line end to which the newline byte at `at` belongs, if any.
    fn end_at(self, bytes: &[u8], at: usize) -> Option<usize> {
        match self {
            EncodedNewline::Byte => Some(at + 1),
            EncodedNewline::UnitLe => (at.is_multiple_of(2) && bytes.get(at + 1) == Some(&0)).then_some(at + 2),
            EncodedNewline::UnitBe => (!at.is_multiple_of(2) && bytes[at - 1] == 0).then_some(at + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_newline_ends_a_line() {
        for (kind, bytes, count, first, last) in [
            (EncodedNewline::Byte, &b"a\nb\n\nc"[..], 3, Some(2), Some(5)),
            (EncodedNewline::Byte, b"a\r\x0c\xC2\x85", 0, None, None),
            (EncodedNewline::UnitLe, b"a\0\n\0\n\x01\x01\n\n\0", 2, Some(4), Some(10)),
            (EncodedNewline::UnitLe, b"a\0\n", 0, None, None),
            (EncodedNewline::UnitBe, b"\0a\0\n\x01\n\n\0\0\n", 2, Some(4), Some(10)),
        ] {
            assert_eq!((kind.count(bytes), kind.nth(bytes, 0), kind.last(bytes)), (count, first, last), "{bytes:?}");
        }
    }
}
