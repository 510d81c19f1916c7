//! Sessions of tools: files that have to be read before a change, notes, the next run, and jobs.

use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::{Value, json};
use vfs_core::operation::{
    Intercepted, Interceptor, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest,
};
use vfs_core::{Backend, BackendExt as _, OpContext, Result, VfsPath, WriteRequest};
use vfs_local::LocalBackend;
use vfs_memory::MemoryBackend;
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};
use vfs_shell::{LocalShellBackend, ShellConfig};
use vfs_testkit::Target;
use vfs_tools::{FailureKind, Profile, ResultStore, ToolSet};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

use crate::native_edits::EndlessEdit;
use crate::native_tools::{call, continuation, run, text, tools_over};
use crate::tool_results::{LONG_COMMAND, shell_tools};

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
        if profile == Profile::ClaudeMemory {
            run(files.create_text("/memories/b", "one")).expect("it is written");
            let delete = json!({ "command": "delete", "path": "/memories/b" });
            assert_eq!(call(&tools, "memory", &delete).failure, Some(FailureKind::NotRead));
            let rename = json!({ "command": "rename", "old_path": "/memories/b", "new_path": "/memories/c" });
            assert_eq!(call(&tools, "memory", &rename).failure, None);
            let replace = json!({ "command": "str_replace", "path": "/memories/c", "old_str": "one", "new_str": "1" });
            assert_eq!(call(&tools, "memory", &replace).failure, Some(FailureKind::NotRead));
        }
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
        ("manage", json!({ "move": [{ "from": "/app", "to": "/old" }], "delete": ["/old/[slug]/a"] })),
        ("manage", json!({ "move": [{ "from": "/b", "to": "/old/b" }], "delete": ["/old"], "recursive": true })),
        (
            "manage",
            json!({ "move": [{ "from": "/b", "to": "/c" }, { "from": "/image", "to": "/b" }], "delete": ["/b"] }),
        ),
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
    let store = ResultStore::new(Arc::new(MemoryBackend::new()));
    let next = tools.store_large_results(store).expect("it is a store").with_backend(files).expect("it is a store");
    let refused = text(&next, "edit", &json!({ "path": "a", "old": "1", "new": "one" }));
    assert!(refused.contains("has changed since you saw it"), "{refused}");
    let other = Arc::new(MemoryBackend::new());
    run(other.create_text("/src/b", "two\n")).expect("it is written");
    let next = next.with_backend(other).expect("it is a store");
    assert!(text(&next, "read", &json!({ "path": "b" })).contains("1\ttwo"));
    let outcome = run(next.shorten_result(&OpContext::new(), None, &"x\n".repeat(40_000)));
    assert_eq!(outcome.artifact.as_ref().map(VfsPath::as_str), Some("/large_tool_results/result"));
}

#[test]
fn a_note_waits_for_an_outcome_that_has_room_for_it() {
    let edited: Vec<String> =
        (0..5).map(|number| format!("/{}{number}", "e".repeat(200))).chain(["/b".to_owned()]).collect();
    let deleted: Vec<String> = (0..30).map(|number| format!("/{}{number}", "d".repeat(60))).collect();
    let contents: Vec<(&str, &str)> = edited.iter().chain(&deleted).map(|path| (path.as_str(), "x\n")).collect();
    let (files, _) = tools_over(&contents);
    let backend = Intercepted::new(Arc::<MemoryBackend>::clone(&files), Arc::new(EndlessEdit));
    let shell = VirtualShell::new(Arc::new(backend), VirtualShellConfig::new());
    let tools = ToolSet::new(Arc::new(shell), Profile::Native);
    let edits: Vec<_> = edited.iter().map(|path| json!({ "path": path, "old": "x", "new": "y" })).collect();
    let (cx, edits) = (OpContext::new(), json!({ "edits": edits }));
    run(async { assert!(tools.call(&cx, "edit", &edits).now_or_never().is_none()) });
    let note = "an earlier edit was interrupted and may be in /eee";
    let missing = format!("/{}", "m".repeat(240));
    let failed = call(
        &tools,
        "manage",
        &json!({ "delete": deleted.iter().map(String::as_str).chain([missing.as_str()]).collect::<Vec<_>>() }),
    );
    assert!(failed.failure.is_some() && !failed.to_text().contains(note), "{}", failed.to_text());
    assert!(failed.to_text().chars().count() <= 2_000);
    // The output of a command has room, also if the command fails.
    let failed = text(&tools, "run", &json!({ "command": format!("{LONG_COMMAND}; exit 3") }));
    assert!(failed.contains("\n[exit 3") && failed.contains(note), "{failed}");
    assert!(!text(&tools, "list", &json!({})).contains(note));
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

/// Returns the text without the time of a command that took a second or more.
fn without_time(text: &str) -> String {
    match text.strip_suffix(" s]").and_then(|rest| rest.rsplit_once(", ")) {
        Some((before, seconds)) if seconds.bytes().all(|byte| byte.is_ascii_digit()) => format!("{before}]"),
        _ => text.to_owned(),
    }
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
                assert_eq!(
                    (without_time(&outcome.to_text()).as_str(), is_failure),
                    (end, command == "exit 3"),
                    "{shell} {profile:?}"
                );
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
fn a_change_that_waited_for_another_does_not_touch_what_was_created_meanwhile() {
    for (name, change) in [
        ("write", json!({ "path": "/c", "content": "mine", "mode": "overwrite" })),
        ("manage", json!({ "delete": ["/c"] })),
    ] {
        let (files, _) = tools_over(&[("/b", "x\n")]);
        let backend = Intercepted::new(Arc::<MemoryBackend>::clone(&files), Arc::new(EndlessEdit));
        let tools = ToolSet::new(Arc::new(backend), Profile::Native).read_before_edit();
        text(&tools, "read", &json!({ "path": "/b" }));
        let cx = OpContext::new();
        let edit = json!({ "path": "/b", "old": "x", "new": "y" });
        let outcome = run(async {
            let mut endless = Box::pin(tools.call(&cx, "edit", &edit));
            let mut waiting = pin!(tools.call(&cx, name, &change));
            assert!(endless.as_mut().now_or_never().is_none() && waiting.as_mut().now_or_never().is_none());
            files.create_text("/c", "theirs").await.expect("it is written");
            drop(endless);
            waiting.await
        });
        assert_eq!(outcome.failure, Some(FailureKind::NotRead), "{name}: {}", outcome.to_text());
        assert_eq!(run(files.read_text("/c")).expect("it is there"), "theirs");
    }
}

/// Creates the file of each write before it, as another process may.
#[derive(Debug)]
struct CreatedBefore;

impl Interceptor for CreatedBefore {
    fn name(&self) -> &'static str {
        "created-before"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if let RequestRef::Write(write) = request.as_request_ref() {
            inner.write(cx, WriteRequest::new(write.path.clone(), "theirs")).await?;
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[test]
fn a_file_that_another_process_creates_between_the_check_and_the_write_is_not_changed() {
    for mode in ["overwrite", "append"] {
        let (files, _) = tools_over(&[]);
        let backend = Intercepted::new(Arc::<MemoryBackend>::clone(&files), Arc::new(CreatedBefore));
        let tools = ToolSet::new(Arc::new(backend), Profile::Native).read_before_edit();
        let refused = call(&tools, "write", &json!({ "path": "/a", "content": "mine", "mode": mode }));
        assert_eq!(refused.failure, Some(FailureKind::NotRead), "{mode}: {}", refused.to_text());
        assert_eq!(run(files.read_text("/a")).expect("it is there"), "theirs");
    }
}
