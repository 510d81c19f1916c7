//! Properties of the text editor and the memory of Claude that no golden file shows.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use vfs_composite::CompositeBackend;
use vfs_core::operation::OperationClass;
use vfs_core::{Backend, BackendExt as _, ErrorKind, Layer as _, OpContext, ReadRequest, VfsPath, WriteRequest};
use vfs_layers::ReadOnly;
use vfs_local::LocalBackend;
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_tools::{FailureKind, Part, Profile, SchemaForm, ToolOutcome, ToolSet};

use super::tools::{create_files, run};

const PROFILES: [Profile; 2] = [Profile::ClaudeTextEditor, Profile::ClaudeMemory];

const MAX_CHARACTERS: usize = 80_000;

/// Calls the only tool of `tools`.
async fn call(tools: &ToolSet, arguments: Value) -> ToolOutcome {
    tools.tools()[0].call(&OpContext::new(), &arguments).await
}

fn memory_with(files: &[(&str, &str)]) -> Arc<dyn Backend> {
    let memory = MemoryBackend::new();
    run(async {
        for (path, content) in files {
            memory.create_text(path, content).await.expect("it is written");
        }
    });
    Arc::new(memory)
}

/// Returns the text of the first part: the result without notes.
fn result_text(outcome: &ToolOutcome) -> &str {
    match outcome.parts.first() {
        Some(Part::Text(text)) => text,
        other => panic!("no text: {other:?}"),
    }
}

/// Returns the lines below the header of a view, without their numbers.
fn lines_of(profile: Profile, outcome: &ToolOutcome) -> Vec<String> {
    let text = result_text(outcome);
    // The text editor ends its lines, the memory separates them.
    let text = if profile == Profile::ClaudeTextEditor { text.strip_suffix('\n').expect("it ends") } else { text };
    let lines = text.split('\n').skip(1);
    lines.map(|line| line.split_once('\t').expect("it has a number").1.to_owned()).collect()
}

#[test]
fn pages_by_view_range_put_together_are_the_whole_file() {
    let numbered: String = (1..=250).map(|number| format!("line {number}\n")).collect();
    for content in ["", "\n", "one", "one\n", "one\n\n\n", "a\tb\nc", &numbered] {
        let total = content.split('\n').count();
        let files = memory_with(&[("/memories/file", content)]);
        for profile in PROFILES {
            let tools = ToolSet::new(Arc::clone(&files), profile);
            for size in [1, 2, 7, 100, 250, 251] {
                let mut lines = Vec::new();
                for first in (1..=total).step_by(size) {
                    let last = if first + size > total { -1 } else { (first + size - 1) as i64 };
                    let range = json!({ "command": "view", "path": "/memories/file", "view_range": [first, last] });
                    let outcome = run(call(&tools, range));
                    assert_eq!((outcome.failure, outcome.is_truncated), (None, false), "{}", outcome.to_text());
                    lines.extend(lines_of(profile, &outcome));
                }
                assert_eq!(lines.join("\n"), content, "{profile:?} in pages of {size}");
            }
        }
    }
}

#[test]
fn long_results_are_cut_and_say_how_to_go_on() {
    let numbers = (0..40_000).map(|number| format!("{number}\n")).collect::<String>();
    let long = format!("{}\nnext\n", "x".repeat(200_000));
    let files = memory_with(&[("/memories/numbers", &numbers), ("/memories/long", &long)]);
    run(async {
        for number in 0..3_000 {
            files.create_text(&format!("/memories/many/{number:030}.txt"), "").await.expect("it is written");
        }
    });
    for profile in PROFILES {
        let tools = ToolSet::new(Arc::clone(&files), profile);
        for last in [-1, 30_000] {
            let (mut lines, mut range) = (Vec::new(), Some(json!([1, last])));
            while let Some(view_range) = range {
                let view = json!({ "command": "view", "path": "/memories/numbers", "view_range": view_range });
                let outcome = run(call(&tools, view));
                let text = outcome.to_text();
                assert!(outcome.failure.is_none() && text.chars().count() <= MAX_CHARACTERS, "{profile:?}");
                lines.extend(lines_of(profile, &outcome));
                range = text.split_once("[truncated: continue with view_range ").map(|(_, rest)| {
                    let rest = rest.strip_suffix(']').expect("the note is the last line");
                    serde_json::from_str(rest).expect("a list")
                });
                assert_eq!(outcome.is_truncated, range.is_some());
            }
            let shown =
                if last < 0 { numbers.clone() } else { numbers.lines().take(30_000).collect::<Vec<_>>().join("\n") };
            assert!(lines.join("\n") == shown, "{profile:?} until {last}");
        }
        let outcome = run(call(&tools, json!({ "command": "view", "path": "/memories/long" })));
        let text = outcome.to_text();
        let note = "[truncated: line 1 is too long to be shown as a whole; continue with view_range [2, -1]]";
        assert!(outcome.is_truncated && text.ends_with(note), "{}", &text[text.len() - 200..]);
        assert!((70_000..=MAX_CHARACTERS).contains(&text.chars().count()));

        let outcome = run(call(&tools, json!({ "command": "view", "path": "/memories" })));
        let text = outcome.to_text();
        assert!(outcome.is_truncated && text.contains("[truncated: "), "{}", &text[text.len() - 200..]);
        assert!((70_000..=MAX_CHARACTERS).contains(&text.chars().count()));

        let replaced = json!({
            "command": "str_replace", "path": "/memories/long", "old_str": "next", "new_str": "y".repeat(200_000),
        });
        let outcome = run(call(&tools, replaced.clone()));
        assert!(
            outcome.failure.is_none() && outcome.is_truncated && outcome.to_text().chars().count() <= MAX_CHARACTERS
        );
        let outcome = run(call(
            &tools,
            json!({ "command": "insert", "path": "/memories/long", "insert_line": 2, "insert_text": "next" }),
        ));
        assert!(outcome.failure.is_none() && outcome.to_text().chars().count() <= MAX_CHARACTERS);
    }
}

