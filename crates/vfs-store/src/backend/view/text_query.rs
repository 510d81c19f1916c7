//! Query for the search index of a store, from the literals of a grep.

use vfs_core::{CaseMode, GrepRequest, Pattern};
use vfs_search::required_literals;

use crate::store::TextQuery;

/// Minimum length of a literal that is looked up in the search index of a store, in characters.
const MIN_TEXT_CHARS: usize = 3;

/// Returns literals of which every file that matches `req` contains at least one, or `None` if there are none.
pub(crate) fn text_query(req: &GrepRequest) -> Option<TextQuery> {
    // A smart search may be of either kind; the case-insensitive query also finds the case-sensitive matches.
    let case = if req.case == CaseMode::Sensitive { CaseMode::Sensitive } else { CaseMode::Insensitive };
    let texts: Option<Vec<String>> =
        required_literals(req)?.into_iter().map(|text| portable_literal(text, case)).collect();
    let mut texts = texts?;
    texts.sort_unstable();
    texts.dedup();
    Some(TextQuery::new(texts, case))
}

/// Upper bound of [`max_skipped_size`].
pub(crate) const MAX_SKIPPED_BYTES: u64 = 64 << 20;

/// Returns the size in bytes up to which a file without matches can be skipped unread, as no line of it is too long for
/// the search.
///
/// The size is 64 MiB, and less for an expression with counted repetitions, for which a search accepts only shorter
/// lines.
pub(crate) fn max_skipped_size(req: &GrepRequest) -> u64 {
    match &req.pattern {
        Pattern::Regex(regex) if regex.contains('{') => 100 << 10,
        _ => MAX_SKIPPED_BYTES,
    }
}

/// Returns the longest part of `text` that the index of every store finds wherever a search does, or `None` if it is
/// too short.
///
/// Stores agree only on the case folding of ASCII letters, of which `k` and `s` also fold with a letter beyond ASCII.
fn portable_literal(text: String, case: CaseMode) -> Option<String> {
    let text = match case {
        CaseMode::Sensitive => text,
        _ => {
            let is_portable = |c: char| c.is_ascii() && !"kKsS".contains(c);
            text.split(|c| !is_portable(c)).max_by_key(|part| part.len())?.to_owned()
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
    fn a_literal_is_the_longest_part_that_every_index_finds() {
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
