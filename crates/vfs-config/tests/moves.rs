//! The journal of moves across mounts, and the recovery of interrupted moves when a namespace is opened.
#![allow(clippy::disallowed_methods, reason = "what is opened is set up and looked at from outside")]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use vfs_composite::{CompositeBackend, RecoveryOutcome};
use vfs_config::{Config, ConfigError, ConfigErrorKind, ConfiguredBackend};
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, Error, ErrorKind, Interceptor, OpContext, Operation, ReadRequest, RenameRequest, StatRequest,
    VfsPath, WriteRequest,
};
use vfs_local::LocalBackend;

fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    for (path, content) in files {
        write(&root, path, content);
    }
    root
}

fn write(root: &TempDir, path: &str, content: &str) {
    let path = root.path().join(path);
    fs::create_dir_all(path.parent().expect("it is below the root")).expect("directories");
    fs::write(path, content).expect("a file");
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

async fn open(root: &TempDir, text: &str) -> Result<ConfiguredBackend, ConfigError> {
    write(root, "vfs.toml", text);
    vfs_config::open(root.path().join("vfs.toml")).await
}

fn local(root: &TempDir, directory: &str) -> Value {
    let root = fs::canonicalize(root.path()).expect("it is there").join(directory);
    json!({ "kind": "local", "root": root })
}

/// Two directories in one namespace, with a move of `/d` to `/m/d` that was interrupted when one of two files was copied.
async fn interrupted() -> TempDir {
    let root = tree(&[("one/d/a", "a"), ("one/d/b", "b"), ("two/d/a", "a")]);
    let target = local(&root, "two");
    interrupt(&root, target).await;
    root
}

/// Writes the record of a move of `/d` in the directory `one` to `/m/d`, where `target` is mounted.
async fn interrupt(root: &TempDir, target: Value) {
    let configured = open(root, MOVES).await.expect("the configuration is valid");
    let mut files = Vec::new();
    for name in ["a", "b"] {
        let from = format!("/d/{name}");
        let info = configured.backend.stat(&OpContext::new(), StatRequest::new(path(&from))).await;
        let version = info.expect("it is there").version;
        files.push(json!({ "from": from, "to": format!("/m/d/{name}"), "kind": "file", "version": version }));
    }
    let record = json!({
        "from": "/d", "to": "/m/d", "files": files,
        "source": { "path": "/", "identity": local(root, "one") }, "target": { "path": "/m", "identity": target },
    });
    write(root, ".vfs/moves/move-1-0.json", &record.to_string());
}

/// Edits the record of the move.
fn edit_record(root: &TempDir, edit: impl FnOnce(&mut Value)) {
    let record = root.path().join(".vfs/moves/move-1-0.json");
    let mut value = serde_json::from_str(&fs::read_to_string(&record).expect("it is there")).expect("a record");
    edit(&mut value);
    fs::write(&record, value.to_string()).expect("a file");
}

async fn rename(configured: &ConfiguredBackend, from: &str, to: &str) -> vfs_core::Result<()> {
    configured.backend.rename(&OpContext::new(), RenameRequest::new(path(from), path(to))).await.map(drop)
}

const MOVES: &str = "[default]\ntype = 'local'\nroot = 'one'\n[[mounts]]\npath = '/m'\ntype = 'local'\nroot = 'two'\n";

fn records(root: &TempDir) -> usize {
    let entries = fs::read_dir(root.path().join(".vfs/moves")).expect("the journal is there");
    entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name() != "lock")).count()
}

fn contents(root: &TempDir, file: &str) -> Option<String> {
    fs::read_to_string(root.path().join(file)).ok()
}

#[tokio::test]
async fn the_next_opening_finishes_an_interrupted_move() {
    let root = interrupted().await;
    let configured = open(&root, MOVES).await.expect("the configuration is valid");
    assert_eq!((configured.recovery.moves.len(), configured.warnings.len()), (1, 0), "{configured:?}");
    assert_eq!((contents(&root, "two/d/a").as_deref(), contents(&root, "two/d/b").as_deref()), (Some("a"), Some("b")));
    assert!(!root.path().join("one/d").exists());
    assert_eq!(records(&root), 0);
}

