//! Results of tools: stored and cut texts, budgets, and the calls of a turn.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use vfs_core::{Backend, BackendExt as _, ErrorKind, Layer as _, OpContext, VfsPath};
use vfs_layers::ReadOnly;
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_store::{NamespaceSource, SqliteConfig, SqliteStore, StoreBackend, StoreConfig};
use vfs_tools::{FailureKind, Part, Profile, ResultStore, ToolCall, ToolOutcome, ToolSet};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

use crate::native_tools::{call, continuation, run, text, tools_over};

/// Prints 224,000 bytes.
pub(crate) const LONG_COMMAND: &str = "for i in $(seq 10001 18000); do echo line $i of a long output; done";

pub(crate) fn shell_tools(profile: Profile) -> ToolSet {
    let files: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    ToolSet::new(Arc::new(VirtualShell::new(files, VirtualShellConfig::new())), profile)
}

fn call_with_id(tools: &ToolSet, name: &str, arguments: Value) -> ToolOutcome {
    let calls = [ToolCall::new(name, arguments).id("toolu_01/a.b")];
    run(tools.call_all(&OpContext::new(), &calls)).remove(0)
}

fn run_command(tools: &ToolSet, profile: Profile, command: &str) -> ToolOutcome {
    let name = if profile == Profile::Native { "run" } else { "execute" };
    call_with_id(tools, name, json!({ "command": command }))
}

#[test]
fn a_long_output_is_stored_for_the_model_to_read() {
    for (profile, path, read, arguments) in [
        (Profile::Native, "/large_tool_results/toolu_01_a_b", "read", json!({ "lines": "8000" })),
        (Profile::DeepagentsClassic, "/large_tool_results/toolu_01_a_b", "read_file", json!({ "offset": 7999 })),
        (Profile::Deepagents, "/large_tool_results/toolu_01_a_b", "read_file", json!({ "offset": 7999 })),
        (Profile::DeepagentsJs, "/large_tool_results/toolu_01_a_b.txt", "read_file", json!({ "offset": 7999 })),
        (Profile::Eino, "/large_tool_result/toolu_01_a_b", "read_file", json!({ "offset": 8000 })),
        (Profile::EinoZh, "/large_tool_result/toolu_01_a_b", "read_file", json!({ "offset": 8000 })),
    ] {
        let place = Arc::new(MemoryBackend::new());
        let results = ResultStore::new(Arc::<MemoryBackend>::clone(&place));
        let tools = shell_tools(profile).store_large_results(results).expect("it is a store");
        let outcome = run_command(&tools, profile, LONG_COMMAND);
        let shown = outcome.to_text();
        assert_eq!(outcome.failure, None, "{profile:?}: {shown}");
        assert_eq!(outcome.artifact.as_ref().map(VfsPath::as_str), Some(path), "{profile:?}: {shown}");
        assert!(outcome.is_truncated && shown.contains(path) && shown.len() < 12_000, "{profile:?}: {shown}");
        assert!(shown.contains("line 10001 of a long output"), "{profile:?}: {shown}");
        let kept = run(place.glob_files("/*")).expect("it is listed");
        assert_eq!(kept.len(), 1, "{profile:?}");
        assert!(kept[0].size >= 28 * 8_000, "{profile:?}: {}", kept[0].size);
        let mut arguments = arguments;
        arguments["file_path"] = path.into();
        let last = call(&tools, read, &arguments).to_text();
        assert!(last.contains("line 18000 of a long output"), "{profile:?}: {last}");
        assert!(!last.contains("line 17999"), "{profile:?}: {last}");
        // A short output is shown as it is.
        let short = run_command(&tools, profile, "echo short");
        assert!(short.artifact.is_none() && short.to_text().starts_with("short"), "{profile:?}: {}", short.to_text());
    }
}

