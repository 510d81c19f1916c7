//! Conventions of the source text that no lint checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cargo_metadata::DependencyKind;

use super::layering::metadata;
use super::sources::{SOURCES, crates};

/// The most characters in the first line of a module, without the mark of the comment.
const MAX_HEADER: usize = 100;

/// First words that say nothing about a constant: a limit is named `MAX_*`, after what it limits.
const VAGUE_CONSTANTS: [&str; 6] = ["MOST", "FEW", "MANY", "WORTH", "PATIENCE", "ENOUGH"];

/// Words in place of which the field has a term. The list grows as the last use of a word goes.
const UNUSED_WORDS: [&str; 32] = [
    "anew",
    "bait",
    "bent",
    "crowd",
    "deed",
    "forecast",
    "guide",
    "hurry",
    "inward",
    "judge",
    "ledger",
    "meddled",
    "meddling",
    "met",
    "outlet",
    "outliving",
    "outward",
    "pulse",
    "quest",
    "recall",
    "reducing",
    "relocate",
    "said",
    "speech",
    "stretch",
    "tally",
    "tell",
    "told",
    "unhurried",
    "unlent",
    "whoever",
    "worth",
];

fn assert_none(problem: &str, found: impl IntoIterator<Item = String>) {
    let found: Vec<_> = found.into_iter().collect();
    assert!(found.is_empty(), "{problem}:\n{}", found.join("\n"));
}

#[test]
fn each_module_begins_with_a_short_line_that_says_what_it_is() {
    let found = SOURCES.iter().filter(|source| !source.is_for_tests()).filter(|source| {
        let header = source.text.lines().next().and_then(|line| line.strip_prefix("//! "));
        header.is_none_or(|header| header.chars().count() > MAX_HEADER)
    });
    assert_none("module headers that are missing or too long", found.map(|source| source.file.display().to_string()));
}

#[test]
fn constants_are_named_after_what_they_limit() {
    let sources = SOURCES.iter().filter(|source| !source.is_for_tests());
    let constants = sources.flat_map(|source| source.code.constants.iter().map(move |name| (source, name)));
    let found =
        constants.filter(|(_, name)| name.split('_').next().is_some_and(|word| VAGUE_CONSTANTS.contains(&word)));
    assert_none("constants with vague names", found.map(|(source, name)| format!("{}: {name}", source.file.display())));
}

#[test]
fn a_type_is_declared_in_one_file_of_a_crate() {
    let mut files: BTreeMap<(&str, &str), BTreeSet<&Path>> = BTreeMap::new();
    // What an API is on systems that have no implementation declares the same types.
    let is_stand_in = |file: &Path| file.ends_with("unsupported.rs");
    for source in SOURCES.iter().filter(|source| !source.is_for_tests() && !is_stand_in(&source.file)) {
        for name in &source.code.types {
            files.entry((&source.package, name)).or_default().insert(&source.file);
        }
    }
    let found = files.into_iter().filter(|(_, files)| files.len() > 1);
    assert_none("types of one name", found.map(|((package, name), files)| format!("{package}: {name} in {files:?}")));
}

#[test]
fn words_that_have_gone_stay_away() {
    let unused = BTreeSet::from(UNUSED_WORDS);
    let found = SOURCES.iter().flat_map(|source| {
        let words = words_of(&source.text).filter(|word| unused.contains(word.to_ascii_lowercase().as_str()));
        words.map(|word| format!("{}: {word}", source.file.display()))
    });
    assert_none("words in place of which the field has a term", found);
}

/// Splits `text` into words, at every change of case within a name, too.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split(|letter: char| !letter.is_ascii_alphabetic());
    names.flat_map(|name| {
        let is_start =
            |(_, letters): &(usize, &[u8])| letters[0].is_ascii_lowercase() && letters[1].is_ascii_uppercase();
        let mut ends: Vec<usize> =
            name.as_bytes().windows(2).enumerate().filter(is_start).map(|(at, _)| at + 1).collect();
        ends.push(name.len());
        ends.into_iter().scan(0, move |start, end| Some(&name[std::mem::replace(start, end)..end]))
    })
}

fn architecture_page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/architecture.md");
    fs::read_to_string(page).expect("the page is readable")
}

#[test]
fn the_architecture_page_lists_the_crates() {
    let page = architecture_page();
    let entries = page.lines().filter_map(|line| line.strip_prefix("* **`")?.split_once("`**"));
    let listed: BTreeSet<String> = entries.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(listed, crates().into_iter().map(|(name, _)| name).collect());
}

#[test]
fn the_architecture_page_names_files_and_types_of_the_code() {
    let page = architecture_page();
    // Outside of code blocks, every second part is code.
    let code = page.split("```").step_by(2).flat_map(|text| text.split('`').skip(1).step_by(2));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let is_name = |text: &str| text.starts_with(char::is_uppercase) && text.contains(char::is_lowercase);
    let (files, others): (Vec<&str>, Vec<&str>) = code.partition(|text| text.ends_with(".rs"));
    let missing = files
        .into_iter()
        .filter(|file| !root.join(file).exists() && !SOURCES.iter().any(|source| source.file.ends_with(file)));
    assert_none("files that do not exist", missing.map(str::to_owned));
    let known: BTreeSet<&str> = SOURCES
        .iter()
        .flat_map(|source| source.text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')))
        .collect();
    let names =
        others.into_iter().flat_map(|text| text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')));
    let unknown = names.filter(|name| is_name(name) && !known.contains(name));
    assert_none("names that no source has", unknown.map(str::to_owned));
}

#[test]
fn every_dependency_is_used() {
    let mut code: BTreeMap<&str, String> = BTreeMap::new();
    for source in SOURCES.iter() {
        code.entry(&source.package).or_default().push_str(&source.text);
    }
    let packages = metadata().packages;
    let found = packages.iter().filter_map(|package| Some((package, code.get(package.name.as_str())?)));
    let found = found.flat_map(|(package, code)| {
        let normal = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
        let unused = normal.filter(|dependency| !code.contains(&dependency.name.replace('-', "_")));
        unused.map(move |dependency| format!("{}: {}", package.name, dependency.name))
    });
    assert_none("dependencies that no source names", found);
}

#[test]
fn names_are_split_into_words() {
    let words: Vec<_> = words_of("fn read_all(HTTPServer) // A `MaxSize`.").filter(|word| !word.is_empty()).collect();
    assert_eq!(words, ["fn", "read", "all", "HTTPServer", "A", "Max", "Size"]);
}
