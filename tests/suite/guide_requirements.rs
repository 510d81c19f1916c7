//! What a program of the guide needs is named before it: the crates to add, and the features of `agent-vfs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cargo_metadata::MetadataCommand;
use regex::Regex;

/// The chapters whose programs depend on `agent-vfs`.
const CHAPTERS: [&str; 10] = [
    "backends",
    "embedding",
    "from-deepagents",
    "from-eino",
    "mounts-and-layers",
    "policy-and-approval",
    "quickstart",
    "sandboxes",
    "stores-at-scale",
    "tools",
];

/// The features of `agent-vfs`, each with all features that it enables, itself included.
type Features = BTreeMap<String, BTreeSet<String>>;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).expect("the file is there")
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

fn features() -> Features {
    let metadata = MetadataCommand::new().no_deps().exec().expect("cargo describes the workspace");
    let facade = metadata.packages.into_iter().find(|package| package.name == "agent-vfs").expect("it is a member");
    let enabled = |feature: &String| {
        let (mut all, mut next) = (BTreeSet::new(), vec![feature.clone()]);
        while let Some(feature) = next.pop() {
            // Entries such as `dep:vfs-store` and `vfs-store/sqlite` are about dependencies, not features of this package.
            if let Some(entries) = facade.features.get(&feature)
                && all.insert(feature)
            {
                next.extend(entries.iter().cloned());
            }
        }
        all
    };
    facade.features.keys().map(|feature| (feature.clone(), enabled(feature))).collect()
}

/// Returns the names at the root of `agent-vfs` that need a feature which is no default one, each with the feature.
fn names_of_features(features: &Features) -> Vec<(String, String)> {
    let source = read("crates/agent-vfs/src/lib.rs");
    let export = pattern(r#"(?m)^#\[cfg\(feature = "([a-z-]+)"\)\]\npub (?:use|mod) ([^;]+);"#);
    let last_word = pattern(r"\w+$");
    let mut names = Vec::new();
    for found in export.captures_iter(&source).filter(|found| !features["default"].contains(&found[1])) {
        for item in found[2].split([',', '{', '}']) {
            names.extend(last_word.find(item.trim()).map(|name| (name.as_str().to_owned(), found[1].to_owned())));
        }
    }
    names
}

/// Returns what `program` needs: crates such as `crate futures`, features of `agent-vfs` such as `feature store`, and features of tokio such
/// as `tokio sync`. `crates` are all that the guide names.
fn needs(program: &str, names: &[(String, String)], crates: &BTreeSet<String>) -> BTreeSet<String> {
    let mut needs = BTreeSet::new();
    for found in pattern(r"\b([a-z][a-z_0-9]*)::([a-z_]*)").captures_iter(program) {
        let need = format!("crate {}", &found[1]);
        if crates.contains(&need) && need != "crate agent_vfs" {
            needs.insert(need);
        }
        if &found[1] == "tokio" && ["net", "process", "sync", "time"].contains(&&found[2]) {
            needs.insert(format!("tokio {}", &found[2]));
        }
    }
    for found in pattern(r"agent_vfs::([\w:]+|\{[^}]*\})").captures_iter(program) {
        let words: BTreeSet<_> = found[1].split(|end: char| !end.is_alphanumeric() && end != '_').collect();
        let used = names.iter().filter(|(name, _)| words.contains(name.as_str()));
        needs.extend(used.map(|(_, feature)| format!("feature {feature}")));
    }
    needs
}

/// Returns what `text` tells the reader to add, in the form of [`needs`].
fn named(text: &str) -> BTreeSet<String> {
    let words = |list: &str| -> Vec<String> {
        list.split([',', ' ', '"', '\n']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let mut named = BTreeSet::new();
    for found in pattern(r"cargo add ([^`\n]+)").captures_iter(text) {
        let crates = found[1].split("--features").next().unwrap_or_default().to_owned();
        let name = |word: &String| word.split('@').next().unwrap_or(word).replace('-', "_");
        named.extend(words(&crates).iter().map(|word| format!("crate {}", name(word))));
    }
    for found in pattern(r"cargo add tokio --features ([\w,-]+)").captures_iter(text) {
        named.extend(words(&found[1]).iter().map(|word| format!("tokio {word}")));
    }
    for found in pattern(r"features = \[([^\]]*)\]|agent-vfs --features ([\w,-]+)").captures_iter(text) {
        let list = found.get(1).or(found.get(2)).map_or("", |list| list.as_str());
        named.extend(words(list).iter().map(|word| format!("feature {word}")));
    }
    named
}

#[test]
fn a_program_of_the_guide_has_its_crates_and_features_before_it() {
    let features = features();
    let names = names_of_features(&features);
    assert!(
        names.iter().any(|(name, feature)| (name.as_str(), feature.as_str()) == ("StoreBackend", "store")),
        "{names:?}"
    );
    let chapters = CHAPTERS.map(|chapter| (chapter, read(&format!("docs/guide/{chapter}.md"))));
    let crates = chapters.iter().flat_map(|(_, text)| named(text)).filter(|need| need.starts_with("crate ")).collect();
    let mut missing = BTreeSet::new();
    for (chapter, text) in &chapters {
        for (at, _) in text.match_indices("\n```rust") {
            let program = text[at + 1..].split("\n```").next().unwrap_or_default();
            let named = named(&text[..at]);
            let is_named = |need: &str| match need.strip_prefix("feature ") {
                Some(feature) => features
                    .iter()
                    .any(|(name, enabled)| enabled.contains(feature) && named.contains(&format!("feature {name}"))),
                None => named.contains(need),
            };
            let line = text[..at].matches('\n').count() + 2;
            missing.extend(
                needs(program, &names, &crates)
                    .into_iter()
                    .filter(|need| !is_named(need))
                    .map(|need| format!("{chapter}.md:{line}: {need}")),
            );
        }
    }
    assert!(missing.is_empty(), "not named before a program that needs it:\n{missing:#?}");
}
