//! The native tools that change files: conflicts, rollback, parallel calls, and calls that are dropped.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{join, join_all};
use serde_json::json;
use vfs_core::edit::ApplyMode;
use vfs_core::operation::{Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt as _, Error, ErrorKind, Interceptor, OpContext, ReadRequest, Result, VfsPath, WriteRequest,
};
use vfs_local::LocalBackend;
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_tools::{FailureKind, Profile, ToolSet};

use crate::native_tools::{call, run, text, tools_over};

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
fn a_new_version_of_the_text_that_was_shown_is_edited() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    // In memory the same text has the same version.
    let files = Arc::new(LocalBackend::open(directory.path()).expect("the root can be opened"));
    let tools = ToolSet::new(Arc::<LocalBackend>::clone(&files), Profile::Native);
    let touch = || {
        for (path, content) in [("/a", "one\n"), ("/b", "two\n")] {
            run(files.write_text(path, content)).expect("it is written");
            text(&tools, "read", &json!({ "path": path }));
            run(files.write_text(path, content)).expect("it is written");
        }
    };
    for (name, arguments, expected) in [
        ("edit", json!({ "path": "/a", "old": "one", "new": "1" }), ["1\n", "two\n"]),
        (
            "edit",
            json!({ "edits": [{ "path": "/a", "old": "one", "new": "1" }, { "path": "/b", "old": "two", "new": "2" }] }),
            ["1\n", "2\n"],
        ),
        ("write", json!({ "path": "/a", "content": "1\n", "mode": "overwrite" }), ["1\n", "two\n"]),
    ] {
        touch();
        let outcome = call(&tools, name, &arguments);
        assert_eq!(outcome.failure, None, "{}", outcome.to_text());
        assert_eq!(["/a", "/b"].map(|path| run(files.read_text(path)).expect("it is there")), expected, "{name}");
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
            RequestRef::Edit(edit) if edit.path.as_str() == "/b" && edit.mode == ApplyMode::Apply => {
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
fn edits_of_a_session_state_are_rolled_back() {
    let files = Arc::new(StateBackend::session(FilesState::new()));
    for path in ["/a", "/b"] {
        run(files.create_text(path, "x\n")).expect("it is written");
    }
    let backend = Intercepted::new(Arc::<StateBackend>::clone(&files), Arc::new(RefusedEdit));
    let tools = ToolSet::new(Arc::new(backend), Profile::Native);
    let outcome = call(&tools, "edit", &json!({ "path": "/*", "old": "x", "new": "y" }));
    assert_eq!(outcome.failure, Some(FailureKind::Backend(ErrorKind::PolicyDenied)));
    assert!(outcome.to_text().ends_with("The edits of 1 file before it were rolled back."), "{}", outcome.to_text());
    for path in ["/a", "/b"] {
        assert_eq!(run(files.read_text(path)).expect("it is there"), "x\n", "{path}");
    }
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
            RequestRef::Edit(edit) if edit.path.as_str() == "/b" && edit.mode == ApplyMode::Apply
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
pub(crate) struct EndlessEdit;

impl Interceptor for EndlessEdit {
    fn name(&self) -> &'static str {
        "endless-edit"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        match request.as_request_ref() {
            RequestRef::Edit(edit) if edit.path.as_str() == "/b" && edit.mode == ApplyMode::Apply => pending().await,
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
        assert!(!appended.to_text().contains("its last line goes on"), "{}", appended.to_text());
        let read = ReadRequest::new(VfsPath::parse(path).expect("a valid path")).raw();
        let content = run(files.read(&OpContext::new(), read)).expect("it is there").content;
        assert_eq!(content.as_bytes(), expected, "{path}");
    }
}

#[test]
fn text_appended_to_a_last_line_without_a_line_break_is_said_to_continue_it() {
    let (files, tools) = tools_over(&[("/a", "one")]);
    let words = text(&tools, "write", &json!({ "path": "/a", "content": "two\n", "mode": "append" }));
    assert!(
        words.starts_with("appended 1 line to /a @") && words.contains("its last line goes on with the text"),
        "{words}"
    );
    assert_eq!(run(files.read_text("/a")).expect("it is there"), "onetwo\n");
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
fn every_way_to_read_says_that_the_file_has_changed() {
    let (files, tools) = tools_over(&[("/a.rs", "fn one() {}\nfn two() {}\n")]);
    for arguments in [json!({ "lines": "1" }), json!({ "symbol": "two" }), json!({ "outline": true })] {
        assert!(!text(&tools, "read", &json!({ "path": "/a.rs", "lines": "2" })).contains("changed since you saw it"));
        run(files.edit_text("/a.rs", "fn one() {}\n", "fn one() {}\n\n")).expect("it is edited");
        let mut arguments = arguments;
        arguments["path"] = "/a.rs".into();
        let read = text(&tools, "read", &arguments);
        assert!(read.lines().next().is_some_and(|header| header.contains(" changed since you saw it")), "{read}");
        run(files.edit_text("/a.rs", "\n\n", "\n")).expect("it is edited");
        text(&tools, "read", &json!({ "path": "/a.rs", "lines": "1" }));
    }
}
