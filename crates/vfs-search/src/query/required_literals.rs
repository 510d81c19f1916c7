//! Required literals: texts of which every matching file contains at least one.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Seq};
use regex_syntax::hir::{Hir, HirKind};
use vfs_core::search::{InvertMatch, MultilineMode};
use vfs_core::{CaseMode, GrepRequest, Pattern};

use crate::query::regex::effective_expression;

/// Maximum length in bytes of an expression that is analysed.
const MAX_REGEX_BYTES: usize = 4 << 10;

/// Maximum number of literals.
const MAX_LITERALS: usize = 64;

/// Returns literals of which every file that `req` matches contains at least one, or `None` if the request requires
/// none.
///
/// # Behaviour
///
/// If the request is not case-sensitive, a file may contain the literal in another case, by the rules of Unicode: `k`
/// and `s` have a third form beyond ASCII. There are at most 64 literals, and none of them is empty.
///
/// ```
/// use vfs_core::GrepRequest;
/// use vfs_search::required_literals;
///
/// let texts = required_literals(&GrepRequest::regex(r"fn \w+_all\("));
/// assert_eq!(texts, Some(vec!["_all(".to_owned()]));
/// assert_eq!(required_literals(&GrepRequest::regex("[a-z]+")), None);
/// ```
pub fn required_literals(req: &GrepRequest) -> Option<Vec<String>> {
    if req.invert != InvertMatch::No {
        return None;
    }
    let mut literals = match &req.pattern {
        // In a file the line break may be `\r\n`, so only one line of the literal is used.
        Pattern::Literal(text) => text.split('\n').max_by_key(|line| line.len()).map(|line| vec![line.to_owned()])?,
        // Intersections and symmetric differences of classes change their meaning if case is ignored.
        Pattern::Regex(regex)
            if req.case != CaseMode::Sensitive && ["&&", "~~"].iter().any(|sign| regex.contains(sign)) =>
        {
            return None;
        }
        Pattern::Regex(regex) => literals_of_regex(regex, req.span == MultilineMode::MultiLine)?,
        _ => return None,
    };
    literals.sort_unstable();
    literals.dedup();
    let is_usable =
        !literals.is_empty() && literals.len() <= MAX_LITERALS && literals.iter().all(|text| !text.is_empty());
    is_usable.then_some(literals)
}

/// Returns literals of which every match of `regex` contains at least one.
fn literals_of_regex(regex: &str, multiline: bool) -> Option<Vec<String>> {
    if regex.len() > MAX_REGEX_BYTES {
        return None;
    }
    let mut parser = ParserBuilder::new();
    // Allow the nesting of the request, and that of the expression which replaces each end of a line.
    parser.utf8(false).multi_line(true).dot_matches_new_line(multiline).nest_limit(200);
    let hir = parser.build().parse(&effective_expression(regex)?).ok()?;
    let literals = literals_of_hir(&hir)?;
    literals.into_iter().map(|text| String::from_utf8(text).ok()).collect()
}

/// Returns the most selective set of literals of which every match of `hir` contains at least one.
fn literals_of_hir(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let ends = [ExtractKind::Prefix, ExtractKind::Suffix]
        .map(|kind| to_byte_strings(&Extractor::new().kind(kind).extract(hir)));
    let within = match hir.kind() {
        HirKind::Capture(capture) => literals_of_hir(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => literals_of_hir(&repetition.sub),
        HirKind::Concat(parts) => most_selective(parts.iter().map(literals_of_hir)),
        HirKind::Alternation(parts) => {
            let each: Option<Vec<_>> = parts.iter().map(literals_of_hir).collect();
            each.map(|each| each.concat())
        }
        _ => None,
    };
    most_selective(ends.into_iter().chain([within]))
}

fn to_byte_strings(seq: &Seq) -> Option<Vec<Vec<u8>>> {
    let literals = seq.literals().filter(|literals| !literals.is_empty())?;
    Some(literals.iter().map(|literal| literal.as_bytes().to_vec()).collect())
}

/// Returns the set whose shortest literal is longest.
fn most_selective(sets: impl Iterator<Item = Option<Vec<Vec<u8>>>>) -> Option<Vec<Vec<u8>>> {
    sets.flatten().max_by_key(|set| set.iter().map(Vec::len).min())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_returned_only_if_every_match_requires_one() {
        for (regex, expected) in [
            ("needle", Some(vec!["needle"])),
            (r"\bfn \w+_all\(", Some(vec!["_all("])),
            (r"\w+middle\w+", Some(vec!["middle"])),
            ("foo|bar", Some(vec!["bar", "foo"])),
            ("(?:begin|start)ing", Some(vec!["begining", "starting"])),
            ("foo|b", Some(vec!["b", "foo"])),
            ("(needle)?", None),
            ("(needle)+", Some(vec!["needle"])),
            ("(needle){0,3}x", Some(vec!["x"])),
            ("^needle$", Some(vec!["needle"])),
            ("one$\\nneedle", Some(vec!["one\nneedle", "one\r\nneedle"])),
            ("one$\nneedle", Some(vec!["one\nneedle", "one\r\nneedle"])),
            ("(one$)\\s+needle", Some(vec!["needle"])),
            (r"a\.b\.c", Some(vec!["a.b.c"])),
            ("[a-z]+", None),
            (".*", None),
            ("xy", Some(vec!["xy"])),
            ("(", None),
            (r"(?-u)\xff\xfe\xfd", None),
        ] {
            let found = required_literals(&GrepRequest::regex(regex));
            assert_eq!(found, expected.map(|literals| literals.into_iter().map(str::to_owned).collect()), "{regex}");
        }
    }

    #[test]
    fn a_literal_pattern_requires_its_longest_line() {
        for (req, expected) in [
            (GrepRequest::literal("a.b"), Some("a.b")),
            (GrepRequest::literal("one\nlonger line\n"), Some("longer line")),
            (GrepRequest::literal("needle").invert(), None),
            (GrepRequest::literal(""), None),
            (GrepRequest::literal("\n"), None),
        ] {
            assert_eq!(required_literals(&req).map(|literals| literals.join("|")).as_deref(), expected, "{req:?}");
        }
    }
}