#[test]
fn failures_of_long_arguments_are_short() {
    let files = memory_with(&[("/memories/file", "text\n")]);
    let long = format!("/memories/{}", vec!["é".repeat(120); 16].join("/"));
    let values =
        [json!(null), json!(-1), json!(1e300), json!("x".repeat(1 << 16)), json!(long), json!([[]]), json!([1, 2, 3])];
    for profile in PROFILES {
        let tools = ToolSet::new(Arc::clone(&files), profile);
        let schema = tools.tools()[0].input_schema(SchemaForm::Plain);
        let properties = schema["properties"].as_object().expect("an object");
        for command in properties["command"]["enum"].as_array().expect("a list") {
            for (name, value) in properties.keys().flat_map(|name| values.iter().map(move |value| (name, value))) {
                for path in ["/memories/file", &long] {
                    let mut arguments = json!({
                        "path": path, "old_path": path, "new_path": "/memories/file", "file_text": "x", "old_str": "none",
                        "new_str": "x", "insert_line": 9, "insert_text": "x",
                    });
                    arguments[name] = value.clone();
                    arguments["command"] = command.clone();
                    let outcome = run(call(&tools, arguments));
                    let text = outcome.to_text();
                    let is_short = outcome.failure.is_none() || text.chars().count() <= 2_000;
                    assert!(!text.is_empty() && is_short, "{profile:?} {command}: {name}: {text}");
                }
            }
        }
    }
}

#[test]
fn parallel_changes_of_one_file_lose_nothing() {
    for name in ["memory", "state-session", "local", "composite-local", "overlay", "checkpoints"] {
        for profile in PROFILES {
            let target = (vfs_tests::target(name).make)();
            let lines: String = (0..64).map(|number| format!("old {number};\n")).collect();
            let content = run(async {
                target.backend.create_text("/memories/list.txt", &lines).await.expect("it is written");
                let tools = ToolSet::new(Arc::clone(&target.backend), profile);
                let changes = (0..64).flat_map(|number| {
                    let path = "/memories/list.txt";
                    let insert = json!({
                        "command": "insert", "path": path, "insert_line": number, "insert_text": format!("added {number};"),
                    });
                    let (old, new) = (format!("old {number};"), format!("replaced {number};"));
                    [insert, json!({ "command": "str_replace", "path": path, "old_str": old, "new_str": new })]
                });
                for outcome in join_all(changes.map(|arguments| call(&tools, arguments))).await {
                    assert_eq!(outcome.failure, None, "{name}: {}", outcome.to_text());
                    assert_eq!(outcome.changed.len(), 1, "{name}");
                }
                target.backend.read_text("/memories/list.txt").await.expect("it is there")
            });
            let mut expected: Vec<_> =
                (0..64).flat_map(|number| [format!("added {number};"), format!("replaced {number};")]).collect();
            let mut actual: Vec<_> = content.lines().collect();
            expected.sort();
            actual.sort_unstable();
            assert_eq!(actual, expected, "{name} {profile:?}");
        }
    }
}

