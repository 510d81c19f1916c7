//! Listing, reading and changing files.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::{command, finish, json_lines, tree, vfs, vfs_with_input};

#[test]
fn ls_prints_a_path_a_line_and_marks_directories() {
    let root = tree(&[("b/deep/x.txt", "12345"), ("a.txt", "1"), (".hidden", "")]);
    assert_eq!(vfs(&root, &["ls"]).success(), "/.hidden\n/a.txt\n/b/\n");
    assert_eq!(vfs(&root, &["ls", "-R", "/b"]).success(), "/b/deep/\n/b/deep/x.txt\n");
    let long = vfs(&root, &["ls", "-l", "b/deep"]);
    let fields: Vec<_> = long.success().split_whitespace().collect();
    let [size, time, path] = fields[..] else { panic!("three fields: {fields:?}") };
    assert_eq!((size, path), ("5", "/b/deep/x.txt"));
    assert!(time.len() == 20 && time.ends_with('Z') && time.contains('T'), "{time} is RFC 3339");
}

#[test]
fn stat_describes_in_words_or_json() {
    let root = tree(&[("a.txt", "hello")]);
    let words = vfs(&root, &["stat", "a.txt"]);
    for part in ["path:     /a.txt\n", "kind:     file\n", "size:     5 bytes\n", "modified: ", "version:  "] {
        assert!(words.success().contains(part), "{words:?}");
    }
    let json: serde_json::Value =
        serde_json::from_str(vfs(&root, &["stat", "--json", "/a.txt"]).success()).expect("JSON");
    assert_eq!((&json["path"], &json["size"], &json["is_dir"]), (&"/a.txt".into(), &5.into(), &false.into()));
    assert!(vfs(&root, &["stat", "/"]).success().contains("kind:     directory\n"));
}

#[test]
fn read_prints_the_bytes_of_the_requested_lines() {
    let text = "one\r\ntwo\nthree\x0cstill three\n\nno end";
    let root = tree(&[("t", text), ("empty", "")]);
    for (args, expected) in [
        (&["read", "/t"][..], text),
        (&["read", "--offset", "1", "/t"], "two\nthree\x0cstill three\n\nno end"),
        (&["read", "--limit", "1", "/t"], "one\r\n"),
        (&["read", "--offset", "2", "--limit", "2", "/t"], "three\x0cstill three\n\n"),
        (&["read", "--offset", "4", "--limit", "99", "/t"], "no end"),
        (&["read", "--limit", "0", "/t"], ""),
        (&["read", "--limit", "5", "/t"], text),
        (&["read", "--limit", "18446744073709551615", "--offset", "1", "/t"], "two\nthree\x0cstill three\n\nno end"),
        (&["read", "/empty"], ""),
        (&["read", "-n", "--offset", "1", "--limit", "1", "/t"], "     2\ttwo\n[truncated: continue with offset 2]\n"),
        (&["read", "-n", "/empty"], "System reminder: File exists but has empty contents\n"),
    ] {
        assert_eq!(vfs(&root, args).success(), expected, "{args:?}");
    }
    vfs(&root, &["read", "--offset", "50", "/t"]).failure("5 lines");
    vfs(&root, &["read", "--offset", "-1", "/t"]).failure("--offset");
    vfs(&root, &["read", "--limit", "99999999999999999999999", "/t"]).failure("--limit");
}

#[test]
fn write_streams_what_one_request_cannot_hold() {
    let limits = "max_file_size = '1 MiB'\nmax_streamed_size = '8 MiB'\n";
    let root = tree(&[("vfs.toml", &format!("[default]\ntype = 'local'\nroot = 'files'\n{limits}")), ("files/a", "")]);
    for size in [1 << 20, (1 << 20) + 1, 5 << 20] {
        let input = vec![b'x'; size];
        finish(crate::configured(&root).args(["write", "--mode", "overwrite", "/a"]), &input).success();
        assert_eq!(std::fs::read(root.path().join("files/a")).ok(), Some(input));
    }
}

