//! Parsing, validation and opening of configuration files.
#![allow(clippy::disallowed_methods, reason = "what is opened is set up and looked at from outside")]

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use vfs_config::{Config, ConfigError, ConfigErrorKind, ConfiguredBackend, Position};
use vfs_core::snapshots::{RestoreRequest, SnapshotRequest};
use vfs_core::{Backend, BackendExt, ErrorKind, OpContext, VfsPath};
use vfs_versions::CommitResult;

fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    for (path, content) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("directories");
        fs::write(path, content).expect("a file");
    }
    root
}

fn docs(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

async fn open(root: &TempDir, text: &str) -> Result<ConfiguredBackend, ConfigError> {
    fs::write(root.path().join("vfs.toml"), text).expect("a file");
    vfs_config::open(root.path().join("vfs.toml")).await
}

/// Asserts that `text` is refused with this kind, position and key, and with `words` in the message.
#[track_caller]
fn refused(text: &str, kind: ConfigErrorKind, at: (usize, usize), key: &str, words: &str) {
    let error = Config::parse(text).expect_err(words);
    let Some(Position { line, column, .. }) = error.position else { panic!("{error} has no position") };
    assert_eq!((error.kind, (line, column), error.key.as_deref()), (kind, at, Some(key)), "{error}");
    assert!(error.message.contains(words), "{error}");
    assert!(error.to_string().starts_with(&format!("{line}:{column}: {key}: ")) && !error.to_string().contains('\n'));
}

#[test]
fn an_error_names_the_line_the_key_and_what_to_write() {
    use ConfigErrorKind::{Conflict, Invalid};
    let memory = "[default]\ntype = 'memory'\n";
    let with = |rest: &str| format!("{memory}{rest}");
    refused(
        "[defualt]\ntype = 'memory'\n",
        Invalid,
        (1, 2),
        "defualt",
        "unknown field `defualt`; did you mean `default`?",
    );
    refused(
        "[default]\ntype = 'memroy'\n",
        Invalid,
        (2, 8),
        "default.type",
        "unknown variant `memroy`; did you mean `memory`?",
    );
    refused("[default]\nroot = '.'\n", Invalid, (1, 1), "default", "missing field `type`");
    refused("[default]\ntype = 3\n", Invalid, (2, 8), "default.type", "`type` is a string");
    refused("[default]\ntype = 'local'\n", Invalid, (1, 1), "default", "missing field `root`");
    refused(
        "[default]\ntype = 'local'\nroot = '.'\nconfinment = 'root'\n",
        Invalid,
        (4, 1),
        "default.confinment",
        "unknown field `confinment`; did you mean `confinement`?",
    );
    refused("[default]\ntype = 'local'\nroot = '~/x'\n", Invalid, (3, 8), "default.root", "'~' is not expanded");
    refused(
        "[default]\ntype = 'local'\nroot = ''\n",
        Invalid,
        (3, 8),
        "default.root",
        "\".\" is the directory of this file",
    );
    refused(&with("max_file_size = '1 mib'\n"), Invalid, (3, 17), "default.max_file_size", "write bytes as a number");
    refused(&with("max_file_size = -1\n"), Invalid, (3, 17), "default.max_file_size", "cannot be less than 0");
    refused(
        &with("[[mounts]]\npath = '/../x'\ntype = 'memory'\n"),
        Invalid,
        (4, 8),
        "mounts[0].path",
        "'..' is not allowed",
    );
    refused(&with("[[mounts]]\npath = '/'\ntype = 'memory'\n"), Conflict, (4, 8), "mounts[0].path", "[default]");
    let twice = "[[mounts]]\npath = '/a'\ntype = 'memory'\n[[mounts]]\npath = 'a/'\ntype = 'memory'\n";
    refused(&with(twice), Conflict, (7, 8), "mounts[1].path", "mounted at '/a' already");
}

#[test]
fn a_missing_top_level_key_is_not_reported_for_another_table() {
    for text in ["", "[[mounts]]\npath = '/a'\ntype = 'memory'\n"] {
        let error = Config::parse(text).expect_err("there is no default");
        let message = "1:1: missing field `default`: the table [default] describes the files at '/'";
        assert_eq!((error.key.as_deref(), error.to_string().as_str()), (None, message));
    }
}

#[test]
fn an_error_in_a_layer_names_its_line() {
    use ConfigErrorKind::{Conflict, Invalid};
    let with = |rest: &str| format!("[default]\ntype = 'memory'\n[[layers]]\n{rest}");
    refused(
        &with("type = 'quotta'\n"),
        Invalid,
        (4, 8),
        "layers[0].type",
        "unknown variant `quotta`; did you mean `quota`?",
    );
    refused(&with("type = 'timeout'\ntime = '30'\n"), Invalid, (5, 8), "layers[0].time", "write for example \"30s\"");
    refused(&with("type = 'timeout'\ntime = '0s'\n"), Invalid, (5, 8), "layers[0].time", "the duration is zero");
    refused(
        &with("type = 'timeout'\ntime = '30s'\noperations = { grap = '1s' }\n"),
        Invalid,
        (6, 16),
        "layers[0].operations.grap",
        "grap",
    );
    refused(&with("type = 'concurrency_limit'\noperations = 0\n"), Invalid, (5, 14), "layers[0].operations", "nonzero");
    refused(
        &with("type = 'read_only'\nstrict = true\n"),
        Invalid,
        (5, 1),
        "layers[0].strict",
        "unknown field `strict`",
    );
    refused(&with("type = 'quota'\n"), Conflict, (3, 1), "layers[0]", "a quota needs a limit");
    refused(&with("type = 'scoped'\ndirectory = '/a'\n"), Conflict, (3, 1), "layers[0]", "of a mount");
    refused(&with("type = 'policy'\n"), Conflict, (3, 1), "layers[0]", "a policy needs `rules`");
    let both = "type = 'policy'\nrules_file = 'x'\ndefault = 'deny'\n";
    refused(&with(both), Conflict, (5, 14), "layers[0].rules_file", "either `rules_file`");
    let glob = "type = 'policy'\nrules = [\n{ effect = 'deny' },\n{ effect = 'deny', paths = ['[a'] },\n]\n";
    refused(&with(glob), Invalid, (7, 1), "layers[0].rules[1]", "[a");
    let word = "type = 'policy'\nrules = [{ effect = 'deny', operations = ['shout'] }]\n";
    let key = "layers[0].rules[0].operations[0]";
    refused(&with(word), Invalid, (5, 43), key, "unknown operation `shout`, expected one of `stat`, `resolve`");
    let word = "type = 'policy'\nrules = [{ effect = 'deny', operations = ['read', 'grap'] }]\n";
    let key = "layers[0].rules[0].operations[1]";
    refused(&with(word), Invalid, (5, 51), key, "unknown operation `grap`; did you mean `grep`?");
    let key = "[default]\ntype = 'memory'\nlayers = [{ type = 'quota', max_files = 3, max_fils = 4 }]\n";
    refused(key, Invalid, (3, 44), "default.layers[0].max_fils", "unknown field `max_fils`");
}

#[test]
fn an_unknown_key_is_reported_with_the_most_similar_key_or_all_keys_of_its_table() {
    #[track_caller]
    fn refused(text: &str, key: &str, message: &str) {
        let error = Config::parse(text).expect_err(message);
        assert_eq!((error.key.as_deref(), error.message.as_str()), (Some(key), message), "{error}");
    }
    let local = "[default]\ntype = 'local'\nroot = '.'\n";
    refused(&format!("{local}layer = []\n"), "default.layer", "unknown field `layer`; did you mean `layers`?");
    refused("[default]\ntyp = 'local'\nroot = '.'\n", "default.typ", "unknown field `typ`; did you mean `type`?");
    refused(
        "[default]\ntype = 'memory'\ncolour = 1\n",
        "default.colour",
        "unknown field `colour`, expected one of `type`, `layers`, `max_file_size`, `max_total_size`",
    );
    refused(
        &format!("{local}[[mounts]]\npaht = '/m'\ntype = 'memory'\n"),
        "mounts[0].paht",
        "unknown field `paht`; did you mean `path`?",
    );
    refused(
        &format!("{local}[[mounts]]\npath = '/m'\ntype = 'memory'\ncolour = 1\n"),
        "mounts[0].colour",
        "unknown field `colour`, expected one of `type`, `path`, `layers`, `max_file_size`, `max_total_size`",
    );
    let policy = |rest: &str| format!("{local}[[layers]]\ntype = 'policy'\n{rest}");
    refused(&policy("rule = []\n"), "layers[0].rule", "unknown field `rule`; did you mean `rules`?");
    refused(
        &policy("[[layers.rules]]\neffect = 'deny'\npath = ['/a']\n"),
        "layers[0].rules[0].path",
        "unknown field `path`; did you mean `paths`?",
    );
    refused(
        &policy("[[layers.rules]]\neffect = 'dney'\n"),
        "layers[0].rules[0].effect",
        "unknown variant `dney`; did you mean `deny`?",
    );
    refused(
        &format!("{local}layers = [{{ type = 'read_only', strict = true }}]\n"),
        "default.layers[0].strict",
        "unknown field `strict`, expected `type`",
    );
    refused(&format!("{local}[[layer]]\ntype = 'policy'\n"), "layer", "unknown field `layer`; did you mean `layers`?");
    refused(
        &format!("{local}[[layers]]\ntype = 'quota'\nmax_operations = {{ cuont = 1, window = '1s' }}\n"),
        "layers[0].max_operations.cuont",
        "unknown field `cuont`; did you mean `count`?",
    );
}

#[test]
fn a_text_that_is_not_toml_is_refused_with_its_line() {
    let error = Config::parse("[default]\ntype = \n").expect_err("no value");
    assert_eq!((error.kind, error.position.map(|at| at.line)), (ConfigErrorKind::Syntax, Some(2)), "{error}");
}

#[test]
fn the_schema_in_the_documentation_is_this_one() {
    let schema = vfs_config::schema();
    if std::env::var_os("VFS_WRITE_SCHEMA").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vfs.schema.json"), &schema).expect("a file");
    }
    let advice = "run VFS_WRITE_SCHEMA=1 cargo test -p vfs-config schema";
    assert!(docs("vfs.schema.json") == schema, "docs/vfs.schema.json is out of date; {advice}");
}

