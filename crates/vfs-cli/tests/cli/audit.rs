//! The audit log.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};

use crate::{configured, finish, json_lines, tree, with_config};

const AUDITED: &str = "[default]\ntype = 'local'\nroot = '.'\n[[layers]]\ntype = 'audit'\nfile = '.vfs/audit.jsonl'\n";

#[test]
fn a_log_continues_across_processes() {
    let root = tree(&[("vfs.toml", AUDITED), ("a.txt", "one\n")]);
    let run = |args: &[&str]| with_config(&root, args);
    assert_eq!(run(&["log"]).success(), "");
    finish(configured(&root).args(["--actor", "planner", "read", "/a.txt"]), b"").success();
    run(&["read", "/absent"]).failure("not_found");
    run(&["mv", "/a.txt", "/b.txt"]).success();
    run(&["grep", "one"]).success();

    let log = run(&["log"]);
    let lines: Vec<_> = log.success().lines().collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(lines[0].starts_with("     1  20") && lines[0].ends_with("Z  planner  ok  read /a.txt"), "{lines:?}");
    assert!(lines[1].ends_with("-  not_found  read /absent"), "{lines:?}");
    assert!(lines[2].ends_with("-  ok  ls /"), "names like the missing one are looked for: {lines:?}");
    assert!(lines[3].ends_with("-  ok  rename /a.txt to /b.txt"), "{lines:?}");
    assert!(lines[4].ends_with("-  ok  grep_stream /"), "{lines:?}");
    assert_eq!(run(&["log", "-n", "1"]).success().lines().count(), 1);
    let json = json_lines(run(&["log", "--json", "-n", "2"]).success());
    assert_eq!((&json[0]["operation"], &json[1]["matches"]), (&"rename".into(), &1.into()));
    assert!(run(&["log", "--verify"]).success().starts_with("5 records are intact; the head is "));
    let head = json_lines(run(&["log", "--verify", "--json"]).success()).remove(0);
    assert_eq!((&head["sequence"], &head["hash"]), (&5.into(), &json[1]["hash"]));
}

#[test]
fn a_record_that_was_changed_is_found() {
    let root = tree(&[("vfs.toml", AUDITED), ("a.txt", "one\n"), ("b.txt", "two\n")]);
    for file in ["/a.txt", "/b.txt", "/a.txt"] {
        with_config(&root, &["read", file]).success();
    }
    let log = root.path().join(".vfs/audit.jsonl");
    let text = fs::read_to_string(&log).expect("a log");
    fs::write(&log, text.replace("/b.txt", "/c.txt")).expect("a log");
    let found = with_config(&root, &["log", "--verify"]);
    assert_eq!(found.refused(), "record 2 was changed after it was written\n");
    assert_eq!(
        json_lines(with_config(&root, &["log", "--verify", "--json"]).refused()),
        [serde_json::json!({"sequence": 2, "fault": "record 2 was changed after it was written"})]
    );
    let without: String =
        text.split_inclusive('\n').enumerate().filter(|(at, _)| *at != 1).map(|(_, line)| line).collect();
    fs::write(&log, without).expect("a log");
    assert_eq!(with_config(&root, &["log", "--verify"]).refused(), "another record is in the place of record 2\n");
    fs::write(&log, &text[..text.len() - 9]).expect("a log");
    with_config(&root, &["ls"]).failure("to start a new one, move its files into another directory");
    assert_eq!(
        with_config(&root, &["log", "--verify"]).refused(),
        "line 3 of the audit log is incomplete: it was truncated\n"
    );
    assert_eq!(json_lines(with_config(&root, &["log", "--verify", "--json"]).refused())[0]["sequence"], 3);
    let log = with_config(&root, &["log"]);
    assert_eq!((log.code, log.out().lines().count()), (Some(2), 2), "what is whole is shown: {log:?}");
    assert!(log.err.contains("line 3 of the audit log"), "{log:?}");
}

#[test]
fn a_search_that_nobody_reads_to_its_end_is_recorded() {
    let many = "needle\n".repeat(200_000);
    let root = tree(&[("vfs.toml", AUDITED), ("a.txt", &many)]);
    let mut command = configured(&root);
    let mut child = command.args(["grep", "needle"]).spawn().expect("the binary runs");
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
    let records = json_lines(with_config(&root, &["log", "--json"]).success());
    let [record] = &records[..] else { panic!("one operation: {records:?}") };
    assert_eq!((&record["operation"], &record["outcome"]), (&"grep_stream".into(), &"dropped".into()));
}