#[test]
fn read_is_exact_for_binary_other_encodings_and_files_longer_than_a_window() {
    let root = tree(&[]);
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("a\nbé\nc\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let long: Vec<u8> = (0..3_000_000_u32).flat_map(|n| format!("{n} é\n").into_bytes()).collect();
    let one_line = "é".repeat(9 << 20).into_bytes();
    for (name, content) in [
        ("binary", &b"\0\x01\xff\xfe\n\0"[..]),
        ("latin1", b"caf\xe9\nth\xe9\n"),
        ("utf16", &utf16),
        ("bom", b"\xef\xbb\xbfa\nb\n"),
        ("long", &long),
        ("one_line", &one_line),
    ] {
        fs::write(root.path().join(name), content).expect("a file");
        let run = vfs(&root, &["read", name]);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        assert!(run.out == content, "{name} differs");
    }
    let tail = vfs(&root, &["read", "--offset", "2999998", "long"]);
    assert_eq!(tail.success(), "2999998 é\n2999999 é\n");
    assert_eq!(vfs(&root, &["read", "--offset", "1", "--limit", "1", "utf16"]).out, utf16[6..12]);
    fs::write(root.path().join("binary"), b"a\nb\0\nc\n").expect("a file");
    for window in [&["--limit", "1"][..], &["--offset", "2"], &["--offset", "9", "--limit", "0"]] {
        let run = vfs(&root, &[&["read", "binary"], window].concat());
        assert_eq!((run.code, &*run.out), (Some(0), &b"a\nb\0\nc\n"[..]), "it has no lines: {window:?}");
    }
}

#[test]
fn write_has_four_modes() {
    let root = tree(&[]);
    let content = || fs::read_to_string(root.path().join("d/a.txt")).expect("a file");
    assert!(vfs_with_input(&root, &["write", "d/a.txt"], b"1\n").success().starts_with("created /d/a.txt (2 bytes"));
    vfs_with_input(&root, &["write", "/d/a.txt"], b"2\n").failure("already_exists: /d/a.txt");
    assert_eq!(content(), "1\n");
    assert!(vfs_with_input(&root, &["write", "--mode", "append", "/d/a.txt"], b"2\n").success().starts_with("wrote"));
    assert_eq!(content(), "1\n2\n");
    vfs_with_input(&root, &["write", "--mode", "overwrite", "/d/a.txt"], b"\0\xff").success();
    let stat = vfs(&root, &["stat", "--json", "/d/a.txt"]);
    let version: serde_json::Value = serde_json::from_str(stat.success()).expect("JSON");
    let mode = format!("--mode=if-version={}", version["version"].as_str().expect("a version"));
    vfs_with_input(&root, &["write", &mode, "/d/a.txt"], b"3\n").success();
    assert_eq!(content(), "3\n");
    vfs_with_input(&root, &["write", &mode, "/d/a.txt"], b"4\n").failure("conflict: /d/a.txt");
    assert_eq!(content(), "3\n");
    vfs(&root, &["write", "--mode", "sometimes", "/d/a.txt"]).failure("if-version=V");

    let imported = ["write", "--modified-at", "2001-02-03T04:05:06.7Z", "/d/old.txt"];
    vfs_with_input(&root, &imported, b"1\n").success();
    assert!(vfs(&root, &["stat", "/d/old.txt"]).success().contains("modified: 2001-02-03T04:05:06.7"));
    for request in [
        json!({"op": "ls", "timeout_ms": null}),
        json!({"op": "capabilities", "path": null}),
        json!({"op": "stat", "path": null, "file_path": "/d/old.txt"}),
    ] {
        let answers = json_lines(vfs_with_input(&root, &["batch"], request.to_string().as_bytes()).success());
        assert!(answers[0]["ok"].is_object(), "{request}: {answers:?}");
    }
    vfs(&root, &["write", "--modified-at", "yesterday", "/d/b.txt"]).failure("2024-05-01T12:00:00Z");
}

#[test]
fn edit_changes_or_prints_a_diff_and_refuses_ambiguous_text() {
    let root = tree(&[("a.txt", "x = 1\r\ny = 1\r\n")]);
    let content = || fs::read_to_string(root.path().join("a.txt")).expect("a file");
    let diff = vfs(&root, &["edit", "--dry-run", "--old", "x = 1", "--new", "x = 2", "/a.txt"]);
    assert!(diff.success().contains("-x = 1") && diff.success().contains("+x = 2"), "{diff:?}");
    assert_eq!(content(), "x = 1\r\ny = 1\r\n");
    let edited = vfs(&root, &["edit", "--old", "x = 1\ny", "--new", "x = 2\ny", "/a.txt"]);
    assert!(edited.success().starts_with("edited /a.txt (1 place, "), "{edited:?}");
    assert_eq!(content(), "x = 2\r\ny = 1\r\n");
    vfs(&root, &["edit", "--old", " = ", "--new", "-", "/a.txt"])
        .failure_with_hints("not_unique: /a.txt", &["vfs: line 1: x = 2", "vfs: line 2: y = 1"]);
    vfs(&root, &["edit", "--old", "absent", "--new", "-", "/a.txt"]).failure("no_match: /a.txt");
    vfs(&root, &["edit", "--old", "", "--new", "-", "/a.txt"]).failure("invalid_argument");
    assert!(vfs(&root, &["edit", "--all", "--old", " = ", "--new", "--", "/a.txt"]).success().contains("(2 places, "));
    assert_eq!(content(), "x--2\r\ny--1\r\n");
    vfs(&root, &["edit", "--old", "x", "--new", "a\nx", "/a.txt"]).success();
    assert_eq!(content(), "a\r\nx--2\r\ny--1\r\n");
    let to_line_feeds = ["edit", "--all", "--old", "\r\n", "--new", "\n", "/a.txt"];
    vfs(&root, &to_line_feeds).failure("invalid_argument: /a.txt");
    vfs(&root, &[&to_line_feeds[..], &["--exact-line-endings"]].concat()).success();
    assert_eq!(content(), "a\nx--2\ny--1\n");
}

#[test]
fn rm_mv_and_cp_change_files_and_refuse_invalid_targets() {
    let root = tree(&[("d/a", "1"), ("d/b", "2"), ("c", "3")]);
    assert_eq!(vfs(&root, &["cp", "d", "e/f"]).success(), "copied /d to /e/f (2 files, 2 bytes)\n");
    vfs(&root, &["cp", "c", "d/a"]).failure("already_exists");
    assert_eq!(vfs(&root, &["cp", "-f", "c", "d/a"]).success(), "copied /c to /d/a (1 file, 1 bytes)\n");
    assert_eq!(vfs(&root, &["mv", "c", "new/c"]).success(), "moved /c to /new/c\n");
    vfs(&root, &["mv", "d", "d/below"]).failure("invalid_argument");
    vfs(&root, &["rm", "d"]).failure("/d");
    assert_eq!(vfs(&root, &["rm", "-r", "d"]).success(), "deleted /d (2 files)\n");
    assert_eq!(vfs(&root, &["rm", "new/c"]).success(), "deleted /new/c (1 file)\n");
    vfs(&root, &["rm", "-r", "/"]).failure("/");
    assert!(vfs(&root, &["ls", "-R"]).success().ends_with("/e/f/a\n/e/f/b\n/new/\n"));
}

/// A shell that runs `script` with the real binary as `vfs`, in `root`.
fn script(root: &TempDir, script: &str) -> crate::Run {
    let mut shell = Command::new("sh");
    let prepared = format!("vfs() {{ {:?} \"$@\"; }}; {script}", env!("CARGO_BIN_EXE_vfs"));
    shell.args(["-c", &prepared]).current_dir(root.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(&mut shell, b"")
}

#[test]
fn a_write_beyond_the_limit_on_the_size_of_files_fails_and_the_limit_is_not_felt_otherwise() {
    let root = tree(&[("small", "1"), ("large", &"x".repeat(1 << 20))]);
    let refused = script(&root, "ulimit -f 16; vfs cp /large /copy");
    refused.failure("too_large");
    assert!(refused.err.contains("ulimit -f"), "{refused:?}");
    assert!(!root.path().join("copy").exists());
    // What it prints into a file is written by none of its backends.
    let cut = script(&root, "ulimit -f 16; vfs read /large > out");
    assert_eq!(cut.code, Some(2), "{cut:?}");
    assert!(cut.err.contains("standard output cannot be written"), "{cut:?}");
    // A program that it starts ends as it would without it.
    let ended =
        script(&root, "ulimit -f 16; vfs exec -- 'grep -E \"^Sig(Blk|Ign)\" /proc/self/status; cat large > copy'");
    assert_eq!(ended.code, Some(128 + 25), "{ended:?}");
    for mask in ["SigBlk", "SigIgn"] {
        let line = ended.out().lines().find_map(|line| line.strip_prefix(mask)?.strip_prefix(":\t")).expect("a mask");
        let bits = u64::from_str_radix(line, 16).expect("it is hexadecimal");
        assert_eq!(bits & 1 << (25 - 1), 0, "{mask} {line}");
    }
}

#[test]
fn a_closed_standard_input_or_output_is_an_error_and_no_empty_file() {
    let root = tree(&[("a", "1")]);
    let closed = script(&root, "vfs write /new <&-");
    closed.failure("standard input");
    assert!(!root.path().join("new").exists());
    script(&root, "vfs exec --stdin -- cat <&-").failure("standard input");
    script(&root, "vfs batch <&-").failure("standard input");
    script(&root, "vfs read /a >&-").failure("standard output");
    for empty in ["</dev/null", "<>/dev/null"] {
        script(&root, &format!("vfs write --mode overwrite /empty {empty}")).success();
        assert_eq!(fs::read(root.path().join("empty")).expect("a file"), b"", "{empty}");
    }
}

#[test]
fn too_few_descriptors_are_an_error_and_no_panic() {
    let root = tree(&[("small", "1")]);
    for most in 4..16 {
        let run = script(&root, &format!("ulimit -n {most}; vfs ls /"));
        assert!(matches!(run.code, Some(0..=2)), "{most} descriptors: {run:?}");
        assert!(!run.err.contains("panicked"), "{most} descriptors: {run:?}");
    }
    for most in [16, 24, 40, 56] {
        let run = script(&root, &format!("ulimit -n {most}; vfs exec --sandbox -- true"));
        run.failure("busy");
        assert!(run.err.contains("ulimit -n"), "{most} descriptors: {run:?}");
    }
}

#[test]
fn the_root_confines_and_host_mode_does_not() {
    let outside = tree(&[("secret", "s")]);
    let root = tree(&[("in", "i")]);
    symlink(outside.path().join("secret"), root.path().join("link")).expect("a link");
    let secret = outside.path().join("secret");
    let secret = secret.to_str().expect("UTF-8");
    vfs(&root, &["read", secret]).failure("not_found");
    vfs(&root, &["read", "/link"]).failure("path_escape: /link");
    vfs(&root, &["read", "../secret"]).failure("invalid_path");
    assert_eq!(vfs(&root, &["--host", "read", secret]).success(), "s");
    assert_eq!(vfs(&root, &["read", "in", "--host"]).success(), "i");
    let real = root.path().canonicalize().expect("it exists");
    assert_eq!(vfs(&root, &["glob", "--host", "in"]).success(), format!("{}/in\n", real.display()));
}

#[test]
fn the_root_option_stands_before_or_after_the_command_and_must_name_a_directory() {
    let root = tree(&[("a", "1")]);
    let mut after = std::process::Command::new(env!("CARGO_BIN_EXE_vfs"));
    after.args(["read", "a", "--root"]).arg(root.path()).stdout(std::process::Stdio::piped());
    after.stderr(std::process::Stdio::piped());
    assert_eq!(finish(&mut after, b"").success(), "1");
    finish(command(&root.path().join("absent")).arg("ls"), b"").failure("absent");
    finish(command(&root.path().join("a")).arg("ls"), b"").failure("cannot be opened");
}
