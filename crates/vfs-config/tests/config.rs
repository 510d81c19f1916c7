//! Files that are read, opened, and refused.
#![allow(clippy::disallowed_methods, reason = "what is opened is set up and looked at from outside")]

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use vfs_config::{Built, Config, ConfigError, ConfigErrorKind, Position};
use vfs_core::{Backend, BackendExt, ErrorKind, OpContext, RestoreRequest, SnapshotRequest, VfsPath};
use vfs_layers::Commit;

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

async fn open(root: &TempDir, text: &str) -> Result<Built, ConfigError> {
    fs::write(root.path().join("vfs.toml"), text).expect("a file");
    vfs_config::open(root.path().join("vfs.toml")).await
}

/// Line, column, key and words of what is wrong with `text`.
#[track_caller]
fn refused(text: &str, kind: ConfigErrorKind, at: (usize, usize), key: &str, words: &str) {
    let error = Config::parse(text).expect_err(words);
    let Some(Position { line, column, .. }) = error.position else { panic!("{error} has no position") };
    assert_eq!((error.kind, (line, column), error.key.as_deref()), (kind, at, Some(key)), "{error}");
    assert!(error.message.contains(words), "{error}");
    assert!(error.to_string().starts_with(&format!("{line}:{column}: {key}: ")) && !error.to_string().contains('\n'));
}

