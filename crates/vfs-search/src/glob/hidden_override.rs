//! Hidden-name overrides: names with a leading dot that a glob includes by spelling the dot.

use std::sync::Arc;

use super::compile::{GlobTextMatcher, SegmentMatcherCache};
use super::parse::{GlobError, GlobPart};

/// The visible part of an entry whose name starts with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HiddenEntryVisibility {
    /// Neither the entry nor its contents.
    Hidden,
    /// The contents of the entry, but not the entry itself, which does not match.
    ContentsOnly,
    /// The entry, but not its contents.
    EntryOnly,
    /// The entry and its contents.
    Full,
}

impl HiddenEntryVisibility {
    /// Returns how much two globs together make visible.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (HiddenEntryVisibility::ContentsOnly, HiddenEntryVisibility::EntryOnly)
            | (HiddenEntryVisibility::EntryOnly, HiddenEntryVisibility::ContentsOnly) => HiddenEntryVisibility::Full,
            (a, b) => a.max(b),
        }
    }

    /// Restricts the visibility for an entry without contents (`may_descend` is `false`).
    pub(crate) fn of_entry(self, may_descend: bool) -> Self {
        if self == HiddenEntryVisibility::ContentsOnly && !may_descend { HiddenEntryVisibility::Hidden } else { self }
    }
}

/// The segments of a glob that start with a dot.
#[derive(Debug, Clone, Default)]
pub(super) struct HiddenOverrides(Vec<DotSegment>);

/// A segment that starts with a dot, and the directories in which it applies.
#[derive(Debug, Clone)]
struct DotSegment {
    /// Matchers of the directories before the segment, up to the first `**`.
    route: Vec<Arc<GlobTextMatcher>>,
    /// Minimum number of directories before the segment, if a `**` precedes it.
    min_depth: Option<usize>,
    shown: HiddenEntryVisibility,
    /// Matches the name with a separator in place of its leading dot.
    matcher: Arc<GlobTextMatcher>,
}

impl DotSegment {
    /// Returns whether the segment can match names in the directory `relative`. Directories after a `**` are only
    /// counted.
    fn is_in(&self, relative: &str) -> bool {
        let mut directories = relative.split('/').filter(|name| !name.is_empty());
        let is_on_route = self.route.iter().all(|matcher| directories.next().is_some_and(|name| matcher.matches(name)));
        let more = directories.count();
        is_on_route && self.min_depth.map_or(more == 0, |min_depth| self.route.len() + more >= min_depth)
    }
}

impl HiddenOverrides {
    /// Collects the segments of the `expansions` of a glob, whose braces contain no separator.
    pub(super) fn new(expansions: &[Vec<GlobPart>], matchers: &mut SegmentMatcherCache) -> Result<Self, GlobError> {
        let mut hidden_overrides = Vec::new();
        for expansion in expansions {
            let segments: Vec<_> = expansion.split(|part| *part == GlobPart::Separator).collect();
            let mut route = Vec::new();
            let mut min_depth = None;
            for (index, segment) in segments.iter().enumerate() {
                if *segment == [GlobPart::AnySegments] {
                    min_depth = min_depth.or(Some(route.len()));
                    continue;
                }
                if let Some(marked) = mark_leading_dot(segment) {
                    let shown = if index + 1 == segments.len() {
                        HiddenEntryVisibility::EntryOnly
                    } else {
                        HiddenEntryVisibility::Full
                    };
                    let segment =
                        DotSegment { route: route.clone(), min_depth, shown, matcher: matchers.get(&marked)? };
                    hidden_overrides.push(segment);
                }
                match &mut min_depth {
                    Some(min_depth) => *min_depth += 1,
                    None => route.push(matchers.get(segment)?),
                }
            }
        }
        Ok(Self(hidden_overrides))
    }

    /// Returns how much of the entry `name` of the directory `relative`, a name with a leading dot, is visible.
    pub(super) fn visibility_of(&self, relative: &str, name: &str) -> HiddenEntryVisibility {
        let Some(rest) = name.strip_prefix('.').filter(|_| !self.0.is_empty()) else {
            return HiddenEntryVisibility::Hidden;
        };
        let marked = format!("/{rest}");
        let matching = self.0.iter().filter(|segment| segment.is_in(relative) && segment.matcher.matches(&marked));
        matching.map(|segment| segment.shown).max().unwrap_or(HiddenEntryVisibility::Hidden)
    }
}

/// Returns whether a segment of `parts` starts with a dot, in any alternative of its braces.
pub(super) fn may_have_explicit_dot(parts: &[GlobPart]) -> bool {
    let mut is_first = true;
    has_explicit_dot(parts, &mut is_first)
}

fn has_explicit_dot(parts: &[GlobPart], is_first: &mut bool) -> bool {
    parts.iter().any(|part| match part {
        GlobPart::Literal(text) => std::mem::take(is_first) && text.starts_with('.'),
        GlobPart::Separator | GlobPart::AnySegments => {
            *is_first = true;
            false
        }
        GlobPart::Alternatives(alternatives) => {
            let before = std::mem::take(is_first);
            alternatives.iter().any(|alternative| {
                let mut after = before;
                let has_dot = has_explicit_dot(alternative, &mut after);
                *is_first |= after;
                has_dot
            })
        }
        GlobPart::AnyChar | GlobPart::AnyRun | GlobPart::Class { .. } => {
            *is_first = false;
            false
        }
    })
}

/// Returns a segment that matches names whose leading dot is replaced by a separator, or `None` if the segment has
/// no literal leading dot.
///
/// Neither `*` nor `?` nor a class matches a separator, so only a literal dot matches the replaced one.
pub(super) fn mark_leading_dot(segment: &[GlobPart]) -> Option<Vec<GlobPart>> {
    if let [GlobPart::Literal(text), rest @ ..] = segment {
        let text = text.strip_prefix('.')?;
        return Some([&[GlobPart::Separator, GlobPart::Literal(text.to_owned())], rest].concat());
    }
    let mut marker = LeadingDotRewriter { is_first: true, has_marked: false };
    let marked = marker.mark_leading_dot(segment);
    marker.has_marked.then_some(marked)
}

/// Marks literals that may come first in a segment because everything before them may be empty.
struct LeadingDotRewriter {
    /// Whether all parts so far may be empty. A `*` counts as not empty, although it may match the empty string.
    is_first: bool,
    has_marked: bool,
}

impl LeadingDotRewriter {
    fn mark_leading_dot(&mut self, parts: &[GlobPart]) -> Vec<GlobPart> {
        parts.iter().map(|part| if self.is_first { self.mark_first(part) } else { part.clone() }).collect()
    }

    fn mark_first(&mut self, part: &GlobPart) -> GlobPart {
        self.is_first = false;
        match part {
            GlobPart::Literal(text) => match text.strip_prefix('.') {
                Some(rest) => {
                    self.has_marked = true;
                    let marked = vec![GlobPart::Separator, GlobPart::Literal(rest.to_owned())];
                    GlobPart::Alternatives(vec![vec![part.clone()], marked])
                }
                None => part.clone(),
            },
            GlobPart::Alternatives(alternatives) => {
                let mut may_be_empty = false;
                let marked = alternatives.iter().map(|alternative| {
                    self.is_first = true;
                    let marked = self.mark_leading_dot(alternative);
                    may_be_empty |= self.is_first;
                    marked
                });
                let marked = GlobPart::Alternatives(marked.collect());
                self.is_first = may_be_empty;
                marked
            }
            part => part.clone(),
        }
    }
}
