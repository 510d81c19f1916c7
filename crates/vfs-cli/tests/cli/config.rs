//! Configured namespaces: `--config` and `vfs config`.

use std::fs;

use crate::{command, configured, finish, json_lines, tree, vfs, with_config};

const MOUNTED: &str = "[default]\ntype = 'local'\nroot = 'project'\nlayers = [{ type = 'read_only' }]\n\
    [[mounts]]\npath = '/memories'\ntype = 'local'\nroot = 'state'\nlayers = [{ type = 'scoped', directory = '/one' }]\n\
    [[mounts]]\npath = '/scratch/deep'\ntype = 'memory'\n";

#[test]
fn every_command_works_on_the_whole_namespace() {
    let root = tree(&[("vfs.toml", MOUNTED), ("project/src/a.rs", "fn read() {}\n"), ("state/one/plan.md", "read\n")]);
    assert_eq!(with_config(&root, &["ls"]).success(), "/memories/\n/scratch/\n/src/\n");
    assert_eq!(with_config(&root, &["glob", "*"]).success(), "/memories/plan.md\n/src/a.rs\n");
    assert_eq!(with_config(&root, &["grep", "read"]).success(), "/memories/plan.md:1:read\n/src/a.rs:1:fn read() {}\n");
    assert_eq!(with_config(&root, &["read", "memories/plan.md"]).success(), "read\n");
    assert!(with_config(&root, &["stat", "/scratch"]).success().contains("kind:     directory\n"));
    assert!(with_config(&root, &["cp", "/src/a.rs", "/memories/b.rs"]).success().starts_with("copied"));
    assert!(with_config(&root, &["mv", "/memories/b.rs", "/memories/c.rs"]).success().starts_with("moved"));
    with_config(&root, &["rm", "/src/a.rs"]).failure("permission_denied: /src/a.rs");
    with_config(&root, &["read", "../vfs.toml"]).failure("invalid_path");
    finish(configured(&root).args(["write", "/memories/new/x"]), b"x").success();
    assert_eq!(fs::read_to_string(root.path().join("state/one/new/x")).expect("a file"), "x");
    let batch = finish(configured(&root).arg("batch"), b"{\"op\":\"ls\",\"path\":\"/memories\"}\n");
    assert_eq!(json_lines(batch.success())[0]["ok"]["entries"].as_array().map(Vec::len), Some(3));
}

#[test]
fn mounts_lists_paths_backends_and_access() {
    let root = tree(&[("vfs.toml", MOUNTED), ("project/a", ""), ("state/one/x", "")]);
    let listed = with_config(&root, &["mounts"]);
    let rows: Vec<Vec<_>> = listed.success().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["PATH", "BACKEND", "ACCESS", "EXECUTOR"]);
    assert_eq!(rows[1], ["/", "read_only(local)", "read-only", "no"]);
    assert_eq!((rows[2][0], rows[3][0], rows[3][2]), ("/memories", "/scratch/deep", "read-write"));
    let json = json_lines(with_config(&root, &["mounts", "--json"]).success());
    assert_eq!((&json[0]["path"], &json[0]["capabilities"]["access"]), (&"/".into(), &"read_only".into()));
    assert!(vfs(&root, &["mounts"]).success().contains("/     local    read-write  no\n"));
}

#[test]
fn a_policy_is_listed_apart_from_the_protection_of_the_configuration() {
    let text = "[default]\ntype = 'local'\nroot = '.'\nlayers = [\n  { type = 'overlay', store = '.vfs/overlay' },\n  \
                { type = 'policy', rules = [{ effect = 'deny', paths = ['/secrets'] }] },\n]\n";
    let root = tree(&[("vfs.toml", text)]);
    let listed = with_config(&root, &["mounts"]);
    assert!(listed.success().contains("policy(overlay(protection(local)))  "), "{listed:?}");
}

#[test]
fn an_error_names_the_file_the_line_and_the_key() {
    let root = tree(&[("vfs.toml", "[default]\ntype = 'memory'\n\n[[layers]]\ntype = 'quota'\nmax_fils = 3\n")]);
    let run = with_config(&root, &["ls"]);
    run.failure("vfs.toml:6:1: layers[0].max_fils: unknown field `max_fils`; did you mean `max_files`?");
    fs::write(root.path().join("vfs.toml"), "[default]\ntype = 'local'\nroot = 'absent'\n").expect("a file");
    with_config(&root, &["config", "check"]).failure("vfs.toml:3:8: default.root: root ");
    fs::remove_file(root.path().join("vfs.toml")).expect("it was there");
    with_config(&root, &["ls"])
        .failure("vfs.toml: the file cannot be read: the file does not exist; create it, or name another one");
    fs::create_dir(root.path().join("vfs.toml")).expect("a directory");
    with_config(&root, &["ls"]).failure("vfs.toml: the file cannot be read: it is a directory; name a file");
}

