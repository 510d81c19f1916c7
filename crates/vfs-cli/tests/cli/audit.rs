//! The audit log.

use std::fs;

use crate::{configured, finish, json_lines, tree, with_config};

const AUDITED: &str = "[default]\ntype = 'local'\nroot = '.'\n[[layers]]\ntype = 'audit'\nfile = '.vfs/audit.jsonl'\n";

#[test]
fn the_log_goes_on_from_process_to_process_and_shows_its_records() {
    let root = tree(&[("vfs.toml", AUDITED), ("a.txt", "one\n")]);
    let run = |args: &[&str]| with_config(&root, args);
    assert_eq!(run(&["log"]).success(), "");
    finish(configured(&root).args(["--actor", "planner", "read", "/a.txt"]), b"").success();
    run(&["read", "/absent"]).failure("not_found");
    run(&["mv", "/a.txt", "/b.txt"]).success();
    run(&["grep", "one"]).success();

    let log = run(&["log"]);
    let lines: Vec<_> = log.success().lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("     1  20") && lines[0].ends_with("Z  planner  ok  read /a.txt"), "{lines:?}");
    assert!(lines[1].ends_with("-  not_found  read /absent"), "{lines:?}");
    assert!(lines[2].ends_with("-  ok  rename /a.txt to /b.txt"), "{lines:?}");
    assert!(lines[3].ends_with("-  ok  grep_stream /"), "{lines:?}");
    assert_eq!(run(&["log", "-n", "1"]).success().lines().count(), 1);
    let json = json_lines(run(&["log", "--json", "-n", "2"]).success());
    assert_eq!((&json[0]["operation"], &json[1]["matches"]), (&"rename".into(), &1.into()));
    assert!(run(&["log", "--verify"]).success().starts_with("4 records are as they were written; the head is "));
    let head = json_lines(run(&["log", "--verify", "--json"]).success()).remove(0);
    assert_eq!((&head["sequence"], &head["hash"]), (&4.into(), &json[1]["hash"]));
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
    assert_eq!(json_lines(with_config(&root, &["log", "--verify", "--json"]).refused())[0]["sequence"], 2);
    let without: String =
        text.split_inclusive('\n').enumerate().filter(|(at, _)| *at != 1).map(|(_, line)| line).collect();
    fs::write(&log, without).expect("a log");
    assert_eq!(with_config(&root, &["log", "--verify"]).refused(), "another record is in the place of record 2\n");
    fs::write(&log, &text[..text.len() - 9]).expect("a log");
    with_config(&root, &["ls"]).failure("move it away to begin a new one");
    assert_eq!(
        with_config(&root, &["log", "--verify"]).refused(),
        "line 3 of the audit log is not complete; it was cut\n"
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
