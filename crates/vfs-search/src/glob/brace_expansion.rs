//! Brace expansion of globs, for braces whose alternatives may be more or less than one segment.
//!
//! Other braces stay as they are, since a matcher of one segment handles them.

use super::parse::GlobPart;

/// Maximum number of expansions of a glob.
const MAX_EXPANSIONS: usize = 4096;

/// Approximate maximum length of all expansions together, in characters.
const MAX_EXPANDED_LENGTH: usize = 32 << 10;

/// Approximate maximum number of characters that are written to build the expansions.
const MAX_EXPANSION_WORK: usize = 1 << 20;

/// Returns one expansion for each combination of alternatives, for all braces that contain separators or stand in a
/// segment that may fold away. Returns `None` if there are too many.
pub(super) fn expand_braces(parts: &[GlobPart]) -> Option<Vec<Vec<GlobPart>>> {
    let mut expansion = BraceExpansion { expansions: Vec::new(), length: 0, work: 0 };
    expansion.expand(parts.to_vec())?;
    Some(expansion.expansions)
}

/// An expansion in progress: the globs without the expanded braces, and the work done so far.
struct BraceExpansion {
    expansions: Vec<Vec<GlobPart>>,
    length: usize,
    work: usize,
}

impl BraceExpansion {
    /// Returns `None` if a limit is exceeded.
    fn expand(&mut self, parts: Vec<GlobPart>) -> Option<()> {
        let length = parts.iter().map(length).sum::<usize>();
        self.work += length;
        let Some((at, alternatives)) = braces_to_expand(&parts) else {
            self.length += length;
            self.expansions.push(parts);
            let is_first = self.expansions.len() == 1;
            let fits = self.expansions.len() <= MAX_EXPANSIONS && self.length <= MAX_EXPANDED_LENGTH;
            return (is_first || fits).then_some(());
        };
        for alternative in alternatives {
            let expansion = [&parts[..at], alternative, &parts[at + 1..]].concat();
            self.expand(expansion).filter(|()| self.work <= MAX_EXPANSION_WORK)?;
        }
        Some(())
    }
}

fn braces_to_expand(parts: &[GlobPart]) -> Option<(usize, &[Vec<GlobPart>])> {
    let has_segments = parts.contains(&GlobPart::Separator);
    parts.iter().enumerate().find_map(|(at, part)| match part {
        GlobPart::Alternatives(alternatives)
            if part.spans_segments() || (has_segments && may_fold_away(segment_around(parts, at))) =>
        {
            Some((at, alternatives.as_slice()))
        }
        _ => None,
    })
}

fn segment_around(parts: &[GlobPart], at: usize) -> &[GlobPart] {
    let is_separator = |part: &GlobPart| *part == GlobPart::Separator;
    let start = parts[..at].iter().rposition(is_separator).map_or(0, |before| before + 1);
    let end = parts[at..].iter().position(is_separator).map_or(parts.len(), |after| at + after);
    &parts[start..end]
}

/// Returns whether one of the alternatives of a segment folds away.
fn may_fold_away(segment: &[GlobPart]) -> bool {
    may_be_empty(segment) || may_be_dot(segment)
}

fn may_be_empty(parts: &[GlobPart]) -> bool {
    parts.iter().all(|part| match part {
        GlobPart::Alternatives(alternatives) => alternatives.iter().any(|alternative| may_be_empty(alternative)),
        _ => false,
    })
}

fn may_be_dot(parts: &[GlobPart]) -> bool {
    let is_dot = |part: &GlobPart| match part {
        GlobPart::Literal(text) => text == ".",
        GlobPart::Alternatives(alternatives) => alternatives.iter().any(|alternative| may_be_dot(alternative)),
        _ => false,
    };
    let is_other_empty = |at: usize| {
        parts.iter().enumerate().all(|(other, part)| other == at || may_be_empty(std::slice::from_ref(part)))
    };
    parts.iter().enumerate().any(|(at, part)| is_dot(part) && is_other_empty(at))
}

/// Returns the segments without empty ones, `.`, and `**` after `**`.
pub(super) fn fold_segments(parts: &[GlobPart]) -> Vec<&[GlobPart]> {
    let is_folded_away = |segment: &[GlobPart]| matches!(segment, []) || segment == [GlobPart::Literal(".".to_owned())];
    let segments = parts.split(|part| *part == GlobPart::Separator);
    let mut segments: Vec<&[GlobPart]> = segments.filter(|segment| !is_folded_away(segment)).collect();
    segments.dedup_by(|next, before| *next == [GlobPart::AnySegments] && *before == [GlobPart::AnySegments]);
    segments
}

fn length(part: &GlobPart) -> usize {
    match part {
        GlobPart::Literal(text) => text.len(),
        GlobPart::Class { ranges, .. } => 1 + ranges.len(),
        GlobPart::Alternatives(alternatives) => {
            1 + alternatives.iter().map(|parts| 1 + parts.iter().map(length).sum::<usize>()).sum::<usize>()
        }
        GlobPart::AnyChar | GlobPart::AnyRun | GlobPart::AnySegments | GlobPart::Separator => 1,
    }
}
