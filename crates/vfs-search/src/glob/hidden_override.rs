//! Which names that start with a dot a glob spells with their dot, and so asks for.

use std::sync::Arc;

use super::compile::{SegmentMatchers, TextMatcher};
use super::parse::{GlobError, Part};

/// How much of an entry is shown whose name starts with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DotVisibility {
    /// Nothing.
    Hidden,
    /// What is below the entry. The entry itself is not shown, as it does not match.
    ContentsOnly,
    /// The entry, but nothing below it.
    EntryOnly,
    /// The entry and what is below it.
    Full,
}

impl DotVisibility {
    /// Returns how much two globs show together.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (DotVisibility::ContentsOnly, DotVisibility::EntryOnly)
            | (DotVisibility::EntryOnly, DotVisibility::ContentsOnly) => DotVisibility::Full,
            (a, b) => a.max(b),
        }
    }

    /// Returns how much is shown of an entry, below which there may be something only if it `may_descend`.
    pub(crate) fn of_entry(self, may_descend: bool) -> Self {
        if self == DotVisibility::ContentsOnly && !may_descend { DotVisibility::Hidden } else { self }
    }
}

/// The segments of a glob that begin with a dot.
#[derive(Debug, Clone, Default)]
pub(super) struct HiddenOverrides(Vec<DotSegment>);

#[derive(Debug, Clone)]
struct DotSegment {
    /// What the directories before it are called, up to the first `**`.
    route: Vec<Arc<TextMatcher>>,
    /// Where `**` stands before it: how many directories there are at least.
    min_depth: Option<usize>,
    shown: DotVisibility,
    /// Matches the name with a separator in the place of its dot.
    matcher: Arc<TextMatcher>,
}

impl DotSegment {
    /// Whether the directory `relative` is one that it stands in, as far as that can be told before a `**`.
    fn is_in(&self, relative: &str) -> bool {
        let mut directories = relative.split('/').filter(|name| !name.is_empty());
        let leads_there = self.route.iter().all(|matcher| directories.next().is_some_and(|name| matcher.matches(name)));
        let more = directories.count();
        leads_there && self.min_depth.map_or(more == 0, |least| self.route.len() + more >= least)
    }
}

impl HiddenOverrides {
    /// Of the `expansions` of a glob, which hold no separator in braces.
    pub(super) fn new(expansions: &[Vec<Part>], matchers: &mut SegmentMatchers) -> Result<Self, GlobError> {
        let mut hidden_overrides = Vec::new();
        for expansion in expansions {
            let segments: Vec<_> = expansion.split(|part| *part == Part::Separator).collect();
            let mut route = Vec::new();
            let mut min_depth = None;
            for (index, segment) in segments.iter().enumerate() {
                if *segment == [Part::AnySegments] {
                    min_depth = min_depth.or(Some(route.len()));
                    continue;
                }
                if let Some(marked) = mark_leading_dot(segment) {
                    let shown =
                        if index + 1 == segments.len() { DotVisibility::EntryOnly } else { DotVisibility::Full };
                    let segment =
                        DotSegment { route: route.clone(), min_depth, shown, matcher: matchers.get(&marked)? };
                    hidden_overrides.push(segment);
                }
                match &mut min_depth {
                    Some(least) => *least += 1,
                    None => route.push(matchers.get(segment)?),
                }
            }
        }
        Ok(Self(hidden_overrides))
    }

    /// How much is shown of the entry `name`, which starts with a dot, of the directory `relative`.
    pub(super) fn visibility_of(&self, relative: &str, name: &str) -> DotVisibility {
        let Some(rest) = name.strip_prefix('.').filter(|_| !self.0.is_empty()) else {
            return DotVisibility::Hidden;
        };
        let marked = format!("/{rest}");
        let asked = self.0.iter().filter(|segment| segment.is_in(relative) && segment.matcher.matches(&marked));
        asked.map(|segment| segment.shown).max().unwrap_or(DotVisibility::Hidden)
    }
}

/// Whether a dot may come first in a segment of `parts`, whatever their braces stand for.
pub(super) fn may_have_explicit_dot(parts: &[Part]) -> bool {
    let mut is_first = true;
    has_explicit_dot(parts, &mut is_first)
}

fn has_explicit_dot(parts: &[Part], is_first: &mut bool) -> bool {
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
                let spells = has_explicit_dot(alternative, &mut after);
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
pub(super) fn mark_leading_dot(segment: &[Part]) -> Option<Vec<Part>> {
    if let [Part::Literal(text), rest @ ..] = segment {
        let text = text.strip_prefix('.')?;
        return Some([&[Part::Separator, Part::Literal(text.to_owned())], rest].concat());
    }
    let mut marker = DotMarker { is_first: true, has_marked: false };
    let marked = marker.mark_leading_dot(segment);
    marker.has_marked.then_some(marked)
}

/// Marks the texts that may come first in a segment because what is before them may be left out.
struct DotMarker {
    /// Whether nothing that has to be there was before: a `*` is there though it may stand for nothing.
    is_first: bool,
    has_marked: bool,
}

impl DotMarker {
    fn mark_leading_dot(&mut self, parts: &[Part]) -> Vec<Part> {
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
                    let marked = self.mark_leading_dot(alternative);
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