#[tokio::test]
async fn the_example_in_the_documentation_can_be_opened_and_shows_every_layer() {
    let root = tree(&[("project/a.txt", "a"), ("state/x", ""), ("policy.toml", "default = 'allow'\n")]);
    let configured = open(&root, &docs("vfs.example.toml")).await.expect("the example is valid");
    configured.backend.write_text("/memories/plan.md", "read").await.expect("it may be written");
    assert_eq!(fs::read_to_string(root.path().join("state/agents/one/plan.md")).expect("a file"), "read");
    let schema: serde_json::Value = serde_json::from_str(&vfs_config::schema()).expect("JSON");
    let layers = schema["$defs"]["LayerTable"]["oneOf"].as_array().expect("variants");
    assert_eq!(layers.len(), 12);
    for layer in layers {
        let word = layer["properties"]["type"]["const"].as_str().expect("a word");
        assert!(docs("vfs.example.toml").contains(&format!("type = \"{word}\"")), "{word} is not shown");
    }
}

#[tokio::test]
async fn backends_are_mounted_with_their_layers() {
    let root = tree(&[("project/a.txt", "a"), ("shared/docs/b.txt", "b")]);
    let configured = open(
        &root,
        "[default]\ntype = 'local'\nroot = 'project'\nlayers = [{ type = 'read_only' }]\n\
         [[mounts]]\npath = '/docs'\ntype = 'local'\nroot = 'shared'\nlayers = [{ type = 'scoped', directory = '/docs' }]\n\
         [[mounts]]\npath = '/scratch'\ntype = 'memory'\n\
         [[layers]]\ntype = 'quota'\nmax_files = 3\n",
    );
    let configured = configured.await.expect("the configuration is valid");
    let mounts: Vec<_> = configured.composite.mounts().into_iter().map(|mount| mount.path.to_string()).collect();
    assert_eq!(mounts, ["/", "/docs", "/scratch"]);
    assert_eq!(configured.backend.read_text("/docs/b.txt").await.as_deref(), Ok("b"));
    let refused = configured.backend.write_text("/a.txt", "other").await.expect_err("it is read-only");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    configured.backend.create_text("/scratch/1", "").await.expect("the third file");
    let refused = configured.backend.create_text("/scratch/2", "").await.expect_err("the fourth file");
    assert_eq!(refused.kind(), ErrorKind::QuotaExceeded);
    assert_eq!(configured.quotas[0].layer.usage(&OpContext::new()).await.expect("it is known").files, 3);
}

