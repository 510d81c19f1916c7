//! Cancellable matcher: ends a search that cannot be interrupted between its lines.
//!
//! In a multiline search, and while the submatches of a line are collected, it reports no further match once the search is
//! interrupted. Otherwise the reader checks that between two chunks.

use std::cell::Cell;

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures, NoError};
use memchr::memchr;

use crate::query::compiled_grep_request::CompiledGrepRequest;
use crate::query::pattern_matcher::PatternMatcher;

/// Number of bytes that may be scanned again between two checks for an interruption.
const CANCEL_CHECK_BYTES: usize = 64 << 10;

/// Cost of a match in addition to the bytes that are scanned again for it, in bytes.
const MATCH_COST_BYTES: usize = 64;

/// The matcher of one file.
///
/// The search engine that uses it cannot be interrupted by itself, and may scan the rest of a haystack for each match.
/// In a multiline search the engine also looks for both ends of the line of each match, which in a long line is most
/// of the work. So this matcher withholds matches that add nothing to the lines of earlier ones.
pub(crate) struct CancellableMatcher<'a> {
    matcher: &'a PatternMatcher,
    max_read_past_match: usize,
    is_multiline: bool,
    is_interrupted: &'a dyn Fn() -> bool,
    /// Number of bytes that may have been scanned again since the last check.
    bytes_since_check: Cell<usize>,
    is_stopped: Cell<bool>,
    /// Number of bytes of a multiline search's text after the lines of the reported matches.
    bytes_after_reported: Cell<usize>,
}

impl<'a> CancellableMatcher<'a> {
    /// Wraps `matcher`, which finds matches as long as `is_interrupted` returns `false`.
    pub(crate) fn new(
        query: &CompiledGrepRequest,
        matcher: &'a PatternMatcher,
        is_interrupted: &'a dyn Fn() -> bool,
    ) -> Self {
        Self {
            matcher,
            max_read_past_match: query.max_read_past_match,
            is_multiline: query.multiline,
            is_interrupted,
            bytes_since_check: Cell::new(0),
            is_stopped: Cell::new(false),
            bytes_after_reported: Cell::new(usize::MAX),
        }
    }

    /// Returns the matcher itself.
    pub(crate) fn inner(&self) -> &'a PatternMatcher {
        self.matcher
    }

    /// Returns whether the search was interrupted, so that the matches reported since then are incomplete.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.get()
    }

    /// Returns the maximum number of bytes of `haystack` after `found` that were scanned already, and are scanned again
    /// for the next match.
    pub(crate) fn rescan_cost(&self, haystack: &[u8], found: Match) -> usize {
        self.max_read_past_match.min(haystack.len().saturating_sub(found.end()))
    }

    /// Finds the next match.
    pub(crate) fn find_next(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        if self.is_stopped() {
            return Ok(None);
        }
        self.matcher.find_while(haystack, at, |found| self.record_match(self.rescan_cost(haystack, found)))
    }

    /// Finds the next match with a line that no earlier match covers.
    ///
    /// The engine of a multiline search looks for each match in the rest of its text as if that were the whole text.
    fn find_on_new_line(&self, rest: &[u8]) -> Result<Option<Match>, NoError> {
        let reported = rest.len().saturating_sub(self.bytes_after_reported.get());
        let mut from = 0;
        while from == 0 || from < rest.len() {
            let Some(found) = self.find_next(&rest[from..], 0)?.map(|found| found.offset(from)) else { break };
            if found.start() >= reported || found.end() > reported {
                self.bytes_after_reported.set(rest.len() - end_of_lines(rest, found));
                return Ok(Some(found));
            }
            from = found.end() + usize::from(found.is_empty());
        }
        Ok(None)
    }

    /// Records a match after which `rescan_cost` bytes are scanned again. Returns whether the search continues.
    pub(crate) fn record_match(&self, rescan_cost: usize) -> bool {
        let bytes_since_check =
            self.bytes_since_check.get().saturating_add(rescan_cost).saturating_add(MATCH_COST_BYTES);
        self.bytes_since_check.set(bytes_since_check);
        if bytes_since_check >= CANCEL_CHECK_BYTES {
            self.bytes_since_check.set(0);
            if (self.is_interrupted)() {
                self.is_stopped.set(true);
            }
        }
        !self.is_stopped()
    }
}

impl Matcher for CancellableMatcher<'_> {
    type Captures = NoCaptures;
    type Error = NoError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        match at {
            0 if self.is_multiline => self.find_on_new_line(haystack),
            _ => self.find_next(haystack, at),
        }
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, NoError> {
        self.matcher.shortest_match_at(haystack, at)
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, NoError> {
        self.matcher.find_candidate_line(haystack)
    }

    fn new_captures(&self) -> Result<NoCaptures, NoError> {
        Ok(NoCaptures::new())
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.matcher.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.matcher.line_terminator()
    }
}

/// Returns the end of the last line of `found`.
fn end_of_lines(haystack: &[u8], found: Match) -> usize {
    let end = found.end();
    if !found.is_empty() && haystack[end - 1] == b'\n' {
        return end;
    }
    memchr(b'\n', &haystack[end..]).map_or(haystack.len(), |at| end + at + 1)
}
