//! Which texts a file holds that a search finds something in.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Seq};
use regex_syntax::hir::{Hir, HirKind};
use vfs_core::{CaseMode, GrepRequest, Pattern};

use crate::store::Needles;

/// The shortest text that is worth asking a store for, in characters.
const SHORTEST: usize = 3;

/// The longest expression that is looked through, in bytes.
const LONGEST_REGEX: usize = 4 << 10;

/// Most texts that a store is asked for at once.
const MOST_TEXTS: usize = 64;

/// Texts of which every file holds at least one that `req` finds something in; `None` where there are none to tell.
pub(super) fn needles(req: &GrepRequest) -> Option<Needles> {
    if req.invert {
        return None;
    }
    // A smart search may turn out to be either; what holds a text in its own case holds it in any.
    let case = if req.case == CaseMode::Sensitive { CaseMode::Sensitive } else { CaseMode::Insensitive };
    let texts = match &req.pattern {
        // Where a line ends in a file may be spelled otherwise.
        Pattern::Literal(text) => text.split('\n').max_by_key(|line| line.len()).map(|line| vec![line.to_owned()])?,
        Pattern::Regex(regex) => required_by(regex, req.multiline)?,
        _ => return None,
    };
    let texts: Option<Vec<String>> = texts.into_iter().map(|text| surely_found(text, case)).collect();
    let mut texts = texts?;
    texts.sort_unstable();
    texts.dedup();
    (!texts.is_empty() && texts.len() <= MOST_TEXTS).then(|| Needles::new(texts, case))
}

/// The largest file of which nothing but its matches is told, whatever its lines are: 64 MiB, and less where an expression
/// repeats, as that takes only shorter lines.
pub(super) fn largest_silent(req: &GrepRequest) -> u64 {
    match &req.pattern {
        Pattern::Regex(regex) if regex.contains('{') => 100 << 10,
        _ => 64 << 20,
    }
}

/// The longest part of `text` that every store finds wherever a search does.
///
/// Stores agree on the cases of ASCII letters alone, and of those `k` and `s` have a third one beyond ASCII.
fn surely_found(text: String, case: CaseMode) -> Option<String> {
    let text = match case {
        CaseMode::Sensitive => text,
        _ => {
            let is_sure = |c: char| c.is_ascii() && !"kKsS".contains(c);
            text.split(|c| !is_sure(c)).max_by_key(|part| part.len())?.to_owned()
        }
    };
    (text.chars().count() >= SHORTEST).then_some(text)
}

/// Texts of which every match of `regex` holds at least one.
fn required_by(regex: &str, multiline: bool) -> Option<Vec<String>> {
    if regex.len() > LONGEST_REGEX {
        return None;
    }
    let mut parser = ParserBuilder::new();
    // The nesting that was allowed, and that of what stands for each end of a line.
    parser.utf8(false).multi_line(true).dot_matches_new_line(multiline).nest_limit(200);
    let hir = parser.build().parse(&vfs_search::searched_expression(regex)?).ok()?;
    let texts = required(&hir)?;
    texts.into_iter().map(|text| String::from_utf8(text).ok()).collect()
}

/// The best set of texts of which every match of `hir` holds at least one.
fn required(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let ends = [ExtractKind::Prefix, ExtractKind::Suffix].map(|kind| texts(&Extractor::new().kind(kind).extract(hir)));
    let within = match hir.kind() {
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Concat(parts) => best(parts.iter().map(required)),
        HirKind::Alternation(parts) => {
            let each: Option<Vec<_>> = parts.iter().map(required).collect();
            each.map(|each| each.concat())
        }
        _ => None,
    };
    best(ends.into_iter().chain([within]))
}

fn texts(seq: &Seq) -> Option<Vec<Vec<u8>>> {
    let literals = seq.literals().filter(|literals| !literals.is_empty())?;
    Some(literals.iter().map(|literal| literal.as_bytes().to_vec()).collect())
}

/// That of which the shortest text is the longest.
fn best(sets: impl Iterator<Item = Option<Vec<Vec<u8>>>>) -> Option<Vec<Vec<u8>>> {
    sets.flatten().max_by_key(|set| set.iter().map(Vec::len).min())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(req: GrepRequest) -> Option<Vec<String>> {
        needles(&req).map(|needles| needles.texts)
    }

    #[test]
    fn what_is_required_is_told_and_nothing_else() {
        for (regex, expected) in [
            ("needle", Some(vec!["needle"])),
            (r"\bfn \w+_all\(", Some(vec!["_all("])),
            (r"\w+middle\w+", Some(vec!["middle"])),
            ("foo|bar", Some(vec!["bar", "foo"])),
            ("(?:begin|start)ing", Some(vec!["begining", "starting"])),
            ("foo|b", None),
            ("(needle)?", None),
            ("(needle)+", Some(vec!["needle"])),
            ("(needle){0,3}x", None),
            ("^needle$", Some(vec!["needle"])),
            ("one$\\nneedle", Some(vec!["one\nneedle", "one\r\nneedle"])),
            ("one$\nneedle", Some(vec!["one\nneedle", "one\r\nneedle"])),
            ("(one$)\\s+needle", Some(vec!["needle"])),
            (r"a\.b\.c", Some(vec!["a.b.c"])),
            ("[a-z]+", None),
            (".*", None),
            ("xy", None),
            ("(", None),
            (r"(?-u)\xff\xfe\xfd", None),
        ] {
            let found = texts(GrepRequest::regex(regex));
            assert_eq!(found, expected.map(|texts| texts.into_iter().map(str::to_owned).collect()), "{regex}");
        }
    }

    #[test]
    fn of_a_text_it_is_the_part_that_is_found_however_it_is_spelled() {
        let literal = GrepRequest::literal;
        for (req, expected) in [
            (literal("needle"), Some("needle")),
            (literal("ab"), None),
            (literal("one\nlonger line\n"), Some("longer line")),
            (literal("grüße"), Some("grüße")),
            (literal("grüße").case(CaseMode::Insensitive), None),
            (literal("password").case(CaseMode::Insensitive), Some("word")),
            (literal("Needle").case(CaseMode::Smart), Some("Needle")),
            (literal("needle").invert(), None),
            (literal(""), None),
        ] {
            assert_eq!(texts(req.clone()).map(|texts| texts.join("|")).as_deref(), expected, "{req:?}");
        }
    }
}
