//! Matcher of a pattern: a regex or literal that does not treat the `\r` of a line ending as text.

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures, NoError};
use grep_regex::RegexMatcher;
use memchr::memmem::Finder;

/// Treatment of a `\r` by a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarriageReturnMode {
    /// A byte like any other.
    Text,
    /// Part of the line ending if a `\n` follows.
    EndsLine,
    /// Like `EndsLine`, and also at the end of a haystack, since haystacks are lines without their `\n`.
    EndsLineOrHaystack,
}

/// A matcher that never matches only the `\r` of a line ending.
#[derive(Debug, Clone)]
pub(crate) struct PatternMatcher {
    engine: MatchEngine,
    carriage_return: CarriageReturnMode,
}

/// The engine that finds the pattern.
#[derive(Debug, Clone)]
enum MatchEngine {
    /// A text without a line break, found by SIMD and without a regex.
    Literal(Box<Finder<'static>>),
    Regex(RegexMatcher),
}

impl PatternMatcher {
    pub(crate) fn new(regex: RegexMatcher, carriage_return: CarriageReturnMode) -> Self {
        Self { engine: MatchEngine::Regex(regex), carriage_return }
    }

    /// Creates a matcher for `text` itself, which contains no line break and is not empty.
    pub(crate) fn literal(text: &[u8]) -> Self {
        let finder = Finder::new(text).into_owned();
        Self { engine: MatchEngine::Literal(Box::new(finder)), carriage_return: CarriageReturnMode::Text }
    }

    /// Returns the finder of the literal, if the pattern is one.
    pub(crate) fn finder(&self) -> Option<&Finder<'static>> {
        match &self.engine {
            MatchEngine::Literal(finder) => Some(finder),
            MatchEngine::Regex(_) => None,
        }
    }

    /// Finds the matches in a last line, which has no ending, so that a `\r` there is text.
    pub(crate) fn find_iter_in_last_line(&self, line: &[u8], found: impl FnMut(Match) -> bool) -> Result<(), NoError> {
        match &self.engine {
            MatchEngine::Literal(_) => self.find_iter(line, found),
            MatchEngine::Regex(regex) => regex.find_iter(line, found),
        }
    }

    /// Finds the next match as long as `should_continue` returns `true`. The predicate is called for each match of the
    /// engine, including those that this matcher rejects.
    pub(crate) fn find_while(
        &self,
        haystack: &[u8],
        mut at: usize,
        should_continue: impl Fn(Match) -> bool,
    ) -> Result<Option<Match>, NoError> {
        let regex = match &self.engine {
            MatchEngine::Literal(finder) => {
                let length = finder.needle().len();
                let start = haystack.get(at..).and_then(|rest| finder.find(rest)).map(|start| at + start);
                return Ok(start.map(|start| Match::new(start, start + length)));
            }
            MatchEngine::Regex(regex) => regex,
        };
        while let Some(found) = regex.find_at(haystack, at)?.filter(|found| should_continue(*found)) {
            if found.len() != 1 || !self.is_line_ending(haystack, found.end()) {
                return Ok(Some(found));
            }
            // An expression such as `^$` includes the `\r`, but also matches without it.
            if let Some(without) = regex.find_at(&haystack[..found.start()], found.start())? {
                return Ok(Some(without));
            }
            at = found.end();
        }
        Ok(None)
    }

    /// Returns whether there is a `\r` before `end` that belongs to a line ending.
    fn is_line_ending(&self, haystack: &[u8], end: usize) -> bool {
        if end == 0 || haystack[end - 1] != b'\r' {
            return false;
        }
        match self.carriage_return {
            CarriageReturnMode::Text => false,
            CarriageReturnMode::EndsLine => haystack.get(end) == Some(&b'\n'),
            CarriageReturnMode::EndsLineOrHaystack => haystack.get(end).is_none_or(|next| *next == b'\n'),
        }
    }
}

impl Matcher for PatternMatcher {
    type Captures = NoCaptures;
    type Error = NoError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        self.find_while(haystack, at, |_| true)
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, NoError> {
        let MatchEngine::Regex(regex) = &self.engine else {
            return Ok(self.find_at(haystack, at)?.map(|found| found.end()));
        };
        match regex.shortest_match_at(haystack, at)? {
            Some(end) if self.is_line_ending(haystack, end) => Ok(self.find_at(haystack, at)?.map(|found| found.end())),
            other => Ok(other),
        }
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, NoError> {
        let regex = match &self.engine {
            MatchEngine::Literal(finder) => return Ok(finder.find(haystack).map(LineMatchKind::Confirmed)),
            MatchEngine::Regex(regex) => regex,
        };
        let found = regex.find_candidate_line(haystack)?;
        Ok(match found {
            // The haystack consists of many lines here, and its end is the end of the file.
            Some(LineMatchKind::Confirmed(end))
                if haystack.get(end) == Some(&b'\n') && self.is_line_ending(haystack, end) =>
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
        match &self.engine {
            MatchEngine::Literal(_) => None,
            MatchEngine::Regex(regex) => regex.non_matching_bytes(),
        }
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        match &self.engine {
            MatchEngine::Literal(_) => Some(LineTerminator::byte(b'\n')),
            MatchEngine::Regex(regex) => regex.line_terminator(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_found_as_often_as_its_expression_finds_it() {
        let texts = ["aaaa", "", "aa", "a", "baab aa", "b\naa\r\naaa\n"];
        let regex = PatternMatcher::new(RegexMatcher::new("aa").expect("valid"), CarriageReturnMode::Text);
        let all = |matcher: &PatternMatcher, text: &str| {
            let mut found = Vec::new();
            matcher
                .find_iter(text.as_bytes(), |one| {
                    found.push(one);
                    true
                })
                .expect("cannot fail");
            found
        };
        for text in texts {
            assert_eq!(all(&PatternMatcher::literal(b"aa"), text), all(&regex, text), "{text:?}");
        }
    }
}
