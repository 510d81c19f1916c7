//! Line ending conversion of files and new text.

use std::borrow::Cow;
use std::iter::repeat;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem, memrchr};

use crate::error::Result;
use crate::fallible_alloc;

/// The ending of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineTerminator {
    /// The line ends with `\n`.
    Lf,
    /// The line ends with `\r\n`.
    Crlf,
}

impl LineTerminator {
    pub(super) fn is_crlf(self) -> bool {
        self == LineTerminator::Crlf
    }

    fn bytes(self) -> &'static [u8] {
        if self.is_crlf() { b"\r\n" } else { b"\n" }
    }
}

/// Converts all line endings to `\r\n`. Text that already has them is not copied.
///
/// # Errors
///
/// `too_large` if the copy cannot be allocated.
pub(super) fn to_crlf(text: &[u8]) -> Result<Cow<'_, [u8]>> {
    let lone = || memchr_iter(b'\n', text).filter(|at| *at == 0 || text[at - 1] != b'\r');
    let count = lone().count();
    if count == 0 {
        return Ok(Cow::Borrowed(text));
    }
    let mut converted = fallible_alloc::with_capacity(text.len().saturating_add(count))?;
    let mut copied = 0;
    for at in lone() {
        converted.extend_from_slice(&text[copied..at]);
        converted.push(b'\r');
        copied = at;
    }
    converted.extend_from_slice(&text[copied..]);
    Ok(Cow::Owned(converted))
}

/// A view of a file with every `\r\n` as `\n`. A file without `\r\n` is not copied.
pub(super) struct LfNormalizedText<'a> {
    text: Cow<'a, [u8]>,
    /// The positions of each `\n` in `text` that is `\r\n` in the file, in order.
    removed: Vec<usize>,
    /// The last line ending of the file.
    last: LineTerminator,
}

impl<'a> LfNormalizedText<'a> {
    /// # Errors
    ///
    /// `too_large` if the copy cannot be allocated.
    pub(super) fn new(content: &'a [u8]) -> Result<Self> {
        let mut view = Self { text: Cow::Borrowed(content), removed: Vec::new(), last: LineTerminator::Lf };
        let count = memmem::find_iter(content, b"\r\n").count();
        if count == 0 {
            return Ok(view);
        }
        let mut text = fallible_alloc::with_capacity(content.len() - count)?;
        fallible_alloc::reserve(&mut view.removed, count)?;
        let mut copied = 0;
        for at in memmem::find_iter(content, b"\r\n") {
            text.extend_from_slice(&content[copied..at]);
            view.removed.push(text.len());
            copied = at + 1;
        }
        text.extend_from_slice(&content[copied..]);
        view.text = Cow::Owned(text);
        if let Some(newline) = memrchr(b'\n', &view.text) {
            view.last = view.ending_at(newline);
        }
        Ok(view)
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn into_text(self) -> Cow<'a, [u8]> {
        self.text
    }

    /// Returns the range of the file for `start..end` of the text. A `\n` at `start` includes its `\r`.
    pub(super) fn raw_range(&self, start: usize, end: usize) -> Range<usize> {
        let raw = |at| at + self.removed.partition_point(|removed| *removed < at);
        raw(start)..raw(end)
    }

    /// Returns a cursor over the line endings, at the beginning of the text.
    pub(super) fn endings(&self) -> LineEndingCursor<'_> {
        LineEndingCursor { view: self, next_line_end: None }
    }

    fn ending_at(&self, newline: usize) -> LineTerminator {
        if self.removed.binary_search(&newline).is_ok() { LineTerminator::Crlf } else { LineTerminator::Lf }
    }
}

/// A cursor that finds the ending of the line at each of several positions, which have to increase.
pub(super) struct LineEndingCursor<'a> {
    view: &'a LfNormalizedText<'a>,
    /// The first `\n` at or after the last position, or the length of the text: a cache, so that all lookups together take one
    /// pass.
    next_line_end: Option<usize>,
}

