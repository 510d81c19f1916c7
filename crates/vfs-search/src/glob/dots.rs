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
    if let [Part::Literal(text), rest @ ..] = segment {
        let text = text.strip_prefix('.')?;
        return Some([&[Part::Separator, Part::Literal(text.to_owned())], rest].concat());
    }
    let mut marker = Marker { is_first: true, has_marked: false };
    let marked = marker.mark(segment);
    marker.has_marked.then_some(marked)
}

/// Marks the texts that may come first in a segment because what is before them may be left out.
struct Marker {
    /// Whether nothing that has to be there was before: a `*` is there though it may stand for nothing.
    is_first: bool,
    has_marked: bool,
}

impl Marker {
    fn mark(&mut self, parts: &[Part]) -> Vec<Part> {
        parts.iter().map(|part| if self.is_first { self.mark_first(part) } else { part.clone() }).collect()
    }

    fn mark_first(&mut self, part: &Part) -> Part {
        self.is_first = false;
        match part {
            Part::Literal(text) => match text.strip_prefix('.') {
                Some(rest) => {
                    self.has_marked = true;
                    let marked = vec![Part::Separator, Part::Literal(rest.to_owned())];
                    Part::Alternatives(vec![vec![part.clone()], marked])
                }
                None => part.clone(),
            },
            Part::Alternatives(alternatives) => {
                let mut may_be_nothing = false;
                let marked = alternatives.iter().map(|alternative| {
                    self.is_first = true;
                    let marked = self.mark(alternative);
                    may_be_nothing |= self.is_first;
                    marked
                });
                let marked = Part::Alternatives(marked.collect());
                self.is_first = may_be_nothing;
                marked
            }
            part => part.clone(),
        }
    }
}
