//! What an error or an empty result says beyond itself: near names, lines, and other ways to ask.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{finish, json_lines, tree, vfs, vfs_with_input, with_config};

/// The answer to one request of a batch.
fn answer(root: &TempDir, request: &Value) -> Value {
    json_lines(vfs_with_input(root, &["batch"], format!("{request}\n").as_bytes()).success()).remove(0)
}

#[test]
fn a_missing_path_gets_similar_suggestions() {
    let root = tree(&[("src/main.rs", "x\n"), ("src/mail.rs", ""), ("src/lib.rs", ""), ("docs/a", "")]);
    let near = ["vfs: did you mean /src/main.rs or /src/mail.rs?"];
    vfs(&root, &["read", "/src/mian.rs"]).failure_with_hints("not_found: /src/mian.rs", &near[..]);
    vfs(&root, &["read", "-n", "/src/mian.rs"]).failure_with_hints("not_found: /src/mian.rs", &near[..]);
    vfs(&root, &["stat", "src/man.rs"]).failure_with_hints("not_found: /src/man.rs", &near[..]);
    vfs(&root, &["edit", "--old", "x", "--new", "y", "/src/Main.rs"])
        .failure_with_hints("not_found: /src/Main.rs", &["vfs: did you mean /src/main.rs or /src/mail.rs?"]);
    vfs(&root, &["ls", "/scr"]).failure_with_hints("not_found: /scr", &["vfs: did you mean /src?"]);
    vfs(&root, &["grep", "x", "/scr"]).failure_with_hints("not_found: /scr", &["vfs: did you mean /src?"]);
    vfs(&root, &["read", "/nothing/like/it"]).failure("not_found: /nothing/like/it");
    vfs(&root, &["read", "/src/quite-another"]).failure("not_found: /src/quite-another");
}

#[test]
fn errors_of_a_batch_have_similar_paths() {
    let root = tree(&[("a/main.rs", "x\n"), ("a/other.rs", "")]);
    for (op, path, near) in [
        ("read", "/a/mian.rs", json!(["/a/main.rs"])),
        ("rm", "/a/main.r", json!(["/a/main.rs"])),
        ("stat", "/a/main.r", Value::Null),
        ("ls", "/b", json!(["/a"])),
        ("read", "/a/quite-another", Value::Null),
    ] {
        let error = answer(&root, &json!({"op": op, "path": path}))["error"].take();
        assert_eq!((&error["code"], &error["near"]), (&json!("not_found"), &near), "{op} {path}: {error}");
        let typed: vfs_core::Error = serde_json::from_value(error).expect("it is still the typed error");
        assert_eq!(typed.path(), Some(path));
    }
    let edit = json!({"op": "edit", "path": "/a/mian.rs", "old": "x", "new": "y"});
    assert_eq!(answer(&root, &edit)["error"]["near"], json!(["/a/main.rs"]));
}

#[test]
fn a_path_of_this_machine_names_the_path_below_the_root() {
    let root = tree(&[("src/lib.rs", "x\n")]);
    let host = |path: &str| root.path().join(path).display().to_string();
    let (file, directory, absent) = (host("src/lib.rs"), host("src"), host("src/absent.rs"));
    let hint = ["vfs: paths start at the root of the files; write /src/lib.rs"];
    vfs(&root, &["read", &file]).failure_with_hints(&format!("not_found: {file}"), &hint);
    vfs(&root, &["edit", "--old", "x", "--new", "y", &file]).failure_with_hints("not_found", &hint);
    let hint = ["vfs: paths start at the root of the files; write /src"];
    vfs(&root, &["grep", "x", &directory]).failure_with_hints("not_found", &hint);
    vfs(&root, &["read", &absent]).failure(&format!("not_found: {absent}"));
    let mut without_root = Command::new(env!("CARGO_BIN_EXE_vfs"));
    without_root.current_dir(root.path()).args(["ls", &directory]).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(&mut without_root, b"").failure_with_hints("not_found", &hint);
}

#[test]
fn a_path_of_a_sandbox_names_the_path_below_the_root() {
    let root = tree(&[("src/lib.rs", "x\n")]);
    let hint = ["vfs: did you mean /src/lib.rs?"];
    vfs(&root, &["read", "/workspace/src/lib.rs"]).failure_with_hints("not_found: /workspace/src/lib.rs", &hint);
    let error = answer(&root, &json!({"op": "read", "path": "/workspace/src/lib.rs"}))["error"].take();
    assert_eq!(error["near"], json!(["/src/lib.rs"]), "{error}");
    vfs(&root, &["read", "/workspace/src/absent.rs"]).failure("not_found");
}

#[test]
fn a_refusal_names_the_options_of_the_command() {
    let root = tree(&[("a", "x x\n"), ("b", ""), ("d/c", "")]);
    for (args, line) in [
        (&["mv", "a", "d/"][..], "already_exists: /d: the target is a directory; write the whole new path: /d/a"),
        (&["cp", "a", "d"], "already_exists: /d: the target is a directory; write the whole new path: /d/a"),
        (&["mv", "-f", "a", "d"], "is_a_directory: /d: the target is a directory; write the whole new path: /d/a"),
        (&["mv", "a", "b"], "already_exists: /b: the file exists; replace it with --force"),
        (&["cp", "a", "b"], "already_exists: /b: the file exists; replace it with --force"),
        (&["mv", "d", "b"], "already_exists: /b: the file exists, and a directory cannot replace a file"),
        (
            &["write", "a"],
            "already_exists: /a: the file exists; replace it with --mode overwrite, or add to it with --mode append",
        ),
    ] {
        vfs(&root, args).failure(line);
    }
    vfs(&root, &["edit", "--old", "x", "--new", "y", "a"]).failure_with_hints(
        "not_unique: /a: the text to replace is in the file 2 times; replace all of them with --all, or add the text around \
         one of them to --old and --new",
        &["vfs: line 1: x x", "vfs: and 1 more"],
    );
    let overlay = "[default]\ntype = 'memory'\nlayers = [{ type = 'overlay' }]\n";
    let root = tree(&[("vfs.toml", overlay)]);
    with_config(&root, &["write", "--modified-at", "2024-05-01T12:00:00Z", "/a"])
        .failure("unsupported: /a: the time of a file cannot be set here; leave out --modified-at");
}

