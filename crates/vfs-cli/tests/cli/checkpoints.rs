//! States to go back to, and changes to take back.

use std::fs;

use crate::{configured, finish, json_lines, tree, with_config};

const KEPT: &str = "[default]\ntype = 'memory'\n\
    [[mounts]]\npath = '/p'\ntype = 'local'\nroot = '.'\n\
    layers = [{ type = 'checkpoints', store = '.vfs/checkpoints' }]\n";

#[test]
fn changes_are_taken_back_by_another_process() {
    let root = tree(&[("vfs.toml", KEPT), ("a.txt", "one\n")]);
    let run = |args: &[&str]| with_config(&root, args);
    let empty = run(&["undo"]);
    assert_eq!((empty.code, empty.out()), (Some(1), ""));
    finish(configured(&root).args(["--actor", "planner", "write", "/p/new.txt"]), b"new\n").success();
    run(&["edit", "--old", "one", "--new", "two", "/p/a.txt"]).success();
    run(&["mv", "/p/a.txt", "/p/b.txt"]).success();

    let history = run(&["history"]);
    let log: Vec<_> = history.success().lines().map(|line| line.splitn(4, "  ").last().unwrap_or_default()).collect();
    assert!(log[0].ends_with("rename /p/a.txt to /p/b.txt") && log[1].ends_with("edit /p/a.txt"), "{log:?}");
    assert!(log[2].contains("planner") && log[2].ends_with("write /p/new.txt"), "{log:?}");
    assert_eq!(json_lines(run(&["history", "--json", "-n", "1"]).success())[0]["operation"], "rename");

    assert_eq!(run(&["undo"]).success(), "undid rename /p/a.txt to /p/b.txt\n");
    assert_eq!(run(&["undo", "2"]).success(), "undid edit /p/a.txt\nundid write /p/new.txt\n");
    assert_eq!(fs::read_to_string(root.path().join("a.txt")).expect("a file"), "one\n");
    assert!(!root.path().join("new.txt").exists());
    run(&["undo", "0"]).failure("expected a whole number from 1");
}

#[test]
fn an_edit_in_place_by_a_command_is_one_change() {
    let text = "[default]\ntype = 'local'\nroot = 'files'\n\
        layers = [{ type = 'overlay', store = '.vfs/ov' }, { type = 'checkpoints', store = '.vfs/cp' }]\n";
    let root = tree(&[("vfs.toml", text), ("files/a.txt", "one\n")]);
    let run = |args: &[&str]| with_config(&root, args);
    run(&["exec", "--virtual", "--", "sed -i s/one/two/ /a.txt"]).success();
    let history = json_lines(run(&["history", "--json"]).success());
    assert_eq!(history.len(), 1, "{history:?}");
    assert_eq!(history[0]["paths"], serde_json::json!(["/a.txt"]));
    run(&["undo"]).success();
    assert_eq!(run(&["read", "/a.txt"]).success(), "one\n");
}

#[test]
fn an_undo_over_the_changes_of_others_is_refused() {
    let root = tree(&[("vfs.toml", KEPT), ("a.txt", "one\n")]);
    with_config(&root, &["edit", "--old", "one", "--new", "two", "/p/a.txt"]).success();
    fs::write(root.path().join("a.txt"), "theirs\n").expect("a file");
    with_config(&root, &["undo"]).failure("conflict: /p/a.txt");
    assert_eq!(fs::read_to_string(root.path().join("a.txt")).expect("a file"), "theirs\n");
}