#[test]
fn a_pattern_that_names_the_directory_of_stored_results_finds_them() {
    let pattern = |name: &str, pattern: &str| json!({ name: pattern });
    for (profile, name, arguments) in [
        (Profile::Native, "list", pattern("match", "/large_tool_results/*")),
        (Profile::Native, "list", pattern("match", "large_tool_results/**/*")),
        (Profile::Native, "search", json!({ "pattern": "line 18000", "glob": "/large_tool_results/*" })),
        (Profile::DeepagentsClassic, "glob", pattern("pattern", "/large_tool_results/*")),
        (Profile::Deepagents, "glob", pattern("pattern", "/large_tool_results/*")),
        (Profile::Deepagents, "grep", json!({ "pattern": "line 18000", "glob": "/large_tool_results/*" })),
        (Profile::DeepagentsJs, "glob", pattern("pattern", "/large_tool_results/*")),
        (Profile::Eino, "glob", pattern("pattern", "/large_tool_result/*")),
        (Profile::EinoZh, "grep", json!({ "pattern": "line 18000", "glob": "/large_tool_result/*" })),
    ] {
        let results = ResultStore::new(Arc::new(MemoryBackend::new()));
        let tools = shell_tools(profile).store_large_results(results).expect("it is a store");
        run_command(&tools, profile, LONG_COMMAND);
        let found = text(&tools, name, &arguments);
        assert!(found.contains("toolu_01_a_b"), "{profile:?} {name} {arguments}: {found}");
        // A pattern that only matches the name of the directory does not name it.
        let other = arguments.to_string().replace("large_tool_results/", "large_tool_results*/");
        let other = other.replace("large_tool_result/", "large_tool_result*/");
        let found = text(&tools, name, &serde_json::from_str(&other).expect("it is JSON"));
        assert!(!found.contains("toolu_01_a_b"), "{profile:?} {name} {other}: {found}");
    }
}

#[test]
fn a_result_that_cannot_be_stored_is_shortened_and_says_why() {
    let read_only = || ResultStore::new(ReadOnly.layer(Arc::new(MemoryBackend::new())));
    let full = || ResultStore::new(Arc::new(MemoryBackend::new())).max_bytes(10);
    for profile in [Profile::Native, Profile::DeepagentsClassic, Profile::Deepagents, Profile::Eino] {
        for (results, reason) in
            [(Some(read_only()), "read"), (Some(full()), "all stored results may have 10 bytes"), (None, "")]
        {
            let tools = shell_tools(profile);
            let tools = match results {
                Some(results) => tools.store_large_results(results).expect("it is a store"),
                None => tools,
            };
            let outcome = run_command(&tools, profile, LONG_COMMAND);
            let shown = outcome.to_text();
            assert_eq!((outcome.failure, outcome.artifact), (None, None), "{profile:?}: {shown}");
            assert!(outcome.is_truncated && shown.chars().count() <= 81_000, "{profile:?}: {}", shown.len());
            assert!(shown.contains("line 10001 of a long output"), "{profile:?}");
            assert!(shown.contains(reason), "{profile:?}: {reason}");
        }
    }
}

#[test]
fn results_of_other_tools_and_messages_are_shortened_alike() {
    let (_, tools) = tools_over(&[]);
    let place = Arc::new(MemoryBackend::new());
    let kept = tools.store_large_results(ResultStore::new(Arc::<MemoryBackend>::clone(&place))).expect("it is a store");
    let lines: String = (1..=9_000).map(|number| format!("row {number}\n")).collect();
    let cx = OpContext::new();
    let outcome = run(kept.shorten_result(&cx, Some("web-7"), &lines));
    assert_eq!(outcome.artifact.as_ref().map(VfsPath::as_str), Some("/large_tool_results/web-7"));
    assert!(
        outcome.to_text().starts_with("row 1\n") && outcome.to_text().ends_with("row 9000\n"),
        "{}",
        outcome.to_text()
    );
    assert_eq!(run(place.read_text("/web-7")).expect("it is kept"), lines);
    let outcome = run(kept.shorten_message(&cx, &lines, 20_000));
    assert_eq!(outcome.artifact.as_ref().map(VfsPath::as_str), Some("/large_tool_results/message"));
    assert!(outcome.to_text().contains("the message has 9000 lines, all in /large_tool_results/message"));
    let short = run(kept.shorten_message(&cx, "short", 0));
    assert_eq!((short.to_text().as_str(), short.is_truncated), ("short", false));
    let cut = run(tools.shorten_result(&cx, None, &lines));
    assert!(cut.is_truncated && cut.to_text().chars().count() <= 40_000 && cut.artifact.is_none());
}

#[test]
fn a_store_needs_files_that_the_tools_can_read() {
    let (files, tools) = tools_over(&[]);
    let refused = tools.store_large_results(ResultStore::new(Arc::new(StateBackend::pure(FilesState::new()))));
    assert_eq!(refused.expect_err("it only returns its changes").kind(), ErrorKind::Unsupported);
    let memory = ToolSet::new(files, Profile::ClaudeMemory);
    let refused = memory.store_large_results(ResultStore::new(Arc::new(MemoryBackend::new())));
    assert_eq!(refused.expect_err("the tool reads only memories").kind(), ErrorKind::Unsupported);
}