#[tokio::test]
async fn a_recovery_is_recorded_in_the_audit_log_around_the_namespace() {
    let root = interrupted().await;
    let text = format!("layers = [{{ type = 'audit', file = 'audit.jsonl' }}]\n{MOVES}");
    for _ in 0..2 {
        let configured = open(&root, &text).await.expect("the configuration is valid");
        assert!(configured.warnings.is_empty(), "{:?}", configured.warnings);
        let log = contents(&root, "audit.jsonl").expect("it is there");
        let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
        let [record] = &records[..] else { panic!("{log}") };
        assert_eq!((&record["operation"], &record["path"]), (&json!("recover"), &json!("/d")), "{log}");
        assert_eq!((&record["outcome"], &record["detail"]), (&json!("ok"), &json!("to /m/d: finished")), "{log}");
    }
}

#[tokio::test]
async fn a_failed_recovery_is_recorded_once_for_the_caller_of_the_move() {
    let root = interrupted().await;
    edit_record(&root, |record| record["actor"] = json!("ann"));
    fs::write(root.path().join("two/d/a"), "changed since").expect("a file");
    let text = format!("layers = [{{ type = 'audit', file = 'audit.jsonl' }}]\n{MOVES}");
    let log = || {
        let log = contents(&root, "audit.jsonl").expect("it is there");
        let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
        records
    };
    for _ in 0..3 {
        let configured = open(&root, &text).await.expect("the configuration is valid");
        assert_eq!(configured.warnings.len(), 1, "{:?}", configured.warnings);
        let [record] = &log()[..] else { panic!("{:?}", log()) };
        assert_eq!((&record["operation"], &record["actor"]), (&json!("recover"), &json!("ann")));
        assert_eq!(record["outcome"], json!("conflict"), "{record}");
    }
    fs::remove_file(root.path().join("one/d/a")).expect("it is there");
    open(&root, &text).await.expect("the configuration is valid");
    let [_, record] = &log()[..] else { panic!("{:?}", log()) };
    assert_eq!((&record["actor"], &record["detail"]), (&json!("ann"), &json!("to /m/d: finished")));
}

#[tokio::test]
async fn no_move_is_recovered_in_a_read_only_namespace() {
    let root = interrupted().await;
    let configured = open(&root, &format!("layers = [{{ type = 'read_only' }}]\n{MOVES}"))
        .await
        .expect("the configuration is valid");
    let [warning] = &configured.warnings[..] else { panic!("{:?}", configured.warnings) };
    assert!(warning.message.contains("the namespace is read-only"), "{warning}");
    assert_eq!((configured.recovery.moves.len(), records(&root), contents(&root, "two/d/b")), (0, 1, None));
}

#[tokio::test]
async fn a_move_that_cannot_be_recovered_is_a_warning_that_names_both_paths() {
    let root = interrupted().await;
    fs::write(root.path().join("two/d/a"), "changed since").expect("a file");
    fs::write(root.path().join(".vfs/moves/move-0-0.json"), "{").expect("a file");
    for _ in 0..2 {
        let configured = open(&root, MOVES).await.expect("it opens all the same");
        let warnings: Vec<_> = configured.warnings.iter().map(ToString::to_string).collect();
        let [stuck, unreadable] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(stuck.contains("'/d' to '/m/d'") && stuck.contains("move-1-0.json"), "{stuck}");
        assert!(unreadable.contains("move-0-0.json"), "{unreadable}");
        assert_eq!((contents(&root, "one/d/a").as_deref(), contents(&root, "one/d/b")), (Some("a"), None));
        assert_eq!(contents(&root, "two/d/a").as_deref(), Some("changed since"));
    }
    fs::remove_file(root.path().join("one/d/a")).expect("it is there");
    let configured = open(&root, MOVES).await.expect("the configuration is valid");
    assert_eq!((configured.warnings.len(), configured.recovery.moves.len(), records(&root)), (1, 1, 1));
}

