//! Overlays: `diff`, `commit` and `discard`.

use std::fs;

use crate::{configured, finish, json_lines, tree, with_config};

const OVERLAID: &str = "[default]\ntype = 'local'\nroot = '.'\n\
    layers = [{ type = 'read_only' }, { type = 'overlay', store = '.vfs/overlay', budget = '1 MiB' }]\n\
    [[mounts]]\npath = '/memories'\ntype = 'memory'\n";

#[test]
fn changes_are_shown_and_committed_by_later_processes() {
    let root = tree(&[("vfs.toml", OVERLAID), ("src/a.txt", "one\ntwo\n"), ("src/b.txt", "b\n"), ("c.txt", "c\n")]);
    let on_disk = |name: &str| fs::read_to_string(root.path().join(name)).ok();
    assert_eq!(with_config(&root, &["diff"]).success(), "");
    with_config(&root, &["edit", "--old", "two", "--new", "2", "/src/a.txt"]).success();
    with_config(&root, &["rm", "/src/b.txt"]).success();
    finish(configured(&root).args(["write", "/new.txt"]), b"new\n").success();
    finish(configured(&root).args(["write", "/memories/m"]), b"m").success();
    assert_eq!((on_disk("src/a.txt").as_deref(), on_disk("new.txt")), (Some("one\ntwo\n"), None));
    assert_eq!(with_config(&root, &["read", "/src/a.txt"]).success(), "one\n2\n");

    let diff = with_config(&root, &["diff", "/src"]);
    let edited = "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    assert!(diff.success().starts_with(edited) && diff.success().contains("+++ /dev/null"), "{diff:?}");
    assert!(!diff.out().contains("new.txt"), "{diff:?}");
    let json = json_lines(with_config(&root, &["diff", "--json"]).success());
    let kinds: Vec<_> = json.iter().map(|change| (&change["path"], &change["kind"])).collect();
    let expected = [("/new.txt", "added"), ("/src/a.txt", "changed"), ("/src/b.txt", "removed")]
        .map(|(p, k)| (p.into(), k.into()));
    assert_eq!(kinds, expected.iter().map(|(path, kind)| (path, kind)).collect::<Vec<_>>());

    let committed = with_config(&root, &["commit"]);
    let lines = "added    /new.txt\nchanged  /src/a.txt\nremoved  /src/b.txt\ncommitted 3 files\n";
    assert_eq!(committed.success(), lines);
    assert_eq!((on_disk("src/a.txt").as_deref(), on_disk("src/b.txt")), (Some("one\n2\n"), None));
    assert_eq!(on_disk("new.txt").as_deref(), Some("new\n"));
    assert_eq!(with_config(&root, &["diff"]).success(), "");
    assert_eq!(with_config(&root, &["commit"]).success(), "committed 0 files\n");
}

