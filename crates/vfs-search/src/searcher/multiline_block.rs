//! Block of adjacent matching lines of a multiline search, split into its matches.

use std::ops::Range;

use grep_matcher::{Match, NoError};
use memchr::{memchr, memrchr};

use crate::searcher::cancellable_matcher::CancellableMatcher;
use crate::searcher::submatch_collector::SubmatchCollector;

/// Number of bytes after a match that an expression may inspect, for word boundaries and similar assertions.
const LOOKAHEAD_BYTES: usize = 128;

/// A block of adjacent lines, each part of one of several consecutive matches.
///
/// A match that starts on the lines of the previous one is merged into it, so that no line is reported twice. A line
/// on which the matcher finds nothing the second time is reported nevertheless.
pub(crate) struct MultilineBlock<'a> {
    matcher: &'a CancellableMatcher<'a>,
    /// The block with its surroundings, on which a match may depend.
    haystack: &'a [u8],
    /// The lines that are not reported yet.
    rest: Range<usize>,
    /// Offset at which the search continues.
    search_from: usize,
    /// A match that was found after the lines of the current one.
    lookahead_match: Option<Match>,
    last_end: Option<usize>,
}

/// The next lines of a block, as one match.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BlockMatch {
    /// Length of the lines in bytes.
    pub(crate) length: usize,
    /// Column of the match in these lines, from 1; 0 if the matcher did not find it again.
    pub(crate) column: u64,
}

impl<'a> MultilineBlock<'a> {
    /// Creates the block of lines `range` of `buffer`.
    pub(crate) fn new(matcher: &'a CancellableMatcher<'a>, buffer: &'a [u8], range: Range<usize>) -> Self {
        let haystack = &buffer[..buffer.len().min(range.end.saturating_add(LOOKAHEAD_BYTES))];
        Self { matcher, haystack, search_from: range.start, rest: range, lookahead_match: None, last_end: None }
    }

    /// Returns the next match, and adds its ranges to `submatches`.
    pub(crate) fn next(&mut self, mut submatches: SubmatchCollector<'_>) -> Result<Option<BlockMatch>, NoError> {
        let Range { start, end: last } = self.rest;
        if self.rest.is_empty() {
            return Ok(None);
        }
        let lookahead_match = match self.lookahead_match.take() {
            None => self.find_match()?,
            lookahead_match => lookahead_match,
        };
        let Some(mut found) = lookahead_match else {
            return Ok(Some(self.finish_match(last, 0)));
        };
        let line = memrchr(b'\n', &self.haystack[start..found.start()]).map_or(start, |at| start + at + 1);
        if line > start {
            self.lookahead_match = Some(found);
            return Ok(Some(self.finish_match(line, 0)));
        }
        let column = (found.start() - start) as u64 + 1;
        let mut end = self.line_end(found);
        loop {
            let rescan_cost = self.matcher.rescan_cost(self.haystack, found);
            let has_room = submatches.take(found.start() - start, found.end() - start, rescan_cost);
            // No other match starts on these lines, and no further submatch of this one is reported.
            if end == last && !has_room {
                break;
            }
            match self.find_match()? {
                None => break,
                Some(next) if next.start() >= end && end < last => {
                    self.lookahead_match = Some(next);
                    break;
                }
                Some(next) => found = next,
            }
            if found.end() > end {
                end = self.line_end(found);
            }
        }
        Ok(Some(self.finish_match(end, column)))
    }

    /// Returns the lines up to `end` as a match, and advances past them.
    fn finish_match(&mut self, end: usize, column: u64) -> BlockMatch {
        let length = end - self.rest.start;
        self.rest.start = end;
        BlockMatch { length, column }
    }

    /// Finds the next match that starts in the block.
    fn find_match(&mut self) -> Result<Option<Match>, NoError> {
        let end = self.rest.end;
        // An empty match at the very end lies on the last line if that line has no ending; no other match starts after
        // the block.
        let is_open = !self.haystack[..end].ends_with(b"\n");
        while self.search_from <= self.haystack.len() {
            let found = self.matcher.find_next(self.haystack, self.search_from)?;
            let Some(found) = found.filter(|found| found.start() < end || (found.start() == end && is_open)) else {
                self.search_from = usize::MAX;
                break;
            };
            self.search_from = found.end() + usize::from(found.is_empty());
            let is_adjacent = self.last_end.replace(found.end()) == Some(found.start());
            // As in every iteration over matches, an empty match directly after another one does not count, unless its
            // line matches only because of it.
            if found.is_empty() && is_adjacent && !self.haystack[..found.start()].ends_with(b"\n") {
                continue;
            }
            return Ok(Some(found));
        }
        Ok(None)
    }

    /// Returns the end of the last line of `found`.
    fn line_end(&self, found: Match) -> usize {
        let last = self.rest.end;
        let end = found.end().min(last);
        if end > found.start() && self.haystack[end - 1] == b'\n' {
            return end;
        }
        memchr(b'\n', &self.haystack[end..last]).map_or(last, |at| end + at + 1)
    }
}
