//! What goes wrong in a first hour with the commands of the README: one line says what to do.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::{Run, command, finish, tree, vfs, vfs_with_input};

fn notes() -> TempDir {
    tree(&[("notes/a.txt", "a colour\n"), ("main.rs", "async fn main() {}\n")])
}

/// Runs the command in a directory, without `--root`.
fn without_root(directory: &TempDir, args: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vfs"));
    command.current_dir(directory.path()).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(&mut command, b"")
}

#[test]
fn a_typo_names_the_right_spelling() {
    let root = notes();
    for (args, line) in [
        (&["grpe", "async fn"][..], "did you mean 'grep'?"),
        (&["wirte", "/notes/b.txt"], "did you mean 'write'?"),
        (&["ls", "--recursve", "/notes"], "did you mean '--recursive'?"),
        (&["read", "-n", "--ofset", "0", "/notes/a.txt"], "did you mean '--offset'?"),
        (&["read", "-n", "--limit", "2O", "/notes/a.txt"], "'2O'"),
        (&["edit", "--old", "colour", "--new", "color", "--dryrun", "/notes/a.txt"], "did you mean '--dry-run'?"),
        (&["grep", "-E", "-t", "tx", "colou?r"], "did you mean txt?"),
        (&["grep", "-E", "(colou?r"], "Invalid regex pattern"),
        (&["exec", "--sandbx", "--", "true"], "did you mean '--sandbox'?"),
        (&["--confg", "vfs.toml", "ls"], "did you mean '--config'?"),
    ] {
        vfs(&root, args).failure(line);
    }
}

#[test]
fn a_missing_file_or_configuration_is_named_with_the_next_step() {
    let root = notes();
    let not_found = "no such file";
    for (args, line, hint) in [
        (&["ls", "-lR", "/note"][..], "/note", "'/notes'"),
        (&["read", "-n", "/notes/b.txt"], not_found, "'/notes/a.txt'"),
        (&["edit", "--old", "a", "--new", "b", "/notes/b.txt"], not_found, "'/notes/a.txt'"),
        (&["grep", "colour", "/note"], "/note", "'/notes'"),
    ] {
        let run = vfs(&root, args);
        assert_eq!((run.code, run.out()), (Some(2), ""), "{run:?}");
        assert!(run.err.contains(line) && run.err.contains(hint.trim_matches('\'')), "{args:?}: {run:?}");
    }
    let bare = |args: &[&str]| without_root(&root, args);
    bare(&["--config", "vfs.toml", "commit"]).failure("vfs.toml");
    bare(&["--root", "missing", "ls"]).failure("create it");
    bare(&["--store", "sqlite:missing.db", "ls"]).failure("there is no store at 'sqlite:missing.db'");
}

#[test]
fn a_request_of_a_batch_with_a_typo_is_answered_with_the_right_spelling() {
    let root = notes();
    for (request, word) in [
        (r#"{"id":1,"op":"raed","path":"/notes/a.txt"}"#, "read"),
        (r#"{"id":1,"op":"read","paht":"/notes/a.txt"}"#, "path"),
        (r#"{"id":1,"op":"read","path":"/notes/b.txt"}"#, "not_found"),
        (r#"{"id":1,"op":"read","path":"/notes/a.txt","limit":"3"}"#, "limit"),
    ] {
        let run = vfs_with_input(&root, &["batch"], request.as_bytes());
        assert!(run.out().lines().count() == 1 && run.out().contains("error") && run.out().contains(word), "{run:?}");
    }
}

/// Runs the command without the capabilities by which root passes over the modes of files.
fn without_capabilities(root: &TempDir, args: &[&str], input: &[u8]) -> Run {
    let mut command = if rustix::process::geteuid().is_root() {
        let mut setpriv = Command::new("setpriv");
        setpriv.args(["--bounding-set", "-dac_override,-dac_read_search", env!("CARGO_BIN_EXE_vfs")]);
        setpriv
    } else {
        Command::new(env!("CARGO_BIN_EXE_vfs"))
    };
    command.arg("--root").arg(root.path()).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(&mut command, input)
}

#[test]
fn missing_rights_are_an_error_of_the_path() {
    let root = notes();
    fs::set_permissions(root.path().join("notes/a.txt"), Permissions::from_mode(0o000)).expect("it is ours");
    fs::set_permissions(root.path().join("notes"), Permissions::from_mode(0o555)).expect("it is ours");
    for (args, path) in [
        (&["read", "-n", "/notes/a.txt"][..], "/notes/a.txt"),
        (&["write", "/notes/b.txt"], "/notes"),
        (&["edit", "--old", "colour", "--new", "color", "/notes/a.txt"], "/notes/a.txt"),
    ] {
        let run = without_capabilities(&root, args, b"text");
        run.failure("permission denied; choose another path, or have its owner or mode changed");
        assert!(run.err.contains(path), "{run:?}");
    }
    // A search goes on, and says what it did not read.
    let run = without_capabilities(&root, &["grep", "async fn"], b"");
    assert_eq!((run.code, run.err.lines().count()), (Some(0), 1), "{run:?}");
    assert!(run.out().contains("/main.rs:1:") && run.err.contains("/notes/a.txt"), "{run:?}");
}

#[test]
fn a_store_that_cannot_be_reached_is_named_without_its_password() {
    let root = notes();
    // Nothing listens on port 1.
    for url in ["postgres://me:hunter2@127.0.0.1:1/files?retry_for=0s", "redis://:hunter2@127.0.0.1:1/0"] {
        let run = without_root(&root, &["--store", url, "ls"]);
        run.failure("127.0.0.1");
        assert!(!run.err.contains("hunter2"), "{run:?}");
    }
}

#[test]
fn a_closed_pipe_ends_each_command_quietly() {
    let root = notes();
    for args in
        [&["ls", "-lR"][..], &["read", "-n", "/notes/a.txt"], &["grep", "async fn"], &["--help"], &["help", "topics"]]
    {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let run = finish(command(root.path()).args(args).stdout(Stdio::from(writer)), b"");
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{args:?}");
    }
    let full = File::options().write(true).open("/dev/full").expect("Linux has it");
    let run = finish(command(root.path()).args(["ls"]).stdout(full), b"");
    assert!(run.err.starts_with("vfs: standard output cannot be written"), "{run:?}");
}
