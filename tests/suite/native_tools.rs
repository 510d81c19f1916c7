//! The native tools: pages, summaries, edits of several files, and files that change after they were shown.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{join, join_all};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use vfs_core::edit::EditMode;
use vfs_core::operation::{
    Intercepted, OperationClass, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest,
};
use vfs_core::{
    Backend, BackendExt as _, Error, ErrorKind, Interceptor, Layer as _, OpContext, ReadRequest, Result, VfsPath,
    WriteRequest,
};
use vfs_layers::ReadOnly;
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_tools::{FailureKind, Profile, ToolOutcome, ToolSet};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

fn run<T>(work: impl Future<Output = T>) -> T {
    Runtime::new().expect("a runtime can be built").block_on(work)
}

/// Creates files with these paths and contents, and the tools over them.
fn tools_over(files: &[(&str, &str)]) -> (Arc<MemoryBackend>, ToolSet) {
    let backend = Arc::new(MemoryBackend::new());
    run(async {
        for (path, content) in files {
            backend.create_text(path, content).await.expect("it is written");
        }
    });
    let tools = ToolSet::new(Arc::<MemoryBackend>::clone(&backend), Profile::Native);
    (backend, tools)
}

fn call(tools: &ToolSet, name: &str, arguments: &Value) -> ToolOutcome {
    run(tools.call(&OpContext::new(), name, arguments))
}

fn text(tools: &ToolSet, name: &str, arguments: &Value) -> String {
    call(tools, name, arguments).to_text()
}

#[test]
fn an_edit_of_a_file_that_has_changed_is_refused_once_with_the_difference() {
    let (files, tools) = tools_over(&[("/a", "one\ntwo\nthree\n")]);
    text(&tools, "read", &json!({ "path": "/a" }));
    run(files.edit_text("/a", "two", "2")).expect("it is edited");
    for (name, arguments) in [
        ("edit", json!({ "path": "/a", "old": "three", "new": "3" })),
        ("write", json!({ "path": "/a", "content": "whole\n", "mode": "overwrite" })),
    ] {
        let refused = call(&tools, name, &arguments);
        assert_eq!(refused.failure, Some(FailureKind::Backend(ErrorKind::Conflict)), "{}", refused.to_text());
        let words = refused.to_text();
        assert!(words.contains("/a has changed since you saw it") && words.contains("-two\n+2\n"), "{words}");
        let repeated = call(&tools, name, &arguments);
        assert_eq!(repeated.failure, None, "{}", repeated.to_text());
        text(&tools, "read", &json!({ "path": "/a" }));
        run(files.write_text("/a", "one\ntwo\nthree\n")).expect("it is written");
        text(&tools, "read", &json!({ "path": "/a" }));
        run(files.edit_text("/a", "two", "2")).expect("it is edited");
    }
}

#[test]
fn a_file_of_which_a_part_was_shown_has_to_be_read_again_when_it_has_changed() {
    let (files, tools) = tools_over(&[("/a", "one\ntwo\nthree\n")]);
    text(&tools, "read", &json!({ "path": "/a", "lines": "1-2" }));
    run(files.edit_text("/a", "two", "2")).expect("it is edited");
    let edit = json!({ "path": "/a", "old": "three", "new": "3" });
    for _ in 0..2 {
        let words = text(&tools, "edit", &edit);
        assert!(words.ends_with("the call changed nothing there. Read it again first."), "{words}");
    }
    text(&tools, "read", &json!({ "path": "/a", "lines": "2-3" }));
    assert_eq!(call(&tools, "edit", &edit).failure, None);
    assert_eq!(run(files.read_text("/a")).expect("it is there"), "one\n2\n3\n");
}

#[test]
fn a_file_that_nobody_has_read_can_be_edited() {
    let (files, tools) = tools_over(&[("/a", "one\n")]);
    assert_eq!(call(&tools, "edit", &json!({ "path": "/a", "old": "one", "new": "1" })).failure, None);
    assert_eq!(run(files.read_text("/a")).expect("it is there"), "1\n");
}