#[test]
fn a_commit_over_the_changes_of_others_lists_them_and_applies_nothing() {
    let root = tree(&[("vfs.toml", OVERLAID), ("a.txt", "one\n"), ("b.txt", "b\n")]);
    for file in ["/a.txt", "/b.txt"] {
        finish(configured(&root).args(["write", "--mode", "append", file]), b"mine\n").success();
    }
    fs::write(root.path().join("a.txt"), "theirs\n").expect("a file");
    let refused = with_config(&root, &["commit"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.out().starts_with("conflict /a.txt (expected version "), "{refused:?}");
    assert!(refused.out().ends_with("committed 0 files\n"));
    assert!(refused.err.starts_with("vfs: conflict: /a.txt: ") && refused.err.lines().count() == 1, "{refused:?}");
    assert!(refused.err.contains("'vfs diff PATH'") && refused.err.contains("'vfs discard PATH'"), "{refused:?}");
    let json = with_config(&root, &["commit", "--json"]);
    let [conflict] = &json_lines(json.refused())[..] else { panic!("one file: {json:?}") };
    assert_eq!(conflict["path"], "/a.txt");
    assert_eq!(fs::read_to_string(root.path().join("a.txt")).expect("a file"), "theirs\n");
    assert_eq!(fs::read_to_string(root.path().join("b.txt")).expect("a file"), "b\n");
    assert_eq!(with_config(&root, &["discard", "--json"]).success().lines().count(), 2);
    assert_eq!(with_config(&root, &["read", "/a.txt"]).success(), "theirs\n");
    assert_eq!(with_config(&root, &["discard"]).success(), "discarded the changes of 0 files\n");
}

#[test]
fn a_conflict_is_settled_for_either_side_and_the_rest_is_committed() {
    let root = tree(&[("vfs.toml", OVERLAID), ("a.txt", "one\n"), ("b.txt", "b\n"), ("d/c.txt", "c\n")]);
    let on_disk = |name: &str| fs::read_to_string(root.path().join(name)).expect("a file");
    let run = |args: &[&str]| with_config(&root, args);
    for file in ["/a.txt", "/b.txt", "/d/c.txt", "/memories/m"] {
        finish(configured(&root).args(["write", "--mode", "overwrite", file]), b"mine\n").success();
    }
    for file in ["a.txt", "d/c.txt"] {
        fs::write(root.path().join(file), "theirs\n").expect("a file");
    }
    let refused = run(&["commit"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.starts_with("vfs: conflict: /a.txt, /d/c.txt: "), "{refused:?}");

    // Theirs: the change is discarded.
    assert_eq!(run(&["discard", "d"]).success(), "changed  /d/c.txt\ndiscarded the changes of 1 file\n");
    // Ours, as the help has it: the file is read, discarded and written again.
    let mine = run(&["read", "/a.txt"]);
    assert_eq!(run(&["discard", "/a.txt", "/memories/m"]).success().lines().count(), 2);
    finish(configured(&root).args(["write", "--mode", "overwrite", "/a.txt"]), &mine.out).success();
    run(&["commit"]).success();
    assert_eq!([on_disk("a.txt"), on_disk("b.txt"), on_disk("d/c.txt")], ["mine\n", "mine\n", "theirs\n"]);
}

#[test]
fn the_store_and_the_configuration_are_protected() {
    let root = tree(&[("vfs.toml", OVERLAID), ("a.txt", "one\n")]);
    with_config(&root, &["edit", "--old", "one", "--new", "needle", "/a.txt"]).success();
    assert!(root.path().join(".vfs/overlay").exists());
    assert_eq!(with_config(&root, &["grep", "--hidden", "-l", "needle"]).success(), "/a.txt\n");
    let listed = with_config(&root, &["ls", "-R", "/.vfs"]);
    assert!(!listed.out().contains("overlay"), "{listed:?}");
    with_config(&root, &["ls", "/.vfs/overlay"]).failure("policy_denied");
    finish(configured(&root).args(["write", "--mode", "overwrite", "/vfs.toml"]), b"")
        .failure("policy_denied: /vfs.toml");
    assert!(with_config(&root, &["read", "/vfs.toml"]).success().starts_with("[default]"));
}

#[test]
fn commands_run_over_an_overlay_and_cannot_change_the_configuration() {
    let root = tree(&[("vfs.toml", OVERLAID), ("a.txt", "one\n")]);
    let exec = |command: &str| with_config(&root, &["exec", "--virtual", "--", command]);
    assert_eq!(exec("echo two >> /a.txt; cat /a.txt").success(), "one\ntwo\n");
    assert_eq!(fs::read_to_string(root.path().join("a.txt")).expect("a file"), "one\n");
    assert_eq!(exec("head -n 1 /vfs.toml").success(), "[default]\n");
    let refused = exec("echo x > /vfs.toml");
    assert!(refused.code != Some(0) && !refused.err.is_empty(), "{refused:?}");
    assert_eq!(fs::read_to_string(root.path().join("vfs.toml")).expect("a file"), OVERLAID);
    assert_eq!(with_config(&root, &["read", "/vfs.toml"]).success(), OVERLAID);
}

#[test]
fn the_layout_of_the_readme_works_for_files_and_for_commands() {
    let readme = include_str!("../../../../README.md");
    let start = readme.find("```toml\n").expect("a vfs.toml") + "```toml\n".len();
    let text = &readme[start..start + readme[start..].find("```").expect("its end")];
    let root = tree(&[("vfs.toml", text), ("secrets/key", "k")]);
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vfs"));
        command.arg("--config").arg(root.path().join("vfs.toml")).args(args);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        finish(&mut command, b"")
    };
    let script = "echo plan > /scratch/plan.md; cat /scratch/plan.md > /a.txt; cat /a.txt";
    assert_eq!(run(&["exec", "--virtual", "--", script]).success(), "plan\n");
    assert!(run(&["exec", "--virtual", "--", "cat /secrets/key"]).code != Some(0));
    assert!(run(&["diff"]).success().contains("+plan"));
}

#[test]
fn a_mount_without_an_overlay_names_those_that_have_one() {
    let root = tree(&[("vfs.toml", OVERLAID)]);
    for command in ["commit", "discard"] {
        with_config(&root, &[command, "--mount", "/nope"])
            .failure("no layer of this type is at the mount '/nope'; name /");
    }
    let around = "[default]\ntype = 'memory'\n[[layers]]\ntype = 'overlay'\n";
    fs::write(root.path().join("vfs.toml"), around).expect("a file");
    with_config(&root, &["commit", "--mount", "/nope"]).failure("leave out --mount for the layer of the namespace");
    fs::write(root.path().join("vfs.toml"), "[default]\ntype = 'memory'\n").expect("a file");
    with_config(&root, &["commit", "--mount", "/nope"]).failure("there is no layer of the type 'overlay' here");
}
