//! Bound on how far a regex engine may read past a match before it reports the match.

use regex_syntax::hir::{Hir, HirKind};

/// Returns the maximum number of bytes that an engine reads after the end of a match of `hir` to rule out a match that
/// takes precedence. Returns `None` if the expression sets no bound, as in `[^"]*"|x`: each `x` may start a match that
/// ends far away, or never.
///
/// If there is a bound, it is also the maximum number of bytes that the engine reads without a match before it gives
/// up.
pub(crate) fn max_read_past_match(hir: &Hir) -> Option<usize> {
    if let Some(max_match_len) = max_match_len(hir) {
        return Some(max_match_len);
    }
    match hir.kind() {
        // From the minimum number of repetitions on, each further one completes a match.
        HirKind::Repetition(repetition) => {
            let min_count = usize::try_from(repetition.min.max(1)).ok()?;
            Some(max_match_len(&repetition.sub)?.saturating_mul(min_count))
        }
        HirKind::Capture(capture) => max_read_past_match(&capture.sub),
        HirKind::Concat(parts) => {
            let (last, others) = parts.split_last()?;
            others
                .iter()
                .try_fold(max_read_past_match(last)?, |sum, part| Some(sum.saturating_add(max_match_len(part)?)))
        }
        HirKind::Alternation(parts) => parts.iter().try_fold(0, |max, part| Some(max_read_past_match(part)?.max(max))),
        _ => None,
    }
}

/// Returns the maximum length of a match of `hir`, if there is a bound.
pub(crate) fn max_match_len(hir: &Hir) -> Option<usize> {
    hir.properties().maximum_len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_read_past_a_match_is_bounded_if_the_engine_gives_up_soon() {
        for (regex, expected) in [
            ("abc", Some(3)),
            ("(?-u)[xy]", Some(1)),
            ("(?-u)[a-z]+", Some(1)),
            ("(?-u)[a-z]{3,}", Some(3)),
            (r"(?-u)\b[a-z_]\w*", Some(2)),
            ("ab(cd)*", Some(4)),
            ("foo[0-9]+|ba*", Some(4)),
            ("[ab]*c|a", None),
            ("a(b.*c)?", None),
            (r#"\{.*\};|"a""#, None),
            (r"\w+$", None),
            ("(?:a*b)*", None),
        ] {
            let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(regex).expect("a valid expression");
            assert_eq!(max_read_past_match(&hir), expected, "{regex}");
        }
    }
}
