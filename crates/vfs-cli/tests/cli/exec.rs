//! Commands in the foreground, with a process and without one.

use std::fs;

use crate::{command, finish, json_lines, tree, vfs, vfs_with_input};

#[test]
fn output_and_exit_code_are_those_of_the_command() {
    let root = tree(&[("docs/a.txt", "alpha\n")]);
    let run = vfs(&root, &["exec", "--cwd", "/docs", "--", "cat a.txt; echo oops >&2; exit 42"]);
    assert_eq!((run.code, run.out(), run.err.as_str()), (Some(42), "alpha\n", "oops\n"));
    assert_eq!(vfs(&root, &["exec", "--", "kill -9 $$"]).code, Some(137));
}

#[test]
fn words_are_joined_for_the_shell() {
    let root = tree(&[("a b.txt", "x\n")]);
    assert_eq!(vfs(&root, &["exec", "ls", "-a"]).success(), ".\n..\na b.txt\n");
    assert_eq!(vfs(&root, &["exec", "--", "cat 'a b.txt'"]).success(), "x\n");
}

#[test]
fn a_timeout_keeps_the_output() {
    let root = tree(&[]);
    // Longer and longer, until the command is started before its time is over.
    let mut runs =
        ["0.3", "3", "30"].map(|time| ["exec", "--timeout", time, "--", "echo begun; sleep 1000"]).into_iter();
    let run = runs.find_map(|args| Some(vfs(&root, &args)).filter(|run| !run.out.is_empty())).expect("it prints");
    assert_eq!((run.code, run.out()), (Some(124), "begun\n"));
    assert!(run.err.starts_with("vfs: the command was stopped after "), "{run:?}");
    assert!(run.err.ends_with(" s; set another limit with --timeout\n"), "{run:?}");
    vfs(&root, &["exec", "--timeout", "0", "--", "true"]).failure("above 0");
}

#[test]
fn the_environment_contains_only_given_variables() {
    let root = tree(&[]);
    let mut clean = command(root.path());
    clean.env("VFS_SEEN", "yes").env("VFS_API_KEY", "secret").args(["exec", "--env", "GIVEN=1", "--", "env"]);
    let run = finish(&mut clean, b"");
    assert!(run.success().contains("GIVEN=1\n") && !run.out().contains("VFS_"), "{run:?}");

    let mut inherited = command(root.path());
    inherited.env("VFS_SEEN", "yes").env("VFS_API_KEY", "secret").args(["exec", "--inherit-env", "--", "env"]);
    let run = finish(&mut inherited, b"");
    assert!(run.success().contains("VFS_SEEN=yes\n") && !run.out().contains("secret"), "{run:?}");
}

#[test]
fn standard_input_is_passed_only_with_the_option() {
    let root = tree(&[]);
    assert_eq!(vfs_with_input(&root, &["exec", "--stdin", "--", "tr a-z A-Z"], b"abc").success(), "ABC");
    assert_eq!(vfs_with_input(&root, &["exec", "--", "cat"], b"abc").success(), "");
}

#[test]
fn json_has_the_output_once() {
    let root = tree(&[]);
    let run = |args: &[&str]| {
        let run =
            vfs(&root, &[&["exec", "--json"], args, &["--", "echo out; sleep 0.1; echo err >&2; exit 7"]].concat());
        assert_eq!(run.code, Some(7), "{run:?}");
        json_lines(run.out()).remove(0)
    };
    let together = run(&[]);
    assert_eq!((&together["output"], &together["exit_code"]), (&"out\nerr\n".into(), &7.into()));
    assert!(together.get("stdout").is_none() && together.get("stderr").is_none(), "{together}");
    let apart = run(&["--separate"]);
    assert_eq!((&apart["stdout"], &apart["stderr"]), (&"out\n".into(), &"err\n".into()));
    assert!(apart.get("output").is_none(), "{apart}");
    vfs(&root, &["exec", "--separate", "--", "true"]).failure("--json");
}

