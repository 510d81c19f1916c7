//! Results of tools: stored and cut texts, the characters of a turn, pages of jobs, and files that have to be read before a change.

use std::sync::Arc;

use serde_json::{Value, json};
use vfs_core::{Backend, BackendExt as _, ErrorKind, Layer as _, OpContext, VfsPath};
use vfs_layers::ReadOnly;
use vfs_local::LocalBackend;
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};
use vfs_shell::{LocalShellBackend, ShellConfig};
use vfs_testkit::Target;
use vfs_tools::{FailureKind, Part, Profile, ResultStore, ToolCall, ToolOutcome, ToolSet};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

use crate::native_tools::{call, continuation, run, text, tools_over};

/// Prints 224,000 bytes.
const LONG_COMMAND: &str = "for i in $(seq 10001 18000); do echo line $i of a long output; done";

fn shell_tools(profile: Profile) -> ToolSet {
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
fn parallel_calls_of_a_turn_lose_nothing() {
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
        for outcome in run(tools.call_all(&OpContext::new(), &calls)) {
            assert_eq!(outcome.failure, None, "{profile:?}: {}", outcome.to_text());
        }
        assert_eq!(run(files.read_text("/list")).expect("it is there"), lines.replace("old", "new"), "{profile:?}");
    }
}

#[test]
fn a_file_that_was_not_read_is_not_changed_if_the_tools_are_set_so() {
    let replaces = json!({ "command": "str_replace", "path": "/memories/a", "old_str": "one", "new_str": "1" });
    let views = json!({ "command": "view", "path": "/memories/a" });
    let edit = json!({ "file_path": "/memories/a", "old_string": "one", "new_string": "1" });
    let read = json!({ "file_path": "/memories/a" });
    for (profile, change, arguments, look, what) in [
        (Profile::Native, "edit", &edit, "read", &read),
        (Profile::DeepagentsClassic, "edit_file", &edit, "read_file", &read),
        (Profile::Deepagents, "edit_file", &edit, "read_file", &read),
        (Profile::Eino, "edit_file", &edit, "read_file", &read),
        (Profile::ClaudeTextEditor, "str_replace_based_edit_tool", &replaces, "str_replace_based_edit_tool", &views),
        (Profile::ClaudeMemory, "memory", &replaces, "memory", &views),
    ] {
        let (files, _) = tools_over(&[("/memories/a", "one\ntwo\n")]);
        let tools = ToolSet::new(Arc::<MemoryBackend>::clone(&files), profile).read_before_edit();
        let refused = call(&tools, change, arguments);
        assert_eq!(refused.failure, Some(FailureKind::NotRead), "{profile:?}: {}", refused.to_text());
        assert_eq!(refused.to_text(), "Error: you have not read /memories/a; read it before you change it");
        assert_eq!(call(&tools, look, what).failure, None, "{profile:?}");
        let made = call(&tools, change, arguments);
        assert_eq!(made.failure, None, "{profile:?}: {}", made.to_text());
        assert_eq!(run(files.read_text("/memories/a")).expect("it is there"), "1\ntwo\n");
        // What the model has written itself, it knows.
        if profile == Profile::Deepagents {
            let new = json!({ "file_path": "/new", "content": "one" });
            assert_eq!(call(&tools, "write_file", &new).failure, None);
            assert_eq!(call(&tools, "write_file", &new).failure, None);
            let unread = json!({ "file_path": "/memories/b" });
            run(files.create_text("/memories/b", "x")).expect("it is written");
            assert_eq!(call(&tools, "delete", &unread).failure, Some(FailureKind::NotRead));
            let other = json!({ "file_path": "/missing/b", "old_string": "a", "new_string": "b" });
            assert_ne!(call(&tools, "edit_file", &other).failure, Some(FailureKind::NotRead));
        }
    }
}

#[test]
fn neither_a_pattern_nor_a_delete_passes_by_the_read_before_an_edit() {
    let (files, tools) = tools_over(&[("/app/[slug]/a", "one\n"), ("/b", "one\n"), ("/image", "\0\u{1}")]);
    let tools = tools.read_before_edit();
    for (name, arguments) in [
        ("edit", json!({ "path": "/app/[slug]/a", "old": "one", "new": "1" })),
        ("edit", json!({ "path": "/?", "old": "one", "new": "1" })),
        ("write", json!({ "path": "/b", "content": "", "mode": "append" })),
        ("write", json!({ "path": "/image", "content": "", "mode": "overwrite" })),
        ("manage", json!({ "delete": ["/b"] })),
    ] {
        assert_eq!(call(&tools, name, &arguments).failure, Some(FailureKind::NotRead), "{name} {arguments}");
    }
    for path in ["/app/[slug]/a", "/b", "/image"] {
        assert_eq!(call(&tools, "read", &json!({ "path": path })).failure, None);
    }
    let made = call(&tools, "edit", &json!({ "path": "/?", "old": "one", "new": "1" }));
    assert_eq!(made.failure, None, "{}", made.to_text());
    let made = call(&tools, "write", &json!({ "path": "/image", "content": "", "mode": "overwrite" }));
    assert_eq!(made.failure, None, "{}", made.to_text());
    assert_eq!(run(files.read_text("/b")).expect("it is there"), "1\n");
}

#[test]
fn the_next_run_over_another_backend_remembers_what_was_shown() {
    let (files, tools) = tools_over(&[("/src/a", "one\n")]);
    let tools = tools.working_directory(VfsPath::parse("/src").expect("a valid path"));
    assert!(text(&tools, "read", &json!({ "path": "a" })).contains("1\tone"));
    run(files.edit_text("/src/a", "one", "1")).expect("it is edited");
    let next = tools.with_backend(files).expect("nothing is stored");
    let refused = text(&next, "edit", &json!({ "path": "a", "old": "1", "new": "one" }));
    assert!(refused.contains("has changed since you saw it"), "{refused}");
}