/// Refuses every edit of `/b` that is not a dry run.
#[derive(Debug)]
struct RefusedEdit;

impl Interceptor for RefusedEdit {
    fn name(&self) -> &'static str {
        "refused-edit"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        match request.as_request_ref() {
            RequestRef::Edit(edit) if edit.path.as_str() == "/b" && edit.mode == EditMode::Apply => {
                Err(Error::at(ErrorKind::PolicyDenied, &edit.path))
            }
            _ => request.send(inner, cx).await,
        }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[test]
fn edits_before_one_that_fails_are_rolled_back() {
    let (files, _) = tools_over(&[("/a", "x\n"), ("/b", "x\n"), ("/c", "x\n")]);
    let backend = Intercepted::new(Arc::<MemoryBackend>::clone(&files), Arc::new(RefusedEdit));
    let tools = ToolSet::new(Arc::new(backend), Profile::Native);
    let outcome = call(&tools, "edit", &json!({ "path": "/*", "old": "x", "new": "y" }));
    assert_eq!(outcome.failure, Some(FailureKind::Backend(ErrorKind::PolicyDenied)));
    assert!(outcome.to_text().ends_with("The edits of 1 file before it were rolled back."), "{}", outcome.to_text());
    for path in ["/a", "/b", "/c"] {
        assert_eq!(run(files.read_text(path)).expect("it is there"), "x\n", "{path}");
    }
    assert_eq!(outcome.changed.len(), 1, "the file that was rolled back has a new version");
}

#[test]
fn parallel_edits_of_one_model_lose_nothing() {
    let lines: String = (0..64).map(|number| format!("old {number};\n")).collect();
    let (files, tools) = tools_over(&[("/list", &lines)]);
    text(&tools, "read", &json!({ "path": "/list" }));
    run(async {
        let cx = OpContext::new();
        let edits = (0..64).map(|number| {
            let arguments =
                json!({ "path": "/list", "old": format!("old {number};"), "new": format!("new {number};") });
            let (tools, cx) = (&tools, &cx);
            async move { tools.call(cx, "edit", &arguments).await }
        });
        for outcome in join_all(edits).await {
            assert_eq!(outcome.failure, None, "{}", outcome.to_text());
        }
    });
    assert_eq!(run(files.read_text("/list")).expect("it is there"), lines.replace("old", "new"));
}

/// Ends the caller's patience at the edit of `/b`, which is made nevertheless.
#[derive(Debug)]
struct LostEdit;

impl Interceptor for LostEdit {
    fn name(&self) -> &'static str {
        "lost-edit"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        cx.check()?;
        let is_lost = matches!(
            request.as_request_ref(),
            RequestRef::Edit(edit) if edit.path.as_str() == "/b" && edit.mode == EditMode::Apply
        );
        let output = request.send(inner, cx).await?;
        if is_lost {
            cx.cancel_token().cancel();
            cx.check()?;
        }
        Ok(output)
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[test]
fn a_cancelled_edit_is_rolled_back_and_names_the_file_whose_result_was_lost() {
    let (files, _) = tools_over(&[("/a", "x\n"), ("/b", "x\n"), ("/c", "x\n")]);
    let backend = Intercepted::new(Arc::<MemoryBackend>::clone(&files), Arc::new(LostEdit));
    let tools = ToolSet::new(Arc::new(backend), Profile::Native);
    let outcome = call(&tools, "edit", &json!({ "path": "/*", "old": "x", "new": "y" }));
    assert_eq!(outcome.failure, Some(FailureKind::Backend(ErrorKind::Cancelled)));
    let words = outcome.to_text();
    let consequence = "\n/b may have its edits; read it.\nThe edits of 1 file before it were rolled back.";
    assert!(words.ends_with(consequence), "{words}");
    let contents = ["/a", "/b", "/c"].map(|path| run(files.read_text(path)).expect("it is there"));
    assert_eq!(contents, ["x\n", "y\n", "x\n"]);
}

/// Never ends an edit of `/b`.
#[derive(Debug)]
struct EndlessEdit;

impl Interceptor for EndlessEdit {
    fn name(&self) -> &'static str {
        "endless-edit"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        match request.as_request_ref() {
            RequestRef::Edit(edit) if edit.path.as_str() == "/b" && edit.mode == EditMode::Apply => pending().await,
            _ => request.send(inner, cx).await,
        }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[test]
fn the_call_after_a_dropped_edit_names_its_files_once() {
    let (files, _) = tools_over(&[("/a", "x\n"), ("/b", "x\n")]);
    let backend = Intercepted::new(Arc::<MemoryBackend>::clone(&files), Arc::new(EndlessEdit));
    let tools = ToolSet::new(Arc::new(backend), Profile::Native);
    let edits = json!([{ "path": "/a", "old": "x", "new": "y" }, { "path": "/b", "old": "x", "new": "y" }]);
    let (cx, arguments) = (OpContext::new(), json!({ "edits": edits }));
    // Everything but the endless edit is ready at once.
    assert!(tools.call(&cx, "edit", &arguments).now_or_never().is_none());
    let note = "[an earlier edit was interrupted and may be in /a, /b: read them]";
    assert!(text(&tools, "list", &json!({})).ends_with(note));
    assert!(!text(&tools, "list", &json!({})).contains(note));
}

#[test]
fn a_call_waits_for_another_change_no_longer_than_its_deadline() {
    let (files, _) = tools_over(&[("/a", "x\n"), ("/b", "x\n")]);
    let backend = Intercepted::new(Arc::<MemoryBackend>::clone(&files), Arc::new(EndlessEdit));
    let tools = ToolSet::new(Arc::new(backend), Profile::Native);
    let cx = OpContext::new();
    let endless = json!({ "path": "/b", "old": "x", "new": "y" });
    let mut endless = pin!(tools.call(&cx, "edit", &endless));
    assert!(endless.as_mut().now_or_never().is_none());
    let edit = json!({ "path": "/a", "old": "x", "new": "y" });
    let (cancelled, late) = (OpContext::new(), OpContext::new().with_timeout(Duration::from_millis(20)));
    // The call waits before it is cancelled.
    let (cancelled, late) = run(async {
        let cancel = async { cancelled.cancel_token().cancel() };
        let (outcome, ()) = join(tools.call(&cancelled, "edit", &edit), cancel).await;
        (outcome, tools.call(&late, "edit", &edit).await)
    });
    assert_eq!(cancelled.failure, Some(FailureKind::Backend(ErrorKind::Cancelled)), "{}", cancelled.to_text());
    assert_eq!(late.failure, Some(FailureKind::Backend(ErrorKind::Timeout)), "{}", late.to_text());
}

#[test]
fn steps_of_one_call_are_refused_if_no_step_sees_those_before_it() {
    let tools = ToolSet::new(Arc::new(StateBackend::pure(FilesState::new())), Profile::Native);
    let steps = json!([{ "from": "/a", "to": "/x" }, { "from": "/b", "to": "/x" }]);
    let outcome = call(&tools, "manage", &json!({ "move": steps }));
    assert_eq!(outcome.failure, Some(FailureKind::Backend(ErrorKind::Unsupported)), "{}", outcome.to_text());
}

#[test]
fn fields_of_a_list_that_may_be_left_out_are_not_taken_for_it() {
    let (files, tools) = tools_over(&[("/a", "a\n")]);
    let words = text(&tools, "manage", &json!({ "operation": "copy", "from": "/a", "to": "/b" }));
    assert!(words.starts_with("Error: give at least one of `move`, `copy` and `delete`"), "{words}");
    assert_eq!(run(files.read_text("/a")).expect("it is there"), "a\n");
}

#[test]
fn an_append_hides_no_change_of_somebody_else() {
    let (files, tools) = tools_over(&[("/log", "one\n")]);
    text(&tools, "read", &json!({ "path": "/log" }));
    run(files.edit_text("/log", "one", "1")).expect("it is edited");
    let append = json!({ "path": "/log", "content": "two\n", "mode": "append" });
    assert_eq!(call(&tools, "write", &append).failure, None);
    let replace = json!({ "path": "/log", "content": "", "mode": "overwrite" });
    assert_eq!(call(&tools, "write", &replace).failure, Some(FailureKind::Backend(ErrorKind::Conflict)));
    assert_eq!(run(files.read_text("/log")).expect("it is there"), "1\ntwo\n");
}

#[test]
fn an_append_keeps_the_encoding_and_the_line_ends_of_a_file() {
    let utf16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let (files, tools) = tools_over(&[("/crlf", "one\r\n"), ("/lf", "one\n")]);
    let written = WriteRequest::new(VfsPath::parse("/utf16").expect("a valid path"), utf16("\u{feff}one\n"));
    run(files.write(&OpContext::new(), written)).expect("it is written");
    for (path, expected) in [
        ("/crlf", b"one\r\ntwo\r\n".to_vec()),
        ("/lf", b"one\ntwo\n".to_vec()),
        ("/utf16", utf16("\u{feff}one\ntwo\n")),
    ] {
        let appended = call(&tools, "write", &json!({ "path": path, "content": "two\n", "mode": "append" }));
        assert_eq!(appended.failure, None, "{}", appended.to_text());
        let read = ReadRequest::new(VfsPath::parse(path).expect("a valid path")).raw();
        let content = run(files.read(&OpContext::new(), read)).expect("it is there").content;
        assert_eq!(content.as_bytes(), expected, "{path}");
    }
}

#[test]
fn a_line_of_a_megabyte_is_cut_by_every_view() {
    let line = format!("function f() {{ {} }}\n", "x".repeat(1 << 20));
    let (_, tools) = tools_over(&[("/min.js", &line), ("/bom", "\u{feff}")]);
    for arguments in [json!({ "symbol": "f" }), json!({ "outline": true }), json!({}), json!({ "bytes": "5-" })] {
        let mut arguments = arguments;
        arguments["path"] = "/min.js".into();
        let outcome = call(&tools, "read", &arguments);
        assert!(
            outcome.failure.is_none() && outcome.to_text().len() <= 20_200,
            "{arguments}: {}",
            outcome.to_text().len()
        );
    }
    let found = text(&tools, "search", &json!({ "pattern": "function" }));
    assert!(found.len() <= 1_000 && found.ends_with("[line cut]"), "{found}");
    assert!(text(&tools, "read", &json!({ "path": "/bom" })).ends_with(" is empty"));
}

#[test]
fn a_pattern_after_an_edit_of_its_files_is_refused() {
    let (files, tools) = tools_over(&[("/src/a", "foo\n"), ("/src/b", "foo\n")]);
    let edits =
        json!([{ "path": "/src/*", "old": "foo", "new": "bar" }, { "path": "/src/*", "old": "bar", "new": "baz" }]);
    let words = text(&tools, "edit", &json!({ "edits": edits }));
    assert!(words.contains("edit 2 of 2") && words.contains("make it in a call of its own"), "{words}");
    assert_eq!(run(files.read_text("/src/a")).expect("it is there"), "foo\n");
}

#[test]
fn long_paths_and_many_steps_exceed_neither_a_failure_nor_a_result() {
    let long = format!("/{}", vec!["x".repeat(200); 18].join("/"));
    let names: Vec<String> = (0..300).map(|number| format!("/{}{number}", "d".repeat(60))).collect();
    let mut contents: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x\n")).collect();
    contents.push((&long, "x\n"));
    let (_, tools) = tools_over(&contents);
    let missing = format!("{long}y");
    for (name, arguments) in [
        ("read", json!({ "path": missing })),
        (
            "edit",
            json!({ "edits": [{ "path": missing, "old": "x", "new": "y" }, { "path": "/a", "old": "x", "new": "y" }] }),
        ),
        ("write", json!({ "path": long, "content": "" })),
        ("list", json!({ "path": long })),
        ("search", json!({ "path": missing, "pattern": "x" })),
        ("read", json!({ "path": long, "symbol": "x".repeat(100_000) })),
        (
            "manage",
            json!({ "delete": names[..100].iter().map(String::as_str).chain(["/missing"]).collect::<Vec<_>>() }),
        ),
    ] {
        let outcome = call(&tools, name, &arguments);
        let length = outcome.to_text().chars().count();
        assert!(outcome.failure.is_some() && length <= 2_000, "{name}: {length}");
    }
    let deleted = call(&tools, "manage", &json!({ "delete": names[100..] }));
    assert!(deleted.failure.is_none() && deleted.to_text().len() <= 8_100, "{}", deleted.to_text().len());
    assert!(deleted.to_text().ends_with(" more"), "{}", deleted.to_text());
}

#[test]
fn a_search_in_one_file_shows_its_first_page() {
    let lines = "needle\n".repeat(150);
    let (_, tools) = tools_over(&[("/a.c", &lines)]);
    let page = text(&tools, "search", &json!({ "pattern": "needle" }));
    assert!(page.starts_with("matches 1 to 100\n/a.c\n1: needle\n") && page.ends_with("\n[more: skip=100]"), "{page}");
}

#[test]
fn context_of_long_lines_does_not_hold_up_a_page() {
    let mut content = String::new();
    for number in 0..200 {
        content.push_str(&format!("{} {}\n", if number % 25 == 24 { "needle" } else { "hay" }, "x".repeat(390)));
    }
    let (_, tools) = tools_over(&[("/a", &content)]);
    let (mut found, mut skip) = (Vec::new(), Some(String::from("0")));
    for _ in 0..20 {
        let Some(at) = skip else { break };
        let page = text(&tools, "search", &json!({ "pattern": "needle", "context": 20, "skip": at }));
        let matches = page.lines().filter_map(|line| line.split_once(": needle")?.0.parse::<u64>().ok());
        found.extend(matches);
        skip = continuation(&page, "more: skip=");
    }
    assert_eq!(found, (1..=8).map(|number| number * 25).collect::<Vec<_>>());
}

#[test]
fn a_definition_is_shown_before_the_first_match_in_it() {
    let code = "impl A {\n    fn m() {\n        x();\n        x();\n    }\n    const C: u8 = x();\n}\nx();\n";
    let (_, tools) = tools_over(&[("/a.rs", code)]);
    let shown = text(&tools, "search", &json!({ "pattern": "x()" }));
    let lines: Vec<_> = shown.lines().skip(2).collect();
    let expected =
        ["2= fn m()", "3:         x();", "4:         x();", "1= impl A", "6:     const C: u8 = x();", "--", "8: x();"];
    assert_eq!(lines, expected, "{shown}");
}

/// Returns what follows `before` in the last line of a result, up to the next quote, bracket or its end.
fn continuation(text: &str, before: &str) -> Option<String> {
    let rest = text.lines().last()?.split_once(before)?.1;
    Some(rest.split(['"', ']']).next().unwrap_or(rest).to_owned())
}

#[test]
fn pages_put_together_are_the_whole() {
    let names: Vec<String> =
        (0..130).map(|number| format!("/many/{number:03}/x{}.txt", "n".repeat(number % 40))).collect();
    let long: String = (0..3_000).map(|number| format!("{number} {}\n", "x".repeat(number % 90))).collect();
    let mut contents: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "needle 1\nneedle 2\n")).collect();
    contents.push(("/long", &long));
    let line = "é".repeat(30_000);
    contents.push(("/line", &line));
    let breaks = "\n".repeat(60_000);
    contents.push(("/breaks", &breaks));
    let (_, tools) = tools_over(&contents);
    for limit in [1, 7, 50, 10_000] {
        let (mut listed, mut found, mut skip) = (Vec::new(), Vec::new(), Some(String::from("0")));
        while let Some(at) = skip {
            let page = text(&tools, "list", &json!({ "path": "/many", "limit": limit, "skip": at }));
            listed
                .extend(page.lines().skip(1).filter(|line| !line.starts_with('[')).map(|line| format!("/many/{line}")));
            skip = continuation(&page, "more: skip=");
        }
        assert_eq!(listed, names, "list in pages of {limit}");
        skip = Some(String::from("0"));
        while let Some(at) = skip {
            let page = text(&tools, "search", &json!({ "pattern": "needle", "limit": limit, "skip": at }));
            found.extend(page.lines().filter(|line| line.contains(": needle")).map(str::to_owned));
            skip = continuation(&page, "more: skip=");
        }
        assert_eq!(found.len(), 260, "search in pages of {limit}");
        assert!(found.chunks(2).all(|pair| pair == ["1: needle 1", "2: needle 2"]), "{found:?}");
    }
    let (mut read, mut lines) = (String::new(), Some(String::from("1-")));
    while let Some(range) = lines {
        let page = text(&tools, "read", &json!({ "path": "/long", "lines": range }));
        for line in page.lines().skip(1).filter(|line| !line.starts_with('[')) {
            read.push_str(line.split_once('\t').expect("a numbered line").1);
            read.push('\n');
        }
        lines = continuation(&page, "more: lines=\"");
    }
    assert_eq!(read, long);
    let (mut count, mut lines) = (0, Some(String::from("1-")));
    while let Some(range) = lines {
        let page = text(&tools, "read", &json!({ "path": "/breaks", "lines": range }));
        assert!(page.len() <= 20_200, "{}", page.len());
        count += page.lines().filter(|line| line.ends_with('\t')).count();
        lines = continuation(&page, "more: lines=\"");
    }
    assert_eq!(count, 60_000);
    let middle = text(&tools, "read", &json!({ "path": "/line", "bytes": "1-4" }));
    assert!(middle.starts_with("/line bytes 2-3 of 60000 @") && middle.contains("\né\n"), "{middle}");
    let first = text(&tools, "read", &json!({ "path": "/line" }));
    let mut whole = first.lines().nth(1).and_then(|line| line.split_once('\t')).expect("a numbered line").1.to_owned();
    let mut bytes = continuation(&first, "bytes=\"");
    assert!(bytes.is_some(), "{}", first.lines().last().unwrap_or_default());
    while let Some(range) = bytes {
        let page = text(&tools, "read", &json!({ "path": "/line", "bytes": range }));
        whole.push_str(page.lines().nth(1).expect("a part of the line"));
        bytes = continuation(&page, "more: bytes=\"");
    }
    assert_eq!(whole, line);
}

#[test]
fn long_results_are_summarised_within_the_budget() {
    let names: Vec<String> = (0..3_000).map(|number| format!("/d{}/{number:04}.txt", number % 7)).collect();
    let contents: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "needle in a line\n")).collect();
    let (_, tools) = tools_over(&contents);
    for (name, arguments, header) in [
        ("list", json!({}), "3000 files below /; by directory"),
        (
            "search",
            json!({ "pattern": "needle" }),
            "3000 matches in 3000 files, too many to show; by directory below /",
        ),
        (
            "search",
            json!({ "pattern": "needle", "show": "files" }),
            "3000 matches in 3000 files, too many to show; by directory below /",
        ),
        (
            "edit",
            json!({ "path": "/**/*.txt", "old": "needle", "new": "pin", "dry_run": true }),
            "Error: '/**/*.txt': the call has over 1000 files",
        ),
        (
            "edit",
            json!({ "path": "/d0/*.txt", "old": "needle", "new": "pin", "dry_run": true }),
            "429 places in 429 files would change:",
        ),
        ("edit", json!({ "path": "/d0/*.txt", "old": "needle", "new": "pin" }), "429 places in 429 files:"),
    ] {
        let outcome = call(&tools, name, &arguments);
        let text = outcome.to_text();
        assert!(text.starts_with(header), "{name} {arguments}: {text}");
        assert!(text.len() <= 8_300, "{name} {arguments}: {}", text.len());
    }
    let summary = text(&tools, "search", &json!({ "pattern": "needle" }));
    assert!(summary.contains("\nd1/  429 in 429 files\n"), "{summary}");
}

