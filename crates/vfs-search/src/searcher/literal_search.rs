//! Literal search: finds the lines that contain a literal in one pass, without grep's searcher.

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memrchr};

use crate::searcher::file_sink::{FileLines, FileSink};

/// The progress of a literal search in a text.
#[derive(Debug)]
pub(crate) struct LiteralSearch<'f> {
    finder: &'f Finder<'f>,
    /// Offset of the current piece in the text.
    offset: u64,
    /// Length of the part of the piece whose lines are counted, and the number of the line after it.
    counted: usize,
    line: u64,
}

impl<'f> LiteralSearch<'f> {
    /// Creates a search for the literal of `finder`, which contains no line break.
    pub(crate) fn new(finder: &'f Finder<'f>) -> Self {
        Self { finder, offset: 0, counted: 0, line: 1 }
    }

    /// Reports the lines of `piece` that contain the literal. Returns whether the search continues. The piece consists
    /// of whole lines, and the piece before it was [advanced past](Self::advance_past).
    pub(crate) fn search(&mut self, piece: &[u8], sink: &mut FileSink<'_>) -> bool {
        let length = self.finder.needle().len();
        let counts_lines = sink.numbers_lines();
        // The offset at which the finder started, to which its matches are relative.
        let mut from = 0;
        let mut found = self.finder.find_iter(piece).peekable();
        while let Some(first) = found.next().map(|at| from + at) {
            let counted = self.counted;
            let start = memrchr(b'\n', &piece[counted..first]).map_or(counted, |at| counted + at + 1);
            let end = memchr(b'\n', &piece[first + length..]).map_or(piece.len(), |at| first + length + at + 1);
            if counts_lines {
                self.line += memchr_iter(b'\n', &piece[counted..start]).count() as u64;
            }
            let number = counts_lines.then_some(self.line);
            let line = FileLines { bytes: &piece[start..end], number, offset: self.offset + start as u64 };
            let others = std::iter::from_fn(|| found.next_if(|next| from + *next < end).map(|next| from + next));
            let ranges = std::iter::once(first).chain(others).map(|at| (at - start, at - start + length));
            if !sink.report_line(&line, ranges) {
                return false;
            }
            self.line += 1;
            self.counted = end;
            // The rest of a line may contain any number of matches that are not reported.
            if found.peek().is_some_and(|next| from + *next < end) {
                from = end;
                found = self.finder.find_iter(&piece[from..]).peekable();
            }
        }
        true
    }

    /// Advances to the text after `piece`, which was searched. After the last piece this call is not needed, and would
    /// only cost the time to count the remaining lines.
    pub(crate) fn advance_past(&mut self, piece: &[u8], sink: &FileSink<'_>) {
        if sink.numbers_lines() {
            self.line += memchr_iter(b'\n', &piece[self.counted..]).count() as u64;
        }
        self.offset += piece.len() as u64;
        self.counted = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use vfs_core::{GrepOutput, GrepRequest, VfsPath};

    use super::*;
    use crate::query::compiled_grep_request::CompiledGrepRequest;
    use crate::search_item::{ItemSink, SearchItem};
    use crate::searcher::cancellable_matcher::CancellableMatcher;
    use crate::searcher::file_sink::SinkBuffers;

    struct CollectedLines(Vec<(u64, u64, u64, usize)>);

    impl ItemSink for CollectedLines {
        fn put(&mut self, item: SearchItem) -> ControlFlow<()> {
            if let SearchItem::Match(line) = item {
                self.0.push((line.line, line.column, line.byte_offset, line.submatches.len()));
            }
            ControlFlow::Continue(())
        }
    }

    /// Returns line, column, offset and number of submatches of the matches in `pieces`, and the number of matches.
    fn found(pieces: &[&str], needle: &str, output: GrepOutput) -> (Vec<(u64, u64, u64, usize)>, u64) {
        let mut req = GrepRequest::literal(needle).output(output);
        req.max_line_bytes = Some(8);
        let query = CompiledGrepRequest::new(&req).expect("a valid request");
        let (mut lines, mut buffers) = (CollectedLines(Vec::new()), SinkBuffers::default());
        let matcher = CancellableMatcher::new(&query, &query.matcher, &|| false);
        let mut sink = FileSink::new(&query, &matcher, &|| VfsPath::parse("/f"), &mut lines, &mut buffers);
        let finder = Finder::new(needle);
        let mut search = LiteralSearch::new(&finder);
        for piece in pieces.iter().map(|piece| piece.as_bytes()) {
            assert!(search.search(piece, &mut sink));
            search.advance_past(piece, &sink);
        }
        let matches = sink.matches;
        (lines.0, matches)
    }

    #[test]
    fn pieces_are_one_text() {
        let text = "ab ab\n\nab\r\nno\n  ab\nab";
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        let expected = vec![(1, 1, 0, 2), (3, 1, 7, 1), (5, 3, 14, 1), (6, 1, 19, 1)];
        assert_eq!(found(&[text], "ab", GrepOutput::Matches), (expected.clone(), 4));
        assert_eq!(found(&lines, "ab", GrepOutput::Matches), (expected, 4));
        assert_eq!(found(&[text], "b\r", GrepOutput::Matches), (vec![(3, 2, 7, 1)], 1));
    }

    #[test]
    fn the_search_of_a_long_line_ends_at_the_limit_of_reported_submatches() {
        let line = format!("{}\nx\n{}\n", "x".repeat(1000), "x".repeat(20));
        assert_eq!(
            found(&[&line], "x", GrepOutput::Matches),
            (vec![(1, 1, 0, 8), (2, 1, 1001, 1), (3, 1, 1003, 8)], 3)
        );
        assert_eq!(found(&[&line], "x", GrepOutput::Counts), (vec![], 3));
    }
}
