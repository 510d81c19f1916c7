//! The matches in a block of lines that a multiline search found.

use std::ops::Range;

use grep_matcher::{Match, NoError};
use memchr::{memchr, memrchr};

use crate::searcher::cancellable_matcher::CancellableMatcher;
use crate::searcher::submatches::SubmatchCollector;

/// How far an expression may look beyond a match for word boundaries and the like.
const LOOKAHEAD_BYTES: usize = 128;

/// A block of adjacent lines, of which each is part of a match, one match after the other.
///
/// A match that begins on the lines of the one before it is part of that one, so that no line is told twice. A line on which
/// nothing is found again is told all the same.
pub(crate) struct MultilineBlock<'a> {
    matcher: &'a CancellableMatcher<'a>,
    /// The block, and what is around it, on which a match may depend.
    haystack: &'a [u8],
    /// The lines that are not told yet.
    rest: Range<usize>,
    /// Where the search goes on.
    search_from: usize,
    /// What was found beyond the lines of the match before it.
    lookahead_match: Option<Match>,
    last_end: Option<usize>,
}

/// The next lines of a block that are one match.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BlockMatch {
    /// How many bytes the lines are.
    pub(crate) length: usize,
    /// Where in them it begins, from 1; 0 where it is not found again.
    pub(crate) column: u64,
}

impl<'a> MultilineBlock<'a> {
    /// The lines `range` of `buffer`.
    pub(crate) fn new(matcher: &'a CancellableMatcher<'a>, buffer: &'a [u8], range: Range<usize>) -> Self {
        let haystack = &buffer[..buffer.len().min(range.end.saturating_add(LOOKAHEAD_BYTES))];
        Self { matcher, haystack, search_from: range.start, rest: range, lookahead_match: None, last_end: None }
    }

    /// The next match, with its `places`.
    pub(crate) fn next(&mut self, mut places: SubmatchCollector<'_>) -> Result<Option<BlockMatch>, NoError> {
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
            let tells_more = places.take(found.start() - start, found.end() - start, rescan_cost);
            // No other match begins in these lines, and no more is told of this one.
            if end == last && !tells_more {
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

    /// The lines up to `end` as a match.
    fn finish_match(&mut self, end: usize, column: u64) -> BlockMatch {
        let length = end - self.rest.start;
        self.rest.start = end;
        BlockMatch { length, column }
    }

    /// What is found next in the block.
    fn find_match(&mut self) -> Result<Option<Match>, NoError> {
        let end = self.rest.end;
        // An empty match at the very end is on the last line, where no other begins behind it.
        let is_open = !self.haystack[..end].ends_with(b"\n");
        while self.search_from <= self.haystack.len() {
            let found = self.matcher.find_next(self.haystack, self.search_from)?;
            let Some(found) = found.filter(|found| found.start() < end || (found.start() == end && is_open)) else {
                self.search_from = usize::MAX;
                break;
            };
            self.search_from = found.end() + usize::from(found.is_empty());
            let is_behind_another = self.last_end.replace(found.end()) == Some(found.start());
            // An empty match right behind another is none, as everywhere, but it is what made its line a match.
            if found.is_empty() && is_behind_another && !self.haystack[..found.start()].ends_with(b"\n") {
                continue;
            }
            return Ok(Some(found));
        }
        Ok(None)
    }

    /// Where the last line of `found` ends.
    fn line_end(&self, found: Match) -> usize {
        let last = self.rest.end;
        let end = found.end().min(last);
        if end > found.start() && self.haystack[end - 1] == b'\n' {
            return end;
        }
        memchr(b'\n', &self.haystack[end..last]).map_or(last, |at| end + at + 1)
    }
}