impl LineEndingCursor<'_> {
    /// Returns the ending of the line at `at`; for a last line without one, the ending of the line before.
    fn of_line(&mut self, at: usize) -> LineTerminator {
        let text = self.view.text();
        let end = match self.next_line_end {
            Some(end) if end >= at => end,
            _ => memchr(b'\n', &text[at..]).map_or(text.len(), |found| at + found),
        };
        self.next_line_end = Some(end);
        if end < text.len() { self.view.ending_at(end) } else { self.view.last }
    }
}

/// New text whose line endings adapt to the position at which it is inserted.
pub(super) struct LineEndingAdaptiveText<'a> {
    /// The positions of each `\n` in the old text.
    old_newlines: Vec<usize>,
    old_length: usize,
    new: &'a [u8],
    /// The newlines of `new` whose ending depends on the position of insertion, which are those without a `\r`: the offset of
    /// each in `new`, and its index among all newlines of `new`.
    adapting: Vec<(usize, usize)>,
    /// The number of `adapting` newlines with an index below the number of `old_newlines`: each takes the ending of the newline
    /// with the same index in the replaced text.
    paired: usize,
}

impl<'a> LineEndingAdaptiveText<'a> {
    pub(super) fn new(old: &[u8], new: &'a [u8]) -> Self {
        let adapting: Vec<_> = memchr_iter(b'\n', new)
            .enumerate()
            .filter(|(_, at)| *at == 0 || new[at - 1] != b'\r')
            .map(|(index, at)| (at, index))
            .collect();
        let old_newlines: Vec<_> = memchr_iter(b'\n', old).collect();
        let paired = adapting.partition_point(|(_, index)| *index < old_newlines.len());
        Self { old_newlines, old_length: old.len(), new, adapting, paired }
    }

    /// Creates new text that is the same at every position.
    pub(super) fn exact(new: &'a [u8]) -> Self {
        Self { old_newlines: Vec::new(), old_length: 0, new, adapting: Vec::new(), paired: 0 }
    }

    /// Returns the size of the new text at the position `at`, in time linear in the lines of the old text.
    pub(super) fn length(&self, endings: &mut LineEndingCursor<'_>, at: usize) -> usize {
        let carriage_returns = self.paired_endings(endings.view, at).filter(|ending| ending.is_crlf()).count();
        let unpaired = self.adapting.len() - self.paired;
        let further = if unpaired > 0 && self.further_ending(endings, at).is_crlf() { unpaired } else { 0 };
        self.new.len() + carriage_returns + further
    }

    /// Returns the endings of the adapting newlines that are paired with one of the old text.
    fn paired_endings(&self, view: &LfNormalizedText<'_>, at: usize) -> impl Iterator<Item = LineTerminator> {
        self.adapting[..self.paired].iter().map(move |(_, index)| view.ending_at(at + self.old_newlines[*index]))
    }

    /// Returns the ending of the other adapting newlines.
    fn further_ending(&self, endings: &mut LineEndingCursor<'_>, at: usize) -> LineTerminator {
        match self.old_newlines.last() {
            Some(last) => endings.view.ending_at(at + last),
            None => endings.of_line(at + self.old_length),
        }
    }

    /// Writes the new text for the position `at`.
    pub(super) fn write(&self, endings: &mut LineEndingCursor<'_>, at: usize, edited: &mut Vec<u8>) {
        let further = self.further_ending(endings, at);
        let mut copied = 0;
        for (ending, (newline, _)) in self.paired_endings(endings.view, at).chain(repeat(further)).zip(&self.adapting) {
            edited.extend_from_slice(&self.new[copied..*newline]);
            edited.extend_from_slice(ending.bytes());
            copied = newline + 1;
        }
        edited.extend_from_slice(&self.new[copied..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_map_back_to_the_bytes_they_stand_for() {
        let content = b"a\r\nb\nc\r\r\n";
        let view = LfNormalizedText::new(content).expect("there is memory");
        assert_eq!(view.text(), b"a\nb\nc\r\n");
        for (text, raw) in [
            (0..1, &b"a"[..]),
            (0..2, b"a\r\n"),
            (1..2, b"\r\n"),
            (1..3, b"\r\nb"),
            (3..4, b"\n"),
            (5..7, b"\r\r\n"),
            (0..7, content),
        ] {
            assert_eq!(&content[view.raw_range(text.start, text.end)], raw, "{text:?}");
        }
    }
}
