//! Finding files and text.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use crate::{tree, vfs};

fn sources() -> TempDir {
    tree(&[
        ("src/main.rs", "fn main() {\n    run();\n}\n\nfn run() {\n    todo();\n}\n"),
        ("src/lib.rs", "pub fn Run() {}\n"),
        ("Makefile", "run: -Wall\n"),
        (".hidden/x.rs", "run\n"),
        ("target/out.rs", "run\n"),
        (".gitignore", "/target\n"),
    ])
}

#[test]
fn glob_prints_paths_and_its_exit_code_says_whether_any_match() {
    let root = sources();
    for (args, expected) in [
        (&["glob", "*.rs"][..], "/src/lib.rs\n/src/main.rs\n"),
        (&["glob", "--hidden", "*.rs"], "/.hidden/x.rs\n/src/lib.rs\n/src/main.rs\n"),
        (&["glob", "--hidden=spelled", "*.rs"], "/.hidden/x.rs\n/src/lib.rs\n/src/main.rs\n"),
        (&["glob", "--hidden=spelled", "**/*.rs"], "/src/lib.rs\n/src/main.rs\n"),
        (&["glob", "--hidden=skip", "*.rs"], "/src/lib.rs\n/src/main.rs\n"),
        (&["glob", "--no-ignore", "*.rs"], "/src/lib.rs\n/src/main.rs\n/target/out.rs\n"),
        (&["glob", "/main.rs", "src"], "/src/main.rs\n"),
    ] {
        assert_eq!(vfs(&root, args).success(), expected, "{args:?}");
    }
    let none = vfs(&root, &["glob", "*.py"]);
    assert_eq!((none.code, none.out(), none.err.as_str()), (Some(1), "", ""));
    vfs(&root, &["glob", "--hidden=some", "*"]).failure("--hidden=spelled");
    vfs(&root, &["glob", "[a"]).failure("invalid_pattern");
    vfs(&root, &["glob", "*", "/absent"]).failure("not_found: /absent");
}

#[test]
fn a_glob_expanded_by_the_shell_gets_advice_to_quote() {
    let root = tree(&[("a.rs", ""), ("b.rs", ""), ("c.rs", "")]);
    let quote = "quote the pattern, so that the shell does not expand it: vfs glob '*.rs'";
    vfs(&root, &["glob", "a.rs", "b.rs", "c.rs"]).failure(quote);
    vfs(&root, &["glob", "a.rs", "b.rs"]).failure_with_hints("not_a_directory: /b.rs", &[&format!("vfs: {quote}")]);
    vfs(&root, &["glob", "*.rs", "b.rs"]).failure("not_a_directory: /b.rs");
    assert_eq!(vfs(&root, &["glob", "a.rs", "/"]).success(), "/a.rs\n");
}

#[test]
fn grep_prints_what_ripgrep_prints() {
    let root = sources();
    for (args, expected) in [
        (&["grep", "run()"][..], "/src/main.rs:2:    run();\n/src/main.rs:5:fn run() {\n"),
        (&["grep", "-E", r"^fn \w+\("], "/src/main.rs:1:fn main() {\n/src/main.rs:5:fn run() {\n"),
        (&["grep", "-i", "RUN(", "/src/lib.rs"], "/src/lib.rs:1:pub fn Run() {}\n"),
        (&["grep", "-S", "Run"], "/src/lib.rs:1:pub fn Run() {}\n"),
        (&["grep", "-iS", "Run", "-t", "make"], ""),
        (&["grep", "-Si", "Run", "-t", "make"], "/Makefile:1:run: -Wall\n"),
        (&["grep", "-w", "ru"], ""),
        (&["grep", "-v", "-E", "[a-z}]", "/src/main.rs"], "/src/main.rs:4:\n"),
        (&["grep", "-g", "!*.rs", "run"], "/Makefile:1:run: -Wall\n"),
        (
            &["grep", "-g", "lib.rs", "-g", "Makefile", "-i", "run"],
            "/Makefile:1:run: -Wall\n/src/lib.rs:1:pub fn Run() {}\n",
        ),
        (&["grep", "-l", "run"], "/Makefile\n/src/main.rs\n"),
        (&["grep", "-c", "run"], "/Makefile:1\n/src/main.rs:2\n"),
        (&["grep", "-m", "1", "run", "src"], "/src/main.rs:2:    run();\n"),
        (&["grep", "--hidden", "--no-ignore", "-l", "run"], "/.hidden/x.rs\n/Makefile\n/src/main.rs\n/target/out.rs\n"),
        (&["grep", "-U", "-E", r"\(\) \{\n    run", "/src"], "/src/main.rs:1:fn main() {\n/src/main.rs:2:    run();\n"),
        (&["grep", "--", "-Wall"], "/Makefile:1:run: -Wall\n"),
        (&["grep", "-e", "-Wall", "/Makefile"], "/Makefile:1:run: -Wall\n"),
        (&["grep", "-e", "main(", "-e", "todo"], "/src/main.rs:1:fn main() {\n/src/main.rs:6:    todo();\n"),
        (&["grep", "-e", "ru", "-e", "main", "-w"], "/src/main.rs:1:fn main() {\n"),
        (
            &["grep", "-i", "-e", "ToDo", "-e", "pub FN", "src"],
            "/src/lib.rs:1:pub fn Run() {}\n/src/main.rs:6:    todo();\n",
        ),
        (&["grep", "-E", "-e", "^run", "-e", r"i.*\{$"], "/Makefile:1:run: -Wall\n/src/main.rs:1:fn main() {\n"),
        (&["grep", "-v", "-E", "-e", "[a-z]", "-e", "}", "/src/main.rs"], "/src/main.rs:4:\n"),
        (
            &["grep", "-e", "() {\n    run", "-e", "todo", "/src"],
            "/src/main.rs:1:fn main() {\n/src/main.rs:2:    run();\n/src/main.rs:6:    todo();\n",
        ),
        (&["grep", "-C1", "main"], "/src/main.rs:1:fn main() {\n/src/main.rs-2-    run();\n"),
        (
            &["grep", "-A1", "fn ", "src/main.rs"],
            concat!(
                "/src/main.rs:1:fn main() {\n/src/main.rs-2-    run();\n--\n",
                "/src/main.rs:5:fn run() {\n/src/main.rs-6-    todo();\n"
            ),
        ),
        (
            &["grep", "-B1", "un()", "src"],
            concat!(
                "/src/lib.rs:1:pub fn Run() {}\n--\n",
                "/src/main.rs-1-fn main() {\n/src/main.rs:2:    run();\n--\n",
                "/src/main.rs-4-\n/src/main.rs:5:fn run() {\n"
            ),
        ),
    ] {
        let run = vfs(&root, args);
        assert_eq!((run.out(), run.err.as_str()), (expected, ""), "{args:?}");
        assert_eq!(run.code, Some(i32::from(expected.is_empty())), "{args:?}");
    }
}