#[test]
fn stored_results_are_seen_only_by_calls_that_name_them_and_are_not_changed() {
    let (files, tools) = tools_over(&[("/a.txt", "needle\n"), ("/.gitignore", "*.log\n")]);
    let tools = tools.store_large_results(ResultStore::new(Arc::new(MemoryBackend::new()))).expect("it is a store");
    let long = "needle\n".repeat(10_000);
    let path = run(tools.shorten_result(&OpContext::new(), Some("x"), &long)).artifact.expect("it is stored");
    assert_eq!(path.as_str(), "/large_tool_results/x");
    assert_eq!(
        text(&tools, "search", &json!({ "pattern": "needle", "show": "counts" })),
        "1 file (without 1 hidden)\n/a.txt: 1"
    );
    assert_eq!(text(&tools, "list", &json!({})), "1 file below / (without 1 hidden)\na.txt");
    let found = text(&tools, "search", &json!({ "pattern": "needle", "path": path.as_str(), "show": "counts" }));
    assert_eq!(found, "1 file\n/large_tool_results/x: 10000");
    for (name, arguments) in [
        ("edit", json!({ "path": path.as_str(), "old": "needle", "new": "pin", "all": true })),
        ("write", json!({ "path": "/large_tool_results/y", "content": "z" })),
        ("manage", json!({ "delete": [path.as_str()] })),
    ] {
        let refused = call(&tools, name, &arguments);
        assert_eq!(refused.failure, Some(FailureKind::Backend(ErrorKind::PermissionDenied)), "{}", refused.to_text());
    }
    let copied = call(&tools, "manage", &json!({ "copy": [{ "from": path.as_str(), "to": "/copy" }] }));
    assert_eq!(copied.failure, None, "{}", copied.to_text());
    assert_eq!(run(files.read_text("/copy")).expect("it is there"), long);
}

#[test]
fn a_command_in_a_small_budget_stores_its_output_and_not_its_summary() {
    for profile in [Profile::Native, Profile::Deepagents] {
        let store = Arc::new(MemoryBackend::new());
        let tools = shell_tools(profile).max_characters(2_000);
        let tools =
            tools.store_large_results(ResultStore::new(Arc::<MemoryBackend>::clone(&store))).expect("it is a store");
        let outcome = run_command(&tools, profile, LONG_COMMAND);
        assert!(outcome.to_text().chars().count() <= 2_000, "{}", outcome.to_text());
        let stored = run(store.glob_files("/*")).expect("it is listed");
        assert!(stored.len() == 1 && stored[0].size >= 28 * 8_000, "{profile:?}: {stored:?}");
    }
}

#[test]
fn no_result_exceeds_the_characters_of_a_result() {
    let names: Vec<String> =
        (0..600).map(|number| format!("/d{}/{number:04}-{}.txt", number % 9, "n".repeat(40))).collect();
    let content = "needle in a line\n".repeat(300);
    let contents: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), content.as_str())).collect();
    let (files, _) = tools_over(&contents);
    for profile in Profile::ALL.iter().copied() {
        for budget in [0, 2_000, 5_000] {
            let tools = ToolSet::new(Arc::<MemoryBackend>::clone(&files), profile).max_characters(budget);
            for tool in tools.tools() {
                let arguments = json!({
                    "command": "view", "path": "/", "file_path": names[0], "pattern": "needle", "output_mode": "content",
                    "content": "x", "old_string": "missing", "new_string": "y",
                });
                let outcome = call(&tools, tool.name(), &arguments);
                let length = outcome.to_text().chars().count();
                assert!(length <= budget.max(2_000) + 1, "{profile:?} {}: {length}", tool.name());
            }
        }
    }
}

#[test]
fn pages_of_a_small_budget_put_together_are_the_whole() {
    let names: Vec<String> =
        (0..130).map(|number| format!("/many/{number:03}/x{}.txt", "n".repeat(number % 40))).collect();
    let long: String = (0..1_000).map(|number| format!("{number} {}\n", "x".repeat(number % 90))).collect();
    let mut contents: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "needle 1\nneedle 2\n")).collect();
    contents.push(("/long", &long));
    let (_, tools) = tools_over(&contents);
    let tools = tools.max_characters(2_000);
    let (mut listed, mut found, mut skip) = (Vec::new(), 0, Some(String::from("0")));
    while let Some(at) = skip {
        let page = text(&tools, "list", &json!({ "path": "/many", "limit": 10_000, "skip": at }));
        assert!(page.len() <= 2_000, "{}", page.len());
        listed.extend(page.lines().skip(1).filter(|line| !line.starts_with('[')).map(|line| format!("/many/{line}")));
        skip = continuation(&page, "more: skip=");
    }
    assert_eq!(listed, names);
    skip = Some(String::from("0"));
    while let Some(at) = skip {
        let page = text(&tools, "search", &json!({ "pattern": "needle", "limit": 10_000, "skip": at }));
        assert!(page.len() <= 2_000, "{}", page.len());
        found += page.lines().filter(|line| line.contains(": needle")).count();
        skip = continuation(&page, "more: skip=");
    }
    assert_eq!(found, 260);
    let (mut read, mut lines) = (String::new(), Some(String::from("1-")));
    while let Some(range) = lines {
        let page = text(&tools, "read", &json!({ "path": "/long", "lines": range }));
        assert!(page.len() <= 2_000, "{}", page.len());
        for line in page.lines().skip(1).filter(|line| !line.starts_with('[')) {
            read.push_str(line.split_once('\t').expect("a numbered line").1);
            read.push('\n');
        }
        lines = continuation(&page, "more: lines=\"");
    }
    assert_eq!(read, long);
}

