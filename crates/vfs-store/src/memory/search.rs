//! Search for candidates by a scan of all values.

use std::collections::HashMap;

use bytes::Bytes;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use vfs_core::{CaseMode, VfsPath};

use crate::store::{CandidateKeys, TextQuery};

/// Returns the paths of the values that contain a text of the query or are not text, or `None` if there are too many.
pub(super) fn candidates(values: Vec<(VfsPath, Bytes)>, query: &TextQuery) -> Option<CandidateKeys> {
    if query.texts.iter().any(String::is_empty) {
        return None;
    }
    let mut folds = CharFoldCache::default();
    let is_sensitive = query.case == CaseMode::Sensitive;
    let folded: Vec<_> = query.texts.iter().map(|text| folds.fold(text)).collect();
    let mut may_match = |content: &[u8]| match std::str::from_utf8(content) {
        Ok(text) if !text.contains('\0') => {
            if is_sensitive {
                query.texts.iter().any(|needle| text.contains(needle.as_str()))
            } else {
                let text = folds.fold(text);
                folded.iter().any(|needle| contains(&text, needle))
            }
        }
        _ => true,
    };
    let found = values.into_iter().filter(|(_, content)| may_match(content)).map(|(path, _)| path);
    let found: CandidateKeys = found.take(query.max_candidates.saturating_add(1)).collect();
    (found.len() <= query.max_candidates).then_some(found)
}

fn contains(text: &[char], needle: &[char]) -> bool {
    text.windows(needle.len()).any(|window| window == needle)
}

/// Cache of simple case folding: the first character of each class of characters that differ in case.
#[derive(Default)]
struct CharFoldCache(HashMap<char, char>);

impl CharFoldCache {
    fn fold(&mut self, text: &str) -> Vec<char> {
        text.chars().map(|letter| *self.0.entry(letter).or_insert_with(|| first_of_case_class(letter))).collect()
    }
}

fn first_of_case_class(letter: char) -> char {
    let mut cases = ClassUnicode::new([ClassUnicodeRange::new(letter, letter)]);
    // The fold fails only if regex-syntax is compiled without its table of cases.
    match cases.try_case_fold_simple() {
        Ok(()) => cases.ranges().first().map_or(letter, ClassUnicodeRange::start),
        Err(_) => letter,
    }
}
