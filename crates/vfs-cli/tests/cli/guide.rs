//! The configuration files and commands of the guide, as its chapters have them.

use std::fs;

use tempfile::TempDir;

use crate::{finish, shell, tree};

/// Returns the blocks of `language` in a chapter, in order.
fn blocks<'a>(chapter: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("\n```{language}\n");
    chapter.split(fence.as_str()).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

/// Runs `line` in a shell in `root`, and returns what it prints. `policy explain` exits with 1 for a denial.
#[track_caller]
fn run(root: &TempDir, line: &str) -> String {
    let run = finish(shell(root, line).env("TEAM_STORE", "sqlite:team.db"), b"");
    let codes = if line.contains("policy explain") { 0..=1 } else { 0..=0 };
    assert!(run.code.is_some_and(|code| codes.contains(&code)) && run.err.is_empty(), "{line}: {run:?}");
    run.out().to_owned()
}

/// Runs each command of `block`, and returns what they print together.
#[track_caller]
fn run_all(root: &TempDir, block: &str) -> String {
    let commands = block.lines().map(|line| line.split("   ").next().unwrap_or_default());
    commands.map(|line| run(root, line)).collect()
}

#[test]
fn the_configuration_files_of_the_guide_can_be_opened() {
    for chapter in [
        include_str!("../../../../docs/guide/mounts-and-layers.md"),
        include_str!("../../../../docs/guide/policy-and-approval.md"),
        include_str!("../../../../docs/guide/stores-at-scale.md"),
    ] {
        let files: Vec<_> = blocks(chapter, "toml").into_iter().filter(|text| text.contains("[default]")).collect();
        assert!(!files.is_empty());
        for text in files {
            let root = tree(&[("vfs.toml", text), ("project/a", "")]);
            let checked = run(&root, "vfs --actor ann --config vfs.toml config check");
            assert!(checked.ends_with("the configuration is valid\n"), "{text}: {checked}");
        }
    }
}

#[test]
fn the_commands_of_the_quick_start_and_of_the_tools_run_as_written() {
    let quickstart = include_str!("../../../../docs/guide/quickstart.md");
    let commands = blocks(quickstart, "sh").into_iter().find(|block| block.contains("vfs write")).expect("commands");
    let printed = run_all(&tree(&[]), commands);
    assert!(printed.contains("/notes/a.txt:1:a color\n"), "{printed}");
    let tools = include_str!("../../../../docs/guide/tools.md");
    let root = tree(&[("notes.md", "a draft\n"), ("src/main.rs", "fn main() {}\n")]);
    run_all(&root, blocks(tools, "sh")[0]);
    assert_eq!(fs::read_to_string(root.path().join("notes.md")).expect("it is there"), "a final\n");
}

#[test]
fn an_explained_policy_prints_what_the_guide_shows() {
    let chapter = include_str!("../../../../docs/guide/policy-and-approval.md");
    let file = blocks(chapter, "toml").into_iter().find(|text| text.contains("[default]")).expect("a file");
    let commands = blocks(chapter, "sh").into_iter().find(|block| block.contains("policy explain")).expect("commands");
    let root = tree(&[("vfs.toml", file), ("a.md", "")]);
    let printed = run_all(&root, commands);
    let shown = blocks(chapter, "text").into_iter().find(|block| block.contains("by rule")).expect("an output");
    assert_eq!(printed.trim_end(), shown);
}

#[test]
fn the_commands_about_layers_and_stores_run_as_written() {
    let chapter = include_str!("../../../../docs/guide/mounts-and-layers.md");
    let file = blocks(chapter, "toml").into_iter().find(|text| text.contains("[default]")).expect("a file");
    let commands = blocks(chapter, "sh").into_iter().find(|block| block.contains("checkpoint")).expect("commands");
    let root = tree(&[("vfs.toml", file), ("project/src/a.rs", "one\n"), ("project/src/b.rs", "one\n")]);
    for path in ["/src/a.rs", "/src/b.rs"] {
        run(&root, &format!("vfs --config vfs.toml edit --old one --new two {path}"));
    }
    let printed = run_all(&root, commands);
    assert!(printed.contains("+two"), "{printed}");
    let at = |path: &str| fs::read_to_string(root.path().join("project/src").join(path)).expect("it is there");
    assert_eq!((at("a.rs").as_str(), at("b.rs").as_str()), ("one\n", "two\n"));

    let chapter = include_str!("../../../../docs/guide/stores-at-scale.md");
    let commands = blocks(chapter, "sh").into_iter().find(|block| block.contains("store check")).expect("commands");
    let root = tree(&[]);
    run(&root, "echo text | vfs --store sqlite:agents.db --namespace acme/ann write /a");
    // The others need a bucket or a server, and are run by the tests of the stores.
    let local: Vec<_> = commands.lines().filter(|line| !line.contains("s3:") && !line.contains("postgres:")).collect();
    assert!(local.len() >= 4, "{local:?}");
    let printed = run_all(&root, &local.join("\n"));
    assert!(printed.starts_with("/a\n") && root.path().join("agents-today.db").exists(), "{printed}");
}
