//! Compilation of a glob's parts to text matchers.

use std::collections::HashMap;
use std::sync::Arc;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::parse::{GlobError, Part};

/// Maximum size of a compiled glob in bytes.
const SIZE_LIMIT: usize = 10 << 20;

/// Matches a name, or a whole relative path.
#[derive(Debug, Clone)]
pub(super) enum TextMatcher {
    /// Any name.
    Any,
    /// Exactly this text.
    Literal(String),
    /// A name that ends with this text.
    Suffix(String),
    /// Any other pattern. The regex matches characters where `globset` matches bytes: `?` matches `é`.
    Regex(Box<RegexMatcher>),
}

impl TextMatcher {
    /// Compiles `parts`. The parts of a name contain no separator.
    pub(super) fn new(parts: &[Part]) -> Result<Self, GlobError> {
        Ok(match parts {
            [Part::AnyRun] => TextMatcher::Any,
            [Part::Literal(text)] => TextMatcher::Literal(text.clone()),
            [Part::AnyRun, Part::Literal(suffix)] => TextMatcher::Suffix(suffix.clone()),
            parts if parts.iter().all(|part| matches!(part, Part::Literal(_) | Part::Separator)) => {
                let texts = parts.iter().map(|part| if let Part::Literal(text) = part { text } else { "/" });
                TextMatcher::Literal(texts.collect())
            }
            parts => TextMatcher::Regex(Box::new(regex(parts, &ANY_CHARACTER)?)),
        })
    }

    /// Compiles `parts` so that no wildcard matches a NUL.
    pub(super) fn new_marked(parts: &[Part]) -> Result<Self, GlobError> {
        Ok(TextMatcher::Regex(Box::new(regex(parts, &NO_NUL)?)))
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            TextMatcher::Any => !text.contains('/'),
            TextMatcher::Literal(literal) => text == literal,
            TextMatcher::Suffix(suffix) => text.strip_suffix(suffix.as_str()).is_some_and(|run| !run.contains('/')),
            TextMatcher::Regex(regex) => matches!(regex.is_match(text.as_bytes()), Ok(true)),
        }
    }
}

/// Cache of the matchers of segments, since the expansions of a glob share most of their segments.
#[derive(Debug, Default)]
pub(super) struct SegmentMatchers(HashMap<Vec<Part>, Arc<TextMatcher>>);

impl SegmentMatchers {
    pub(super) fn get(&mut self, segment: &[Part]) -> Result<Arc<TextMatcher>, GlobError> {
        if let Some(matcher) = self.0.get(segment) {
            return Ok(Arc::clone(matcher));
        }
        let matcher = Arc::new(TextMatcher::new(segment)?);
        self.0.insert(segment.to_vec(), Arc::clone(&matcher));
        Ok(matcher)
    }
}

/// The regexes that replace wildcards.
struct WildcardSyntax {
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

const ANY_CHARACTER: WildcardSyntax = WildcardSyntax {
    character: r"(?-u:[^/\x80-\xBF][\x80-\xBF]{0,3})",
    run: "(?-u:[^/])*",
    directories: "(?:(?s-u:.)*/)?",
    rest: "(?s-u:.)+",
    outside: "[^/",
};

const NO_NUL: WildcardSyntax = WildcardSyntax {
    character: r"(?-u:[^/\x00\x80-\xBF][\x80-\xBF]{0,3})",
    run: r"(?-u:[^/\x00])*",
    directories: r"(?:(?-u:[^\x00])*/)?",
    rest: r"(?-u:[^\x00])+",
    outside: r"[^/\x00",
};

fn regex(parts: &[Part], wildcards: &WildcardSyntax) -> Result<RegexMatcher, GlobError> {
    let mut expression = String::from("^(?:");
    push_regex(&mut expression, parts, wildcards);
    expression.push_str(")$");
    RegexMatcherBuilder::new()
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .build(&expression)
        .map_err(|_| GlobError::new(0, "the compiled pattern is too large; use a shorter one"))
}

fn push_regex(out: &mut String, parts: &[Part], wildcards: &WildcardSyntax) {
    let mut rest = parts.iter().peekable();
    while let Some(part) = rest.next() {
        match part {
            Part::Literal(text) => out.push_str(&regex_syntax::escape(text)),
            Part::AnyChar => out.push_str(wildcards.character),
            Part::AnyRun => out.push_str(wildcards.run),
            Part::Separator => out.push('/'),
            Part::AnySegments if rest.next_if(|next| **next == Part::Separator).is_some() => {
                out.push_str(wildcards.directories)
            }
            Part::AnySegments => out.push_str(wildcards.rest),
            Part::Class { negated, ranges } => push_class(out, *negated, ranges, wildcards),
            Part::Alternatives(alternatives) => {
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
fn push_class(out: &mut String, negated: bool, ranges: &[(char, char)], wildcards: &WildcardSyntax) {
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
