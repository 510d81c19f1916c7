//! Query for the search index of a store, from the literals of a grep.

use vfs_core::{CaseMode, GrepRequest, Pattern};
use vfs_search::required_literals;

use crate::store::TextQuery;

/// The shortest text that is worth asking a store for, in characters.
const MIN_TEXT_CHARS: usize = 3;

/// Texts of which every file holds at least one that `req` finds something in; `None` where there are none to tell.
pub(crate) fn text_query(req: &GrepRequest) -> Option<TextQuery> {
    // A smart search may turn out to be either; what holds a text in its own case holds it in any.
    let case = if req.case == CaseMode::Sensitive { CaseMode::Sensitive } else { CaseMode::Insensitive };
    let texts: Option<Vec<String>> = required_literals(req)?.into_iter().map(|text| surely_found(text, case)).collect();
    let mut texts = texts?;
    texts.sort_unstable();
    texts.dedup();
    Some(TextQuery::new(texts, case))
}

/// The size of the largest file of which nothing but its matches is reported.
pub(crate) const MAX_SKIPPED_BYTES: u64 = 64 << 20;

/// The largest file of which nothing but its matches is told, whatever its lines are: 64 MiB, and less where an expression
/// repeats, as that takes only shorter lines.
pub(crate) fn largest_silent(req: &GrepRequest) -> u64 {
    match &req.pattern {
        Pattern::Regex(regex) if regex.contains('{') => 100 << 10,
        _ => MAX_SKIPPED_BYTES,
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
    (text.chars().count() >= MIN_TEXT_CHARS).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(req: GrepRequest) -> Option<Vec<String>> {
        text_query(&req).map(|query| query.texts)
    }

    #[test]
    fn of_a_text_it_is_the_part_that_is_found_however_it_is_spelled() {
        let literal = GrepRequest::literal;
        for (req, expected) in [
            (literal("needle"), Some("needle")),
            (literal("ab"), None),
            (GrepRequest::regex("foo|b"), None),
            (GrepRequest::regex("foo|bar"), Some("bar|foo")),
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
