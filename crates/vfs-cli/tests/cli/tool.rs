//! Command `vfs tool`.

use crate::{json_lines, tree, vfs, vfs_with_input};

#[test]
fn tools_are_listed_as_a_model_is_given_them() {
    let root = tree(&[("a.txt", "one\n")]);
    let listed = json_lines(vfs(&root, &["tool", "list", "--json"]).success());
    let names: Vec<_> = listed[0].as_array().expect("a list").iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["list", "search", "read", "edit", "write", "manage"]);
    let with_commands = vfs(&root, &["tool", "--allow", "exec", "list"]);
    assert!(with_commands.success().contains("\nrun: Runs a command"), "{with_commands:?}");
    let current = vfs(&root, &["tool", "list", "--profile", "deepagents"]);
    assert!(current.success().contains("\ndelete: Deletes a file"), "{current:?}");
    vfs(&root, &["tool", "list", "--profile", "deepagent"]).failure("did you mean 'deepagents'?");
    vfs(&root, &["tool", "--virtual", "list"]).failure("need --allow exec");
}

#[test]
fn a_schema_is_plain_or_strict() {
    let root = tree(&[]);
    let required = |args: &[&str]| {
        let schema: serde_json::Value = serde_json::from_str(vfs(&root, args).success()).expect("JSON");
        schema["required"].clone()
    };
    assert_eq!(required(&["tool", "schema", "read"]), serde_json::json!(["path"]));
    let strict = required(&["tool", "schema", "--strict", "read"]);
    assert_eq!(strict, serde_json::json!(["path", "lines", "symbol", "outline", "bytes"]));
    vfs(&root, &["tool", "schema", "open"]).failure("there is no tool 'open'; the tools are list, ");
}

#[test]
fn a_call_prints_what_a_model_sees_and_fails_with_its_error() {
    let root = tree(&[("a.txt", "one\n")]);
    let read = vfs(&root, &["tool", "call", "read", r#"{"path": "a.txt"}"#]);
    assert!(read.success().starts_with("/a.txt 1 of 1 @") && read.success().ends_with("\n1\tone\n"), "{read:?}");
    let call =
        |tool: &str, arguments: &str| vfs(&root, &["tool", "--profile", "deepagents_classic", "call", tool, arguments]);
    assert_eq!(call("read_file", r#"{"file_path": "/a.txt"}"#).success(), "     1\tone\n");
    assert_eq!(call("read_file", r#"{"file_path": "b.txt"}"#).refused(), "Error: File '/b.txt' not found\n");
    assert_eq!(call("ls", "[1]").refused(), "Error: the arguments have to be a JSON object; got a list of 1\n");
    assert_eq!(call("ls", "{}").refused(), "Error: `path` is missing; it has to be a path\n");
    call("open", "{}").failure("there is no tool 'open'");
    let found = vfs_with_input(&root, &["tool", "call", "search", "-"], br#"{"pattern": "one"}"#);
    assert_eq!(found.success(), "1 matching line\n/a.txt\n1: one\n");
    let run =
        vfs(&root, &["tool", "--allow", "exec", "--virtual", "call", "run", r#"{"command": "cat /a.txt; exit 3"}"#]);
    assert_eq!(run.refused(), "one\n[exit 3]\n");
}
