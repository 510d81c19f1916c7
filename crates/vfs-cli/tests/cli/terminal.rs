//! How the command behaves towards the shell that runs it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use crate::{command, finish, tree, vfs, vfs_with_input};

#[test]
fn a_closed_pipe_ends_a_command_without_an_error() {
    let root = tree(&[]);
    fs::write(root.path().join("long"), "needle\n".repeat(2_000_000)).expect("a file");
    for args in [&["grep", "needle"][..], &["read", "long"], &["grep", "--json", "needle"]] {
        let mut child = command(root.path()).args(args).spawn().expect("the binary runs");
        let mut first = String::new();
        let mut reader = BufReader::with_capacity(64, child.stdout.take().expect("it is piped"));
        reader.read_line(&mut first).expect("a line");
        drop(reader);
        assert!(first.contains("needle"));
        let output = child.wait_with_output().expect("it ends");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), errors.as_ref()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_batch_whose_answers_nobody_reads_ends_quietly_while_its_input_is_open() {
    let root = tree(&[("a", "1")]);
    let mut child = command(root.path()).arg("batch").stdin(Stdio::piped()).spawn().expect("the binary runs");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("it is piped");
    std::io::Write::write_all(&mut stdin, b"{\"op\":\"ls\"}\n").expect("it listens");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    drop(stdin);
}

#[test]
fn lost_output_is_an_error() {
    let root = tree(&[("a", "text\n")]);
    for args in [&["read", "a"][..], &["ls"], &["grep", "text"], &["completions", "bash"], &["--help"]] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let run = finish(command(root.path()).args(args).stdout(full), b"");
        assert_eq!(run.code, Some(2), "{args:?}");
        assert!(run.err.starts_with("vfs: standard output cannot be written"), "{args:?} {run:?}");
    }
}

#[test]
fn arguments_that_are_not_utf8_are_refused() {
    let root = tree(&[("a", "1")]);
    for before in [&["read"][..], &["grep"], &["grep", "-e"], &["glob"], &["edit", "--old"], &[]] {
        let run = finish(command(root.path()).args(before).arg(OsStr::from_bytes(b"x\xff")), b"");
        assert_eq!(run.code, Some(2), "{before:?} {run:?}");
        assert!(run.err.starts_with("vfs: ") && run.err.lines().count() == 1, "{before:?} {run:?}");
    }
}

#[test]
fn help_version_and_completions_are_printed() {
    let root = tree(&[]);
    assert!(vfs(&root, &["--help"]).success().contains("Examples:"));
    assert!(vfs(&root, &["grep", "--help"]).success().contains("Exit status"));
    assert!(vfs(&root, &["--version"]).success().starts_with("vfs "));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(vfs(&root, &["completions", shell]).success().contains("grep"), "{shell}");
    }
    vfs(&root, &[]).failure("a command is missing, such as ls, stat, read, write, edit, rm; see 'vfs --help'");
    let bare = Command::new(env!("CARGO_BIN_EXE_vfs")).output().expect("the binary runs");
    assert_eq!((bare.status.code(), bare.stderr.iter().filter(|byte| **byte == b'\n').count()), (Some(2), 1));
}

#[test]
fn content_and_names_pass_through_as_they_are_and_pipes_get_no_colours() {
    let content = "\u{1b}[31mred\u{1b}[0m needle\n";
    let root = tree(&[("it's a --name *\u{202e}", content)]);
    assert_eq!(vfs(&root, &["read", "it's a --name *\u{202e}"]).success(), content);
    let expected = format!("/it's a --name *\u{202e}:1:{content}");
    assert_eq!(vfs(&root, &["grep", "needle"]).success(), expected);
    vfs_with_input(&root, &["write", "--", "-rf"], b"x").success();
    assert_eq!(vfs(&root, &["rm", "--", "-rf"]).success(), "deleted /-rf (1 file)\n");
}
