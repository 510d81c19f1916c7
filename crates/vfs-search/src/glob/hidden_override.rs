//! Which names that start with a dot a glob spells with their dot, and so asks for.

use std::sync::Arc;

use super::compile::{SegmentMatchers, TextMatcher};
use super::parse::{Mistake, Part};

/// How much of an entry is shown whose name starts with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shown {
    /// Nothing.
    No,
    /// What is below the entry. The entry itself is not shown, as it does not match.
    Contents,
    /// The entry, but nothing below it.
    Alone,
    /// The entry and what is below it.
    WithContents,
}

impl Shown {
    /// Returns how much two globs show together.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Shown::Contents, Shown::Alone) | (Shown::Alone, Shown::Contents) => Shown::WithContents,
            (a, b) => a.max(b),
        }
    }

    /// Returns how much is shown of an entry, below which there may be something only if it `may_descend`.
    pub(crate) fn of_entry(self, may_descend: bool) -> Self {
        if self == Shown::Contents && !may_descend { Shown::No } else { self }
    }
}

/// The segments of a glob that begin with a dot.
#[derive(Debug, Clone, Default)]
pub(super) struct Dots(Vec<Dotted>);

#[derive(Debug, Clone)]
struct Dotted {
    /// What the directories before it are called, up to the first `**`.
    way: Vec<Arc<TextMatcher>>,
    /// Where `**` stands before it: how many directories there are at least.
    floats: Option<usize>,
    shown: Shown,
    /// Matches the name with a separator in the place of its dot.
    matcher: Arc<TextMatcher>,
}

impl Dotted {
    /// Whether the directory `relative` is one that it stands in, as far as that can be told before a `**`.
    fn is_in(&self, relative: &str) -> bool {
        let mut directories = relative.split('/').filter(|name| !name.is_empty());
        let leads_there = self.way.iter().all(|matcher| directories.next().is_some_and(|name| matcher.matches(name)));
        let more = directories.count();
        leads_there && self.floats.map_or(more == 0, |least| self.way.len() + more >= least)
    }
}

impl Dots {
    /// Of the `spellings` of a glob, which hold no separator in braces.
    pub(super) fn new(spellings: &[Vec<Part>], matchers: &mut SegmentMatchers) -> Result<Self, Mistake> {
        let mut dots = Vec::new();
        for spelling in spellings {
            let segments: Vec<_> = spelling.split(|part| *part == Part::Separator).collect();
            let mut way = Vec::new();
            let mut floats = None;
            for (index, segment) in segments.iter().enumerate() {
                if *segment == [Part::AnySegments] {
                    floats = floats.or(Some(way.len()));
                    continue;
                }
                if let Some(marked) = mark(segment) {
                    let shown = if index + 1 == segments.len() { Shown::Alone } else { Shown::WithContents };
                    let dotted = Dotted { way: way.clone(), floats, shown, matcher: matchers.get(&marked)? };
                    dots.push(dotted);
                }
                match &mut floats {
                    Some(least) => *least += 1,
                    None => way.push(matchers.get(segment)?),
                }
            }
        }
        Ok(Self(dots))
    }

    /// How much is shown of the entry `name`, which starts with a dot, of the directory `relative`.
    pub(super) fn shows(&self, relative: &str, name: &str) -> Shown {
        let Some(rest) = name.strip_prefix('.').filter(|_| !self.0.is_empty()) else {
            return Shown::No;
        };
        let marked = format!("/{rest}");
        let asked = self.0.iter().filter(|dotted| dotted.is_in(relative) && dotted.matcher.matches(&marked));
        asked.map(|dotted| dotted.shown).max().unwrap_or(Shown::No)
    }
}

/// Whether a dot may come first in a segment of `parts`, whatever their braces stand for.
pub(super) fn may_spell_dots(parts: &[Part]) -> bool {
    let mut is_first = true;
    spells_dots(parts, &mut is_first)
}

fn spells_dots(parts: &[Part], is_first: &mut bool) -> bool {
    parts.iter().any(|part| match part {
        Part::Literal(text) => std::mem::take(is_first) && text.starts_with('.'),
        Part::Separator | Part::AnySegments => {
            *is_first = true;
            false
        }
        Part::Alternatives(alternatives) => {
            let before = std::mem::take(is_first);
            alternatives.iter().any(|alternative| {
                let mut after = before;
                let spells = spells_dots(alternative, &mut after);
                *is_first |= after;
                spells
            })
        }
        Part::AnyChar | Part::AnyRun | Part::Class { .. } => {
            *is_first = false;
            false
        }
    })
}

/// A segment as it matches a name whose leading dot is replaced by a separator; `None` where it spells no such dot.
///
/// Neither `*` nor `?` nor a class matches a separator, so that only a dot that is spelled matches the marked one.
pub(super) fn mark(segment: &[Part]) -> Option<Vec<Part>> {
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