#[tokio::test]
async fn a_rollback_that_was_interrupted_restores_directories_without_files() {
    let root = tree(&[("one/d/a", "a"), ("one/d/b", "b"), ("two/d/empty/.vfs-directory", "")]);
    let target = local(&root, "two");
    interrupt(&root, target).await;
    edit_record(&root, |record| {
        record["empty"] = json!(["/m/d/empty", "/m/d/other/empty"]);
        record["is_rolling_back"] = json!(true);
    });
    let configured = open(&root, MOVES).await.expect("the configuration is valid");
    assert_eq!((&configured.recovery.moves[0].outcome, configured.warnings.len()), (&RecoveryOutcome::RolledBack, 0));
    for directory in ["empty", "other/empty"] {
        let entries = fs::read_dir(root.path().join("one/d").join(directory)).expect("it is restored");
        assert_eq!(entries.count(), 0);
    }
    assert!(!root.path().join("two/d").exists());
}

#[tokio::test]
async fn a_file_stays_at_the_source_while_a_link_to_it_cannot_be_copied() {
    for is_reached_through_a_link in [false, true] {
        let root = tree(&[("one/real/d/a", "a"), ("two/d/a", "a"), ("two/d/b", "of somebody else")]);
        symlink("a", root.path().join("one/real/d/b")).expect("a link");
        symlink("real", root.path().join("one/ln")).expect("a link");
        symlink("real/d", root.path().join("one/d")).expect("a link");
        let target = local(&root, "two");
        interrupt(&root, target).await;
        edit_record(&root, |record| {
            record["files"][1]["kind"] = json!("link");
            let from = if is_reached_through_a_link { "/ln/d" } else { "/real/d" };
            record["from"] = json!(from);
            for (file, name) in [(0, "a"), (1, "b")] {
                record["files"][file]["from"] = json!(format!("{from}/{name}"));
            }
        });
        for _ in 0..2 {
            let configured = open(&root, MOVES).await.expect("it opens all the same");
            let [stuck] = &configured.warnings[..] else { panic!("{:?}", configured.warnings) };
            assert!(stuck.message.contains("cannot be recovered at '/m/d/b'"), "{stuck}");
            for name in ["a", "b"] {
                assert_eq!(contents(&root, &format!("one/real/d/{name}")).as_deref(), Some("a"));
            }
            assert_eq!(contents(&root, "two/d/b").as_deref(), Some("of somebody else"));
        }
        fs::remove_file(root.path().join("two/d/b")).expect("it is there");
        let configured = open(&root, MOVES).await.expect("the configuration is valid");
        assert_eq!((configured.warnings.len(), records(&root)), (0, 0), "{:?}", configured.warnings);
        for name in ["a", "b"] {
            assert_eq!(contents(&root, &format!("two/d/{name}")).as_deref(), Some("a"));
        }
        assert!(!root.path().join("one/real/d").exists());
    }
}

#[tokio::test]
async fn a_changed_link_stays_at_the_source_with_its_target() {
    let root = tree(&[("one/d/a", "a"), ("one/other", "other"), ("two/x", "")]);
    symlink("../other", root.path().join("one/d/b")).expect("a link");
    let target = local(&root, "two");
    interrupt(&root, target).await;
    edit_record(&root, |record| {
        record["files"][1]["kind"] = json!("link");
        record["has_arrived"] = json!(true);
    });
    fs::remove_file(root.path().join("one/d/b")).expect("it is there");
    symlink("a", root.path().join("one/d/b")).expect("a link");
    let configured = open(&root, MOVES).await.expect("the configuration is valid");
    let left = RecoveryOutcome::FinishedExcept(vec![path("/d/b"), path("/d/a")]);
    assert_eq!((&configured.recovery.moves[0].outcome, records(&root)), (&left, 0));
    for name in ["a", "b"] {
        assert_eq!(contents(&root, &format!("one/d/{name}")).as_deref(), Some("a"));
    }
    assert!(!root.path().join("two/d").exists());
}