#[test]
fn a_command_shows_the_start_and_the_end_of_a_long_output() {
    let files: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    let tools = ToolSet::new(Arc::new(VirtualShell::new(files, VirtualShellConfig::new())), Profile::Native);
    for (command, failure, shown) in [
        ("echo one; echo two >&2", None, "one\ntwo\n[exit 0]"),
        ("exit 3", Some(FailureKind::Command), "[exit 3]"),
        ("true", None, "[exit 0]"),
    ] {
        let outcome = call(&tools, "run", &json!({ "cmd": command }));
        assert_eq!((outcome.failure, outcome.to_text().as_str()), (failure, shown), "{command}");
    }
    let outcome = call(&tools, "run", &json!({ "command": "for i in $(seq 1 2000); do echo line $i; done" }));
    let shown = outcome.to_text();
    assert!(outcome.is_truncated && shown.len() <= 4_300, "{}", shown.len());
    assert!(shown.starts_with("line 1\n") && shown.ends_with("\nline 2000\n[exit 0]"), "{shown}");
    let counts: Vec<usize> =
        shown.lines().filter_map(|line| line.strip_prefix("[... ")?.split(' ').next()?.parse().ok()).collect();
    assert_eq!(counts, [2_000 - shown.lines().filter(|line| line.starts_with("line ")).count()]);
}