#[test]
fn changes_keep_tabs_line_endings_and_encoding() {
    let utf16 = |text: &str| -> Vec<u8> {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    let cases: [(Vec<u8>, Vec<u8>, Vec<u8>); 4] = [
        (b"a\tb\r\nold\r\n".to_vec(), b"1\r\n2\r\na\tb\r\nnew\r\n".to_vec(), b"1\r\n2\r\na\tb\r\nnew\r\n".to_vec()),
        // The memory ends each file that it inserts into with a line break, the editor leaves the end as it is.
        (b"a\tb\nold".to_vec(), b"1\n2\na\tb\nnew".to_vec(), b"1\n2\na\tb\nnew\n".to_vec()),
        (
            "\u{FEFF}a\nold\n".as_bytes().to_vec(),
            "\u{FEFF}1\n2\na\nnew\n".as_bytes().to_vec(),
            "\u{FEFF}1\n2\na\nnew\n".as_bytes().to_vec(),
        ),
        (utf16("é\r\nold\r\n"), utf16("1\r\n2\r\né\r\nnew\r\n"), utf16("1\r\n2\r\né\r\nnew\r\n")),
    ];
    for (content, editor, memory) in cases {
        for (profile, expected) in PROFILES.into_iter().zip([editor, memory]) {
            let files: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
            let tools = ToolSet::new(Arc::clone(&files), profile);
            let path = "/memories/file";
            let actual = run(async {
                let cx = OpContext::new();
                let at = VfsPath::parse(path).expect("a valid path");
                files.write(&cx, WriteRequest::new(at.clone(), content.clone())).await.expect("it is written");
                for arguments in [
                    json!({ "command": "insert", "path": path, "insert_line": 0, "insert_text": "1\n2" }),
                    json!({ "command": "str_replace", "path": path, "old_str": "old", "new_str": "new" }),
                ] {
                    let outcome = call(&tools, arguments).await;
                    assert_eq!(outcome.failure, None, "{profile:?}: {}", outcome.to_text());
                }
                files.read(&cx, ReadRequest::new(at).raw()).await.expect("it is there").content
            });
            assert_eq!(actual.as_bytes(), expected, "{profile:?}");
        }
    }
}

#[test]
fn a_memory_leads_to_no_other_files() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let root = directory.path();
    std::fs::create_dir_all(root.join("memories/notes")).expect("a directory can be made");
    std::fs::create_dir(root.join("private")).expect("a directory can be made");
    std::fs::write(root.join("private/key.txt"), "secret").expect("a file can be written");
    std::fs::write(root.join("memories/notes/own.txt"), "own").expect("a file can be written");
    for (to, at) in [
        ("../private", "out"),
        ("../private/key.txt", "key.txt"),
        ("/etc", "etc"),
        ("notes/own.txt", "alias.txt"),
        ("../private/new.txt", "dangling.txt"),
    ] {
        symlink(to, root.join("memories").join(at)).expect("a link can be made");
    }
    let files = LocalBackend::open(root).expect("the root can be opened");
    let tools = ToolSet::new(Arc::new(files), Profile::ClaudeMemory);
    for path in ["out", "out/key.txt", "key.txt", "etc", "etc/passwd", "out/new.txt", "dangling.txt"] {
        let path = format!("/memories/{path}");
        let expected = format!("Path {path} would escape /memories directory");
        for arguments in [
            json!({ "command": "view", "path": path }),
            json!({ "command": "create", "path": path, "file_text": "x" }),
            json!({ "command": "str_replace", "path": path, "old_str": "secret", "new_str": "x" }),
            json!({ "command": "insert", "path": path, "insert_line": 0, "insert_text": "x" }),
            json!({ "command": "delete", "path": path }),
            json!({ "command": "rename", "old_path": path, "new_path": "/memories/here" }),
            json!({ "command": "rename", "old_path": "/memories/notes", "new_path": path }),
        ] {
            let outcome = run(call(&tools, arguments.clone()));
            assert_eq!(outcome.failure, Some(FailureKind::Backend(ErrorKind::PathEscape)), "{arguments}");
            assert_eq!(outcome.to_text(), expected, "{arguments}");
        }
    }
    let listing = run(call(&tools, json!({ "command": "view", "path": "/memories" }))).to_text();
    for name in ["key", "/out", "etc", "private"] {
        assert!(!listing.contains(name), "{name}: {listing}");
    }
    assert!(listing.contains("3B\t/memories/notes/own.txt"), "{listing}");
    let alias = run(call(&tools, json!({ "command": "view", "path": "/memories/alias.txt" }))).to_text();
    assert!(alias.ends_with("     1\town"), "{alias}");
    assert_eq!(std::fs::read_to_string(root.join("private/key.txt")).expect("it is there"), "secret");
    assert!(!root.join("private/new.txt").exists());
}

#[test]
fn a_memory_needs_no_directory_and_may_be_a_mount() {
    let tools = ToolSet::new(Arc::new(MemoryBackend::new()), Profile::ClaudeMemory);
    let header =
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n0B\t/memories";
    assert_eq!(run(call(&tools, json!({ "command": "view", "path": "/memories" }))).to_text(), header);

    let read_only = ReadOnly.layer(memory_with(&[("/src/lib.rs", "")]));
    let files =
        CompositeBackend::new(read_only).with_mount("/memories", Arc::new(MemoryBackend::new())).expect("a mount");
    let tools = ToolSet::new(Arc::new(files), Profile::ClaudeMemory);
    assert!(tools.tools()[0].description().contains("`create`"));
    let created = json!({ "command": "create", "path": "/memories/a.txt", "file_text": "a" });
    assert_eq!(run(call(&tools, created)).to_text(), "File created successfully at: /memories/a.txt");
}