#[test]
fn a_log_is_rotated_and_stays_whole_and_out_of_reach() {
    let root = tree(&[("vfs.toml", &format!("{AUDITED}rotate_at = '1 kB'\n")), ("a.txt", "one\n")]);
    for _ in 0..7 {
        with_config(&root, &["read", "/a.txt"]).success();
    }
    let on_disk: Vec<_> = fs::read_dir(root.path().join(".vfs")).expect("a directory").collect();
    assert!(on_disk.len() > 3, "{on_disk:?}");
    let log = with_config(&root, &["log"]);
    assert_eq!(log.success().lines().count(), 7);
    assert_eq!(
        with_config(&root, &["log", "-n", "5"]).success(),
        log.out().lines().skip(2).fold(String::new(), |all, line| all + line + "\n")
    );
    assert!(with_config(&root, &["log", "--verify"]).success().starts_with("7 records are intact"));
    assert_eq!(with_config(&root, &["ls", "/.vfs"]).success(), "");
    let rotated = on_disk.into_iter().map(|entry| entry.expect("an entry").file_name());
    for name in rotated.map(|name| name.into_string().expect("text")) {
        with_config(&root, &["read", &format!("/.vfs/{name}")]).failure("policy_denied");
    }
}

#[test]
fn a_saved_head_is_found_in_a_log_that_went_on_and_missed_in_one_that_was_cut() {
    let root = tree(&[("vfs.toml", AUDITED), ("a.txt", "one\n")]);
    let verify =
        |head: &str, more: &[&str]| with_config(&root, &[&["log", "--verify", "--until", head], more].concat());
    let head = || {
        let json = json_lines(with_config(&root, &["log", "--verify", "--json"]).success()).remove(0);
        json["hash"].as_str().expect("a hash").to_owned()
    };
    let start = head();
    for _ in 0..3 {
        with_config(&root, &["read", "/a.txt"]).success();
    }
    let saved = head();
    with_config(&root, &["read", "/a.txt"]).success();
    assert!(verify(&start, &[]).success().ends_with("; the given hash is that of record 0\n"));
    assert!(verify(&saved, &[]).success().ends_with("; the given hash is that of record 3\n"));
    let json = json_lines(verify(&saved.to_uppercase(), &["--json"]).success()).remove(0);
    assert_eq!((&json["sequence"], &json["until"]), (&4.into(), &3.into()));

    let log = root.path().join(".vfs/audit.jsonl");
    let text = fs::read_to_string(&log).expect("a log");
    let cut: String = text.split_inclusive('\n').take(2).collect();
    fs::write(&log, cut).expect("a log");
    with_config(&root, &["log", "--verify"]).success();
    assert!(verify(&saved, &[]).refused().contains("the log was truncated before that record"));
    assert_eq!(json_lines(verify(&saved, &["--json"]).refused())[0]["sequence"], 3);
    verify("12ab", &[]).failure("64 hexadecimal digits");
}

#[test]
fn names_that_would_forge_lines_are_escaped_in_logs_histories_and_commits() {
    let text = format!(
        "{}layers = [{{ type = 'checkpoints', store = '.vfs/c' }}, {{ type = 'overlay', store = '.vfs/o' }}]\n{}",
        AUDITED.split_inclusive('\n').take(3).collect::<String>(),
        AUDITED.split_inclusive('\n').skip(3).chain(["scope = 'changes'\n"]).collect::<String>(),
    );
    let root = tree(&[("vfs.toml", &text)]);
    let (path, actor) = ("/a\nremoved  /b\u{1b}[2K", "eve\n     9  boss\r\u{9b}");
    let (shown, who) = (r"/a\nremoved  /b\u{1b}[2K", r"eve\n     9  boss\r\u{9b}");
    let written = finish(configured(&root).args(["--actor", actor, "write", path]), b"x");
    assert!(written.success().starts_with(&format!("created {shown} (")), "{written:?}");
    let run = |args: &[&str]| with_config(&root, &[&["--actor", actor], args].concat());
    assert_eq!(run(&["commit"]).success(), format!("added    {shown}\ncommitted 1 file\n"));
    let log = run(&["log"]);
    let lines: Vec<_> = log.success().lines().collect();
    assert!(lines[0].ends_with(&format!("  {who}  ok  write {shown}")), "{lines:?}");
    assert!(lines[1].ends_with(&format!("  {who}  ok  commit /: 1 file: {shown}")), "{lines:?}");
    assert_eq!(lines.len(), 2);
    let history = run(&["history"]);
    assert_eq!(history.success().lines().count(), 1);
    assert!(history.out().contains(who) && history.out().ends_with(&format!("write {shown}\n")), "{history:?}");
    assert!(run(&["stat", path]).success().starts_with(&format!("path:     {shown}\n")));
    assert_eq!(run(&["undo"]).success(), format!("undid write {shown}\n"));
    let explained = run(&["policy", "explain", "write", path]);
    assert_eq!(explained.success(), format!("{shown}: allowed, because no policy applies\n"));
}

