//! The descriptions of the fields of `vfs batch`: `docs/batch.md` and the help.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{json_lines, tree, vfs, vfs_with_input};

const PAGE: &str = include_str!("../../../../docs/batch.md");

const OPERATIONS: [&str; 19] = [
    "stat",
    "resolve",
    "capabilities",
    "ls",
    "read",
    "write",
    "edit",
    "delete",
    "rename",
    "copy",
    "glob",
    "grep",
    "upload_files",
    "download_files",
    "cancel",
    "execute",
    "jobs",
    "job_output",
    "stop_job",
];

type Fields = BTreeSet<String>;

fn answers(root: &TempDir, input: &str) -> Vec<Value> {
    json_lines(vfs_with_input(root, &["batch", "--allow", "exec", "--virtual"], input.as_bytes()).success())
}

/// The words in backquotes of `text`.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The fields that the program accepts for `op`, as the error of an unknown one lists them.
fn accepted(root: &TempDir, op: &str) -> Fields {
    let answer = answers(root, &json!({"?": 1, "op": op, "job": "x"}).to_string()).remove(0);
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{op}: {answer}"));
    let (_, listed) = message.split_once("`?`").unwrap_or_else(|| panic!("{op}: {message}"));
    let names = quoted(listed).filter(|name| *name != "cancel");
    // The id of a job has a name of its own in a batch.
    names.map(|name| if name == "id" { "job" } else { name }.to_owned()).collect()
}

/// The fields of all tables of the page, by the operations of their heading.
fn on_the_page() -> BTreeMap<Vec<&'static str>, Fields> {
    let mut sections = BTreeMap::new();
    for section in PAGE.split("\n## ").skip(1) {
        let operations: Vec<_> = quoted(section.lines().next().unwrap_or_default()).collect();
        let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
        let fields = cells.flat_map(|cell| cell.split(['`', ',', ' ']).filter(|name| !name.is_empty()));
        sections.insert(operations, fields.map(str::to_owned).collect());
    }
    sections
}

#[test]
fn the_page_describes_every_field_of_every_operation() {
    let root = tree(&[]);
    let mut described = Fields::new();
    for (operations, fields) in on_the_page() {
        let accepted: Fields = operations.iter().flat_map(|op| accepted(&root, op)).collect();
        assert_eq!(fields, accepted, "{operations:?}");
        if operations.contains(&"upload_files") {
            let of_a_file = json!({"op": "upload_files", "files": [{"path": "/u", "content": "", "?": 1}]});
            let answer = answers(&root, &of_a_file.to_string()).remove(0);
            let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
            let (_, listed) = message.split_once("`?`").unwrap_or_else(|| panic!("{message}"));
            for field in quoted(listed) {
                assert!(PAGE.contains(&format!("`{field}`")), "{field} of a file is missing");
            }
        }
        described.extend(operations.into_iter().map(str::to_owned));
    }
    assert_eq!(described, OPERATIONS.map(str::to_owned).into());
}

/// Replaces the values of an answer that differ from run to run.
fn without_changing_values(mut answer: Value) -> Value {
    match &mut answer {
        Value::Object(fields) => {
            // Not every file system records when a file was created.
            fields.remove("created_at");
            for (name, value) in fields {
                *value = match name.as_str() {
                    "version" | "modified_at" | "started" | "duration" => Value::Null,
                    _ => without_changing_values(value.take()),
                };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_changing_values(item.take())),
        _ => {}
    }
    answer
}

#[test]
fn the_examples_of_the_page_run_as_written() {
    let root = tree(&[("src/main.rs", "fn main() {\n    run();\n}\n")]);
    let blocks = PAGE.split("```json\n").skip(1).filter_map(|block| block.split("```").next());
    let input: String = blocks.collect();
    let run = vfs_with_input(&root, &["batch", "--allow", "exec"], input.as_bytes());
    let answers = json_lines(run.success());
    assert_eq!(answers.len(), input.lines().count());
    for (line, answer) in input.lines().zip(&answers) {
        assert!(answer["ok"].is_object(), "{line}: {answer}");
    }
    for (id, field) in [(14, "entries"), (15, "matches"), (16, "matches")] {
        assert_eq!(answers[id - 1]["ok"][field].as_array().map(Vec::is_empty), Some(false), "{}", answers[id - 1]);
    }
    let shown = PAGE.split("```jsonl\n").nth(1).and_then(|block| block.split("```").next()).expect("answers");
    for shown in json_lines(shown) {
        let answer = answers.iter().find(|answer| answer["id"] == shown["id"]).unwrap_or_else(|| panic!("{shown}"));
        assert_eq!(without_changing_values(answer.clone()), without_changing_values(shown));
    }
    let operations: Vec<Value> = json_lines(&input).into_iter().map(|mut request| request["op"].take()).collect();
    assert!(OPERATIONS.iter().all(|op| operations.contains(&json!(op))), "{operations:?}");
}

#[test]
fn the_help_lists_every_field_of_every_operation() {
    let root = tree(&[]);
    let help = vfs(&root, &["batch", "--help"]);
    let (_, list) = help.success().split_once("optional ones in brackets").expect("a list");
    for op in OPERATIONS {
        let starts = |line: &&str| line.split([' ', ',', '(']).any(|word| word == op) && !line.starts_with("   ");
        let mut lines = list.lines().skip_while(|line| !starts(line));
        let first = lines.next().unwrap_or_else(|| panic!("{op} is missing: {list}"));
        let more = lines.take_while(|line| line.starts_with("        "));
        let listed = first.get(20..).into_iter().chain(more).collect::<Vec<_>>().join(" ");
        let words: BTreeSet<_> = listed.split([' ', ',', '[', ']']).collect();
        for field in accepted(&root, op) {
            // An older spelling of a field need not be shown.
            assert!(words.contains(&*field) || field.ends_with("_string"), "{op}: {field} is missing in {listed:?}");
        }
    }
}