#[test]
fn a_denial_names_the_change_that_needs_to_read() {
    let text = "[default]\ntype = 'local'\nroot = 'files'\n[[layers]]\ntype = 'policy'\n\
        rules = [{ effect = 'deny', operations = ['read'] }]\n";
    let root = tree(&[("vfs.toml", text), ("files/a", "x\n")]);
    for (args, reason) in [
        (&["write", "--mode", "append", "/a"][..], "append needs read, which is not allowed here"),
        (&["edit", "--old", "x", "--new", "y", "/a"], "edit needs read, which is not allowed here"),
        (&["cp", "/a", "/b"], "copy needs read, which is not allowed here"),
        (&["read", "/a"], "a policy forbids this: read is not allowed here"),
    ] {
        with_config(&root, args).failure("policy_denied: /a: ");
        with_config(&root, args).failure(reason);
    }
    assert!(with_config(&root, &["write", "--mode", "overwrite", "/a"]).success().starts_with("wrote /a"));
    std::fs::write(root.path().join("vfs.toml"), text.replace("'read'", "'edit'")).expect("it is written");
    let reason = "policy_denied: /a: a policy forbids this: edit is not allowed here";
    with_config(&root, &["edit", "--old", "x", "--new", "y", "/a"]).failure(reason);
}

#[test]
fn suggestions_reveal_no_path_that_a_policy_hides() {
    let text = "[default]\ntype = 'local'\nroot = 'files'\n[[layers]]\ntype = 'policy'\n\
        rules = [{ effect = 'deny', paths = ['/secret.txt'] }]\n";
    let root = tree(&[("vfs.toml", text), ("files/secret.txt", ""), ("files/secrex.txt", "")]);
    with_config(&root, &["read", "/secre.txt"])
        .failure_with_hints("not_found: /secre.txt", &["vfs: did you mean /secrex.txt?"]);
}

#[test]
fn a_literal_that_looks_like_a_regular_expression_gets_a_hint() {
    let root = tree(&[("a.txt", "foo and bar\nprice $5 (net)\n"), (".hidden", "zzz")]);
    for pattern in ["foo.*bar", "^foo", "bar$", "foo|bar", r"\bfoo\b", "[a-f]oo", "(foo)+"] {
        let run = vfs(&root, &["grep", pattern]);
        assert_eq!((run.code, run.out()), (Some(1), ""), "{run:?}");
        let expected = format!("vfs: no match for the literal text '{pattern}'; for a regular expression use -E\n");
        assert_eq!(run.err.replace(r"\\", r"\"), expected);
        let answered = answer(&root, &json!({"op": "grep", "pattern": pattern}));
        let hint = answered["hint"].as_str().unwrap_or_else(|| panic!("{pattern}: {answered}"));
        assert!(hint.contains(r#"{"regex": ...}"#), "{hint}");
    }
    for pattern in ["absent", "main(", "a || b", "Vec<u8>", "a.b", "$7", "x += 1", "c++", "items[0]"] {
        let run = vfs(&root, &["grep", pattern]);
        assert_eq!((run.code, run.err.as_str()), (Some(1), ""), "{pattern}");
    }
    assert_eq!(vfs(&root, &["grep", "-E", "foo.*baz"]).err, "");
    assert_eq!(answer(&root, &json!({"op": "grep", "pattern": "foo"})).get("hint"), None);
    let run = vfs(&root, &["grep", "-e", "absent", "-e", "^foo"]);
    assert_eq!(run.err, "vfs: no match for the literal text '^foo'; for a regular expression use -E\n");
    let hidden = answer(&root, &json!({"op": "grep", "pattern": "zzz"}));
    assert!(hidden["hint"].as_str().is_some_and(|hint| hint.contains("1 hidden")), "{hidden}");
}

#[test]
fn a_failed_edit_shows_the_related_lines() {
    let long = "y".repeat(1000);
    let text = format!("x = 1\nfn parse(line: &str) {{\nx = 2\n{long}\n");
    let root = tree(&[("a.txt", &text)]);
    let edit = |old: &str| vfs(&root, &["edit", "--old", old, "--new", "-", "/a.txt"]);
    edit("x = ").failure_with_hints("not_unique: /a.txt", &["vfs: line 1: x = 1", "vfs: line 3: x = 2"]);
    edit("fn parse(lien: &str) {")
        .failure_with_hints("no_match: /a.txt", &["vfs: similar line 2: fn parse(line: &str) {"]);
    let many = "same\n".repeat(50);
    fs::write(root.path().join("a.txt"), &many).expect("a file");
    let run = edit("same");
    assert!(run.err.lines().count() <= 12 && run.err.contains("line 1: same"), "{run:?}");
    assert!(run.err.ends_with("more\n"), "{run:?}");
    fs::write(root.path().join("a.txt"), format!("{long}\n{long}\n")).expect("a file");
    let run = edit(&long);
    assert!(run.err.lines().all(|line| line.len() < 300), "{run:?}");
}