#[tokio::test]
async fn an_overlay_keeps_changes_for_the_next_process_and_a_commit_goes_through_read_only() {
    let root = tree(&[("project/a.txt", "one\n")]);
    let text = "[default]\ntype = 'memory'\n[[mounts]]\npath = '/p'\ntype = 'local'\nroot = 'project'\n\
                layers = [{ type = 'read_only' }, { type = 'overlay', store = 'store' }]\n";
    let configured = open(&root, text).await.expect("the configuration is valid");
    configured.backend.edit_text("/p/a.txt", "one", "two").await.expect("it may be edited");
    drop(configured);
    let file = || fs::read_to_string(root.path().join("project/a.txt")).expect("a file");
    assert_eq!(file(), "one\n");
    let configured = open(&root, text).await.expect("the configuration is valid");
    let cx = OpContext::new();
    let diff = configured.overlays[0].diff(&cx).await.expect("a diff");
    assert_eq!(diff.unified(), "--- a/p/a.txt\n+++ b/p/a.txt\n@@ -1 +1 @@\n-one\n+two\n");
    let CommitResult::Applied(changes) = configured.overlays[0].commit(&cx).await.expect("it can be applied") else {
        panic!("nobody else changed it")
    };
    assert_eq!((changes.changes[0].path.as_str(), file().as_str()), ("/p/a.txt", "two\n"));
}

