//! Which names that start with a dot a glob spells with their dot, and so asks for.

use super::compile::TextMatcher;
use super::parse::{Mistake, Part};

/// How much of an entry is shown whose name starts with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shown {
    /// Nothing.
    No,
    /// The entry, but nothing below it.
    Alone,
    /// The entry and what is below it.
    WithContents,
}

/// The segments of a glob that begin with a dot.
#[derive(Debug, Clone, Default)]
pub(super) struct Dots(Vec<Dotted>);

#[derive(Debug, Clone)]
struct Dotted {
    /// How many directories, at least, a path has before the name.
    depth: usize,
    /// Whether `**` stands before it, so that there may be more.
    floats: bool,
    shown: Shown,
    /// Matches the name with a separator in the place of its dot.
    matcher: TextMatcher,
}

impl Dots {
    /// Of the `spellings` of a glob, which hold no separator in braces.
    pub(super) fn new(spellings: &[Vec<Part>]) -> Result<Self, Mistake> {
        let mut dots = Vec::new();
        for spelling in spellings {
            let (mut depth, mut floats) = (0, false);
            let segments = spelling.split(|part| *part == Part::Separator).filter(|segment| !segment.is_empty());
            let mut segments = segments.peekable();
            while let Some(segment) = segments.next() {
                if segment == [Part::AnySegments] {
                    floats = true;
                    continue;
                }
                if let Some(marked) = mark(segment) {
                    let shown = if segments.peek().is_none() { Shown::Alone } else { Shown::WithContents };
                    dots.push(Dotted { depth, floats, shown, matcher: TextMatcher::new(&marked)? });
                }
                depth += 1;
            }
        }
        Ok(Self(dots))
    }

    /// How much is shown of the entry `name`, which starts with a dot, of the directory `relative`.
    pub(super) fn shows(&self, relative: &str, name: &str) -> Shown {
        let Some(rest) = name.strip_prefix('.').filter(|_| !self.0.is_empty()) else {
            return Shown::No;
        };
        let depth = if relative.is_empty() { 0 } else { relative.split('/').count() };
        let marked = format!("/{rest}");
        let asked = self.0.iter().filter(|dotted| {
            let is_there = if dotted.floats { dotted.depth <= depth } else { dotted.depth == depth };
            is_there && dotted.matcher.matches(&marked)
        });
        asked.map(|dotted| dotted.shown).max().unwrap_or(Shown::No)
    }
}

/// A segment as it matches a name whose leading dot is replaced by a separator; `None` where it spells no such dot.
///
/// Neither `*` nor `?` nor a class matches a separator, so that only a dot that is spelled matches the marked one.
fn mark(segment: &[Part]) -> Option<Vec<Part>> {
    match segment {
        [Part::Literal(text), rest @ ..] => {
            let text = text.strip_prefix('.')?;
            Some([&[Part::Separator, Part::Literal(text.to_owned())], rest].concat())
        }
        [Part::Alternatives(_), ..] => Some(segment.iter().map(mark_anywhere).collect()),
        _ => None,
    }
}

/// Text that starts with a dot may come first, if what is before it may be empty.
fn mark_anywhere(part: &Part) -> Part {
    match part {
        Part::Literal(text) => match text.strip_prefix('.') {
            Some(rest) => {
                let marked = vec![Part::Separator, Part::Literal(rest.to_owned())];
                Part::Alternatives(vec![vec![part.clone()], marked])
            }
            None => part.clone(),
        },
        Part::Alternatives(alternatives) => {
            let marked = alternatives.iter().map(|alternative| alternative.iter().map(mark_anywhere).collect());
            Part::Alternatives(marked.collect())
        }
        part => part.clone(),
    }
}
