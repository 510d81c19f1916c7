//! From the parts of a glob to something that matches.

use std::collections::HashMap;
use std::sync::Arc;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::parse::{Mistake, Part};

/// Most bytes of a compiled glob.
const SIZE_LIMIT: usize = 10 << 20;

/// Matches a name, or a whole relative path.
#[derive(Debug, Clone)]
pub(super) enum TextMatcher {
    /// Any name.
    Any,
    /// This text.
    Literal(String),
    /// A name that ends so.
    Suffix(String),
    /// Anything else. An expression matches characters where `globset` matches bytes: `?` is one `é`.
    Regex(Box<RegexMatcher>),
}

impl TextMatcher {
    /// Compiles `parts`, which for a name hold no separator.
    pub(super) fn new(parts: &[Part]) -> Result<Self, Mistake> {
        Ok(match parts {
            [Part::AnyRun] => TextMatcher::Any,
            [Part::Literal(text)] => TextMatcher::Literal(text.clone()),
            [Part::AnyRun, Part::Literal(suffix)] => TextMatcher::Suffix(suffix.clone()),
            parts if parts.iter().all(|part| matches!(part, Part::Literal(_) | Part::Separator)) => {
                let texts = parts.iter().map(|part| if let Part::Literal(text) = part { text } else { "/" });
                TextMatcher::Literal(texts.collect())
            }
            parts => TextMatcher::Regex(Box::new(regex(parts)?)),
        })
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

/// Matchers of segments, each made once: the spellings of a glob have most of them in common.
#[derive(Debug, Default)]
pub(super) struct SegmentMatchers(HashMap<Vec<Part>, Arc<TextMatcher>>);

impl SegmentMatchers {
    pub(super) fn get(&mut self, segment: &[Part]) -> Result<Arc<TextMatcher>, Mistake> {
        if let Some(matcher) = self.0.get(segment) {
            return Ok(Arc::clone(matcher));
        }
        let matcher = Arc::new(TextMatcher::new(segment)?);
        self.0.insert(segment.to_vec(), Arc::clone(&matcher));
        Ok(matcher)
    }
}

fn regex(parts: &[Part]) -> Result<RegexMatcher, Mistake> {
    let mut expression = String::from("^(?:");
    push_regex(&mut expression, parts);
    expression.push_str(")$");
    RegexMatcherBuilder::new()
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .build(&expression)
        .map_err(|_| Mistake::new(0, "it is too large; use a shorter one"))
}

fn push_regex(out: &mut String, parts: &[Part]) {
    let mut rest = parts.iter().peekable();
    while let Some(part) = rest.next() {
        match part {
            Part::Literal(text) => out.push_str(&regex_syntax::escape(text)),
            // Paths are UTF-8, so that a character may be told by its bytes: that compiles to a tenth of the size.
            Part::AnyChar => out.push_str(r"(?-u:[^/\x80-\xBF][\x80-\xBF]{0,3})"),
            Part::AnyRun => out.push_str("(?-u:[^/])*"),
            Part::Separator => out.push('/'),
            Part::AnySegments if rest.next_if(|next| **next == Part::Separator).is_some() => {
                out.push_str("(?:(?s-u:.)*/)?")
            }
            Part::AnySegments => out.push_str("(?s-u:.)+"),
            Part::Class { negated, ranges } => push_class(out, *negated, ranges),
            Part::Alternatives(alternatives) => {
                for (index, alternative) in alternatives.iter().enumerate() {
                    out.push_str(if index == 0 { "(?:" } else { "|" });
                    push_regex(out, alternative);
                }
                out.push(')');
            }
        }
    }
}

/// A class never matches a separator, whatever its ranges span.
fn push_class(out: &mut String, negated: bool, ranges: &[(char, char)]) {
    out.push_str(if negated { "[^/" } else { "[[" });
    for (low, high) in ranges {
        for (separator, bound) in [("", low), ("-", high)] {
            out.push_str(separator);
            out.push_str(&regex_syntax::escape(bound.encode_utf8(&mut [0; 4])));
        }
    }
    out.push_str(if negated { "]" } else { "]&&[^/]]" });
}