const LAYERED: &str = "[default]\ntype = 'local'\nroot = 'project'\n\
    layers = [{ type = 'checkpoints', store = 'kept/c' }, { type = 'overlay', store = 'kept/o' }, \
    { type = 'audit', file = 'kept/inner.jsonl', scope = 'changes' }]\n\
    [[layers]]\ntype = 'audit'\nfile = 'kept/outer.jsonl'\nscope = 'changes'\n";

#[test]
fn operations_on_layers_are_recorded_in_every_log_around_them() {
    let root = tree(&[("vfs.toml", LAYERED), ("project/a.txt", "one\n")]);
    let run = |args: &[&str]| with_config(&root, &[&["--actor", "boss"], args].concat());
    let taken = json_lines(run(&["checkpoint", "--json"]).success()).remove(0);
    let id = taken["id"].as_str().expect("an id").to_owned();
    let change =
        |text: &str| finish(configured(&root).args(["write", "--mode", "overwrite", "/a.txt"]), text.as_bytes());
    change("two\n").success();
    run(&["commit"]).success();
    change("three\n").success();
    run(&["discard"]).success();
    run(&["undo"]).success();
    run(&["restore", &id]).success();
    change("four\n").success();
    fs::write(root.path().join("project/a.txt"), "theirs\n").expect("a file");
    let refused = run(&["commit"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let expected = [
        format!("boss  ok  snapshot /: {id}"),
        "-  ok  write /a.txt".to_owned(),
        "boss  ok  commit /: 1 file: /a.txt".to_owned(),
        "-  ok  write /a.txt".to_owned(),
        "boss  ok  discard /: 1 file: /a.txt".to_owned(),
        "boss  ok  undo /: 1 operation: write /a.txt".to_owned(),
        format!("boss  ok  restore /: {id}"),
        "-  ok  write /a.txt".to_owned(),
        "boss  conflict  commit /: 1 conflict: /a.txt".to_owned(),
    ];
    for mount in [&[][..], &["--mount", "/"]] {
        let log = run(&[&["log"], mount].concat());
        let lines: Vec<_> = log.success().lines().map(|line| line.splitn(4, "  ").last().unwrap_or_default()).collect();
        let lines: Vec<_> = lines.iter().map(|line| line.split_once("Z  ").map_or(*line, |(_, rest)| rest)).collect();
        assert_eq!(lines, expected, "{mount:?}");
        run(&[&["log", "--verify"], mount].concat()).success();
    }
}

#[test]
fn a_log_of_maximum_size_is_continued() {
    let root = tree(&[("vfs.toml", AUDITED), ("a.txt", "one\n"), ("b.txt", "two\n")]);
    with_config(&root, &["read", "/a.txt"]).success();
    let log = root.path().join(".vfs/audit.jsonl");
    let record = fs::read(&log).expect("a log");
    // A hole before the record, so that the file is as long as one can be.
    let file = fs::File::create(&log).expect("a log");
    let start = (256 << 20) - record.len() as u64 - 1;
    file.write_all_at(b"\n", start).and_then(|()| file.write_all_at(&record, start + 1)).expect("a log");
    for name in ["/a.txt", "/b.txt"] {
        with_config(&root, &["rm", name]).success();
    }
    let records = fs::read_to_string(&log).expect("a log");
    let removed: Vec<_> = json_lines(&records).into_iter().map(|record| record["path"].clone()).collect();
    assert_eq!(removed, ["/a.txt", "/b.txt"], "both are recorded");
    assert!(root.path().join(".vfs/audit.jsonl.1").exists());
}

#[test]
fn a_log_over_the_size_that_the_process_may_write_goes_on_in_a_new_file() {
    let root = tree(&[("vfs.toml", AUDITED), ("a.txt", "one\n")]);
    let requests = "{\"op\":\"stat\",\"path\":\"/a.txt\"}\n".repeat(2000);
    finish(configured(&root).arg("batch"), requests.as_bytes()).success();
    // 600 blocks are 300 KiB for some shells and 600 KiB for others, and the log has more than 800 KB.
    let limited = format!("ulimit -f 600; {:?} --config vfs.toml read /a.txt", env!("CARGO_BIN_EXE_vfs"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &limited]).current_dir(root.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    assert_eq!(finish(&mut shell, b"").success(), "one\n");
    assert!(root.path().join(".vfs/audit.jsonl.2000").exists());
    with_config(&root, &["log", "--verify"]).success();
}
