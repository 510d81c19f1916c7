//! Search for candidates by a scan of all values.

use std::collections::HashMap;

use bytes::Bytes;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use vfs_core::{CaseMode, VfsPath};

use crate::store::{CandidateKeys, TextQuery};

/// Those of `values` that hold one of the `needles`, or are not text.
pub(super) fn candidates(values: Vec<(VfsPath, Bytes)>, query: &TextQuery) -> Option<CandidateKeys> {
    if query.texts.iter().any(String::is_empty) {
        return None;
    }
    let mut folds = CaseFolding::default();
    let is_sensitive = query.case == CaseMode::Sensitive;
    let folded: Vec<_> = query.texts.iter().map(|text| folds.fold(text)).collect();
    let mut may_hold = |content: &[u8]| match std::str::from_utf8(content) {
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
    let found = values.into_iter().filter(|(_, content)| may_hold(content)).map(|(path, _)| path);
    let found: CandidateKeys = found.take(query.max_candidates.saturating_add(1)).collect();
    (found.len() <= query.max_candidates).then_some(found)
}

fn contains(text: &[char], needle: &[char]) -> bool {
    text.windows(needle.len()).any(|window| window == needle)
}

/// Letters that are the same whatever their case, each as the first of them.
#[derive(Default)]
struct CaseFolding(HashMap<char, char>);

impl CaseFolding {
    fn fold(&mut self, text: &str) -> Vec<char> {
        text.chars().map(|letter| *self.0.entry(letter).or_insert_with(|| first_of_its_cases(letter))).collect()
    }
}

fn first_of_its_cases(letter: char) -> char {
    let mut cases = ClassUnicode::new([ClassUnicodeRange::new(letter, letter)]);
    // Without the table of cases every letter would stand for itself; it is compiled in.
    match cases.try_case_fold_simple() {
        Ok(()) => cases.ranges().first().map_or(letter, ClassUnicodeRange::start),
        Err(_) => letter,
    }
}
