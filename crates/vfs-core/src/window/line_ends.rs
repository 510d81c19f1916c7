//! Where lines end: at `\n`, which is one byte, or in UTF-16 two.

use memchr::{memchr_iter, memrchr_iter};

use crate::types::Encoding;

/// How a `\n` is spelled in the bytes of a text. The bytes begin at a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// In UTF-8 and legacy encodings, none of which has the byte as a part of another character.
    Byte,
    /// In UTF-16, little end first.
    UnitLe,
    /// In UTF-16, big end first.
    UnitBe,
}

impl LineEnds {
    pub(super) fn of(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Utf16Le => LineEnds::UnitLe,
            Encoding::Utf16Be => LineEnds::UnitBe,
            _ => LineEnds::Byte,
        }
    }

    /// How many lines end in `bytes`.
    pub(super) fn count(self, bytes: &[u8]) -> u64 {
        let count = match self {
            LineEnds::Byte => memchr_iter(b'\n', bytes).count(),
            _ => memchr_iter(b'\n', bytes).filter_map(|at| self.end_at(bytes, at)).count(),
        };
        count as u64
    }

    /// Just after where the line `index`, from 0, ends.
    pub(super) fn nth(self, bytes: &[u8], index: u64) -> Option<usize> {
        memchr_iter(b'\n', bytes).filter_map(|at| self.end_at(bytes, at)).nth(usize::try_from(index).ok()?)
    }

    /// Just after where the last line ends.
    pub(super) fn last(self, bytes: &[u8]) -> Option<usize> {
        memrchr_iter(b'\n', bytes).find_map(|at| self.end_at(bytes, at))
    }

    /// Just after the line end that the newline byte at `at` is a part of, if it is.
    fn end_at(self, bytes: &[u8], at: usize) -> Option<usize> {
        match self {
            LineEnds::Byte => Some(at + 1),
            LineEnds::UnitLe => (at.is_multiple_of(2) && bytes.get(at + 1) == Some(&0)).then_some(at + 2),
            LineEnds::UnitBe => (!at.is_multiple_of(2) && bytes[at - 1] == 0).then_some(at + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_newline_ends_a_line() {
        for (kind, bytes, count, first, last) in [
            (LineEnds::Byte, &b"a\nb\n\nc"[..], 3, Some(2), Some(5)),
            (LineEnds::Byte, b"a\r\x0c\xC2\x85", 0, None, None),
            (LineEnds::UnitLe, b"a\0\n\0\n\x01\x01\n\n\0", 2, Some(4), Some(10)),
            (LineEnds::UnitLe, b"a\0\n", 0, None, None),
            (LineEnds::UnitBe, b"\0a\0\n\x01\n\n\0\0\n", 2, Some(4), Some(10)),
        ] {
            assert_eq!((kind.count(bytes), kind.nth(bytes, 0), kind.last(bytes)), (count, first, last), "{bytes:?}");
        }
    }
}