#[test]
fn a_backend_that_returns_its_changes_shows_the_new_text() {
    for profile in PROFILES {
        let state = run(async {
            let files = StateBackend::session(FilesState::new());
            files.create_text("/memories/a.txt", "one\ntwo\n").await.expect("it is written");
            files.state()
        });
        let tools = ToolSet::new(Arc::new(StateBackend::pure(state)), profile);
        let replaced = json!({ "command": "str_replace", "path": "/memories/a.txt", "old_str": "two", "new_str": "2" });
        let outcome = run(call(&tools, replaced));
        assert!(outcome.files_update.is_some() && outcome.to_text().contains("     2\t2\n"), "{}", outcome.to_text());
        let inserted = json!({ "command": "insert", "path": "/memories/a.txt", "insert_line": 0, "insert_text": "0" });
        assert!(run(call(&tools, inserted)).files_update.is_some());
    }
}

#[test]
fn an_effect_is_known_before_the_call() {
    for profile in PROFILES {
        let tools = ToolSet::new(Arc::new(MemoryBackend::new()), profile);
        let effect = |arguments: Value| tools.tools()[0].effect(&arguments);
        let path = "/memories/a";
        for (arguments, class) in [
            (json!({ "command": "view", "path": path }), OperationClass::Read),
            (json!({ "command": "create", "path": path, "file_text": "" }), OperationClass::Write),
            (json!({ "command": "str_replace", "path": path, "old_str": "a" }), OperationClass::Write),
            (json!({ "command": "insert", "path": path, "insert_line": 0, "insert_text": "" }), OperationClass::Write),
        ] {
            let effect = effect(arguments).expect("valid arguments");
            assert_eq!((effect.class, effect.paths), (class, vec![VfsPath::parse(path).expect("a valid path")]));
        }
        assert!(effect(json!({ "command": "create", "path": path })).is_err());
    }
    let memory = ToolSet::new(Arc::new(MemoryBackend::new()), Profile::ClaudeMemory);
    let rename = json!({ "command": "rename", "old_path": "/memories/a", "new_path": "/memories/b" });
    let effect = memory.tools()[0].effect(&rename).expect("valid arguments");
    let paths: Vec<_> = effect.paths.iter().map(VfsPath::as_str).collect();
    assert_eq!((effect.class, paths), (OperationClass::Write, vec!["/memories/a", "/memories/b"]));
}

#[test]
fn anthropic_is_given_the_type_and_others_a_schema() {
    for (profile, declared) in PROFILES.into_iter().zip([
        json!({ "type": "text_editor_20250728", "name": "str_replace_based_edit_tool" }),
        json!({ "type": "memory_20250818", "name": "memory" }),
    ]) {
        let tools = ToolSet::new(Arc::new(MemoryBackend::new()), profile);
        assert_eq!(tools.to_anthropic(SchemaForm::Plain), json!([declared]));
        let function = &tools.to_openai(SchemaForm::Plain)[0]["function"];
        assert_eq!(function["name"], declared["name"]);
        assert_eq!(function["parameters"]["required"], json!(["command"]));
        assert_eq!(function["parameters"]["properties"]["view_range"]["items"], json!({ "type": "integer" }));
        assert_eq!(tools.to_gemini()[0]["functionDeclarations"][0]["name"], declared["name"]);

        let read_only = ToolSet::new(ReadOnly.layer(memory_with(&[("/memories/a", "")])), profile);
        assert!(!read_only.tools()[0].description().contains("`create`"));
        let created = json!({ "command": "create", "path": "/memories/b", "file_text": "" });
        assert!(run(call(&read_only, created)).failure.is_some());
    }
}

#[test]
fn hidden_files_are_seen_by_name_alone() {
    for profile in PROFILES {
        let files = Arc::new(MemoryBackend::new());
        run(create_files(&*files, &VfsPath::parse("/memories").expect("a valid path")));
        let tools = ToolSet::new(files, profile);
        let listing = run(call(&tools, json!({ "command": "view", "path": "/memories/w" }))).to_text();
        assert!(listing.contains("/memories/w/src/lib") && !listing.contains(".hidden"), "{listing}");
        let hidden = run(call(&tools, json!({ "command": "view", "path": "/memories/w/.hidden" }))).to_text();
        assert!(hidden.contains("/memories/w/.hidden/run.txt"), "{hidden}");
    }
}