#[test]
fn the_calls_of_a_turn_share_its_characters_and_changes_keep_their_order() {
    let long: String = (0..2_000).map(|number| format!("line {number}\n")).collect();
    let (files, tools) = tools_over(&[("/long", &long), ("/steps", "0")]);
    let tools = tools.max_turn_characters(12_000);
    let edit = |old: u64| {
        ToolCall::new("edit", json!({ "path": "/steps", "old": old.to_string(), "new": (old + 1).to_string() }))
    };
    let read = |from: u64| ToolCall::new("read", json!({ "path": "/long", "lines": format!("{from}-") }));
    let calls = [edit(0), read(1), edit(1), read(500), ToolCall::new("missing", json!({})), edit(2)];
    let outcomes = run(tools.call_all(&OpContext::new(), &calls));
    let failures: Vec<_> = outcomes.iter().map(|outcome| outcome.failure).collect();
    assert_eq!(failures, [None, None, None, None, Some(FailureKind::UnknownTool), None]);
    assert_eq!(run(files.read_text("/steps")).expect("it is there"), "3");
    for (at, first) in [(1, "\n1\tline 0\n"), (3, "\n500\tline 499\n")] {
        let shown = outcomes[at].to_text();
        assert!(shown.contains(first) && shown.len() <= 2_000, "{}", shown.len());
    }
}

#[test]
fn a_read_after_a_change_in_one_turn_sees_it() {
    let (_, tools) = tools_over(&[("/a", "one\n")]);
    let tools = tools.read_before_edit();
    let read = || ToolCall::new("read", json!({ "path": "/a" }));
    let edit = ToolCall::new("edit", json!({ "path": "/a", "old": "one", "new": "two" }));
    let outcomes = run(tools.call_all(&OpContext::new(), &[read(), edit, read()]));
    let texts: Vec<_> = outcomes.iter().map(ToolOutcome::to_text).collect();
    assert!(texts[0].contains("\tone") && texts[2].contains("\ttwo"), "{texts:?}");
    assert_eq!(outcomes[1].failure, None, "{texts:?}");
}

#[test]
fn two_changes_of_one_file_in_a_turn_over_returned_state_are_not_merged() {
    for (profile, name) in [(Profile::Native, "edit"), (Profile::Deepagents, "edit_file"), (Profile::Eino, "edit_file")]
    {
        let state = run(async {
            let files = StateBackend::session(FilesState::new());
            for path in ["/a", "/b"] {
                files.create_text(path, "one two\n").await.expect("it is written");
            }
            files.state()
        });
        let tools = ToolSet::new(Arc::new(StateBackend::pure(state.clone())), profile);
        let edit = |path: &str, old: &str| {
            ToolCall::new(name, json!({ "file_path": path, "old_string": old, "new_string": "new" }))
        };
        let calls = [edit("/a", "one"), edit("/b", "one"), edit("/a", "two")];
        let outcomes = run(tools.call_all(&OpContext::new(), &calls));
        assert!(outcomes[..2].iter().all(|outcome| outcome.files_update.is_some()), "{profile:?}: {outcomes:?}");
        assert_eq!(outcomes[2].failure, Some(FailureKind::Backend(ErrorKind::Conflict)), "{profile:?}");
        assert!(outcomes[2].files_update.is_none() && outcomes[2].to_text().contains("/a"), "{profile:?}");

        // A session applies its updates itself.
        let tools = ToolSet::new(Arc::new(StateBackend::session(state)), profile);
        let outcomes = run(tools.call_all(&OpContext::new(), &calls));
        assert!(outcomes.iter().all(|outcome| outcome.failure.is_none()), "{profile:?}: {outcomes:?}");
    }
}