#[test]
fn pages_of_the_output_of_a_job_put_together_are_the_whole() {
    run(async {
        let tools = shell_tools(Profile::Native);
        let cx = OpContext::new();
        let text = async |name: &str, arguments: Value| tools.call(&cx, name, &arguments).await.to_text();
        assert_eq!(text("job", json!({})).await, "no jobs");
        let started = text("run", json!({ "command": LONG_COMMAND, "background": true })).await;
        let id = started.strip_prefix("job ").and_then(|rest| rest.split_once(" runs")).expect("a job").0.to_owned();
        for from_start in [false, true] {
            let (mut output, mut from) = (String::new(), from_start.then(|| "0".to_owned()));
            loop {
                let mut arguments = json!({ "id": id, "wait": 60 });
                if let Some(from) = &from {
                    arguments["from"] = from.as_str().into();
                }
                let page = text("job", arguments).await;
                assert!(page.len() <= 8_200, "{}", page.len());
                let (shown, end) = page.rsplit_once("[").expect("a last line");
                output.push_str(if end.contains("the line goes on") { shown.trim_end_matches('\n') } else { shown });
                if end.contains("exit 0") {
                    break;
                }
                // Without `from` the next call goes on by itself.
                from = from_start.then(|| continuation(&page, "from=").expect("where it goes on"));
            }
            let expected: String =
                (10_001..=18_000).map(|number| format!("line {number} of a long output\n")).collect();
            assert!(output == expected, "{} bytes of {}", output.len(), expected.len());
        }
        let listed = text("job", json!({})).await;
        assert!(
            listed.starts_with(&format!("{id} [exit 0]")) || listed.starts_with(&format!("{id} [exit 0, ")),
            "{listed}"
        );
        let words = text("job", json!({ "stop": true })).await;
        assert_eq!(words, "Error: `stop` needs the `id` of a job");
        let missing = tools.call(&cx, "job", &json!({ "id": "missing" })).await;
        assert!(missing.failure.is_some() && missing.to_text().starts_with("Error: "), "{}", missing.to_text());
    });
}

/// The same commands over processes of this machine, over a place with a shell, and without processes.
fn shells() -> Vec<(&'static str, Target)> {
    let directory = || tempfile::tempdir().expect("a directory can be made");
    let (local, remote) = (directory(), directory());
    let files = LocalBackend::open(local.path()).expect("it opens");
    let host = LocalShellBackend::with_files(files, ShellConfig::new());
    let root = remote.path().to_str().expect("its name is UTF-8");
    let place = SandboxBackend::new(LocalProcess::new(), RemoteConfig::new(root));
    let interpreter = VirtualShell::new(Arc::new(MemoryBackend::new()), VirtualShellConfig::new());
    vec![
        ("host", Target::new(Arc::new(host)).with_guard(local)),
        ("place", Target::new(Arc::new(place)).with_guard(remote)),
        ("interpreter", Target::new(Arc::new(interpreter))),
    ]
}

#[test]
fn commands_end_alike_over_every_shell() {
    for (shell, target) in shells() {
        for (profile, name, ends) in [
            (Profile::Native, "run", ["one\n[exit 0]", "[exit 3]", "[exit 0]"]),
            (
                Profile::Deepagents,
                "execute",
                [
                    "one\n\n[Command succeeded with exit code 0]",
                    "\n[Command failed with exit code 3]",
                    "\n[Command succeeded with exit code 0]",
                ],
            ),
            (
                Profile::Eino,
                "execute",
                ["one\n", "\n[Command failed with exit code 3]", "[Command executed successfully with no output]"],
            ),
        ] {
            let tools = ToolSet::new(Arc::clone(&target.backend), profile);
            for (command, end) in ["echo one", "exit 3", "true"].into_iter().zip(ends) {
                let outcome = call(&tools, name, &json!({ "command": command }));
                let is_failure = outcome.failure == Some(FailureKind::Command);
                assert_eq!((outcome.to_text().as_str(), is_failure), (end, command == "exit 3"), "{shell} {profile:?}");
            }
        }
        let tools = ToolSet::new(Arc::clone(&target.backend), Profile::Native);
        let outcome = call(&tools, "run", &json!({ "command": "true", "background": true }));
        let words = outcome.to_text();
        match outcome.failure {
            None => assert!(words.starts_with("job ") && words.contains(" runs; "), "{shell}: {words}"),
            Some(_) => assert!(words.contains("run the command in the foreground with a timeout"), "{shell}: {words}"),
        }
    }
}

#[test]
fn a_job_can_be_stopped() {
    run(async {
        let tools = shell_tools(Profile::Native);
        let cx = OpContext::new();
        let started = tools.call(&cx, "run", &json!({ "command": "sleep 3000", "background": true })).await.to_text();
        let id = started.strip_prefix("job ").and_then(|rest| rest.split_once(" runs")).expect("a job").0.to_owned();
        let running = tools.call(&cx, "job", &json!({ "id": id })).await.to_text();
        assert_eq!(running, format!("[job {id} runs; next: from=0]"));
        let stopped = tools.call(&cx, "job", &json!({ "id": id, "stop": true })).await.to_text();
        assert!(stopped.starts_with(&format!("[job {id}: ")) && !stopped.contains("runs"), "{stopped}");
    });
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
