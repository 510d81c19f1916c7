//! Durable stores: `--store`, and `vfs store`.

use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::{Run, finish};

/// A run in the directory `root`, with nothing that says where the files are.
fn bare(root: &TempDir, args: &[&str], input: &[u8]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vfs"));
    command.current_dir(root).env_remove("VFS_STORE").args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(&mut command, input)
}

#[test]
fn a_second_process_finds_what_the_first_one_wrote_in_its_namespace_alone() {
    let root = tempfile::tempdir().expect("a directory");
    let ann = ["--store", "sqlite:a.db", "--namespace", "acme/{actor}", "--actor", "ann"];
    let as_ann = |args: &[&str], input: &[u8]| bare(&root, &[&ann[..], args].concat(), input);
    as_ann(&["write", "/notes/a.md"], b"a needle\n").success();
    assert_eq!(as_ann(&["read", "notes/a.md"], b"").success(), "a needle\n");
    assert_eq!(as_ann(&["grep", "needle"], b"").success(), "/notes/a.md:1:a needle\n");
    as_ann(&["edit", "--old", "needle", "--new", "pin", "/notes/a.md"], b"").success();
    assert_eq!(as_ann(&["ls", "-R", "/"], b"").success(), "/notes/\n/notes/a.md\n");
    assert_eq!(bare(&root, &["--store", "sqlite:a.db", "ls", "/"], b"").success(), "");
    let mut below = Command::new(env!("CARGO_BIN_EXE_vfs"));
    std::fs::create_dir(root.path().join("below")).expect("a directory");
    below.current_dir(root.path().join("below")).args(["store", "check", "sqlite:../a.db"]);
    below.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(&mut below, b"").success();
    let parent = ["--store", "sqlite:a.db", "--namespace", "acme", "ls", "/"];
    assert_eq!(bare(&root, &parent, b"").success(), "");
    bare(&root, &["--store", "sqlite:a.db", "--namespace", "a//b", "ls"], b"").failure("empty component");
    bare(&root, &["--namespace", "a", "ls"], b"").failure("--store");
    bare(&root, &["--root", ".", "--store", "sqlite:a.db", "ls"], b"").failure("--root");
    bare(&root, &["--store", "-", "ls"], b"").failure("VFS_STORE");
}

#[test]
fn a_store_is_verified_counted_copied_and_backed_up() {
    let root = tempfile::tempdir().expect("a directory");
    for (namespace, path) in [("", "/a"), ("acme", "/a"), ("acme/ann", "/d/b")] {
        let args = ["--store", "sqlite:a.db", "--namespace", namespace, "write", path];
        bare(&root, &args, b"text").success();
    }
    assert_eq!(bare(&root, &["store", "check", "sqlite:a.db"], b"").success(), "3 files, 12 bytes, no problem\n");
    let stats = bare(&root, &["store", "stats", "--json", "sqlite:a.db"], b"");
    let stats: serde_json::Value = serde_json::from_str(stats.success()).expect("JSON");
    assert_eq!((&stats["files"], &stats["namespaces"], &stats["bytes"]), (&3.into(), &3.into(), &12.into()));

    let copy = |args: &[&str]| bare(&root, &[&["store", "copy"], args].concat(), b"");
    let run = copy(&["--only", "acme", "sqlite:a.db", "sqlite:b.db"]);
    assert_eq!(run.success(), "1 files copied, 4 bytes; 0 already present, 0 not copied\n");
    copy(&["--only", "amce", "sqlite:a.db", "sqlite:b.db"]).failure("the namespace 'amce' has no values");
    let run = copy(&["sqlite:a.db", "sqlite:b.db"]);
    assert_eq!(run.success(), "2 files copied, 8 bytes; 1 already present, 0 not copied\n");
    bare(&root, &["--store", "sqlite:b.db", "write", "--mode", "overwrite", "/a"], b"other").success();
    let run = copy(&["sqlite:a.db", "sqlite:b.db"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("/a") && run.err.contains("different content"), "{run:?}");
    copy(&["--replace", "sqlite:a.db", "sqlite:b.db"]).success();
    assert_eq!(bare(&root, &["--store", "sqlite:b.db", "read", "/a"], b"").success(), "text");

    bare(&root, &["store", "backup", "sqlite:a.db", "c.db"], b"").success();
    assert_eq!(bare(&root, &["store", "check", "sqlite:c.db"], b"").success(), "3 files, 12 bytes, no problem\n");
    bare(&root, &["store", "backup", "sqlite:a.db", "c.db"], b"").failure("exist");
}

#[test]
fn common_mistakes_are_reported_on_one_line_and_create_no_file() {
    let root = tempfile::tempdir().expect("a directory");
    let run = |args: &[&str]| bare(&root, args, b"");
    run(&["store", "check", "sqlite:missing.db"]).failure("there is no store at");
    run(&["--store", "sqlite:missing.db", "ls", "/"])
        .failure("there is no store at 'sqlite:missing.db'; name another file, or create one with 'vfs write'");
    run(&["--store", "sqlite:../missing.db", "ls", "/"]).failure("there is no store at");
    run(&["store", "copy", "sqlite:missing.db", "sqlite:new.db"]).failure("there is no store at");
    run(&["store", "check", "somewhere"]).failure("sqlite:///path/to/file.db");
    run(&["--store", "mysql://u:hidden@h/db", "ls"]).failure("there is no store for 'mysql:'");
    run(&["--store", "sqlite:no/such/directory/a.db", "ls"]).failure("director");
    run(&["store", "backup", "redis://h/0", "a"]).failure("only a SQLite store");
    let left: Vec<_> = std::fs::read_dir(root.path()).expect("a listing").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_store_option_names_the_store_of_store_commands_too() {
    let root = tempfile::tempdir().expect("a directory");
    bare(&root, &["--store", "sqlite:a.db", "write", "/a"], b"text").success();
    let checked = "1 files, 4 bytes, no problem\n";
    assert_eq!(bare(&root, &["store", "check", "--store", "sqlite:a.db"], b"").success(), checked);
    assert_eq!(bare(&root, &["--store", "sqlite:a.db", "store", "check"], b"").success(), checked);
    assert!(
        bare(&root, &["store", "stats", "--store", "sqlite:a.db"], b"").success().contains("1 files in 1 namespaces")
    );
    bare(&root, &["store", "copy", "--store", "sqlite:a.db", "sqlite:b.db"], b"").success();
    bare(&root, &["store", "backup", "--store", "sqlite:a.db", "c.db"], b"").success();
    for copy in ["sqlite:b.db", "sqlite:c.db"] {
        assert_eq!(bare(&root, &["store", "check", copy], b"").success(), checked);
    }
    let twice = ["store", "check", "--store", "sqlite:a.db", "sqlite:b.db"];
    bare(&root, &twice, b"").failure("the store is given twice");
    bare(&root, &["store", "check"], b"").failure("give its URL, or --store");
    bare(&root, &["store", "copy", "sqlite:a.db"], b"").failure("give its URL, or --store");
}