#[test]
fn checkpoints_are_taken_listed_and_restored() {
    let root = tree(&[("vfs.toml", KEPT), ("a.txt", "one\n"), ("d/b.txt", "b\n")]);
    let run = |args: &[&str]| with_config(&root, args);
    let taken = json_lines(run(&["checkpoint", "--json", "before the agent"]).success()).remove(0);
    assert_eq!((&taken["files"], &taken["bytes"]), (&2.into(), &6.into()));
    let id = taken["id"].as_str().expect("an id").to_owned();
    run(&["rm", "-r", "/p/d"]).success();
    finish(configured(&root).args(["write", "/p/new.txt"]), b"new\n").success();
    assert!(run(&["checkpoint", "--mount", "p"]).success().contains("(2 files, 8 bytes)"));
    let listed = run(&["checkpoints"]);
    assert_eq!(listed.success().lines().count(), 2);
    assert!(listed.out().starts_with(&id) && listed.out().contains("  before the agent\n"), "{listed:?}");

    assert_eq!(run(&["restore", &id]).success(), format!("restored {id}\n"));
    assert_eq!(fs::read_to_string(root.path().join("d/b.txt")).expect("a file"), "b\n");
    assert!(!root.path().join("new.txt").exists() && root.path().join("vfs.toml").exists());
    run(&["restore", "nothing"]).failure_with_hints(
        "there is no snapshot with the id 'nothing'",
        &["vfs: 'vfs checkpoints' lists the id of each checkpoint"],
    );
    run(&["checkpoint", "--mount", "/"]).failure("no layer of this type is at the mount '/'; name /p");
}

#[test]
fn with_several_mounts_one_has_to_be_selected() {
    let more = "[[mounts]]\npath = '/q'\ntype = 'memory'\nlayers = [{ type = 'checkpoints', store = '.vfs/q' }]\n";
    let root = tree(&[("vfs.toml", &format!("{KEPT}{more}")), ("a.txt", "one\n")]);
    with_config(&root, &["checkpoint"]).failure("select one with --mount");
    assert!(with_config(&root, &["checkpoint", "--mount", "/p"]).success().contains("(1 file, 4 bytes)"));
    assert!(with_config(&root, &["checkpoint", "--mount", "/q"]).success().contains("(0 files, 0 bytes)"));
}

#[test]
fn changes_can_be_undone_after_their_commit() {
    for layers in [
        "{ type = 'overlay', store = '.vfs/ov' }, { type = 'checkpoints', store = '.vfs/cp' }",
        "{ type = 'checkpoints', store = '.vfs/cp' }, { type = 'overlay', store = '.vfs/ov' }",
    ] {
        let text = format!("[default]\ntype = 'local'\nroot = 'files'\nlayers = [{layers}]\n");
        let root = tree(&[("vfs.toml", &text), ("files/a.txt", "one\n"), ("files/gone.txt", "gone\n")]);
        let on_disk = |name: &str| fs::read_to_string(root.path().join("files").join(name)).ok();
        let run = |args: &[&str]| with_config(&root, args);
        run(&["edit", "--old", "one", "--new", "two", "/a.txt"]).success();
        run(&["edit", "--old", "two", "--new", "three", "/a.txt"]).success();
        finish(configured(&root).args(["write", "/new.txt"]), b"new\n").success();
        run(&["rm", "/gone.txt"]).success();
        run(&["commit"]).success();
        assert_eq!((on_disk("a.txt").as_deref(), on_disk("gone.txt")), (Some("three\n"), None));
        let operations = json_lines(run(&["history", "--json"]).success()).len().to_string();
        run(&["undo", &operations]).success();
        run(&["commit"]).success();
        assert_eq!((on_disk("a.txt").as_deref(), on_disk("gone.txt").as_deref()), (Some("one\n"), Some("gone\n")));
        assert_eq!(on_disk("new.txt"), None);
    }
}

#[test]
fn a_change_by_others_after_a_commit_is_not_undone() {
    let text = "[default]\ntype = 'local'\nroot = 'files'\n\
        layers = [{ type = 'overlay', store = '.vfs/ov' }, { type = 'checkpoints', store = '.vfs/cp' }]\n";
    let root = tree(&[("vfs.toml", text), ("files/a.txt", "one\n")]);
    with_config(&root, &["edit", "--old", "one", "--new", "two", "/a.txt"]).success();
    with_config(&root, &["commit"]).success();
    fs::write(root.path().join("files/a.txt"), "theirs\n").expect("a file");
    with_config(&root, &["undo"]).failure("conflict: /a.txt");
    assert_eq!(fs::read_to_string(root.path().join("files/a.txt")).expect("a file"), "theirs\n");
}