#[test]
fn a_fault_names_its_line_its_key_and_what_to_write() {
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
    refused(&with("max_file_size = -1\n"), Invalid, (3, 17), "default.max_file_size", "not less than 0");
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
fn a_key_that_is_missing_at_the_top_is_not_told_of_another_table() {
    for text in ["", "[[mounts]]\npath = '/a'\ntype = 'memory'\n"] {
        let error = Config::parse(text).expect_err("there is no default");
        let message = "1:1: missing field `default`: the table [default] says what is at '/'";
        assert_eq!((error.key.as_deref(), error.to_string().as_str()), (None, message));
    }
}

#[test]
fn a_fault_in_a_layer_names_its_line_too() {
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
    refused(&with("type = 'timeout'\ntime = '0s'\n"), Invalid, (5, 8), "layers[0].time", "the time is zero");
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
    refused(&with("type = 'scoped'\ndirectory = '/a'\n"), Conflict, (3, 1), "layers[0]", "of that place");
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
fn an_unknown_key_names_the_nearest_or_all_of_its_own_table() {
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
fn what_is_no_toml_is_told_with_its_line() {
    let error = Config::parse("[default]\ntype = \n").expect_err("no value");
    assert_eq!((error.kind, error.position.map(|at| at.line)), (ConfigErrorKind::Syntax, Some(2)), "{error}");
}

#[test]
fn the_schema_in_the_documentation_is_this_one() {
    let schema = vfs_config::schema();
    if std::env::var_os("VFS_WRITE_SCHEMA").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vfs.schema.json"), &schema).expect("a file");
    }
    let told = "run VFS_WRITE_SCHEMA=1 cargo test -p vfs-config schema";
    assert!(docs("vfs.schema.json") == schema, "docs/vfs.schema.json is another; {told}");
}

#[tokio::test]
async fn the_example_in_the_documentation_can_be_opened_and_shows_every_layer() {
    let root = tree(&[("project/a.txt", "a"), ("state/x", ""), ("policy.toml", "default = 'allow'\n")]);
    let built = open(&root, &docs("vfs.example.toml")).await.expect("the example is valid");
    built.backend.write_text("/memories/plan.md", "read").await.expect("it may be written");
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
async fn places_are_mounted_and_layers_go_around_them() {
    let root = tree(&[("project/a.txt", "a"), ("shared/docs/b.txt", "b")]);
    let built = open(
        &root,
        "[default]\ntype = 'local'\nroot = 'project'\nlayers = [{ type = 'read_only' }]\n\
         [[mounts]]\npath = '/docs'\ntype = 'local'\nroot = 'shared'\nlayers = [{ type = 'scoped', directory = '/docs' }]\n\
         [[mounts]]\npath = '/scratch'\ntype = 'memory'\n\
         [[layers]]\ntype = 'quota'\nmax_files = 3\n",
    );
    let built = built.await.expect("it is valid");
    let mounts: Vec<_> = built.composite.mounts().into_iter().map(|mount| mount.path.to_string()).collect();
    assert_eq!(mounts, ["/", "/docs", "/scratch"]);
    assert_eq!(built.backend.read_text("/docs/b.txt").await.as_deref(), Ok("b"));
    let refused = built.backend.write_text("/a.txt", "other").await.expect_err("it is read-only");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    built.backend.create_text("/scratch/1", "").await.expect("the third file");
    let refused = built.backend.create_text("/scratch/2", "").await.expect_err("the fourth file");
    assert_eq!(refused.kind(), ErrorKind::QuotaExceeded);
    assert_eq!(built.quotas[0].part.usage(&OpContext::new()).await.expect("it is known").files, 3);
}

#[tokio::test]
async fn an_overlay_keeps_changes_for_the_next_process_and_a_commit_goes_through_read_only() {
    let root = tree(&[("project/a.txt", "one\n")]);
    let text = "[default]\ntype = 'memory'\n[[mounts]]\npath = '/p'\ntype = 'local'\nroot = 'project'\n\
                layers = [{ type = 'read_only' }, { type = 'overlay', store = 'store' }]\n";
    let built = open(&root, text).await.expect("it is valid");
    built.backend.edit_text("/p/a.txt", "one", "two").await.expect("it may be edited");
    drop(built);
    let file = || fs::read_to_string(root.path().join("project/a.txt")).expect("a file");
    assert_eq!(file(), "one\n");
    let built = open(&root, text).await.expect("it is valid");
    let cx = OpContext::new();
    let diff = built.overlays[0].diff(&cx).await.expect("a diff");
    assert_eq!(diff.unified(), "--- a/p/a.txt\n+++ b/p/a.txt\n@@ -1 +1 @@\n-one\n+two\n");
    let Commit::Applied(changes) = built.overlays[0].commit(&cx).await.expect("it can be applied") else {
        panic!("nobody else changed it")
    };
    assert_eq!((changes.changes[0].path.as_str(), file().as_str()), ("/p/a.txt", "two\n"));
}

const STORES: &str = "[default]\ntype = 'local'\nroot = '.'\n\
    [[mounts]]\npath = '/m'\ntype = 'local'\nroot = '.vfs'\nlayers = [{ type = 'scoped', directory = '/kept' }]\n\
    [[layers]]\ntype = 'audit'\nfile = '.vfs/[log] 1.jsonl'\n\
    [[layers]]\ntype = 'policy'\nrules_file = 'rules.toml'\n";

#[tokio::test]
async fn what_layers_keep_is_hidden_wherever_it_is_shown() {
    let root = tree(&[(".vfs/kept/x", "needle"), ("rules.toml", ""), ("l 1.jsonl", "")]);
    let built = open(&root, STORES).await.expect("it is valid");
    let files = &built.backend;
    files.create_text("/a", "needle").await.expect("a file");
    let records = built.audits[0].part.sink.records().await.expect("records");
    assert_eq!(records.len(), 1);
    assert!(root.path().join(".vfs/[log] 1.jsonl").exists());
    let found: Vec<_> =
        files.find("*").await.expect("a search").into_iter().map(|file| file.path.to_string()).collect();
    assert!(found.contains(&"/l 1.jsonl".to_owned()), "{found:?}");
    assert!(files.list("/.vfs").await.expect("a listing").iter().all(|file| !file.path.as_str().contains("log")));
    for change in [
        files.read_text("/.vfs/[log] 1.jsonl").await.map(drop),
        files.write_text("/.vfs/[log] 1.jsonl", "").await.map(drop),
        files.remove("/.vfs/[LOG] 1.jsonl").await,
        files.remove("/.vfs").await,
    ] {
        assert_eq!(change.expect_err("it is hidden").kind(), ErrorKind::PolicyDenied);
    }
    assert!(files.search("sequence").await.expect("a search").is_empty());
}

#[tokio::test]
async fn the_file_itself_and_its_rules_can_be_read_and_not_be_changed() {
    for overlay in ["", "layers = [{ type = 'overlay' }]\n"] {
        let root = tree(&[(".vfs/kept/x", ""), ("rules.toml", "")]);
        let built = open(&root, &STORES.replacen("root = '.'\n", &format!("root = '.'\n{overlay}"), 1)).await;
        let files = built.expect("it is valid").backend;
        assert!(files.read_text("/vfs.toml").await.is_ok());
        for file in ["/vfs.toml", "/rules.toml"] {
            let refused = files.write_text(file, "").await.expect_err("it may not be changed");
            assert_eq!(refused.kind(), ErrorKind::PolicyDenied, "{file} {overlay}");
            assert_eq!(files.remove(file).await.expect_err("nor removed").kind(), ErrorKind::PolicyDenied);
        }
    }
}

#[tokio::test]
async fn what_does_not_go_together_on_the_disk_is_refused_with_its_line() {
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
            "a place of its own",
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
async fn policies_explain_themselves_in_the_namespace() {
    let root = tree(&[("project/a.txt", ""), ("shared/x", "")]);
    let built = open(
        &root,
        "[default]\ntype = 'local'\nroot = 'project'\n\
         [[mounts]]\npath = '/m'\ntype = 'local'\nroot = 'shared'\nlayers = [\
           { type = 'policy', rules = [{ name = 'inner', effect = 'deny', paths = ['/one/secret'] }] },\
           { type = 'scoped', directory = '/one' } ]\n\
         [[layers]]\ntype = 'policy'\nrules = [{ name = 'outer', effect = 'deny', actors = ['x'] }]\n",
    );
    let built = built.await.expect("it is valid");
    let effects = |actor, at| {
        let explained = built.explain(actor, "read", &path(at)).expect("a permission");
        explained.into_iter().map(|by| (by.path.to_string(), by.name)).collect::<Vec<_>>()
    };
    let at = "/m/secret/key".to_owned();
    assert_eq!(effects(None, "/m/secret/key"), [(at.clone(), Some("inner".to_owned())), (at, None)]);
    assert_eq!(effects(Some("x"), "/secret"), [("/secret".to_owned(), Some("outer".to_owned()))]);
    assert!(built.explain(None, "fly", &path("/")).is_err());
}

#[tokio::test]
async fn changes_are_taken_back_by_the_next_process_and_the_file_itself_is_left_alone() {
    let text = "[default]\ntype = 'local'\nroot = '.'\n[[mounts]]\npath = '/m'\ntype = 'memory'\n\
                [[layers]]\ntype = 'checkpoints'\nstore = '.vfs/checkpoints'\n";
    let root = tree(&[("a.txt", "one")]);
    let cx = OpContext::new();
    let built = open(&root, text).await.expect("it is valid");
    let [checkpoints] = &built.checkpoints[..] else { panic!("one layer") };
    let snapshots = checkpoints.part.as_snapshots().expect("there are");
    let snapshot = snapshots.snapshot(&cx, SnapshotRequest::new()).await.expect("a snapshot");
    assert_eq!((snapshot.files, snapshot.bytes), (1, 3));
    built.backend.edit_text("/a.txt", "one", "two").await.expect("it may be edited");
    drop(built);
    let built = open(&root, &format!("{text}max_undo = 10\n")).await.expect("it is valid");
    let undone = built.checkpoints[0].part.undo(&cx, 1).await.expect("it can be taken back");
    assert_eq!((undone.entries.len(), undone.files), (1, 1));
    assert_eq!(fs::read_to_string(root.path().join("a.txt")).expect("a file"), "one");
    let snapshots = built.checkpoints[0].part.as_snapshots().expect("there are");
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
async fn a_database_is_seen_by_the_next_process_and_by_whom_it_belongs_to_and_hidden_where_it_lies() {
    let root = tree(&[("notes.md", "notes")]);
    let ann = OpContext::new().with_actor("ann");
    let bob = OpContext::new().with_actor("bob");
    let write = |at: &str, text: &'static str| vfs_core::WriteRequest::new(path(at), text);
    let stat = |at: &str| vfs_core::StatRequest::new(path(at));
    {
        let built = open(&root, DURABLE).await.expect("it can be opened");
        built.backend.write(&ann, write("/memories/a.md", "of ann")).await.expect("written");
        built.backend.write(&ann, write("/shared/a.md", "of all")).await.expect("written");
        assert_eq!(
            built.backend.stat(&bob, stat("/memories/a.md")).await.expect_err("another's").kind(),
            ErrorKind::NotFound
        );
        let nobody = built.backend.stat(&OpContext::new(), stat("/memories/a.md")).await.expect_err("nobody");
        assert_eq!((nobody.kind(), nobody.path()), (ErrorKind::InvalidArgument, Some("/memories/a.md")));
        let named = built.backend.ls(&ann, vfs_core::LsRequest::new(path("/"))).await.expect("listed");
        let names: Vec<_> = named.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(names, ["/memories", "/notes.md", "/shared", "/vfs.toml"]);
        for hidden in ["/state.db", "/state.db-wal", "/state.db-shm", "/state.db-journal"] {
            let error = built.backend.stat(&ann, stat(hidden)).await.expect_err(hidden);
            assert_eq!(error.kind(), ErrorKind::PolicyDenied, "{hidden}");
        }
    }
    let built = open(&root, DURABLE).await.expect("it can be opened");
    let read = |at: &str| vfs_core::ReadRequest::new(path(at));
    let memory = built.backend.read(&ann, read("/memories/a.md")).await.expect("kept");
    assert_eq!(memory.content, vfs_core::Content::Text("of ann".into()));
    let shared = built.backend.read(&bob, read("/shared/a.md")).await.expect("kept");
    assert_eq!(shared.content, vfs_core::Content::Text("of all".into()));
}

#[tokio::test]
async fn a_database_behind_a_link_is_hidden_under_both_names() {
    let root = tree(&[("data/x", "")]);
    std::os::unix::fs::symlink("data/real.db", root.path().join("state.db")).expect("a link");
    fs::write(root.path().join("data/real.db"), "").expect("a file");
    let text =
        "[default]\ntype = 'local'\nroot = '.'\n[[mounts]]\npath = '/m'\ntype = 'store'\nurl = 'sqlite:state.db'\n";
    let built = open(&root, text).await.expect("it can be opened");
    built.backend.create_text("/m/a", "kept").await.expect("written");
    for hidden in ["/state.db", "/state.db-wal", "/data/real.db", "/data/real.db-wal", "/data/real.db-shm"] {
        let error = built.backend.read_text(hidden).await.expect_err(hidden);
        assert_eq!(error.kind(), ErrorKind::PolicyDenied, "{hidden}");
    }
    assert!(built.backend.search("kept").await.expect("a search").iter().all(|found| found.path.as_str() == "/m/a"));
}

#[test]
fn what_is_kept_by_path_does_not_go_around_files_of_each_caller() {
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
async fn a_store_that_cannot_be_opened_is_told_with_its_line_and_without_its_password() {
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
async fn no_message_repeats_a_secret_of_a_url_wherever_it_stands() {
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
async fn directories_that_two_places_show_are_warned_of() {
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
        let built = open(&root, &text).await.expect("it is valid");
        let warnings: Vec<_> =
            built.warnings.iter().map(|warning| (warning.key.as_deref(), warning.to_string())).collect();
        match (&warnings[..], expected) {
            ([], None) => {}
            ([(key, words)], Some((at, said))) => assert!(*key == Some(at) && words.contains(said), "{text}: {words}"),
            _ => panic!("{text}: {warnings:?}"),
        }
    }
}

#[tokio::test]
async fn of_what_a_link_leads_to_nothing_is_told_that_may_not_be_read() {
    let root = tree(&[("secret.txt", "s"), ("a.md", "a"), ("d/b.md", "b")]);
    for (target, link) in [("secret.txt", "x.md"), ("a.md", "y.md"), ("d", "d.md")] {
        std::os::unix::fs::symlink(target, root.path().join(link)).expect("a link");
    }
    fs::hard_link(root.path().join("secret.txt"), root.path().join("twice")).expect("another name");
    let rules =
        "[[layers.rules]]\neffect = 'allow'\npaths = ['*.md']\n[[layers.rules]]\neffect = 'deny'\nreason = 'no'\n";
    let text = format!("[default]\ntype = 'local'\nroot = '.'\n[[layers]]\ntype = 'policy'\n{rules}");
    let built = open(&root, &text).await.expect("it is valid");
    let (files, cx) = (&built.backend, OpContext::new());
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

/// Two directories in one namespace, with a move of `/d` to `/m/d` that was interrupted when one of two files was copied.
async fn interrupted(text: &str) -> TempDir {
    let root = tree(&[("one/d/a", "a"), ("one/d/b", "b"), ("two/d/a", "a")]);
    let built = open(&root, text).await.expect("it is valid");
    let mut files = Vec::new();
    for name in ["a", "b"] {
        let from = format!("/d/{name}");
        let info = built.backend.stat(&OpContext::new(), vfs_core::StatRequest::new(path(&from))).await;
        let version = info.expect("it is there").version;
        files.push(serde_json::json!({
            "from": from, "to": format!("/m/d/{name}"), "kind": "file", "version": version
        }));
    }
    let note = serde_json::json!({ "from": "/d", "to": "/m/d", "files": files });
    fs::create_dir_all(root.path().join(".vfs/moves")).expect("a directory");
    fs::write(root.path().join(".vfs/moves/move-1-0.json"), note.to_string()).expect("a file");
    root
}

const MOVES: &str = "[default]\ntype = 'local'\nroot = 'one'\n[[mounts]]\npath = '/m'\ntype = 'local'\nroot = 'two'\n";

fn notes(root: &TempDir) -> usize {
    let entries = fs::read_dir(root.path().join(".vfs/moves")).expect("the journal is there");
    entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name() != "lock")).count()
}

fn contents(root: &TempDir, file: &str) -> Option<String> {
    fs::read_to_string(root.path().join(file)).ok()
}

#[tokio::test]
async fn the_journal_is_made_with_the_first_move_and_hidden_wherever_it_is_shown() {
    let shown = MOVES.replace("root = 'one'", "root = '.'");
    let root = tree(&[("a", "a"), ("two/x", "")]);
    let built = open(&root, &shown).await.expect("it is valid");
    built.backend.list("/").await.expect("a listing");
    assert!(!root.path().join(".vfs").exists(), "nothing is made before a move");
    for forged in ["/.vfs/moves/move-1-0.json", "/.VFS/../.vfs/moves/lock"] {
        assert!(built.backend.create_text(forged, "{}").await.is_err(), "{forged}");
    }
    built.backend.create_text("/x/moves/move-1-0.json", "{}").await.expect("another directory");
    let rename = vfs_core::RenameRequest::new(path("/x"), path("/.vfs"));
    let forged = built.backend.rename(&OpContext::new(), rename).await.expect_err("it would be the journal");
    assert_eq!(forged.kind(), ErrorKind::PolicyDenied);
    let rename = vfs_core::RenameRequest::new(path("/a"), path("/m/a"));
    built.backend.rename(&OpContext::new(), rename).await.expect("it is moved");
    assert!(root.path().join(".vfs/moves/lock").exists());
    assert_eq!(notes(&root), 0);
    assert_eq!(built.backend.list("/.vfs").await.expect("a listing"), []);
    assert_eq!(built.backend.remove("/.vfs").await.expect_err("it is hidden").kind(), ErrorKind::PolicyDenied);
    let built = open(&root, &shown).await.expect("it is valid");
    assert_eq!(built.recovery, Default::default());
}

#[tokio::test]
async fn an_interrupted_move_is_finished_by_the_next_opening() {
    let root = interrupted(MOVES).await;
    let built = open(&root, MOVES).await.expect("it is valid");
    assert_eq!((built.recovery.moves.len(), built.warnings.len()), (1, 0), "{built:?}");
    assert_eq!((contents(&root, "two/d/a").as_deref(), contents(&root, "two/d/b").as_deref()), (Some("a"), Some("b")));
    assert!(!root.path().join("one/d").exists());
    assert_eq!(notes(&root), 0);
}

#[tokio::test]
async fn an_opening_leaves_the_moves_of_processes_that_are_alive() {
    let root = interrupted(MOVES).await;
    let lock = fs::File::create(root.path().join(".vfs/moves/lock")).expect("a file");
    lock.lock_shared().expect("it is free");
    let built = open(&root, MOVES).await.expect("it is valid");
    assert_eq!((built.recovery.deferred, built.recovery.moves.len(), built.warnings.len()), (1, 0, 0));
    assert!(contents(&root, "one/d/a").is_some() && contents(&root, "two/d/b").is_none() && notes(&root) == 1);
    drop(lock);
    let built = open(&root, MOVES).await.expect("it is valid");
    assert_eq!((built.recovery.deferred, built.recovery.moves.len()), (0, 1));
    assert_eq!(notes(&root), 0);
}

#[tokio::test]
async fn a_move_that_cannot_be_recovered_is_a_warning_that_names_both_paths() {
    let root = interrupted(MOVES).await;
    fs::write(root.path().join("two/d/a"), "changed since").expect("a file");
    fs::write(root.path().join(".vfs/moves/move-0-0.json"), "{").expect("a file");
    for _ in 0..2 {
        let built = open(&root, MOVES).await.expect("it opens all the same");
        let warnings: Vec<_> = built.warnings.iter().map(ToString::to_string).collect();
        let [stuck, unreadable] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(stuck.contains("'/d' to '/m/d'") && stuck.contains("move-1-0.json"), "{stuck}");
        assert!(unreadable.contains("move-0-0.json"), "{unreadable}");
        assert_eq!((contents(&root, "one/d/a").as_deref(), contents(&root, "one/d/b")), (Some("a"), None));
        assert_eq!(contents(&root, "two/d/a").as_deref(), Some("changed since"));
    }
    fs::remove_file(root.path().join("one/d/a")).expect("it is there");
    let built = open(&root, MOVES).await.expect("it is valid");
    assert_eq!((built.warnings.len(), built.recovery.moves.len(), notes(&root)), (1, 1, 1));
}

#[tokio::test]
async fn the_directory_of_the_journal_can_be_named_or_left_out() {
    let with = |setting: &str| format!("journal = {setting}\n{MOVES}");
    let root = interrupted(MOVES).await;
    let built = open(&root, &with("false")).await.expect("it is valid");
    assert_eq!((built.recovery.moves.len(), notes(&root)), (0, 1));
    let built = open(&root, &with("'elsewhere'")).await.expect("it is valid");
    let rename = vfs_core::RenameRequest::new(path("/d/b"), path("/m/b"));
    built.backend.rename(&OpContext::new(), rename).await.expect("it is moved");
    assert!(root.path().join("elsewhere/lock").exists());
    for (setting, words) in [("true", "by default"), ("''", "names nothing"), ("3", "a directory, or false")] {
        let error = Config::parse(&with(setting)).expect_err(words);
        assert!(error.message.contains(words) && error.key.as_deref() == Some("journal"), "{error}");
    }
    let shared = with("'kept/moves'").replace("'two'\n", "'two'\nlayers = [{ type = 'overlay', store = 'kept' }]\n");
    let error = open(&root, &shared).await.expect_err("a layer keeps something there");
    assert_eq!((error.kind, error.position.map(|at| at.line)), (ConfigErrorKind::Conflict, Some(1)), "{error}");
    // A default that is taken is no reason not to open what could be opened before.
    let shared = MOVES.replace("'two'\n", "'two'\nlayers = [{ type = 'overlay', store = '.vfs' }]\n");
    let built = open(&root, &shared).await.expect("it is valid");
    assert_eq!(built.warnings.len(), 1, "{:?}", built.warnings);
}

#[tokio::test]
async fn a_move_that_cannot_be_recorded_fails_with_advice_and_moves_nothing() {
    let root = tree(&[("one/a", "a"), ("two/x", ""), (".vfs/moves/lock/x", "")]);
    let built = open(&root, MOVES).await.expect("it is valid");
    let rename = vfs_core::RenameRequest::new(path("/a"), path("/m/a"));
    let error = built.backend.rename(&OpContext::new(), rename).await.expect_err("it cannot be recorded");
    assert!(error.message().contains("nothing was moved") && error.message().contains("`journal`"), "{error}");
    assert_eq!((error.path(), contents(&root, "one/a").as_deref()), (Some("/a"), Some("a")));
    assert!(!error.to_string().contains(".vfs/moves/lock"), "{error}");
}

#[tokio::test]
async fn a_move_is_recovered_for_the_caller_who_began_it() {
    let text = "[default]\ntype = 'local'\nroot = 'one'\n\
        [[mounts]]\npath = '/m'\ntype = 'store'\nurl = 'sqlite:state.db'\nnamespace = 'acme/{actor}'\n";
    let root = interrupted(text).await;
    let record = root.path().join(".vfs/moves/move-1-0.json");
    let note = fs::read_to_string(&record).expect("it is there");
    fs::write(&record, note.replacen('{', "{\"actor\":\"ann\",", 1)).expect("a file");
    let ann = OpContext::new().with_actor("ann");
    let built = open(&root, &text.replacen("[default]", "journal = false\n[default]", 1)).await.expect("it is valid");
    built.backend.write(&ann, vfs_core::WriteRequest::new(path("/m/d/a"), "a")).await.expect("it is copied");
    let built = open(&root, text).await.expect("it is valid");
    assert_eq!((built.recovery.moves.len(), built.warnings.len(), notes(&root)), (1, 0, 0), "{:?}", built.warnings);
    let moved = built.backend.read(&ann, vfs_core::ReadRequest::new(path("/m/d/b"))).await.expect("it is moved");
    assert_eq!(moved.content, vfs_core::Content::Text("b".into()));
    assert!(!root.path().join("one/d").exists());
}
