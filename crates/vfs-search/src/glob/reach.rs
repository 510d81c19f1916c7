//! Which directories a glob can find something below.

use std::sync::Arc;

use super::compile::{SegmentMatchers, TextMatcher};
use super::parse::{Mistake, Part};

/// Most spellings of a glob that every directory is held against.
const MAX_WAYS: usize = 256;

/// Segments after these are taken to match any name: a directory too many is listed, none too few.
const MAX_SEGMENTS: usize = 32;

/// The directories below which a path can match.
#[derive(Debug, Clone)]
pub(super) enum Reach {
    /// All of them.
    Everywhere,
    /// Those on the way of one of these.
    Ways(Vec<Vec<Segment>>),
}

/// What one segment of a path must be.
#[derive(Debug, Clone)]
pub(super) enum Segment {
    /// `**`: this and all that follow may be anything.
    AnySegments,
    /// A name that matches.
    Name(Arc<TextMatcher>),
}

impl Reach {
    /// Of the spellings of a glob; `None` where there are too many.
    pub(super) fn new(spellings: Option<&[Vec<Part>]>, matchers: &mut SegmentMatchers) -> Result<Self, Mistake> {
        let Some(spellings) = spellings.filter(|spellings| spellings.len() <= MAX_WAYS) else {
            return Ok(Reach::Everywhere);
        };
        let ways = spellings.iter().map(|spelling| way(spelling, matchers)).collect::<Result<_, _>>()?;
        Ok(Reach::Ways(ways))
    }

    /// Whether every directory can have something below it.
    pub(super) fn is_everywhere(&self) -> bool {
        match self {
            Reach::Everywhere => true,
            Reach::Ways(ways) => ways.iter().any(|way| matches!(way[..], [Segment::AnySegments, ..])),
        }
    }

    /// The only names in the directory `relative` that are on a way, where all of them are spelled.
    pub(super) fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        let Reach::Ways(ways) = self else {
            return None;
        };
        let mut names = Vec::new();
        for segment in ways.iter().filter_map(|way| next_segment(way, relative)) {
            match segment {
                Segment::Name(matcher) => match &**matcher {
                    TextMatcher::Literal(name) => names.push(name.clone()),
                    _ => return None,
                },
                Segment::AnySegments => return None,
            }
        }
        Some(names)
    }

    /// Whether something below the directory `relative` can match; the start of the walk is `""`.
    pub(super) fn reaches(&self, relative: &str) -> bool {
        match self {
            Reach::Everywhere => true,
            Reach::Ways(ways) => ways.iter().any(|way| leads_through(way, relative)),
        }
    }
}

fn leads_through(way: &[Segment], relative: &str) -> bool {
    next_segment(way, relative).is_some()
}

/// What comes in a way after the directory `relative`, if it leads through that.
fn next_segment<'a>(way: &'a [Segment], relative: &str) -> Option<&'a Segment> {
    let mut segments = way.iter();
    for name in relative.split('/').filter(|name| !name.is_empty()) {
        match segments.next()? {
            segment @ Segment::AnySegments => return Some(segment),
            Segment::Name(matcher) if matcher.matches(name) => {}
            Segment::Name(_) => return None,
        }
    }
    segments.next()
}

fn way(spelling: &[Part], matchers: &mut SegmentMatchers) -> Result<Vec<Segment>, Mistake> {
    let mut way = Vec::new();
    for segment in spelling.split(|part| *part == Part::Separator).filter(|segment| !segment.is_empty()) {
        if segment.iter().any(Part::spans_segments) {
            way.push(Segment::AnySegments);
            break;
        }
        let matcher = if way.len() < MAX_SEGMENTS { matchers.get(segment)? } else { Arc::new(TextMatcher::Any) };
        way.push(Segment::Name(matcher));
    }
    Ok(way)
}
