//! The matcher of a search: an expression that does not see the `\r` of a line ending as text.

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures, NoError};
use grep_regex::RegexMatcher;

/// What a `\r` is to a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarriageReturn {
    /// A byte like any other.
    Text,
    /// Part of the line ending where a `\n` follows.
    EndsLine,
    /// As `EndsLine`, and at the end of a haystack too: haystacks are lines whose `\n` was taken off.
    EndsLineOrHaystack,
}

/// A matcher that has no match of nothing but the `\r` of a line ending.
#[derive(Debug, Clone)]
pub(crate) struct LineMatcher {
    regex: RegexMatcher,
    carriage_return: CarriageReturn,
}

impl LineMatcher {
    pub(crate) fn new(regex: RegexMatcher, carriage_return: CarriageReturn) -> Self {
        Self { regex, carriage_return }
    }

    /// The expression itself, for a last line that has no ending.
    pub(crate) fn regex(&self) -> &RegexMatcher {
        &self.regex
    }

    /// Whether the `\r` before `end`, if it is one, belongs to a line ending.
    fn is_ending(&self, haystack: &[u8], end: usize) -> bool {
        if end == 0 || haystack[end - 1] != b'\r' {
            return false;
        }
        match self.carriage_return {
            CarriageReturn::Text => false,
            CarriageReturn::EndsLine => haystack.get(end) == Some(&b'\n'),
            CarriageReturn::EndsLineOrHaystack => haystack.get(end).is_none_or(|next| *next == b'\n'),
        }
    }
}

impl Matcher for LineMatcher {
    type Captures = NoCaptures;
    type Error = NoError;

    fn find_at(&self, haystack: &[u8], mut at: usize) -> Result<Option<Match>, NoError> {
        while let Some(found) = self.regex.find_at(haystack, at)? {
            if found.len() != 1 || !self.is_ending(haystack, found.end()) {
                return Ok(Some(found));
            }
            // An expression such as `^$` takes the `\r` in, but does not need it.
            if let Some(without) = self.regex.find_at(&haystack[..found.start()], found.start())? {
                return Ok(Some(without));
            }
            at = found.end();
        }
        Ok(None)
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, NoError> {
        match self.regex.shortest_match_at(haystack, at)? {
            Some(end) if self.is_ending(haystack, end) => Ok(self.find_at(haystack, at)?.map(|found| found.end())),
            other => Ok(other),
        }
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, NoError> {
        let found = self.regex.find_candidate_line(haystack)?;
        Ok(match found {
            // The haystack is many lines here, and what is at its end is the end of the file.
            Some(LineMatchKind::Confirmed(end))
                if haystack.get(end) == Some(&b'\n') && self.is_ending(haystack, end) =>
            {
                Some(LineMatchKind::Candidate(end))
            }
            found => found,
        })
    }

    fn new_captures(&self) -> Result<NoCaptures, NoError> {
        Ok(NoCaptures::new())
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.regex.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.regex.line_terminator()
    }
}