#[test]
fn output_is_bounded_by_max_output() {
    let root = tree(&[]);
    let run = vfs(&root, &["exec", "--json", "--max-output", "100", "--", "seq 1 1000"]);
    let [ended] = json_lines(run.success()).try_into().expect("one line");
    assert_eq!((&ended["truncated"], &ended["output_bytes"]), (&true.into(), &3893.into()));
    assert!(ended["output"].as_str().is_some_and(|text| text.len() < 300 && text.starts_with("1\n")), "{ended}");
    vfs(&root, &["exec", "--json", "--max-output", "0", "--", "true"]).failure("--max-output");
    vfs(&root, &["exec", "--max-output", "100", "--", "true"]).failure("--json");
}

#[test]
fn a_virtual_shell_sees_these_files_and_no_others() {
    let root = tree(&[("notes/a.txt", "one\ntwo\n")]);
    let run =
        vfs(&root, &["exec", "--virtual", "--", "wc -l < /notes/a.txt; echo three >> /notes/a.txt; cat /etc/passwd"]);
    assert_eq!(run.out().trim(), "2");
    assert!(run.err.contains("/etc/passwd") && run.code == Some(1), "{run:?}");
    assert_eq!(fs::read_to_string(root.path().join("notes/a.txt")).expect("it is there"), "one\ntwo\nthree\n");
}

#[test]
fn a_sandbox_starts_in_the_root_and_reports_protected_names_that_a_command_left() {
    let root = tree(&[("src/a.txt", "one\n"), ("src/.env", "secret\n")]);
    let check = vfs(&root, &["sandbox", "check", "--unix-sockets", "--max-scanned-entries", "100"]);
    assert!(check.out().lines().any(|line| line.starts_with("unix_sockets")), "{check:?}");
    if check.code != Some(0) {
        // This machine cannot hold commands, and says so.
        return;
    }
    let run = vfs(&root, &["exec", "--sandbox", "--", "cat src/a.txt src/.env; mkdir -p src/x/.git"]);
    assert_eq!((run.code, run.out()), (Some(0), "one\n"), "{run:?}");
    assert!(run.err.contains("/src/x/.git"), "{run:?}");
    let run = vfs(&root, &["exec", "--sandbox", "--cwd", "/src", "--", "cat a.txt"]);
    assert_eq!((run.code, run.out()), (Some(0), "one\n"), "{run:?}");
    let run = vfs(&root, &["exec", "--sandbox", "--max-scanned-entries", "1", "--", "echo ran"]);
    assert!(run.code == Some(2) && run.err.contains("max_scanned_entries"), "{run:?}");
    let run = vfs(&root, &["exec", "--sandbox", "--self-test", "--", "echo ran"]);
    assert_eq!((run.code, run.out()), (Some(0), "ran\n"), "{run:?}");
    for option in ["--unix-sockets", "--self-test"] {
        let run = vfs(&root, &["exec", option, "--", "true"]);
        assert!(run.code == Some(2) && run.err.contains("need --sandbox"), "{run:?}");
    }
}

#[test]
fn an_error_without_a_shell_names_the_virtual_shell() {
    let root = tree(&[]);
    let store = format!("sqlite:{}", root.path().join("s.db").display());
    let mut with_store = std::process::Command::new(env!("CARGO_BIN_EXE_vfs"));
    with_store.args(["--store", &store, "write", "/a.txt"]);
    with_store.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    finish(&mut with_store, b"x\n").success();
    let mut with_store = std::process::Command::new(env!("CARGO_BIN_EXE_vfs"));
    with_store.args(["--store", &store, "exec", "--", "cat a.txt"]);
    with_store.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    finish(&mut with_store, b"").failure("--virtual");
    let mut with_store = std::process::Command::new(env!("CARGO_BIN_EXE_vfs"));
    with_store.args(["--store", &store, "exec", "--virtual", "--", "cat a.txt"]);
    with_store.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    assert_eq!(finish(&mut with_store, b"").success(), "x\n");
}
