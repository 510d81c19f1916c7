//! `vfs batch`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{HANG_TIMEOUT, Run, command, finish, json_lines, tree, vfs_with_input};

fn batch(root: &TempDir, args: &[&str], input: &[u8]) -> Vec<Value> {
    let args = [&["batch"], args].concat();
    let run: Run = vfs_with_input(root, &args, input);
    run.success().lines().map(|line| serde_json::from_str(line).expect("each answer is JSON")).collect()
}

pub(crate) fn one(root: &TempDir, line: &str) -> Value {
    one_of(root, &[], line)
}

pub(crate) fn one_of(root: &TempDir, args: &[&str], line: &str) -> Value {
    let mut answers = batch(root, args, line.as_bytes());
    assert_eq!(answers.len(), 1, "{line}: {answers:?}");
    answers.remove(0)
}

#[test]
fn every_operation_is_answered_in_order() {
    let root = tree(&[("a.txt", "one\ntwo\nthree\n")]);
    let requests = [
        json!({"id": 1, "op": "stat", "path": "a.txt"}),
        json!({"id": "two", "op": "read", "path": "/a.txt", "offset": 1, "limit": 1}),
        json!({"id": null, "op": "write", "path": "/b/c.bin", "content_base64": "AP8="}),
        json!({"id": [4], "op": "ls", "path": "/b"}),
        json!({"id": {"n": 5}, "op": "edit", "path": "/a.txt", "old": "two", "new": "2"}),
        json!({"id": 6.5, "op": "copy", "from": "/a.txt", "to": "/d.txt"}),
        json!({"id": true, "op": "mv", "from": "/d.txt", "to": "/e.txt"}),
        json!({"op": "glob", "pattern": "*.txt"}),
        json!({"id": 9, "op": "grep", "pattern": {"regex": "^t"}, "path": "/"}),
        json!({"id": 10, "op": "rm", "path": "/e.txt"}),
        json!({"id": 11, "op": "upload_files", "files": [{"path": "u", "content": "é"}, {"path": "../x", "content": ""}]}),
        json!({"id": 12, "op": "download", "paths": ["/u", "/absent", "~", "/b/c.bin"]}),
    ];
    let input = requests.iter().map(|request| format!("{request}\n\n")).collect::<String>();
    let answers = batch(&root, &[], input.as_bytes());
    assert_eq!(answers.len(), requests.len());
    for (request, answer) in requests.iter().zip(&answers) {
        assert_eq!(answer.get("id"), request.get("id"));
        assert!(answer["ok"].is_object() && answer.get("error").is_none(), "{answer}");
    }
    assert_eq!(answers[0]["ok"]["path"], "/a.txt");
    assert_eq!(answers[1]["ok"]["content"]["text"], "two\n");
    assert_eq!(answers[2]["ok"]["created"], true);
    assert_eq!(answers[3]["ok"]["entries"][0]["size"], 2);
    assert_eq!(answers[4]["ok"]["occurrences"], 1);
    assert_eq!(answers[6]["ok"]["to"], "/e.txt");
    assert_eq!(answers[7]["ok"]["entries"].as_array().map(Vec::len), Some(2));
    let lines: Vec<_> = answers[8]["ok"]["matches"].as_array().expect("matches").iter().map(|m| &m["text"]).collect();
    assert_eq!(lines, ["three", "three"]);
    let uploads = &answers[10]["ok"]["files"];
    assert_eq!((&uploads[0]["path"], uploads[0].get("error")), (&json!("/u"), None));
    assert_eq!((&uploads[1]["error"], &uploads[1]["cause"]["code"]), (&json!("invalid_path"), &json!("invalid_path")));
    let downloads = &answers[11]["ok"]["files"];
    assert_eq!(downloads[0]["content"], "é");
    assert_eq!(downloads[1]["error"], "file_not_found");
    assert_eq!((&downloads[2]["path"], &downloads[2]["error"]), (&json!("~"), &json!("invalid_path")));
    assert_eq!(downloads[3]["content_base64"], "AP8=");
    assert_eq!(fs::read_to_string(root.path().join("a.txt")).expect("a file"), "one\n2\nthree\n");
}

