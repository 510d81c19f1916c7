//! Case-insensitive searches by Unicode case folding.

use std::collections::BTreeMap;

use fastrand::Rng;
use vfs_core::CaseMode;
use vfs_store::TextQuery;
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{home, path};

store_laws! { "search":
    "SS10" Search random_texts_are_found_as_they_are,
    "SS11" Search random_texts_are_found_whatever_their_case,
    "SS12" Search letters_of_more_bytes_are_found_by_those_of_fewer,
}

/// Letters, each with all its case variants in Unicode, and characters without case.
const LETTERS: &[&str] = &[
    "aA",
    "bB",
    "iI",
    "kK\u{212a}",
    "sS\u{17f}",
    "\u{b5}\u{3bc}\u{39c}",
    "\u{e5}\u{c5}\u{212b}",
    "σςΣ",
    "ß\u{1e9e}",
    "ωΩ\u{2126}",
    "θϑϴΘ",
    "éÉ",
    "ñÑ",
    "жЖ",
    "ⅷⅧ",
    "ǆǅǄ",
    "\u{10428}\u{10400}",
    "İ",
    "ı",
    "ŉ",
    "\u{301}",
    "1",
    " ",
    "\n",
    "-",
    "_",
    "%",
    "'",
    "\"",
    "*",
    "日",
    "\u{1f600}",
];

/// Letters of a text, each as its index in the table.
type LetterIndexes = Vec<usize>;

fn letters(random: &mut Rng, length: usize) -> LetterIndexes {
    // Each text has few different letters, so that it contains a needle by chance.
    let alphabet: Vec<_> = (0..5).map(|_| random.usize(..LETTERS.len())).collect();
    (0..length).map(|_| alphabet[random.usize(..alphabet.len())]).collect()
}

fn random_text(random: &mut Rng, letters: &[usize]) -> String {
    letters.iter().filter_map(|letter| random.choice(LETTERS[*letter].chars().collect::<Vec<_>>())).collect()
}

fn holds<T: PartialEq>(text: &[T], needle: &[T]) -> bool {
    text.windows(needle.len()).any(|window| window == needle)
}

/// Writes random texts, and searches for parts of them in another case.
async fn assert_none_is_missed(t: &StoreTarget, case: CaseMode, seed: u64) -> LawResult {
    let mut random = Rng::with_seed(seed);
    let mut texts = BTreeMap::new();
    for n in 0..60 {
        let length = random.usize(0..40);
        let letters = letters(&mut random, length);
        let text = random_text(&mut random, &letters);
        let at = format!("/{n}");
        t.put(&at, text.clone()).await?;
        texts.insert(at, (letters, text));
    }
    let search = t.store.as_search().expect("the law needs it");
    let sources: Vec<_> = texts.values().filter(|(letters, _)| letters.len() > 8).cloned().collect();
    for _ in 0..200 {
        let Some((source, text)) = random.choice(&sources) else { panic!("no text is long enough") };
        let (start, length) = (random.usize(0..source.len() - 8), random.usize(1..9));
        let fragment = &source[start..start + length];
        let needle = match case {
            CaseMode::Sensitive => text.chars().skip(start).take(length).collect(),
            _ => random_text(&mut random, fragment),
        };
        let query = TextQuery::new(vec![needle.clone()], case);
        let Some(found) = search.candidates(&home(), &path("/"), &query).await? else { continue };
        for (at, (letters, text)) in &texts {
            let is_match = match case {
                CaseMode::Sensitive => text.contains(&needle),
                _ => holds(letters, fragment),
            };
            assert!(!is_match || found.contains(&path(at)), "{text:?} contains {needle:?} ({case:?}) and is not found");
        }
    }
    Ok(())
}

async fn random_texts_are_found_as_they_are(t: &StoreTarget) -> LawResult {
    assert_none_is_missed(t, CaseMode::Sensitive, 23).await
}

async fn random_texts_are_found_whatever_their_case(t: &StoreTarget) -> LawResult {
    assert_none_is_missed(t, CaseMode::Insensitive, 29).await
}

/// The Kelvin sign is a case variant of `k`, and the long s one of `s`: searches for words with such letters, in all
/// variants.
async fn letters_of_more_bytes_are_found_by_those_of_fewer(t: &StoreTarget) -> LawResult {
    let forms = [
        vec!["kelvin", "KELVIN", "\u{212a}elvin", "\u{212a}ELVIN", "Kelvin"],
        vec!["session", "SESSION", "\u{17f}e\u{17f}\u{17f}ion", "Se\u{17f}sIon"],
        vec!["\u{e5}ngstr\u{f6}m", "\u{212b}NGSTR\u{d6}M", "\u{c5}ngstr\u{f6}m"],
        vec!["\u{3bc}meter", "\u{b5}METER", "\u{39c}meter"],
        vec!["όσος", "ΌΣΟΣ", "όσοσ"],
        vec!["stra\u{df}e", "STRA\u{1e9e}E"],
        vec!["ohm \u{2126}m", "OHM ωM", "ohm ΩM"],
    ];
    for (word, words) in forms.iter().enumerate() {
        for (n, text) in words.iter().enumerate() {
            t.put(&format!("/{word}/{n}"), format!("a {text} b")).await?;
        }
    }
    let search = t.store.as_search().expect("the law needs it");
    for case in [CaseMode::Insensitive, CaseMode::Smart] {
        for (word, words) in forms.iter().enumerate() {
            // A smart-case search for a text with an upper-case letter is case-sensitive.
            for needle in
                words.iter().filter(|needle| case == CaseMode::Insensitive || !needle.chars().any(char::is_uppercase))
            {
                let query = TextQuery::new(vec![(*needle).to_owned()], case);
                let Some(found) = search.candidates(&home(), &path("/"), &query).await? else { continue };
                for (n, text) in words.iter().enumerate() {
                    assert!(
                        found.contains(&path(&format!("/{word}/{n}"))),
                        "{text:?} contains {needle:?} and is not found"
                    );
                }
            }
        }
    }
    Ok(())
}
