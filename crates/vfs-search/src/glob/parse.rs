//! Parser of globs.

use std::iter::Peekable;
use std::str::CharIndices;

/// Maximum length of a glob in bytes.
pub(super) const MAX_LEN: usize = 4096;

/// Maximum nesting of `{`.
const MAX_NESTING: usize = 10;

/// Maximum number of alternatives in all braces together.
const MAX_ALTERNATIVES: usize = 1000;

/// One part of a glob.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum GlobPart {
    /// This text, which contains no `/`.
    Literal(String),
    /// `?`: one character of a name.
    AnyChar,
    /// `*`: any characters of a name.
    AnyRun,
    /// `[...]`: one character of a name, within these ranges or outside of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
    /// `**` as a whole segment: any number of directories.
    AnySegments,
    /// `/`.
    Separator,
    /// `{...}`: one of these alternatives.
    Alternatives(Vec<Vec<GlobPart>>),
}

impl GlobPart {
    /// Returns whether the part may match more than one segment.
    pub(super) fn spans_segments(&self) -> bool {
        match self {
            GlobPart::Separator | GlobPart::AnySegments => true,
            GlobPart::Alternatives(alternatives) => alternatives.iter().flatten().any(GlobPart::spans_segments),
            _ => false,
        }
    }
}

/// A mistake in a glob, and its byte offset.
#[derive(Debug)]
pub(super) struct GlobError {
    pub(super) at: usize,
    pub(super) message: String,
}

impl GlobError {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// Parses `text`.
pub(super) fn parse(text: &str) -> Result<Vec<GlobPart>, GlobError> {
    let mut parser = GlobParser { rest: text.char_indices().peekable(), end: text.len(), nesting: 0, alternatives: 0 };
    parser.sequence(SegmentStart::Yes)
}

/// Returns whether `text`, a line of an ignore file, is within the limits of globs.
pub(crate) fn within_limits(text: &str) -> bool {
    let (mut nesting, mut alternatives) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'{' => (nesting, alternatives) = (nesting + 1, alternatives + 1),
            b'}' => nesting = nesting.saturating_sub(1),
            b',' => alternatives += 1,
            _ => {}
        }
        if nesting > MAX_NESTING || alternatives > MAX_ALTERNATIVES {
            return false;
        }
    }
    text.len() <= MAX_LEN
}

/// Whether the next part starts a segment: `**` matches directories only there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentStart {
    Yes,
    No,
}

/// A recursive descent parser of one glob, with the counts that its limits bound.
struct GlobParser<'a> {
    rest: Peekable<CharIndices<'a>>,
    end: usize,
    nesting: usize,
    alternatives: usize,
}

impl GlobParser<'_> {
    /// Parses up to the end, or up to the `,` or `}` that ends an alternative.
    fn sequence(&mut self, start: SegmentStart) -> Result<Vec<GlobPart>, GlobError> {
        let mut parts = Vec::new();
        while let Some(&(at, c)) = self.rest.peek() {
            if self.nesting > 0 && matches!(c, ',' | '}') {
                break;
            }
            self.rest.next();
            let starts_segment = match parts.last() {
                None => start,
                Some(GlobPart::Separator) => SegmentStart::Yes,
                Some(_) => SegmentStart::No,
            };
            match c {
                '/' => parts.push(GlobPart::Separator),
                '?' => parts.push(GlobPart::AnyChar),
                '*' => parts.push(self.stars(starts_segment)),
                '[' => parts.push(self.class(at)?),
                '{' => parts.push(self.braces(at, starts_segment)?),
                '}' => return Err(GlobError::new(at, "'}' without a '{' before it; write '\\}' for the character")),
                '\\' => {
                    let Some((_, escaped)) = self.rest.next() else {
                        return Err(GlobError::new(
                            at,
                            "the pattern ends with a lone '\\'; write '\\\\' for the character",
                        ));
                    };
                    push_char(&mut parts, escaped);
                }
                c => push_char(&mut parts, c),
            }
        }
        Ok(parts)
    }

    /// Parses a run of `*` after its first one.
    fn stars(&mut self, start: SegmentStart) -> GlobPart {
        let mut stars = 1;
        while self.rest.next_if(|&(_, c)| c == '*').is_some() {
            stars += 1;
        }
        let ends_segment = match self.rest.peek() {
            None | Some((_, '/')) => true,
            Some((_, c)) => self.nesting > 0 && matches!(c, ',' | '}'),
        };
        if stars == 2 && start == SegmentStart::Yes && ends_segment { GlobPart::AnySegments } else { GlobPart::AnyRun }
    }

    /// Parses `[...]` after its `[`, which is at `open`.
    fn class(&mut self, open: usize) -> Result<GlobPart, GlobError> {
        let unclosed = || GlobError::new(open, "'[' without a ']' after it; write '\\[' for the character");
        let negated = self.rest.next_if(|&(_, c)| matches!(c, '!' | '^')).is_some();
        let mut ranges: Vec<(char, char)> = Vec::new();
        loop {
            let (at, c) = self.rest.next().ok_or_else(unclosed)?;
            let low = match c {
                ']' if !ranges.is_empty() => return Ok(GlobPart::Class { negated, ranges }),
                '\\' => self.rest.next().ok_or_else(unclosed)?.1,
                c => c,
            };
            let mut ahead = self.rest.clone();
            let is_range = ahead.next().is_some_and(|(_, c)| c == '-') && ahead.next().is_some_and(|(_, c)| c != ']');
            if !is_range {
                ranges.push((low, low));
                continue;
            }
            self.rest.next();
            let high = match self.rest.next().ok_or_else(unclosed)?.1 {
                '\\' => self.rest.next().ok_or_else(unclosed)?.1,
                c => c,
            };
            if low > high {
                return Err(GlobError::new(at, format!("the range '{low}-{high}' is the wrong way round")));
            }
            ranges.push((low, high));
        }
    }

    /// Parses `{...}` after its `{`, which is at `open`.
    fn braces(&mut self, open: usize, start: SegmentStart) -> Result<GlobPart, GlobError> {
        if self.nesting == MAX_NESTING {
            return Err(GlobError::new(open, format!("braces are nested more than {MAX_NESTING} deep")));
        }
        self.nesting += 1;
        let mut alternatives = Vec::new();
        loop {
            self.alternatives += 1;
            if self.alternatives > MAX_ALTERNATIVES {
                return Err(GlobError::new(
                    open,
                    format!("the pattern has more than {MAX_ALTERNATIVES} alternatives in braces"),
                ));
            }
            alternatives.push(self.sequence(start)?);
            match self.rest.next() {
                Some((_, ',')) => {}
                Some(_) => break,
                None => {
                    let message = "'{' without a '}' after it; write '\\{' for the character";
                    return Err(GlobError::new(open.min(self.end), message));
                }
            }
        }
        self.nesting -= 1;
        Ok(GlobPart::Alternatives(alternatives))
    }
}

fn push_char(parts: &mut Vec<GlobPart>, c: char) {
    match parts.last_mut() {
        _ if c == '/' => parts.push(GlobPart::Separator),
        Some(GlobPart::Literal(text)) => text.push(c),
        _ => parts.push(GlobPart::Literal(c.to_string())),
    }
}
