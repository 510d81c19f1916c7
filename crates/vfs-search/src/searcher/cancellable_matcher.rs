//! A matcher that finds nothing more once nobody wants it.

use std::cell::Cell;

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures, NoError};
use memchr::memchr;

use crate::query::compiled::CompiledQuery;
use crate::query::matcher::LineMatcher;

/// How many bytes may be read again between two looks whether to go on.
const CANCEL_CHECK_BYTES: usize = 64 << 10;

/// What finding a match costs by itself, in bytes that could have been read instead.
const MATCH_COST_BYTES: usize = 64;

/// The matcher of one file.
///
/// The engine that it is for cannot be interrupted by itself, and may read the rest of a haystack for each match. That of a
/// multiline search also looks for both ends of its line for each match, which of a long line is most of what there is, so
/// matches that add nothing to the lines of those before them are kept from it.
pub(crate) struct CancellableMatcher<'a> {
    matcher: &'a LineMatcher,
    max_lookahead: usize,
    is_multiline: bool,
    is_interrupted: &'a dyn Fn() -> bool,
    /// How many bytes may have been read again since the last look.
    bytes_since_check: Cell<usize>,
    is_stopped: Cell<bool>,
    /// How many bytes of a multiline search's text are behind the lines of the matches that it was given.
    bytes_after_reported: Cell<usize>,
}

impl<'a> CancellableMatcher<'a> {
    /// `matcher`, as long as nothing is `is_interrupted`.
    pub(crate) fn new(query: &CompiledQuery, matcher: &'a LineMatcher, is_interrupted: &'a dyn Fn() -> bool) -> Self {
        Self {
            matcher,
            max_lookahead: query.max_lookahead,
            is_multiline: query.multiline,
            is_interrupted,
            bytes_since_check: Cell::new(0),
            is_stopped: Cell::new(false),
            bytes_after_reported: Cell::new(usize::MAX),
        }
    }

    /// The matcher itself.
    pub(crate) fn inner(&self) -> &'a LineMatcher {
        self.matcher
    }

    /// Whether it was interrupted: what it has found since is not all there is.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.get()
    }

    /// How many bytes of `haystack` may have been read behind `found`, and are read again for the next match.
    pub(crate) fn rescan_cost(&self, haystack: &[u8], found: Match) -> usize {
        self.max_lookahead.min(haystack.len().saturating_sub(found.end()))
    }

    /// Finds the next match.
    pub(crate) fn find_next(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        if self.is_stopped() {
            return Ok(None);
        }
        self.matcher.find_while(haystack, at, |found| self.record_match(self.rescan_cost(haystack, found)))
    }

    /// Finds the next match that has a line which those before it do not have.
    ///
    /// The engine of a multiline search looks for each match in what is left of its text as if that were all of it.
    fn find_on_new_line(&self, rest: &[u8]) -> Result<Option<Match>, NoError> {
        let given = rest.len().saturating_sub(self.bytes_after_reported.get());
        let mut from = 0;
        while from == 0 || from < rest.len() {
            let Some(found) = self.find_next(&rest[from..], 0)?.map(|found| found.offset(from)) else { break };
            if found.start() >= given || found.end() > given {
                self.bytes_after_reported.set(rest.len() - end_of_lines(rest, found));
                return Ok(Some(found));
            }
            from = found.end() + usize::from(found.is_empty());
        }
        Ok(None)
    }

    /// Notes that a match was found and that so much is read `rescan_cost` for the next one; whether to go on.
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

/// Where the last line of `found` ends.
fn end_of_lines(haystack: &[u8], found: Match) -> usize {
    let end = found.end();
    if !found.is_empty() && haystack[end - 1] == b'\n' {
        return end;
    }
    memchr(b'\n', &haystack[end..]).map_or(haystack.len(), |at| end + at + 1)
}