#[test]
fn invalid_requests_fail_and_change_nothing() {
    let root = tree(&[("a", "text\n")]);
    for (line, id, code, reason) in [
        ("nonsense", None, "invalid_argument", "not a request"),
        (r#"{"id":7"#, Some(json!(7)), "invalid_argument", "ends too early"),
        ("[1,2]", None, "invalid_argument", "object"),
        ("null", None, "invalid_argument", "object"),
        ("{}", None, "invalid_argument", "`op`"),
        (r#"{"id":7}"#, Some(json!(7)), "invalid_argument", "`op`"),
        (r#"{"id":7,"op":"format_disk"}"#, Some(json!(7)), "invalid_argument", "unknown op `format_disk`"),
        (r#"{"id":7,"op":"read","path":"/a","limti":1}"#, Some(json!(7)), "invalid_argument", "`limti`"),
        (r#"{"id":7,"op":"read"}"#, Some(json!(7)), "invalid_argument", "`path`"),
        (r#"{"id":7,"op":"read","path":7}"#, Some(json!(7)), "invalid_argument", "path"),
        (r#"{"id":7,"op":"read","path":"/a","offset":-1}"#, Some(json!(7)), "invalid_argument", "offset"),
        (r#"{"id":7,"op":"read","path":"/a","offset":1e30}"#, Some(json!(7)), "invalid_argument", "offset"),
        (
            r#"{"id":7,"op":"read","path":"/a","limit":1000000000000000000000000000000}"#,
            Some(json!(7)),
            "invalid_argument",
            "limit",
        ),
        (
            r#"{"id":7,"op":"read","path":"/a","offset":18446744073709551615}"#,
            Some(json!(7)),
            "invalid_argument",
            "1 line",
        ),
        (r#"{"id":7,"op":"read","path":"/../a"}"#, Some(json!(7)), "invalid_path", "/../a"),
        (r#"{"id":7,"op":"read","path":"/a\u0000"}"#, Some(json!(7)), "invalid_path", "NUL"),
        (r#"{"id":7,"op":"copy","from":"/a","to":"~/b"}"#, Some(json!(7)), "invalid_path", "~/b"),
        (
            r#"{"id":7,"op":"write","path":"/a","mode":"overwrite","content":"\ud800"}"#,
            Some(json!(7)),
            "invalid_argument",
            "hex escape",
        ),
        (
            r#"{"id":7,"op":"write","path":"/a","mode":"overwrite","content":"a","content_base64":"YQ=="}"#,
            Some(json!(7)),
            "invalid_argument",
            "not both",
        ),
        (
            r#"{"id":7,"op":"write","path":"/a","mode":"overwrite","content_base64":"?"}"#,
            Some(json!(7)),
            "invalid_argument",
            "base64",
        ),
        (r#"{"id":7,"op":"write","path":"/a","content":"new"}"#, Some(json!(7)), "already_exists", "/a"),
        (r#"{"id":7,"op":"read","path":"/absent"}"#, Some(json!(7)), "not_found", "/absent"),
        (
            r#"{"id":7,"op":"read","path":"/a","path":"/b"}"#,
            Some(json!(7)),
            "invalid_argument",
            "duplicate field `path`",
        ),
        (
            r#"{"id":7,"op":"upload","files":[{"path":"/x","content":"1","mode":"append"}]}"#,
            Some(json!(7)),
            "invalid_argument",
            "`mode`",
        ),
        (r#"{"id":7,"op":"upload","files":[{"content":"1"}]}"#, Some(json!(7)), "invalid_argument", "`path`"),
        (r#"{"id":7,"op":"download","paths":"/a"}"#, Some(json!(7)), "invalid_argument", "paths"),
    ] {
        let answer = one(&root, line);
        assert_eq!(answer.get("id"), id.as_ref(), "{line}");
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(reason)), "{line}: {answer}");
    }
    assert_eq!(fs::read_to_string(root.path().join("a")).expect("a file"), "text\n");
    assert_eq!(fs::read_dir(root.path()).expect("a directory").count(), 1);
}

#[test]
fn an_unknown_field_or_operation_gets_the_most_similar_name() {
    let root = tree(&[("a", "text\n")]);
    for (line, message) in [
        (r#"{"op":"read","path":"/a","limti":1}"#, "unknown field `limti`; did you mean `limit`?"),
        (r#"{"op":"grep","pattren":"x"}"#, "unknown field `pattren`; did you mean `pattern`?"),
        (r#"{"op":"edit","path":"/a","odl":"x","new":"y"}"#, "unknown field `odl`; did you mean `old`?"),
        (r#"{"op":"write","path":"/a","contents":"x"}"#, "unknown field `contents`; did you mean `content`?"),
        (r#"{"op":"download","path":["/a"]}"#, "unknown field `path`; did you mean `paths`?"),
        (r#"{"op":"raed","path":"/a"}"#, "unknown op `raed`; did you mean `read`?"),
        (r#"{"opp":"read","path":"/a"}"#, "missing field `op`; is `opp` a misspelling of it?"),
        (r#"{"op":"grep","pattern":"x","regex":true}"#, r#"a regular expression is written "pattern":{"regex":"..."}"#),
        (r#"{"op":"grep","regex":"x"}"#, r#"a regular expression is written "pattern":{"regex":"..."}"#),
    ] {
        let actual = one(&root, line)["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(actual.contains(message) && !actual.contains("expected one of"), "{line}: {actual}");
    }
    let actual = one(&root, r#"{"op":"stat","path":"/a","colour":1}"#);
    assert_eq!(actual["error"]["message"], "Error: '/a': unknown field `colour`, expected `path`");
}

#[test]
fn a_line_that_is_not_json_is_refused_with_its_column() {
    let root = tree(&[]);
    for (line, reason) in [
        ("not json", r#"a request is a JSON object, such as {"op":"ls","path":"/"}"#),
        ("[]", r#"a request is a JSON object, such as {"op":"ls","path":"/"}"#),
        (r#"{"op":"ls""#, "the JSON ends too early, at column 10"),
        (r#"{"op":ls}"#, "the JSON is invalid at column 7: expected value"),
        (r#"{"op":7}"#, "invalid type: integer `7`, expected a string"),
    ] {
        let message = one(&root, line)["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(message, format!("Error: the line is not a request: {reason}"));
    }
}

#[test]
fn an_error_is_the_typed_error_of_the_library() {
    let root = tree(&[("a", "x\nx\n")]);
    let answer = one(&root, r#"{"id":1,"op":"edit","path":"/a","old":"x","new":"y"}"#);
    let error: vfs_core::Error = serde_json::from_value(answer["error"].clone()).expect("it reads back");
    assert_eq!((error.kind(), error.path()), (vfs_core::ErrorKind::NotUnique, Some("/a")));
    assert!(error.detail().is_some());
    assert_eq!(one(&root, r#"{"op":"stat","path":"/../x"}"#)["error"]["path"], "/../x");
}

#[test]
fn bytes_that_are_not_utf8_and_a_line_of_100_megabytes_do_not_end_it() {
    let root = tree(&[("a", "1")]);
    let mut input = b"{\"id\":1,\"op\":\"read\",\"path\":\"/\xff\"}\n".to_vec();
    input.extend_from_slice(b"{\"id\":2,\"op\":\"write\",\"path\":\"/big\",\"content\":\"");
    input.resize(100 << 20, b'x');
    input.extend_from_slice(b"\"}\r\n{\"id\":3,\"op\":\"read\",\"path\":\"/a\"}");
    let answers = batch(&root, &[], &input);
    assert_eq!(answers.len(), 3);
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!(1), &json!("invalid_argument")));
    assert_eq!((answers[1].get("id"), &answers[1]["error"]["code"]), (None, &json!("too_large")));
    assert_eq!((&answers[2]["id"], &answers[2]["ok"]["content"]["text"]), (&json!(3), &json!("1")));
    assert!(!root.path().join("big").exists());
}

#[test]
fn many_jobs_answer_every_request_once() {
    let root = tree(&[]);
    let input: String = (0..200)
        .map(|n| format!("{}\n", json!({"id": n, "op": "write", "path": format!("/d/{n}"), "content": n.to_string()})))
        .collect();
    let answers = batch(&root, &["--jobs", "8"], input.as_bytes());
    let ids: BTreeSet<_> = answers.iter().map(|answer| answer["id"].as_u64().expect("a number")).collect();
    assert_eq!((answers.len(), ids.len()), (200, 200));
    assert!(answers.iter().all(|answer| answer["ok"]["created"] == true));
    assert_eq!(fs::read_dir(root.path().join("d")).expect("a directory").count(), 200);
}

#[test]
fn an_empty_input_has_no_answers() {
    let root = tree(&[]);
    assert!(batch(&root, &[], b"").is_empty());
    assert!(batch(&root, &["--jobs", "3"], b"\n  \r\n\n").is_empty());
}

/// Makes a file of `bytes` that takes no room on the disk.
fn sparse(root: &TempDir, name: &str, bytes: u64) {
    let file = File::options().create(true).append(true).open(root.path().join(name));
    file.and_then(|file| file.set_len(bytes)).expect("sparse files are made");
}

#[test]
fn a_request_that_needs_more_memory_than_there_is_does_not_end_it() {
    let root = tree(&[("vfs.toml", "[default]\ntype = 'local'\nroot = 'files'\nmax_file_size = '100 GiB'\n")]);
    fs::create_dir(root.path().join("files")).expect("a directory");
    sparse(&root, "files/big", 60 << 30);
    // Starts as text does, so that it is read by lines.
    fs::write(root.path().join("files/text"), "line\n".repeat(1 << 20)).expect("a file");
    sparse(&root, "files/text", 60 << 30);
    let requests = [
        json!({"id": 0, "op": "read", "path": "/big", "max_bytes": u64::MAX}),
        json!({"id": 1, "op": "read", "path": "/text", "max_bytes": u64::MAX}),
        json!({"id": 2, "op": "read", "path": "/big", "bytes": {"start": 1}, "max_bytes": u64::MAX}),
        json!({"id": 3, "op": "download", "paths": ["/big"]}),
        json!({"id": 4, "op": "edit", "path": "/big", "old": "a", "new": "b"}),
        json!({"id": 5, "op": "stat", "path": "/big"}),
    ];
    let input = requests.iter().map(|request| format!("{request}\n")).collect::<String>();
    // Room for the program and its threads, and not for any of these files.
    let run = batch_in_memory(&root, 1_500_000, &input);
    let answers = json_lines(run.success());
    assert_eq!(answers.len(), requests.len());
    for answer in [&answers[0], &answers[1], &answers[2], &answers[4]] {
        assert_eq!(answer["error"]["code"], "too_large", "{answer}");
    }
    assert_eq!(answers[3]["ok"]["files"][0]["cause"]["code"], "too_large");
    assert_eq!(answers[5]["ok"]["size"], 60_u64 << 30);
}

#[test]
fn a_search_whose_matches_need_more_memory_than_there_is_does_not_end_it() {
    let root = tree(&[("vfs.toml", "[default]\ntype = 'local'\nroot = 'files'\n")]);
    fs::create_dir(root.path().join("files")).expect("a directory");
    for name in 0..64 {
        fs::write(root.path().join(format!("files/{name}")), "a\n".repeat(1 << 16)).expect("a file");
    }
    let search = json!({"op": "grep", "pattern": "a", "limit": u64::MAX, "max_result_bytes": u64::MAX});
    let run = batch_in_memory(&root, 700_000, &format!("{search}\n{}\n", json!({"op": "stat", "path": "/1"})));
    let answers = json_lines(run.success());
    let is_reported = answers[0]["ok"]["truncated"] == "memory" || answers[0]["error"]["code"] == "too_large";
    assert!(is_reported, "{:.400}", answers[0].to_string());
    assert_eq!(answers[1]["ok"]["size"], 2 << 16);
}

/// What a batch in `root` says to `input` where it may have `kib` KiB of address space.
fn batch_in_memory(root: &TempDir, kib: u64, input: &str) -> crate::Run {
    let limited = format!("ulimit -v {kib}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_vfs"), "batch", "--config"]).arg(root.path().join("vfs.toml"));
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()), input.as_bytes())
}

#[test]
fn the_files_of_one_download_are_bounded_together() {
    let root = tree(&[
        ("vfs.toml", "[default]\ntype = 'local'\nroot = 'files'\nmax_file_size = '1 GiB'\n"),
        ("files/a", "one"),
        ("files/c", "two"),
    ]);
    sparse(&root, "files/b", 300 << 20);
    let request = json!({"op": "download", "paths": ["/a", "/b", "/absent", "/c"]}).to_string();
    let run = finish(crate::configured(&root).arg("batch"), request.as_bytes());
    let files = json_lines(run.success()).remove(0)["ok"]["files"].take();
    assert_eq!((&files[0]["content"], &files[3]["content"]), (&json!("one"), &json!("two")));
    assert_eq!((&files[1]["path"], &files[1]["cause"]["code"]), (&json!("/b"), &json!("too_large")));
    assert_eq!(files[2]["error"], "file_not_found");
}

/// A batch whose input stays open, and its output.
pub(crate) fn open_batch(root: &TempDir, args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = command(root.path()).arg("batch").args(args).stdin(Stdio::piped()).spawn().expect("it runs");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    (child, out)
}

/// Sees `batch` end with success by itself, while its input stays open.
pub(crate) fn ends(mut batch: Child) {
    let input = batch.stdin.take();
    let (sender, ended) = mpsc::channel();
    let id = batch.id();
    thread::spawn(move || sender.send(batch.wait_with_output().expect("it ends")));
    let output = ended.recv_timeout(HANG_TIMEOUT);
    let Ok(output) = output else {
        let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
        panic!("it goes on though nobody reads its answers");
    };
    drop(input);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn a_batch_ends_when_its_output_is_closed() {
    let root = tree(&[("a", "1")]);
    let (mut batch, mut out) = open_batch(&root, &[]);
    let input = batch.stdin.as_mut().expect("it is piped");
    writeln!(input, "{}", json!({"op": "stat", "path": "/a"})).expect("it listens");
    out.read_line(&mut String::new()).expect("it answers");
    drop(out);
    ends(batch);
}

#[test]
fn a_request_under_way_ends_with_the_reader_of_its_answer() {
    let root = tree(&[("a", "1"), ("long", &"line\n".repeat(1 << 20))]);
    // To find out that it has not so many lines takes hours.
    sparse(&root, "long", 15 << 40);
    // So does to search the same text in so many files, for what no index of its parts can rule out.
    fs::create_dir(root.path().join("d")).expect("it is new");
    fs::write(root.path().join("d/text"), "line\n".repeat(1 << 20)).expect("it is written");
    for number in 0..20_000 {
        fs::hard_link(root.path().join("d/text"), root.path().join(format!("d/{number}"))).expect("it is new");
    }
    for request in [
        json!({"id": 1, "op": "read", "path": "/long", "offset": 1_u64 << 60}),
        json!({"id": 1, "op": "grep", "path": "/d", "pattern": {"regex": "[0-9]"}}),
    ] {
        let (mut batch, mut out) = open_batch(&root, &["--jobs", "2"]);
        let input = batch.stdin.as_mut().expect("it is piped");
        writeln!(input, "{request}").expect("it listens");
        writeln!(input, "{}", json!({"id": 2, "op": "stat", "path": "/a"})).expect("it listens");
        let mut line = String::new();
        out.read_line(&mut line).expect("it answers");
        assert!(line.starts_with("{\"id\":2,"), "the second is answered while the first is under way: {line}");
        drop(out);
        ends(batch);
    }
}

#[test]
fn an_answer_is_bounded_unless_a_larger_limit_is_given() {
    let lines = "match\n".repeat(10_001);
    let root = tree(&[("many", &lines)]);
    for n in 0..101 {
        let directory = root.path().join(format!("d{n}"));
        fs::create_dir(&directory).expect("a directory");
        (0..100).for_each(|n| drop(File::create(directory.join(n.to_string())).expect("a file")));
    }
    for (request, entries) in [
        (json!({"op": "ls", "recursive": true}), "entries"),
        (json!({"op": "glob", "pattern": "*"}), "entries"),
        (json!({"op": "grep", "pattern": "match"}), "matches"),
    ] {
        let mut all = request.clone();
        all["limit"] = json!(20_000);
        let [cut, all] = [request, all].map(|request| one(&root, &request.to_string()));
        assert_eq!(cut["ok"][entries].as_array().map(Vec::len), Some(10_000), "{entries}");
        assert_eq!(cut["ok"]["truncated"], "limit");
        assert!(cut["hint"].as_str().is_some_and(|hint| hint.contains("`limit`")), "{}", cut["hint"]);
        assert!(all["ok"][entries].as_array().is_some_and(|all| all.len() > 10_000));
        assert!(all["ok"].get("truncated").is_none() && all.get("hint").is_none());
    }
    let wide = tree(&[("wide", &format!("{}\n", "x".repeat(60_000)).repeat(100))]);
    let cut = one(&wide, &json!({"op": "grep", "pattern": "x"}).to_string());
    assert_eq!(cut["ok"]["truncated"], "max_bytes");
    assert!(cut["hint"].as_str().is_some_and(|hint| hint.contains("`max_result_bytes`")), "{}", cut["hint"]);
    let cut = one(&wide, &json!({"op": "grep", "pattern": "x", "limit": 1_000_000}).to_string());
    assert!(cut["hint"].as_str().is_some_and(|hint| hint.contains("`max_result_bytes`")), "{}", cut["hint"]);
}

#[test]
fn resolve_capabilities_and_framework_field_names_are_supported() {
    let root = tree(&[("d/a", "1\n")]);
    symlink("d", root.path().join("link")).expect("a link");
    assert_eq!(one(&root, r#"{"op":"resolve","path":"/link/a"}"#)["ok"]["path"], "/d/a");
    let capabilities = one(&root, r#"{"op":"capabilities"}"#);
    assert_eq!((&capabilities["ok"]["access"], &capabilities["ok"]["links"]), (&json!("read_write"), &json!(true)));
    assert_eq!(one(&root, r#"{"op":"read","file_path":"/d/a"}"#)["ok"]["content"]["text"], "1\n");
    let edit = r#"{"op":"edit","file_path":"d/a","old_string":"1","new_string":"2"}"#;
    assert_eq!(one(&root, edit)["ok"]["occurrences"], 1);
}