const STORES: &str = "[default]\ntype = 'local'\nroot = '.'\n\
    [[mounts]]\npath = '/m'\ntype = 'local'\nroot = '.vfs'\nlayers = [{ type = 'scoped', directory = '/kept' }]\n\
    [[layers]]\ntype = 'audit'\nfile = '.vfs/[log] 1.jsonl'\n\
    [[layers]]\ntype = 'policy'\nrules_file = 'rules.toml'\n";

#[tokio::test]
async fn the_storage_of_layers_is_hidden_in_mounted_directories() {
    let root = tree(&[(".vfs/kept/x", "needle"), ("rules.toml", ""), ("l 1.jsonl", "")]);
    let configured = open(&root, STORES).await.expect("the configuration is valid");
    let files = &configured.backend;
    files.create_text("/a", "needle").await.expect("a file");
    let records = configured.audits[0].layer.sink.records().await.expect("records");
    assert_eq!(records.len(), 1);
    assert!(root.path().join(".vfs/[log] 1.jsonl").exists());
    let found: Vec<_> =
        files.glob_files("*").await.expect("a search").into_iter().map(|file| file.path.to_string()).collect();
    assert!(found.contains(&"/l 1.jsonl".to_owned()), "{found:?}");
    assert!(files.list_dir("/.vfs").await.expect("a listing").iter().all(|file| !file.path.as_str().contains("log")));
    for change in [
        files.read_text("/.vfs/[log] 1.jsonl").await.map(drop),
        files.write_text("/.vfs/[log] 1.jsonl", "").await.map(drop),
        files.delete_file("/.vfs/[LOG] 1.jsonl").await,
        files.delete_file("/.vfs").await,
    ] {
        assert_eq!(change.expect_err("it is hidden").kind(), ErrorKind::PolicyDenied);
    }
    assert!(files.grep_text("sequence").await.expect("a search").is_empty());
}

#[tokio::test]
async fn the_configuration_and_its_rules_files_are_read_only() {
    for overlay in ["", "layers = [{ type = 'overlay' }]\n"] {
        let root = tree(&[(".vfs/kept/x", ""), ("rules.toml", "")]);
        let configured = open(&root, &STORES.replacen("root = '.'\n", &format!("root = '.'\n{overlay}"), 1)).await;
        let files = configured.expect("the configuration is valid").backend;
        assert!(files.read_text("/vfs.toml").await.is_ok());
        for file in ["/vfs.toml", "/rules.toml"] {
            let refused = files.write_text(file, "").await.expect_err("it may not be changed");
            assert_eq!(refused.kind(), ErrorKind::PolicyDenied, "{file} {overlay}");
            assert_eq!(files.delete_file(file).await.expect_err("nor removed").kind(), ErrorKind::PolicyDenied);
        }
    }
}

