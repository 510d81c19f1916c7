//! The lines that hold a literal, found in one pass over a text, without a searcher around it.

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memrchr};

use crate::sink::{FileSink, Lines};

/// Where a search for a literal is in a text.
#[derive(Debug)]
pub(crate) struct LiteralSearch<'f> {
    finder: &'f Finder<'f>,
    /// The number of the first line of the next piece, and where that is.
    line: u64,
    offset: u64,
}

impl<'f> LiteralSearch<'f> {
    /// A search for what `finder` looks for, in which there is no line break.
    pub(crate) fn new(finder: &'f Finder<'f>) -> Self {
        Self { finder, line: 1, offset: 0 }
    }

    /// Reports the lines that hold it of `piece`, which is whole lines and follows the piece before; whether the search goes
    /// on.
    pub(crate) fn search(&mut self, piece: &[u8], sink: &mut FileSink<'_>) -> bool {
        let length = self.finder.needle().len();
        let counts_lines = sink.numbers_lines();
        let mut counted = 0;
        let mut found = self.finder.find_iter(piece).peekable();
        while let Some(first) = found.next() {
            let start = memrchr(b'\n', &piece[counted..first]).map_or(counted, |at| counted + at + 1);
            let end = memchr(b'\n', &piece[first + length..]).map_or(piece.len(), |at| first + length + at + 1);
            if counts_lines {
                self.line += memchr_iter(b'\n', &piece[counted..start]).count() as u64;
            }
            let number = counts_lines.then_some(self.line);
            let line = Lines { bytes: &piece[start..end], number, offset: self.offset + start as u64 };
            let others = std::iter::from_fn(|| found.next_if(|next| *next < end));
            let places = std::iter::once(first).chain(others).map(|at| (at - start, at - start + length));
            if !sink.report_found(&line, places) {
                return false;
            }
            self.line += 1;
            counted = end;
        }
        if counts_lines {
            self.line += memchr_iter(b'\n', &piece[counted..]).count() as u64;
        }
        self.offset += piece.len() as u64;
        true
    }
}
