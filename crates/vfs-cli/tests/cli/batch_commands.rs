//! `vfs batch` with requests and answers in turns: commands, jobs, cancellation and timeouts.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::batch::{ends, one, one_of, open_batch};
use crate::{finish, json_lines, tree, vfs_with_input};

/// A batch whose requests and answers go one by one.
struct Talk {
    batch: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Talk {
    fn open(root: &TempDir, args: &[&str]) -> Self {
        let (mut batch, answers) = open_batch(root, args);
        let requests = batch.stdin.take().expect("a pipe");
        Self { batch, requests, answers }
    }

    fn ask(&mut self, request: &Value) {
        writeln!(self.requests, "{request}").expect("it reads");
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).expect("an answer is JSON")
    }

    fn ends(self) {
        drop(self.requests);
        ends(self.batch);
    }
}

#[test]
fn a_request_is_cancelled_by_its_id_while_others_wait() {
    let root = tree(&[]);
    let mut talk = Talk::open(&root, &["--allow", "exec"]);
    talk.ask(&json!({"id": [1], "op": "execute", "command": "echo begun >/dev/null; sleep 1000"}));
    talk.ask(&json!({"id": 2, "op": "stat", "path": "/"}));
    talk.ask(&json!({"id": 3, "op": "write", "path": "/never", "content": ""}));
    talk.ask(&json!({"id": 4, "op": "cancel", "request": 3}));
    talk.ask(&json!({"id": 5, "op": "cancel", "request": 77}));
    talk.ask(&json!({"id": 6, "op": "cancel", "request": [1]}));
    let answers: Vec<_> = (0..6).map(|_| talk.answer()).collect();
    assert_eq!(answers[0]["error"]["code"], "cancelled", "{}", answers[0]);
    assert_eq!(answers[0]["id"], json!([1]));
    assert_eq!(answers[1]["ok"]["is_dir"], true);
    assert_eq!(answers[2]["error"]["code"], "cancelled", "{}", answers[2]);
    assert_eq!([3, 4, 5].map(|n| answers[n]["ok"]["cancelled"].as_bool()), [Some(true), Some(false), Some(true)]);
    assert!(!root.path().join("never").exists());
    for faulty in [json!({"op": "cancel"}), json!({"op": "cancel", "request": 1, "path": "/"})] {
        talk.ask(&faulty);
        assert_eq!(talk.answer()["error"]["code"], "invalid_argument");
    }
    talk.ends();
}

#[test]
fn a_request_ends_at_its_timeout() {
    let root = tree(&[]);
    let mut talk = Talk::open(&root, &["--allow", "exec"]);
    talk.ask(&json!({"op": "execute", "command": "exec sleep 1000", "timeout_ms": 100}));
    let answer = talk.answer();
    assert_eq!(answer["ok"]["timed_out"], true, "{answer}");
    talk.ask(&json!({"op": "stat", "path": "/", "timeout_ms": 0}));
    assert_eq!(talk.answer()["error"]["code"], "timeout");
    talk.ask(&json!({"op": "stat", "path": "/", "timeout_ms": 600_000}));
    assert_eq!(talk.answer()["ok"]["is_dir"], true);
    talk.ask(&json!({"op": "stat", "path": "/", "timeout_ms": "soon"}));
    assert_eq!(talk.answer()["error"]["code"], "invalid_argument");
    talk.ends();
}

#[test]
fn commands_run_where_they_are_allowed() {
    let root = tree(&[("src/a", "1")]);
    let refused = one(&root, &json!({"op": "execute", "command": "true"}).to_string());
    assert_eq!(refused["error"]["code"], "policy_denied", "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|message| message.contains("--allow exec")));
    for shell in [&["--allow", "exec"][..], &["--allow", "exec", "--virtual"]] {
        let mut talk = Talk::open(&root, shell);
        talk.ask(&json!({"op": "execute", "command": "ls; exit 3", "cwd": "src"}));
        let ran = talk.answer();
        assert_eq!((&ran["ok"]["output"], &ran["ok"]["exit_code"]), (&json!("a\n"), &json!(3)), "{ran}");
        assert!(ran["ok"].get("stdout").is_none(), "the output is there once: {ran}");
        talk.ends();
    }
    vfs_with_input(&root, &["batch", "--virtual"], b"").failure("--allow exec");
    let answer = one_of(&root, &["--allow", "exec"], r#"{"id":5,"op":"stop_job"}"#);
    assert!(answer["error"]["message"].as_str().is_some_and(|message| message.contains("`job`")), "{answer}");
}

#[test]
fn a_command_starts_where_relative_paths_do() {
    let root = tree(&[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_vfs"));
    command.args(["--host", "batch", "--allow", "exec"]).current_dir(root.path());
    let run = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()), br#"{"op":"execute","command":"pwd -P"}"#);
    let expected = fs::canonicalize(root.path()).expect("it is there");
    assert_eq!(json_lines(run.success())[0]["ok"]["output"], format!("{}\n", expected.display()));
}

#[test]
fn a_batch_ends_well_where_a_policy_denies_commands() {
    let config = "[default]\ntype = 'memory'\n\n[[layers]]\ntype = 'policy'\n\
                  rules = [{ effect = 'deny', operations = ['execute', 'jobs'] }]\n";
    let root = tree(&[("vfs.toml", config)]);
    let requests = [json!({"op": "stat", "path": "/"}), json!({"op": "execute", "command": "true"})];
    let input = requests.map(|request| format!("{request}\n")).concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_vfs"));
    command.args(["batch", "--allow", "exec", "--virtual", "--config"]).arg(root.path().join("vfs.toml"));
    let run = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()), input.as_bytes());
    let answers = json_lines(run.success());
    assert_eq!(answers[0]["ok"]["is_dir"], true);
    assert_eq!(answers[1]["error"]["code"], "policy_denied");
}

#[test]
fn jobs_are_listed_read_and_ended_and_end_with_the_batch() {
    let root = tree(&[]);
    let mut talk = Talk::open(&root, &["--allow", "exec"]);
    talk.ask(&json!({"op": "execute", "command": "echo $$; exec sleep 1000", "run": "background"}));
    let job = talk.answer()["ok"]["job"].clone();
    talk.ask(&json!({"op": "jobs"}));
    assert_eq!(talk.answer()["ok"]["jobs"][0]["id"], job);
    talk.ask(&json!({"op": "job_output", "job": job, "wait": 60}));
    let printed = talk.answer();
    let process = printed["ok"]["output"].as_str().expect("its number").trim().to_owned();
    talk.ask(&json!({"op": "stop_job", "job": job}));
    assert_eq!(talk.answer()["ok"]["id"], job);
    assert!(!fs::exists(format!("/proc/{process}")).expect("looked at"));
    talk.ask(&json!({"op": "job_output", "job": "none"}));
    assert_eq!(talk.answer()["error"]["code"], "not_found");
    talk.ask(&json!({"op": "execute", "command": "echo $$; exec sleep 1000", "run": "background"}));
    let job = talk.answer()["ok"]["job"].clone();
    talk.ask(&json!({"op": "job_output", "job": job, "wait": 60}));
    let process = talk.answer()["ok"]["output"].as_str().expect("its number").trim().to_owned();
    talk.ends();
    let command = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    assert!(!command.contains("sleep"), "it has ended: {command}");
}