#[tokio::test]
async fn settings_that_contradict_the_host_are_refused_with_their_line() {
    let root =
        tree(&[("project/a.txt", ""), ("store/x", ""), ("file", ""), ("rules.toml", "[[rules]]\neffect = 'no'\n")]);
    let local = |rest: &str| format!("[default]\ntype = 'local'\nroot = {rest}");
    for (text, line, words) in [
        (local("'absent'\n"), 3, "cannot be opened: the directory does not exist"),
        (local("'file'\n"), 3, "cannot be opened: it is not a directory"),
        (local("'store'\nlayers = [{ type = 'overlay', store = '.' }]\n"), 3, "in the store of a layer"),
        (local("'project'\nlayers = [{ type = 'overlay', store = 'new/../x' }]\n"), 4, "'..' is not allowed"),
        (local("'project'\nlayers = [{ type = 'overlay', store = 'file/x' }]\n"), 4, "cannot be opened"),
        (
            local("'project'\n[[layers]]\ntype = 'overlay'\nstore = 's'\n[[layers]]\ntype = 'audit'\nfile = 's/a'\n"),
            9,
            "a path of its own",
        ),
        (local("'project'\n[[layers]]\ntype = 'policy'\nrules_file = 'rules.toml'\n"), 2, "unknown variant `no`"),
        (local("'project'\n[[layers]]\ntype = 'audit'\nfile = 'store/x/log'\n"), 6, "cannot be opened"),
    ] {
        let error = open(&root, &text).await.expect_err(words);
        assert!(error.message.contains(words), "{error}");
        assert_eq!(error.position.map(|at| at.line), Some(line), "{error}");
        let file = error.file.as_ref().and_then(|file| file.file_name()).expect("a file");
        assert!(error.to_string().contains(file.to_str().expect("UTF-8")), "{error}");
    }
    let error = Config::load(root.path().join("absent.toml")).await.expect_err("it is not there");
    assert_eq!(error.kind, ConfigErrorKind::Unreadable);
}

#[tokio::test]
async fn explanations_of_policies_have_namespace_paths() {
    let root = tree(&[("project/a.txt", ""), ("shared/x", "")]);
    let configured = open(
        &root,
        "[default]\ntype = 'local'\nroot = 'project'\n\
         [[mounts]]\npath = '/m'\ntype = 'local'\nroot = 'shared'\nlayers = [\
           { type = 'policy', rules = [{ name = 'inner', effect = 'deny', paths = ['/one/secret'] }] },\
           { type = 'scoped', directory = '/one' } ]\n\
         [[layers]]\ntype = 'policy'\nrules = [{ name = 'outer', effect = 'deny', actors = ['x'] }]\n",
    );
    let configured = configured.await.expect("the configuration is valid");
    let effects = |actor, at| {
        let explained = configured.explain(actor, "read", &path(at)).expect("a permission");
        explained.into_iter().map(|by| (by.path.to_string(), by.name)).collect::<Vec<_>>()
    };
    let at = "/m/secret/key".to_owned();
    assert_eq!(effects(None, "/m/secret/key"), [(at.clone(), Some("inner".to_owned())), (at, None)]);
    assert_eq!(effects(Some("x"), "/secret"), [("/secret".to_owned(), Some("outer".to_owned()))]);
    assert!(configured.explain(None, "fly", &path("/")).is_err());
}

#[tokio::test]
async fn the_next_process_undoes_changes_and_leaves_the_configuration_unchanged() {
    let text = "[default]\ntype = 'local'\nroot = '.'\n[[mounts]]\npath = '/m'\ntype = 'memory'\n\
                [[layers]]\ntype = 'checkpoints'\nstore = '.vfs/checkpoints'\n";
    let root = tree(&[("a.txt", "one")]);
    let cx = OpContext::new();
    let configured = open(&root, text).await.expect("the configuration is valid");
    let [checkpoints] = &configured.checkpoints[..] else { panic!("one layer") };
    let snapshots = checkpoints.layer.as_snapshots().expect("there are");
    let snapshot = snapshots.snapshot(&cx, SnapshotRequest::new()).await.expect("a snapshot");
    assert_eq!((snapshot.files, snapshot.bytes), (1, 3));
    configured.backend.edit_text("/a.txt", "one", "two").await.expect("it may be edited");
    drop(configured);
    let configured = open(&root, &format!("{text}max_undo = 10\n")).await.expect("the configuration is valid");
    let undone = configured.checkpoints[0].layer.undo(&cx, 1).await.expect("it can be taken back");
    assert_eq!((undone.entries.len(), undone.files), (1, 1));
    assert_eq!(fs::read_to_string(root.path().join("a.txt")).expect("a file"), "one");
    let snapshots = configured.checkpoints[0].layer.as_snapshots().expect("there are");
    snapshots.restore(&cx, RestoreRequest::new(snapshot.id)).await.expect("vfs.toml is not in it");
}