#[test]
fn grep_refuses_invalid_requests_on_one_line() {
    let root = sources();
    for (args, reason) in [
        (&["grep", "-E", "("][..], "Invalid regex pattern:"),
        (&["grep", ""], "invalid_argument"),
        (&["grep", "x", "/absent"], "not_found: /absent"),
        (&["grep", "-t", "klingon", "x"], "klingon"),
        (&["grep", "-g", "[a", "x"], "invalid_pattern"),
        (&["grep"], "PATTERN"),
        (&["grep", "-e", "x", "y", "z"], "either with -e or before the path"),
        (&["grep", "-e", "x", "-e", ""], "invalid_argument"),
        (&["grep", "-E", "-e", "a)|(?:b", "-e", "x"], "Invalid regex pattern: unopened group, at byte 1"),
        (&["grep", "-C", "-1", "x"], "--context"),
        (&["grep", "-A", "4294967295", "-B", "4294967295", "x"], "invalid_argument"),
        (&["frobnicate"], "frobnicate"),
        (&["grep", "--nonsense", "x"], "--nonsense"),
        (&["batch", "--jobs", "0"], "--jobs"),
    ] {
        vfs(&root, args).failure(reason);
    }
}

#[test]
fn a_binary_file_that_is_named_is_reported_and_can_be_searched() {
    let root = tree(&[("data.bin", "head\0 needle\n"), ("a.txt", "x\n")]);
    let named = vfs(&root, &["grep", "needle", "/data.bin"]);
    let hint = "vfs: /data.bin is a binary file and was not searched; --text searches it as text\n";
    assert_eq!((named.code, named.out(), named.err.as_str()), (Some(1), "", hint));
    assert_eq!(vfs(&root, &["grep", "needle"]).refused(), "");
    assert_eq!(vfs(&root, &["grep", "--text", "-c", "needle"]).success(), "/data.bin:1\n");
}

#[test]
fn a_link_that_leads_outside_leaves_the_exit_status_of_a_search() {
    let root = tree(&[("a.txt", "x\n")]);
    symlink("/etc/hostname", root.path().join("out")).expect("a link");
    let none = vfs(&root, &["grep", "absent"]);
    assert_eq!((none.code, none.out()), (Some(1), ""));
    assert!(none.err.contains("/out': the path leads outside the root"), "{none:?}");
    vfs(&root, &["grep", "absent", "/out"]).failure("path_escape: /out");
    let help = vfs(&root, &["grep", "--help"]);
    let help = help.success().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        help.contains("Links that lead nowhere or outside the root, and special files, are warnings too"),
        "{help}"
    );
    assert!(help.contains("but leave the exit status at 1"), "{help}");
}

#[test]
fn json_is_one_event_a_line() {
    let root = sources();
    let run = vfs(&root, &["grep", "--json", "run", "/src"]);
    let events: Vec<serde_json::Value> =
        run.success().lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert_eq!(events.len(), 3);
    assert_eq!(events[0]["match"]["path"], "/src/main.rs");
    assert_eq!(events[0]["match"]["submatches"], serde_json::json!([{"start": 4, "end": 7}]));
    assert_eq!(events[2]["end"]["matches"], 2);
    assert_eq!(vfs(&root, &["grep", "--json", "absent"]).code, Some(1));
}

#[test]
fn unreadable_entries_are_warnings_next_to_the_results() {
    let root = sources();
    fs::write(root.path().join(std::ffi::OsStr::from_bytes(b"bad\xff")), "run").expect("a file");
    symlink("loop", root.path().join("loop")).expect("a link");
    let run = vfs(&root, &["grep", "-l", "run"]);
    assert_eq!((run.code, run.out()), (Some(0), "/Makefile\n/src/main.rs\n"));
    assert!(run.err.starts_with("vfs: ") && run.err.contains("bad\u{fffd}"), "{run:?}");
    let none = vfs(&root, &["grep", "absent"]);
    assert_eq!((none.code, none.out()), (Some(1), ""));
    assert!(none.err.contains("bad\u{fffd}"), "{none:?}");
    let listing = vfs(&root, &["ls"]);
    assert_eq!(listing.code, Some(0));
    assert!(listing.out().contains("/src/\n") && listing.err.contains("bad\u{fffd}"), "{listing:?}");
}