#[test]
fn an_effect_names_the_files_of_the_call() {
    let (_, tools) = tools_over(&[]);
    for (name, arguments, class, paths) in [
        ("read", json!({ "path": "a" }), OperationClass::Read, &["/a"][..]),
        ("list", json!({}), OperationClass::Read, &["/"]),
        (
            "edit",
            json!({ "path": "/a", "edits": [{ "old": "x", "new": "y" }, { "path": "/b", "old": "x", "new": "y" }] }),
            OperationClass::Write,
            &["/a", "/b"],
        ),
        ("edit", json!({ "path": "/src/*/*.rs", "old": "x", "new": "y" }), OperationClass::Write, &["/src"]),
        ("edit", json!({ "path": "/secret\\s/*", "old": "x", "new": "y" }), OperationClass::Write, &["/"]),
        ("edit", json!({ "path": "/a", "old": "x", "new": "y", "dry_run": true }), OperationClass::Read, &["/a"]),
        (
            "manage",
            json!({ "move": { "from": "/a", "to": "/b" }, "delete": ["/c"] }),
            OperationClass::Write,
            &["/a", "/b", "/c"],
        ),
    ] {
        let effect = tools.get(name).expect("a tool").effect(&arguments).expect("valid arguments");
        let named: Vec<_> = effect.paths.iter().map(|path| path.as_str()).collect();
        assert_eq!((effect.class, named.as_slice()), (class, paths), "{name} {arguments}");
    }
}

#[test]
fn names_like_a_missing_one_are_suggested() {
    let (_, tools) = tools_over(&[("/fs/namespace.c", ""), ("/fs/file.c", "")]);
    for (name, arguments) in [
        ("read", json!({ "path": "/fs/namespac.c" })),
        ("edit", json!({ "path": "/fs/namespac.c", "old": "x", "new": "y" })),
        ("search", json!({ "path": "/fs/namespac.c", "pattern": "x" })),
        ("manage", json!({ "delete": "/fs/namespac.c" })),
    ] {
        let words = text(&tools, name, &arguments);
        assert_eq!(words, "Error: File '/fs/namespac.c' not found; near it: /fs/namespace.c", "{name}");
    }
}

#[test]
fn a_read_only_backend_offers_no_tool_that_changes_files() {
    let tools = ToolSet::new(ReadOnly.layer(Arc::new(MemoryBackend::new())), Profile::Native);
    let names: Vec<_> = tools.tools().iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["list", "search", "read"]);
    let named = tools.tools().iter().any(|tool| tool.description().contains("edit"));
    assert!(!named, "no description names a tool that is not offered");
}