/// A project that is shown, with a database in it at two places of two namespaces.
const DURABLE: &str = "
[default]
type = 'local'
root = '.'

[[mounts]]
path = '/memories'
type = 'store'
url = 'sqlite:state.db'
namespace = 'acme/{actor}'

[[mounts]]
path = '/shared'
type = 'store'
url = 'sqlite:./state.db'
namespace = 'acme'
";

#[tokio::test]
async fn a_database_persists_files_by_namespace_and_is_hidden_in_mounted_directories() {
    let root = tree(&[("notes.md", "notes")]);
    let ann = OpContext::new().with_actor("ann");
    let bob = OpContext::new().with_actor("bob");
    let write = |at: &str, text: &'static str| vfs_core::WriteRequest::new(path(at), text);
    let stat = |at: &str| vfs_core::StatRequest::new(path(at));
    {
        let configured = open(&root, DURABLE).await.expect("it can be opened");
        configured.backend.write(&ann, write("/memories/a.md", "of ann")).await.expect("written");
        configured.backend.write(&ann, write("/shared/a.md", "of all")).await.expect("written");
        assert_eq!(
            configured.backend.stat(&bob, stat("/memories/a.md")).await.expect_err("another's").kind(),
            ErrorKind::NotFound
        );
        let nobody = configured.backend.stat(&OpContext::new(), stat("/memories/a.md")).await.expect_err("nobody");
        assert_eq!((nobody.kind(), nobody.path()), (ErrorKind::InvalidArgument, Some("/memories/a.md")));
        let named = configured.backend.ls(&ann, vfs_core::LsRequest::new(path("/"))).await.expect("listed");
        let names: Vec<_> = named.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(names, ["/.vfs", "/memories", "/notes.md", "/shared", "/vfs.toml"]);
        for hidden in ["/state.db", "/state.db-wal", "/state.db-shm", "/state.db-journal", "/state.db-reserve"] {
            let error = configured.backend.stat(&ann, stat(hidden)).await.expect_err(hidden);
            assert_eq!(error.kind(), ErrorKind::PolicyDenied, "{hidden}");
        }
    }
    let configured = open(&root, DURABLE).await.expect("it can be opened");
    let read = |at: &str| vfs_core::ReadRequest::new(path(at));
    let memory = configured.backend.read(&ann, read("/memories/a.md")).await.expect("kept");
    assert_eq!(memory.content, vfs_core::Content::Text("of ann".into()));
    let shared = configured.backend.read(&bob, read("/shared/a.md")).await.expect("kept");
    assert_eq!(shared.content, vfs_core::Content::Text("of all".into()));
}

#[tokio::test]
async fn a_database_behind_a_link_is_hidden_under_both_names() {
    let root = tree(&[("data/x", "")]);
    std::os::unix::fs::symlink("data/real.db", root.path().join("state.db")).expect("a link");
    fs::write(root.path().join("data/real.db"), "").expect("a file");
    let text =
        "[default]\ntype = 'local'\nroot = '.'\n[[mounts]]\npath = '/m'\ntype = 'store'\nurl = 'sqlite:state.db'\n";
    let configured = open(&root, text).await.expect("it can be opened");
    configured.backend.create_text("/m/a", "kept").await.expect("written");
    for hidden in ["/state.db", "/state.db-wal", "/data/real.db", "/data/real.db-wal", "/data/real.db-shm"] {
        let error = configured.backend.read_text(hidden).await.expect_err(hidden);
        assert_eq!(error.kind(), ErrorKind::PolicyDenied, "{hidden}");
    }
    assert!(
        configured.backend.grep_text("kept").await.expect("a search").iter().all(|found| found.path.as_str() == "/m/a")
    );
}

