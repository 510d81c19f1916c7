//! Compilation of a glob's parts to text matchers.

use std::collections::HashMap;
use std::sync::Arc;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::parse::{GlobError, GlobPart};

/// Maximum size of a compiled glob in bytes.
const SIZE_LIMIT: usize = 10 << 20;

/// Matches a name, or a whole relative path.
#[derive(Debug, Clone)]
pub(super) enum GlobTextMatcher {
    /// Any name.
    Any,
    /// Exactly this text.
    Literal(String),
    /// A name that ends with this text.
    Suffix(String),
    /// Any other pattern. The regex matches characters where `globset` matches bytes: `?` matches `é`.
    Regex(Box<RegexMatcher>),
}

impl GlobTextMatcher {
    /// Compiles `parts`. The parts of a name contain no separator.
    pub(super) fn new(parts: &[GlobPart]) -> Result<Self, GlobError> {
        Ok(match parts {
            [GlobPart::AnyRun] => GlobTextMatcher::Any,
            [GlobPart::Literal(text)] => GlobTextMatcher::Literal(text.clone()),
            [GlobPart::AnyRun, GlobPart::Literal(suffix)] => GlobTextMatcher::Suffix(suffix.clone()),
            parts if parts.iter().all(|part| matches!(part, GlobPart::Literal(_) | GlobPart::Separator)) => {
                let texts = parts.iter().map(|part| if let GlobPart::Literal(text) = part { text } else { "/" });
                GlobTextMatcher::Literal(texts.collect())
            }
            parts => GlobTextMatcher::Regex(Box::new(regex(parts, &ANY_CHARACTER)?)),
        })
    }

    /// Compiles `parts` so that no wildcard matches a NUL.
    pub(super) fn new_marked(parts: &[GlobPart]) -> Result<Self, GlobError> {
        Ok(GlobTextMatcher::Regex(Box::new(regex(parts, &NO_NUL)?)))
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            GlobTextMatcher::Any => !text.contains('/'),
            GlobTextMatcher::Literal(literal) => text == literal,
            GlobTextMatcher::Suffix(suffix) => text.strip_suffix(suffix.as_str()).is_some_and(|run| !run.contains('/')),
            GlobTextMatcher::Regex(regex) => matches!(regex.is_match(text.as_bytes()), Ok(true)),
        }
    }
}

/// Cache of the matchers of segments, since the expansions of a glob share most of their segments.
#[derive(Debug, Default)]
pub(super) struct SegmentMatcherCache(HashMap<Vec<GlobPart>, Arc<GlobTextMatcher>>);

impl SegmentMatcherCache {
    pub(super) fn get(&mut self, segment: &[GlobPart]) -> Result<Arc<GlobTextMatcher>, GlobError> {
        if let Some(matcher) = self.0.get(segment) {
            return Ok(Arc::clone(matcher));
        }
        let matcher = Arc::new(GlobTextMatcher::new(segment)?);
        self.0.insert(segment.to_vec(), Arc::clone(&matcher));
        Ok(matcher)
    }
}

/// The regexes that replace wildcards.
struct WildcardRegexes {
    /// `?`. Paths are UTF-8, so a character can be described by its bytes, which compiles to a tenth of the size.
    character: &'static str,
    /// `*`.
    run: &'static str,
    /// `**` and the separator after it.
    directories: &'static str,
    /// `**` at the end.
    rest: &'static str,
    /// A class of the characters that no class matches, without the closing bracket.
    outside: &'static str,
}

const ANY_CHARACTER: WildcardRegexes = WildcardRegexes {
    character: r"(?-u:[^/\x80-\xBF][\x80-\xBF]{0,3})",
    run: "(?-u:[^/])*",
    directories: "(?:(?s-u:.)*/)?",
    rest: "(?s-u:.)+",
    outside: "[^/",
};

const NO_NUL: WildcardRegexes = WildcardRegexes {
    character: r"(?-u:[^/\x00\x80-\xBF][\x80-\xBF]{0,3})",
    run: r"(?-u:[^/\x00])*",
    directories: r"(?:(?-u:[^\x00])*/)?",
    rest: r"(?-u:[^\x00])+",
    outside: r"[^/\x00",
};

fn regex(parts: &[GlobPart], wildcards: &WildcardRegexes) -> Result<RegexMatcher, GlobError> {
    let mut expression = String::from("^(?:");
    push_regex(&mut expression, parts, wildcards);
    expression.push_str(")$");
    RegexMatcherBuilder::new()
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .build(&expression)
        .map_err(|_| GlobError::new(0, "the compiled pattern is too large; use a shorter one"))
}

fn push_regex(out: &mut String, parts: &[GlobPart], wildcards: &WildcardRegexes) {
    let mut rest = parts.iter().peekable();
    while let Some(part) = rest.next() {
        match part {
            GlobPart::Literal(text) => out.push_str(&regex_syntax::escape(text)),
            GlobPart::AnyChar => out.push_str(wildcards.character),
            GlobPart::AnyRun => out.push_str(wildcards.run),
            GlobPart::Separator => out.push('/'),
            GlobPart::AnySegments if rest.next_if(|next| **next == GlobPart::Separator).is_some() => {
                out.push_str(wildcards.directories)
            }
            GlobPart::AnySegments => out.push_str(wildcards.rest),
            GlobPart::Class { negated, ranges } => push_class(out, *negated, ranges, wildcards),
            GlobPart::Alternatives(alternatives) => {
                for (index, alternative) in alternatives.iter().enumerate() {
                    out.push_str(if index == 0 { "(?:" } else { "|" });
                    push_regex(out, alternative, wildcards);
                }
                out.push(')');
            }
        }
    }
}

/// Appends a class, which never matches a separator, even if its ranges include it.
fn push_class(out: &mut String, negated: bool, ranges: &[(char, char)], wildcards: &WildcardRegexes) {
    out.push_str(if negated { wildcards.outside } else { "[[" });
    for (low, high) in ranges {
        for (separator, bound) in [("", low), ("-", high)] {
            out.push_str(separator);
            out.push_str(&regex_syntax::escape(bound.encode_utf8(&mut [0; 4])));
        }
    }
    out.push(']');
    if !negated {
        out.push_str("&&");
        out.push_str(wildcards.outside);
        out.push_str("]]");
    }
}