/// Fails the first deletion of the marker file with which a directory is created.
#[derive(Debug, Default)]
struct Undeletable {
    has_failed: AtomicBool,
}

impl Interceptor for Undeletable {
    fn name(&self) -> &'static str {
        "undeletable"
    }

    async fn call<Q: UnaryRequest>(
        &self,
        inner: &dyn Backend,
        cx: &OpContext,
        request: Q,
    ) -> vfs_core::Result<Q::Output> {
        let is_marker = |path: &VfsPath| path.name() == Some(".vfs-directory");
        if Q::OPERATION == Operation::Delete
            && request.as_request_ref().paths().any(is_marker)
            && !self.has_failed.swap(true, Ordering::SeqCst)
        {
            return Err(Error::of(ErrorKind::Unavailable));
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn a_move_that_fails_to_create_a_directory_leaves_nothing_at_the_target() {
    let root = tree(&[("one/d/a", "a"), ("two/x", "")]);
    fs::create_dir(root.path().join("one/d/empty")).expect("a directory");
    let [source, target] = ["one", "two"].map(|name| LocalBackend::open(root.path().join(name)).expect("it is there"));
    let target = Intercepted::new(Arc::new(target), Arc::new(Undeletable::default()));
    let files = CompositeBackend::new(Arc::new(source)).with_mount("/m", Arc::new(target)).expect("it is free");
    let moved = files.rename(&OpContext::new(), RenameRequest::new(path("/d"), path("/m/d"))).await;
    assert_eq!(moved.expect_err("the directory is not made").kind(), ErrorKind::Unavailable);
    assert_eq!(contents(&root, "one/d/a").as_deref(), Some("a"));
    assert!(!root.path().join("two/d").exists());
}

#[tokio::test]
async fn the_journal_is_created_and_hidden_wherever_its_directory_is_mounted() {
    let shown = MOVES.replace("root = 'one'", "root = '.'");
    let root = tree(&[("a", "a"), ("two/x", ""), ("forged/moves/move-1-0.json", "{}")]);
    symlink("forged", root.path().join("link")).expect("a link");
    let configured = open(&root, &shown).await.expect("the configuration is valid");
    assert!(root.path().join(".vfs/moves/lock").exists());
    for forged in ["/.vfs/moves/move-1-0.json", "/.VFS/../.vfs/moves/lock"] {
        assert!(configured.backend.create_text(forged, "{}").await.is_err(), "{forged}");
    }
    assert_eq!(
        configured.backend.delete_file("/.vfs").await.expect_err("it is hidden").kind(),
        ErrorKind::PolicyDenied
    );
    for forged in ["/forged", "/link"] {
        rename(&configured, forged, "/.vfs").await.expect_err("it would be the journal");
        let request = RenameRequest::new(path(forged), path("/.vfs")).overwrite();
        configured.backend.rename(&OpContext::new(), request).await.expect_err("it would be the journal");
        assert!(root.path().join(".vfs/moves/lock").exists());
    }
    rename(&configured, "/a", "/m/a").await.expect("it is moved");
    assert_eq!((records(&root), contents(&root, "two/a").as_deref()), (0, Some("a")));
    assert_eq!(configured.backend.list_dir("/.vfs").await.expect("a listing"), []);
    let configured = open(&root, &shown).await.expect("the configuration is valid");
    assert_eq!(configured.recovery, Default::default());
}

#[tokio::test]
async fn agents_cannot_write_records_for_a_later_configuration() {
    let alone = "[default]\ntype = 'local'\nroot = '.'\n";
    let without = format!("journal = false\n{}", MOVES.replace("root = 'one'", "root = '.'"));
    for text in [alone, &without] {
        let root = tree(&[("two/x", ""), ("forged/moves/move-1-0.json", "{}")]);
        let configured = open(&root, text).await.expect("the configuration is valid");
        assert!(!root.path().join(".vfs").exists(), "a journal that is not used is not made");
        let error = configured.backend.create_text("/.vfs/moves/move-1-0.json", "{}").await.expect_err("it is hidden");
        assert_eq!(error.kind(), ErrorKind::PolicyDenied);
        rename(&configured, "/forged", "/.vfs").await.expect_err("it would be the journal");
    }
}

#[tokio::test]
async fn an_agent_cannot_replace_a_configured_journal() {
    let text = format!("journal = 'state/moves'\n{}", MOVES.replace("root = 'one'", "root = '.'"));
    let (root, outside) = (interrupted().await, tree(&[("moves/x", "")]));
    symlink(outside.path(), root.path().join("state")).expect("a link");
    let error = open(&root, &text).await.expect_err("the link could be replaced");
    assert_eq!((error.kind, error.position.map(|at| at.line)), (ConfigErrorKind::Conflict, Some(1)), "{error}");
    let real = fs::canonicalize(outside.path().join("moves")).expect("it is there");
    assert!(error.message.contains(&format!("'{}'", real.display())), "{error}");
    open(&root, &text.replace("state/moves", real.to_str().expect("it is text"))).await.expect("it has no link");

    fs::remove_file(root.path().join("state")).expect("it is a link");
    for named in ["state/moves", "one/../state/./moves/"] {
        let configured = open(&root, &text.replace("state/moves", named)).await.expect("it has no link");
        configured.backend.delete_file("/state").await.expect_err("it holds the journal");
        rename(&configured, "/state", "/elsewhere").await.expect_err("it holds the journal");
        configured.backend.create_text("/state/moves/move-1-0.json", "{}").await.expect_err("it is hidden");
    }
}

#[tokio::test]
async fn a_default_journal_behind_a_link_is_refused_with_a_warning() {
    for link in [".vfs", ".vfs/moves"] {
        let root = interrupted().await;
        let moves = root.path().join(".vfs/moves");
        fs::rename(&moves, root.path().join("one/moves")).expect("it is there");
        fs::remove_dir(root.path().join(".vfs")).expect("it is empty");
        if link == ".vfs" {
            symlink("one", root.path().join(link)).expect("a link");
        } else {
            fs::create_dir(root.path().join(".vfs")).expect("a directory");
            symlink("../one/moves", root.path().join(link)).expect("a link");
        }
        let configured = open(&root, MOVES).await.expect("the configuration is valid");
        let [warning] = &configured.warnings[..] else { panic!("{:?}", configured.warnings) };
        assert!(warning.message.contains("is reached through a link"), "{warning}");
        assert_eq!((configured.recovery.moves.len(), contents(&root, "one/d/a").as_deref()), (0, Some("a")));
        rename(&configured, "/d/b", "/m/b").await.expect("it is moved without a journal");
    }
}

#[tokio::test]
async fn an_opening_leaves_the_moves_of_processes_that_are_alive_and_reports_them() {
    let root = interrupted().await;
    write(&root, ".vfs/moves/notes.txt", "of somebody else");
    let lock = fs::File::create(root.path().join(".vfs/moves/lock")).expect("a file");
    lock.lock_shared().expect("it is free");
    let configured = open(&root, MOVES).await.expect("the configuration is valid");
    assert_eq!((configured.recovery.deferred, configured.recovery.moves.len()), (1, 0));
    let [deferred, unreadable] = &configured.warnings[..] else { panic!("{:?}", configured.warnings) };
    assert!(deferred.message.starts_with("1 move between mounts is in progress"), "{deferred}");
    assert!(unreadable.message.contains("notes.txt"), "{unreadable}");
    assert!(contents(&root, "one/d/a").is_some() && contents(&root, "two/d/b").is_none() && records(&root) == 2);
    drop(lock);
    let configured = open(&root, MOVES).await.expect("the configuration is valid");
    assert_eq!((configured.recovery.deferred, configured.recovery.moves.len()), (0, 1));
    assert_eq!(records(&root), 1);
}

#[tokio::test]
async fn a_record_is_left_to_the_configuration_that_wrote_it() {
    let root = interrupted().await;
    for directory in ["one", "three"] {
        fs::create_dir_all(root.path().join(directory)).expect("a directory");
        let other = MOVES.replace("'two'", &format!("'{directory}'"));
        let configured = open(&root, &other).await.expect("the configuration is valid");
        let stuck = configured.warnings.iter().find(|warning| warning.message.contains("was interrupted"));
        let stuck = stuck.unwrap_or_else(|| panic!("{:?}", configured.warnings)).to_string();
        assert!(stuck.contains("/two' at '/m', but this namespace has") && stuck.contains("move-1-0.json"), "{stuck}");
        assert_eq!(
            (contents(&root, "one/d/a").as_deref(), contents(&root, "one/d/b").as_deref()),
            (Some("a"), Some("b"))
        );
        assert!(!root.path().join("three/d").exists());
    }
    let configured = open(&root, MOVES).await.expect("the configuration is valid");
    assert_eq!(
        (configured.warnings.len(), configured.recovery.moves.len(), records(&root)),
        (0, 1, 0),
        "{:?}",
        configured.warnings
    );
}

/// The record is as after an edit of the configuration: both mounts show one directory.
#[tokio::test]
async fn the_only_copy_is_never_deleted_if_both_mounts_show_one_directory() {
    let root = tree(&[("one/d/a", "a"), ("one/d/b", "b")]);
    symlink("one", root.path().join("two")).expect("a link");
    let target = local(&root, "one");
    interrupt(&root, target).await;
    let configured = open(&root, MOVES).await.expect("the configuration is valid");
    assert!(
        configured.warnings.iter().any(|warning| warning.message.contains("both ends may be the same file")),
        "{:?}",
        configured.warnings
    );
    assert_eq!((contents(&root, "one/d/a").as_deref(), contents(&root, "one/d/b").as_deref()), (Some("a"), Some("b")));
    assert_eq!(records(&root), 1);
}

#[tokio::test]
async fn records_that_the_configuration_does_not_recover_are_a_warning() {
    let root = interrupted().await;
    let alone = "[default]\ntype = 'local'\nroot = 'one'\n".to_owned();
    for text in [alone, format!("journal = false\n{MOVES}"), format!("journal = 'elsewhere'\n{MOVES}")] {
        let configured = open(&root, &text).await.expect("the configuration is valid");
        let [warning] = &configured.warnings[..] else { panic!("{:?}", configured.warnings) };
        assert!(
            warning.message.starts_with("1 record of a move") && warning.message.contains(".vfs/moves'"),
            "{warning}"
        );
        assert_eq!((configured.recovery.moves.len(), records(&root)), (0, 1));
    }
    let configured =
        open(&root, &format!("journal = '.vfs/moves'\n{MOVES}")).await.expect("the configuration is valid");
    assert_eq!((configured.warnings.len(), configured.recovery.moves.len(), records(&root)), (0, 1, 0));
}

#[tokio::test]
async fn the_directory_of_the_journal_can_be_named_or_left_out() {
    let with = |setting: &str| format!("journal = {setting}\n{MOVES}");
    let root = interrupted().await;
    let configured = open(&root, &with("false")).await.expect("the configuration is valid");
    assert_eq!((configured.recovery.moves.len(), records(&root)), (0, 1));
    let configured = open(&root, &with("'elsewhere'")).await.expect("the configuration is valid");
    rename(&configured, "/d/b", "/m/b").await.expect("it is moved");
    assert!(root.path().join("elsewhere/lock").exists());
    for (setting, words) in [("true", "on by default"), ("''", "the path is empty"), ("3", "a directory, or false")] {
        let error = Config::parse(&with(setting)).expect_err(words);
        assert!(error.message.contains(words) && error.key.as_deref() == Some("journal"), "{error}");
    }
    let shared = with("'kept/moves'").replace("'two'\n", "'two'\nlayers = [{ type = 'overlay', store = 'kept' }]\n");
    let error = open(&root, &shared).await.expect_err("a layer keeps something there");
    assert_eq!((error.kind, error.position.map(|at| at.line)), (ConfigErrorKind::Conflict, Some(1)), "{error}");
    // An unusable default directory must not make an existing configuration fail.
    let shared = MOVES.replace("'two'\n", "'two'\nlayers = [{ type = 'overlay', store = '.vfs' }]\n");
    let configured = open(&root, &shared).await.expect("the configuration is valid");
    assert_eq!(configured.warnings.len(), 1, "{:?}", configured.warnings);
}

#[tokio::test]
async fn an_unusable_default_journal_is_a_warning_and_an_unusable_configured_one_an_error() {
    for obstacle in [".vfs", ".vfs/moves", ".vfs/moves/lock/x"] {
        let root = tree(&[("one/a", "a"), ("two/x", ""), (obstacle, "")]);
        let configured = open(&root, MOVES).await.expect("the configuration is valid");
        let [warning] = &configured.warnings[..] else { panic!("{:?}", configured.warnings) };
        assert!(warning.message.starts_with("moves between mounts cannot be recovered after a crash"), "{warning}");
        rename(&configured, "/a", "/m/a").await.expect("it is moved without a journal");
        assert_eq!(contents(&root, "two/a").as_deref(), Some("a"));
        let named = format!("journal = '.vfs/moves'\n{MOVES}");
        let error = open(&root, &named).await.expect_err("it is named");
        assert_eq!((error.kind, error.position.map(|at| at.line)), (ConfigErrorKind::Open, Some(1)), "{error}");
    }
}

#[tokio::test]
async fn a_move_that_cannot_be_recorded_fails_with_advice_and_moves_no_file() {
    let root = tree(&[("one/a", "a"), ("two/x", "")]);
    let configured = open(&root, MOVES).await.expect("the configuration is valid");
    fs::remove_file(root.path().join(".vfs/moves/lock")).expect("it is there");
    write(&root, ".vfs/moves/lock/x", "");
    let error = rename(&configured, "/a", "/m/a").await.expect_err("it cannot be recorded");
    assert!(error.message().contains("nothing was moved") && error.message().contains("`journal`"), "{error}");
    assert_eq!((error.path(), contents(&root, "one/a").as_deref()), (Some("/a"), Some("a")));
    assert!(!error.to_string().contains(".vfs/moves/lock"), "{error}");
}

#[tokio::test]
async fn a_move_is_recovered_for_the_caller_who_began_it() {
    let text = "[default]\ntype = 'local'\nroot = 'one'\n\
        [[mounts]]\npath = '/m'\ntype = 'store'\nurl = 'sqlite:state.db'\nnamespace = 'acme/{actor}'\n";
    let root = tree(&[("one/d/a", "a"), ("one/d/b", "b"), ("two/x", "")]);
    let database = fs::canonicalize(root.path()).expect("it is there").join("state.db");
    let url = format!("sqlite://{}", database.display());
    interrupt(&root, json!({ "kind": "store", "url": url, "namespace": "acme/{actor}", "directory": "/" })).await;
    edit_record(&root, |record| record["actor"] = json!("ann"));
    let ann = OpContext::new().with_actor("ann");
    let configured = open(&root, &text.replacen("[default]", "journal = false\n[default]", 1))
        .await
        .expect("the configuration is valid");
    configured.backend.write(&ann, WriteRequest::new(path("/m/d/a"), "a")).await.expect("it is copied");
    let configured = open(&root, text).await.expect("the configuration is valid");
    assert_eq!(
        (configured.recovery.moves.len(), configured.warnings.len(), records(&root)),
        (1, 0, 0),
        "{:?}",
        configured.warnings
    );
    let moved = configured.backend.read(&ann, ReadRequest::new(path("/m/d/b"))).await.expect("it is moved");
    assert_eq!(moved.content, vfs_core::Content::Text("b".into()));
    assert!(!root.path().join("one/d").exists());
}
