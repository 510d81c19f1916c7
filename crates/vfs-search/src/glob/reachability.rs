//! Reachability of directories: which ones can contain a match of a glob.

use std::sync::Arc;

use super::compile::{GlobTextMatcher, SegmentMatcherCache};
use super::parse::{GlobError, GlobPart};

/// Maximum number of expansions that every directory is compared with.
const MAX_ROUTES: usize = 256;

/// Maximum number of segments that are compared. Later ones are assumed to match any name, so that a search may list
/// directories without a match, but misses no match.
const MAX_SEGMENTS: usize = 32;

/// The directories below which a path can match.
#[derive(Debug, Clone)]
pub(super) enum GlobReachability {
    /// All directories.
    Everywhere,
    /// The directories on one of these routes.
    Routes(Vec<Vec<GlobRouteSegment>>),
}

/// One segment of a route.
#[derive(Debug, Clone)]
pub(super) enum GlobRouteSegment {
    /// `**`: this segment and all further ones may be anything.
    AnySegments,
    /// A name that matches.
    Name(Arc<GlobTextMatcher>),
}

impl GlobReachability {
    /// Computes the routes of the expansions of a glob; `None` stands for too many expansions.
    pub(super) fn new(
        expansions: Option<&[Vec<GlobPart>]>,
        matchers: &mut SegmentMatcherCache,
    ) -> Result<Self, GlobError> {
        let Some(expansions) = expansions.filter(|expansions| expansions.len() <= MAX_ROUTES) else {
            return Ok(GlobReachability::Everywhere);
        };
        let routes = expansions.iter().map(|expansion| route(expansion, matchers)).collect::<Result<_, _>>()?;
        Ok(GlobReachability::Routes(routes))
    }

    /// Returns whether every directory can contain a match.
    pub(super) fn is_everywhere(&self) -> bool {
        match self {
            GlobReachability::Everywhere => true,
            GlobReachability::Routes(routes) => {
                routes.iter().any(|route| matches!(route[..], [GlobRouteSegment::AnySegments, ..]))
            }
        }
    }

    /// Returns the names in the directory `relative` that are on a route, if all routes spell out the name.
    pub(super) fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        let GlobReachability::Routes(routes) = self else {
            return None;
        };
        let mut names = Vec::new();
        for segment in routes.iter().filter_map(|route| next_segment(route, relative)) {
            match segment {
                GlobRouteSegment::Name(matcher) => match &**matcher {
                    GlobTextMatcher::Literal(name) => names.push(name.clone()),
                    _ => return None,
                },
                GlobRouteSegment::AnySegments => return None,
            }
        }
        Some(names)
    }

    /// Returns whether an entry below the directory `relative` can match; the start of the walk is `""`.
    pub(super) fn reaches(&self, relative: &str) -> bool {
        match self {
            GlobReachability::Everywhere => true,
            GlobReachability::Routes(routes) => routes.iter().any(|route| leads_through(route, relative)),
        }
    }
}

fn leads_through(route: &[GlobRouteSegment], relative: &str) -> bool {
    next_segment(route, relative).is_some()
}

/// Returns the segment of `route` after the directory `relative`, if the route leads through that directory.
fn next_segment<'a>(route: &'a [GlobRouteSegment], relative: &str) -> Option<&'a GlobRouteSegment> {
    let mut segments = route.iter();
    for name in relative.split('/').filter(|name| !name.is_empty()) {
        match segments.next()? {
            segment @ GlobRouteSegment::AnySegments => return Some(segment),
            GlobRouteSegment::Name(matcher) if matcher.matches(name) => {}
            GlobRouteSegment::Name(_) => return None,
        }
    }
    segments.next()
}

fn route(expansion: &[GlobPart], matchers: &mut SegmentMatcherCache) -> Result<Vec<GlobRouteSegment>, GlobError> {
    let mut route = Vec::new();
    for segment in expansion.split(|part| *part == GlobPart::Separator).filter(|segment| !segment.is_empty()) {
        if segment.iter().any(GlobPart::spans_segments) {
            route.push(GlobRouteSegment::AnySegments);
            break;
        }
        let matcher = if route.len() < MAX_SEGMENTS { matchers.get(segment)? } else { Arc::new(GlobTextMatcher::Any) };
        route.push(GlobRouteSegment::Name(matcher));
    }
    Ok(route)
}