#[test]
fn layers_that_store_versions_by_path_are_refused_around_files_of_each_caller() {
    let place = "[default]\ntype = 'memory'\n[[mounts]]\npath = '/m'\ntype = 'store'\nurl = 'memory:'\nnamespace = ";
    let overlay = "layers = [{ type = 'overlay' }]\n";
    for text in [
        format!("{place}'acme/{{actor}}'\n{overlay}"),
        format!("{place}'acme/{{session}}'\n[[layers]]\ntype = 'overlay'\n"),
        format!("{place}'{{actor}}'\n[[layers]]\ntype = 'checkpoints'\nstore = 'kept'\n"),
    ] {
        refused(&text, ConfigErrorKind::Conflict, (7, 13), "mounts[0].namespace", "one namespace for all");
    }
    Config::parse(&format!("{place}'acme'\n{overlay}")).expect("one namespace for all");
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_is_reported_with_its_line_and_without_its_password() {
    let root = tree(&[("text", "this is no database, whatever its name says, and long enough to be looked at")]);
    for (place, kind, line, words) in [
        ("", ConfigErrorKind::Conflict, 1, "either a `url` or a `url_env`"),
        ("url = 'memory:'\nurl_env = 'X'", ConfigErrorKind::Conflict, 1, "either"),
        ("url = 'no url'", ConfigErrorKind::Invalid, 3, "sqlite:///path/to/file.db"),
        ("url = 'mysql://u:hidden@h/db'", ConfigErrorKind::Open, 3, "mysql"),
        ("url = 'sqlite:text'", ConfigErrorKind::Open, 3, "database"),
        ("url = 'sqlite:a.db?readers=hidden'", ConfigErrorKind::Open, 3, "readers"),
        ("url_env = 'VFS_A_VARIABLE_THAT_IS_NOT_SET'", ConfigErrorKind::Open, 3, "set it"),
        ("url = 'memory:'\nnamespace = 'a//b'", ConfigErrorKind::Invalid, 4, "empty component"),
        ("url = 'memory:'\nnamespace = '{user}'", ConfigErrorKind::Invalid, 4, "namespace"),
        ("url = 'memory:'\ntypo = 1", ConfigErrorKind::Invalid, 4, "typo"),
    ] {
        let text = format!("[default]\ntype = 'store'\n{place}\n");
        let error = open(&root, &text).await.expect_err(place);
        let shown = format!("{error} {error:?}");
        assert_eq!((error.kind, error.position.map(|at| at.line)), (kind, Some(line)), "{place}: {error}");
        assert!(shown.contains(words) && !shown.contains("hidden"), "{place}: {shown}");
    }
    let config =
        Config::parse("[default]\ntype = 'store'\nurl = 'postgres://u:hidden@h/db?x=hidden'\n").expect("it is read");
    assert!(!format!("{config:?}").contains("hidden"));
}

#[tokio::test]
async fn files_in_chunks_have_the_limit_of_files_unless_they_have_their_own() {
    const MIB: u64 = 1 << 20;
    let root = tree(&[("files/a", "")]);
    for place in ["type = 'store'\nurl = 'memory:'", "type = 'local'\nroot = 'files'"] {
        for (limits, expected) in [
            ("max_file_size = '1 MiB'", (MIB, MIB)),
            ("max_file_size = '1 MiB'\nmax_streamed_size = '2 MiB'", (MIB, 2 * MIB)),
            ("max_streamed_size = '1 MiB'", (256 * MIB, MIB)),
        ] {
            let files = open(&root, &format!("[default]\n{place}\n{limits}\n")).await.expect("valid");
            let capabilities = files.backend.capabilities(&VfsPath::root());
            assert_eq!((capabilities.max_file_size, capabilities.max_streamed_size), expected, "{place}: {limits}");
        }
    }
}

#[tokio::test]
async fn no_message_contains_a_secret_of_a_url() {
    let root = tree(&[]);
    for place in [
        "type = 'store'\nurl_env = 'postgres://u:hidden@h/db?x=hidden'",
        "type = 'store'\nurl_env = 'hidden'",
        "type = 'store'\nurl = 'mysql://hidden@h/db'",
        "type = 'store'\nurl = 'mysql://hidden:hidden@h/db'",
        "type = 'store'\nurl = 'mysql:u:hidden@h/db'",
        "type = 'store'\nurl = 'postgres://u:hid den@[h/db'",
        "type = 'store'\nurl = 'memory:'\nnamespace = 'postgres://u:hidden@h/db'",
        "type = 'store'\nurl = 'memory:'\nmax_file_size = 'redis://hidden@h'",
        "type = 'store'\nurl = 'memory:'\n'postgres://u:hidden@h/db' = 1",
        "type = 'postgres://u:hidden@h/db'",
        "type = 'local'\nroot = 'postgres://u:hidden@h/db?hidden'",
        "type = 'local'\nroot = 'postgres:u:hidden@h/db'",
        "type = 'local'\nroot = '.'\ndurability = 'redis://:hidden@h'",
    ] {
        let error = open(&root, &format!("[default]\n{place}\n")).await.expect_err(place);
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hid"), "{place}: {shown}");
        assert!(error.position.is_some(), "{place}: {error}");
    }
    let error = vfs_config::open("postgres://u:hidden@h/db").await.expect_err("no file");
    assert!(!error.to_string().contains("hidden"), "{error}");
}

#[tokio::test]
async fn a_directory_that_is_reachable_through_two_mounts_is_a_warning() {
    let root = tree(&[("project/src/a.txt", ""), ("project/m/b.txt", ""), ("state/one/x", ""), ("state/two/x", "")]);
    std::os::unix::fs::symlink("project/src", root.path().join("link")).expect("a link");
    let mount = |at: &str, root: &str, more: &str| {
        format!("[[mounts]]\npath = '{at}'\ntype = 'local'\nroot = '{root}'\n{more}")
    };
    let (one, two) = (
        mount("/a", "state", "layers = [{ type = 'scoped', directory = '/one' }]\n"),
        "layers = [{ type = 'scoped', directory = '/two' }]\n",
    );
    for (text, expected) in [
        (mount("/s", "state", ""), None),
        (mount("/s", "project/src", ""), Some(("mounts[0].root", "reached at '/' too"))),
        (mount("/s", "link", ""), Some(("mounts[0].root", "reached at '/' too"))),
        (mount("/s", "project", ""), Some(("mounts[0].root", "reached at '/' too"))),
        (mount("/s", ".", ""), Some(("mounts[0].root", "reached at '/' too"))),
        // It shadows what it shows: there is one path to each file.
        (mount("/src", "project/src", ""), None),
        (mount("/m", "project/m", ""), None),
        (format!("{one}{}", mount("/b", "state", two)), None),
        (format!("{one}{}", mount("/b", "state/one", "")), Some(("mounts[1].root", "reached at '/a' too"))),
        (mount("/s", "state", "confinement = 'none'\n"), Some(("mounts[0].root", "reached at '/' too"))),
    ] {
        let text = format!("[default]\ntype = 'local'\nroot = 'project'\n{text}");
        let configured = open(&root, &text).await.expect("the configuration is valid");
        let warnings: Vec<_> =
            configured.warnings.iter().map(|warning| (warning.key.as_deref(), warning.to_string())).collect();
        match (&warnings[..], expected) {
            ([], None) => {}
            ([(key, words)], Some((at, said))) => assert!(*key == Some(at) && words.contains(said), "{text}: {words}"),
            _ => panic!("{text}: {warnings:?}"),
        }
    }
}

#[tokio::test]
async fn stat_and_resolve_reveal_nothing_about_denied_link_targets() {
    let root = tree(&[("secret.txt", "s"), ("a.md", "a"), ("d/b.md", "b")]);
    for (target, link) in [("secret.txt", "x.md"), ("a.md", "y.md"), ("d", "d.md")] {
        std::os::unix::fs::symlink(target, root.path().join(link)).expect("a link");
    }
    fs::hard_link(root.path().join("secret.txt"), root.path().join("twice")).expect("another name");
    let rules =
        "[[layers.rules]]\neffect = 'allow'\npaths = ['*.md']\n[[layers.rules]]\neffect = 'deny'\nreason = 'no'\n";
    let text = format!("[default]\ntype = 'local'\nroot = '.'\n[[layers]]\ntype = 'policy'\n{rules}");
    let configured = open(&root, &text).await.expect("the configuration is valid");
    let (files, cx) = (&configured.backend, OpContext::new());
    let stat = async |at: &str| files.stat(&cx, vfs_core::StatRequest::new(path(at))).await;
    let resolve = async |at: &str| files.resolve(&cx, vfs_core::ResolveRequest::new(path(at))).await;
    assert_eq!(stat("/y.md").await.map(|info| info.size), Ok(1));
    assert_eq!(resolve("/y.md").await.map(|resolved| resolved.path), Ok(path("/a.md")));
    assert_eq!(stat("/d.md").await.map(|info| info.is_dir), Ok(true));
    for at in ["/x.md", "/secret.txt", "/twice", "/absent"] {
        for error in [stat(at).await.expect_err(at), resolve(at).await.expect_err(at)] {
            assert_eq!(error.kind(), ErrorKind::PolicyDenied, "{at}: {error}");
            assert_eq!(error.message(), "a policy forbids this: no; do not try again", "{at}");
        }
    }
}
