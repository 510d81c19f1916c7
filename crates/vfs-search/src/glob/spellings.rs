//! The spellings of a glob: what it is with one alternative of each pair of braces that may hold more than a name.

use super::parse::Part;

/// Most spellings of a glob.
const MAX_SPELLINGS: usize = 1024;

/// Most parts that are looked at to find them.
const MAX_PARTS: usize = 1 << 18;

/// Most characters, about, of the spellings that a glob is replaced by.
const MAX_FOLDED: usize = 64 << 10;

/// The parts with every pair of braces that holds separators, or a segment that folds away, replaced by each of its
/// alternatives; `None` where these become too many.
pub(super) fn spellings(parts: Vec<Part>) -> Option<Vec<Vec<Part>>> {
    let (mut spellings, mut left) = (Vec::new(), MAX_PARTS);
    expand(parts, &mut spellings, &mut left)?;
    Some(spellings)
}

fn expand(parts: Vec<Part>, spellings: &mut Vec<Vec<Part>>, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(parts.len())?;
    let braces = parts.iter().enumerate().find_map(|(at, part)| match part {
        Part::Alternatives(alternatives) if part.spans_segments() || is_segment_that_may_fold(&parts, at) => {
            Some((at, alternatives))
        }
        _ => None,
    });
    let Some((at, alternatives)) = braces else {
        spellings.push(parts);
        return (spellings.len() <= MAX_SPELLINGS).then_some(());
    };
    for alternative in alternatives {
        let spelling = [&parts[..at], alternative, &parts[at + 1..]].concat();
        expand(spelling, spellings, left)?;
    }
    Some(())
}

/// Whether the braces at `at` are a whole segment of several, which is none with one of the alternatives.
fn is_segment_that_may_fold(parts: &[Part], at: usize) -> bool {
    let Part::Alternatives(alternatives) = &parts[at] else {
        return false;
    };
    let is_border = |neighbour: Option<&Part>| neighbour.is_none_or(|part| *part == Part::Separator);
    let (before, after) = (at.checked_sub(1).and_then(|before| parts.get(before)), parts.get(at + 1));
    parts.len() > 1
        && is_border(before)
        && is_border(after)
        && alternatives.iter().any(|alternative| is_folded_away(alternative))
}

/// Whether a segment stands for no directory: it is empty, or `.`.
fn is_folded_away(segment: &[Part]) -> bool {
    segment.is_empty() || matches!(segment, [Part::Literal(text)] if text == ".")
}

/// The segments, without empty ones, `.`, and `**` after `**`.
pub(super) fn fold(parts: &[Part]) -> Vec<&[Part]> {
    let segments = parts.split(|part| *part == Part::Separator);
    let mut segments: Vec<&[Part]> = segments.filter(|segment| !is_folded_away(segment)).collect();
    segments.dedup_by(|next, before| *next == [Part::AnySegments] && *before == [Part::AnySegments]);
    segments
}

/// `parts` with what braces hold folded, too, where it is not. Where all alternatives end with a separator, so does it.
pub(super) fn with_folded_braces(parts: Vec<Part>) -> Vec<Part> {
    let Some(all) = spellings(parts.clone()).filter(|all| all.len() > 1) else {
        return parts;
    };
    let folded: Vec<_> = all.iter().map(|spelling| fold(spelling).join(&Part::Separator)).collect();
    if folded == all || folded.iter().flatten().map(length).sum::<usize>() > MAX_FOLDED {
        return parts;
    }
    let are_directories = all.iter().all(|spelling| spelling.last() == Some(&Part::Separator));
    let folded: Vec<_> = folded.into_iter().filter(|spelling| !spelling.is_empty()).collect();
    if folded.is_empty() {
        return Vec::new();
    }
    let end = if are_directories { vec![Part::Separator] } else { Vec::new() };
    [vec![Part::Alternatives(folded)], end].concat()
}

fn length(part: &Part) -> usize {
    match part {
        Part::Literal(text) => text.len(),
        Part::Class { ranges, .. } => ranges.len(),
        Part::Alternatives(alternatives) => alternatives.iter().flatten().map(length).sum(),
        _ => 1,
    }
}