#[test]
fn a_root_that_is_no_directory_is_named_with_the_reason() {
    let root = tree(&[("file", "")]);
    let at = |name: &str| root.path().join(name).display().to_string();
    for (name, reason) in [
        ("absent", "the directory does not exist; create it, or name another one"),
        ("file", "it is not a directory; name a directory"),
    ] {
        finish(command(&root.path().join(name)).arg("ls"), b"")
            .failure(&format!("root '{}' cannot be opened: {reason}", at(name)));
        finish(command(&root.path().join(name)).args(["exec", "--", "true"]), b"")
            .failure(&format!("root '{}' cannot be opened: {reason}", at(name)));
        finish(command(&root.path().join(name)).args(["sandbox", "check"]), b"").failure(&at(name));
        fs::write(root.path().join("vfs.toml"), format!("[default]\ntype = 'local'\nroot = '{name}'\n"))
            .expect("a file");
        with_config(&root, &["ls"]).failure(&format!("root '{}' cannot be opened: {reason}", at(name)));
    }
    for layer in ["overlay", "checkpoints"] {
        let text = format!("[default]\ntype = 'memory'\nlayers = [{{ type = '{layer}', store = 'file' }}]\n");
        fs::write(root.path().join("vfs.toml"), text).expect("a file");
        with_config(&root, &["ls"]).failure(&format!("store '{}' cannot be opened: it is not a directory", at("file")));
    }
}

#[test]
fn config_excludes_root_and_is_required_by_commands_on_layers() {
    let root = tree(&[("vfs.toml", MOUNTED), ("project/a", ""), ("state/one/x", "")]);
    with_config(&root, &["--root", ".", "ls"]).failure("leave out --root and --host");
    with_config(&root, &["ls", "--host"]).failure("leave out --root and --host");
    for command in ["diff", "commit", "discard", "undo", "history", "checkpoint", "checkpoints", "log"] {
        vfs(&root, &[command]).failure("this command needs a vfs.toml");
        with_config(&root, &[command]).failure("there is no layer of the type");
    }
    vfs(&root, &["policy", "explain", "read", "/"]).failure("this command needs a vfs.toml");
}

#[test]
fn config_checks_and_shows_the_schema_and_an_example() {
    let root = tree(&[("vfs.toml", MOUNTED), ("project/a", ""), ("state/one/x", "")]);
    let checked = with_config(&root, &["config", "check"]);
    assert!(checked.success().ends_with("the configuration is valid\n"), "{checked:?}");
    let schema = vfs(&root, &["config", "schema"]);
    let schema: serde_json::Value = serde_json::from_str(schema.success()).expect("JSON");
    assert_eq!(schema["title"], "vfs.toml");
    let example = vfs(&root, &["config", "example"]);
    assert_eq!(example.success(), include_str!("../../../../docs/vfs.example.toml"));
}

#[test]
fn a_directory_that_is_reachable_through_two_mounts_is_a_warning() {
    let text = "[default]\ntype = 'local'\nroot = '.'\n[[mounts]]\npath = '/m'\ntype = 'local'\nroot = 'project'\n";
    let root = tree(&[("vfs.toml", text), ("project/a", "")]);
    let run = with_config(&root, &["ls", "/m"]);
    assert_eq!((run.code, run.out(), run.err.lines().count()), (Some(0), "/m/a\n", 1), "{run:?}");
    assert!(run.err.starts_with("vfs: warning: ") && run.err.contains("vfs.toml:7:8: mounts[0].root: "), "{run:?}");
}

#[test]
fn a_quota_counts_the_files_in_each_process_and_only_its_own_operations() {
    let quota = "[default]\ntype = 'local'\nroot = 'project'\n\
        layers = [{ type = 'quota', max_files = 3, max_operations = { count = 1, window = '1h' } }]\n";
    let root = tree(&[("vfs.toml", quota), ("project/a", "")]);
    for name in ["/1", "/2"] {
        finish(configured(&root).args(["write", name]), b"x").success();
    }
    finish(configured(&root).args(["write", "/3"]), b"x").failure("quota_exceeded: /3");
    let twice = finish(configured(&root).arg("batch"), b"{\"op\":\"ls\",\"path\":\"/\"}\n".repeat(2).as_slice());
    let answers = json_lines(twice.success());
    assert_eq!(answers.iter().filter(|answer| answer["error"]["code"] == "quota_exceeded").count(), 1, "{answers:?}");
}