#[test]
fn parallel_turns_lose_nothing() {
    let lines: String = (0..64).map(|number| format!("old {number};\n")).collect();
    for (profile, name) in [(Profile::Native, "edit"), (Profile::Deepagents, "edit_file"), (Profile::Eino, "edit_file")]
    {
        let (files, _) = tools_over(&[("/list", &lines)]);
        let tools = ToolSet::new(Arc::<MemoryBackend>::clone(&files), profile);
        let calls: Vec<_> = (0..64)
            .map(|number| {
                let (old, new) = (format!("old {number};"), format!("new {number};"));
                ToolCall::new(name, json!({ "file_path": "/list", "old_string": old, "new_string": new }))
            })
            .collect();
        // Turns of several agents with the same tools, at once.
        let cx = OpContext::new();
        let turns = run(join_all(calls.chunks(4).map(|calls| tools.call_all(&cx, calls))));
        for outcome in turns.iter().flatten() {
            assert_eq!(outcome.failure, None, "{profile:?}: {}", outcome.to_text());
        }
        assert_eq!(run(files.read_text("/list")).expect("it is there"), lines.replace("old", "new"), "{profile:?}");
    }
}

#[test]
fn windows_of_a_small_budget_put_together_are_the_whole_in_every_profile() {
    let long: String = (0..900).map(|number| format!("{number} {}\n", "x".repeat(number % 70))).collect();
    let (files, _) = tools_over(&[("/memories/long", &long)]);
    for (profile, name, first, mark) in [
        (Profile::DeepagentsClassic, "read_file", 0, "continue with offset "),
        (Profile::Deepagents, "read_file", 0, "next offset "),
        (Profile::DeepagentsJs, "read_file", 0, "next offset "),
        (Profile::Eino, "read_file", 1, "continue with offset "),
    ] {
        let tools = ToolSet::new(Arc::<MemoryBackend>::clone(&files), profile).max_characters(3_000);
        let (mut lines, mut offset) = (Vec::new(), Some(first));
        while let Some(at) = offset {
            let arguments = json!({ "file_path": "/memories/long", "offset": at, "limit": 2_000 });
            let page = text(&tools, name, &arguments);
            assert!(page.chars().count() <= 3_000, "{profile:?}: {}", page.len());
            let is_line = |line: &&str| !line.starts_with("@@") && !line.starts_with('[');
            lines.extend(page.lines().filter(is_line).map(|line| line.rsplit('\t').next().unwrap_or(line).to_owned()));
            offset = page.split_once(mark).and_then(|(_, rest)| {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                digits.parse().ok()
            });
        }
        assert!(lines == long.lines().collect::<Vec<_>>(), "{profile:?}: {} lines", lines.len());
    }
}

#[test]
fn results_of_two_callers_with_files_of_their_own_do_not_delete_each_other() {
    let backend = run(SqliteStore::open(SqliteConfig::in_memory())).expect("it opens");
    let namespaces = NamespaceSource::template("{actor}").expect("a valid template");
    let backend = StoreBackend::with_config(backend, StoreConfig::new().namespace(namespaces));
    let (_, tools) = tools_over(&[]);
    let store = ResultStore::new(Arc::new(backend.clone())).max_bytes(100_000);
    let tools = tools.store_large_results(store).expect("it is a store");
    let long = "x\n".repeat(40_000);
    let (ann, bob) = (OpContext::new().with_actor("ann"), OpContext::new().with_actor("bob"));
    for cx in [&ann, &bob] {
        let outcome = run(tools.shorten_result(cx, Some("call"), &long));
        assert_eq!(outcome.artifact.as_ref().map(VfsPath::as_str), Some("/large_tool_results/call"));
    }
    let stored = |cx: &OpContext| {
        let read = vfs_core::ReadRequest::new(VfsPath::parse("/call").expect("a valid path"));
        run(backend.read(cx, read)).map_err(|error| error.kind())
    };
    assert_eq!(stored(&ann).map(|_| ()), Err(ErrorKind::NotFound), "the oldest gives way");
    assert!(stored(&bob).is_ok());
}

#[test]
fn images_stay_beside_a_text_that_is_shortened() {
    let (files, _) = tools_over(&[]);
    let pixel = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
    let path = VfsPath::parse("/pixel.png").expect("a valid path");
    run(files.write(&OpContext::new(), vfs_core::WriteRequest::new(path, pixel.to_vec()))).expect("it is written");
    let tools = ToolSet::new(files, Profile::Deepagents).max_characters(0);
    let outcome = call(&tools, "read_file", &json!({ "file_path": "/pixel.png" }));
    assert!(matches!(outcome.parts.as_slice(), [Part::File(_)]), "{outcome:?}");
}
