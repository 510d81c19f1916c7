//! The laws and `docs/contract.md` cover the same behaviours.

use std::collections::{BTreeMap, BTreeSet};

const CONTRACT: &str = include_str!("../../docs/contract.md");

/// The laws that the page names, by the number of the behaviour that they check.
fn documented() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut behaviours = BTreeMap::new();
    // A behaviour is an item of a list, `* **E7** text: `operation::law`, ...`, and may go on in indented lines.
    for item in CONTRACT.split("\n* **").skip(1) {
        let (number, text) = item.split_once("**").expect("a number is set in bold");
        let text = text.split("\n\n").next().expect("a split has a first part");
        let code = text.split('`').skip(1).step_by(2);
        let is_law = |word: &&str| {
            word.split_once("::").is_some_and(|(operation, law)| {
                [operation, law]
                    .iter()
                    .all(|part| part.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c)))
            })
        };
        let laws = code.filter(is_law).map(str::to_owned).collect();
        assert!(behaviours.insert(number, laws).is_none(), "{number} is there twice");
    }
    behaviours
}

#[test]
fn every_behaviour_names_its_laws_and_every_law_its_behaviour() {
    let mut in_code: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for law in vfs_testkit::ALL {
        in_code.entry(law.number).or_default().insert(format!("{}::{}", law.operation, law.name));
    }
    for law in vfs_testkit::NAMESPACE {
        in_code.entry(law.number).or_default().insert(format!("namespace::{}", law.name));
    }
    for law in vfs_store_testkit::STORE {
        in_code.entry(law.number).or_default().insert(format!("{}::{}", law.subject, law.name));
    }
    for law in vfs_testkit::SHELL {
        in_code.entry(law.number).or_default().insert(format!("{}::{}", law.subject, law.name));
    }
    let documented = documented();
    for (number, laws) in &documented {
        assert_eq!(in_code.get(number), Some(laws), "docs/contract.md, {number}");
    }
    let numbers: BTreeSet<_> = documented.keys().collect();
    assert_eq!(in_code.keys().collect::<BTreeSet<_>>(), numbers, "numbers of laws and of docs/contract.md");
}

#[test]
fn the_page_has_the_number_of_laws_of_each_tier() {
    use vfs_testkit::LawTier;
    for tier in LawTier::ALL {
        let backends = vfs_testkit::ALL.iter().filter(|law| law.tier <= tier).count();
        let shells = vfs_testkit::SHELL.iter().filter(|law| law.tier <= tier).count();
        let row = format!("| `{tier:?}` | {backends} | {shells} |");
        assert!(CONTRACT.contains(&row), "docs/contract.md has no row {row}");
    }
}

#[test]
fn there_are_laws_for_every_operation() {
    let operations: BTreeSet<_> = vfs_testkit::ALL.iter().map(|law| law.operation).collect();
    for operation in [
        "stat",
        "resolve",
        "ls",
        "read",
        "write",
        "edit",
        "delete",
        "rename",
        "copy",
        "glob",
        "grep",
        "grep_stream",
        "upload",
        "download",
        "lend",
    ] {
        assert!(operations.contains(operation), "{operation}");
    }
}
