//! Undo of single operations.

use std::sync::Arc;

use futures::FutureExt as _;
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, Error, ErrorKind, Interceptor, Layer, OpContext, Operation,
    RenameRequest, Result, UploadRequest, VfsPath,
};
use vfs_layers::FaultInjection;
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_versions::{CheckpointedBackend, Checkpoints};

use super::{DIRECTORY, Fixture, assert_conflict, checkpoints, cx, fixture, undo};
use crate::support::path;

#[tokio::test]
async fn every_operation_is_undone() {
    let fixture = fixture();
    let files = &fixture.files;
    for (at, text) in [("/a", "one"), ("/b", "b"), ("/d/x", "x"), ("/d/e/y", "y"), ("/bin", "\0")] {
        fixture.inner.create_text(at, text).await.expect("written");
    }
    let mut states = vec![fixture.inner.snapshot()];
    let rename = |from: &str, to: &str| RenameRequest::new(path(from), path(to));
    let copy = |from: &str, to: &str| CopyRequest::new(path(from), path(to));
    let cx = &cx();
    for operation in 0..13 {
        let done = match operation {
            0 => files.create_text("/n/new", "new").await.map(drop),
            1 => files.write_text("/a", "two").await.map(drop),
            2 => files.append_text("/a", " three").await.map(drop),
            3 => files.edit_text("/a", "two", "2").await.map(drop),
            4 => files.delete_file("/bin").await,
            5 => files.delete(cx, DeleteRequest::new(path("/n")).recursive()).await.map(drop),
            6 => files.rename(cx, rename("/a", "/n/a")).await.map(drop),
            7 => files.rename(cx, rename("/d", "/moved")).await.map(drop),
            8 => files.rename(cx, rename("/n/a", "/b").overwrite()).await.map(drop),
            9 => files.copy(cx, copy("/moved", "/again")).await.map(drop),
            10 => files.copy(cx, copy("/b", "/again/x").overwrite()).await.map(drop),
            11 => {
                let upload = |at| UploadRequest::new(path(at), "uploaded");
                let answers = files.upload_files(cx, vec![upload("/b"), upload("/u")]).await;
                answers.into_iter().find_map(|answer| answer.cause).map_or(Ok(()), Err)
            }
            _ => files.delete(cx, DeleteRequest::new(path("/again")).recursive()).await.map(drop),
        };
        done.expect("done");
        states.push(fixture.inner.snapshot());
    }
    let history = files.history(cx).await.expect("listed");
    assert_eq!(history.len(), 14, "each file of an upload is one operation");
    assert_eq!((history[0].operation, history[0].actor.as_deref()), (Operation::Delete, Some("tester")));
    assert_eq!(history[7].operation, Operation::Rename);
    assert_eq!(history[7].paths, [path("/a"), path("/n/a")]);
    for (operation, state) in states.iter().enumerate().take(13).rev() {
        let operations = if operation == 11 { 2 } else { 1 };
        assert_eq!(undo(&fixture.again(), operations).await.expect("undone"), operations);
        let differs = state.diff(&fixture.inner.snapshot());
        assert!(differs.is_empty(), "operation {operation}: {}", differs.unified());
    }
    assert_eq!(undo(files, 1).await.expect("nothing is left"), 0);
}

#[tokio::test]
async fn a_file_that_another_process_has_changed_is_not_undone() {
    let fixture = fixture();
    let files = &fixture.files;
    fixture.inner.create_text("/d/x", "x").await.expect("written");
    fixture.inner.create_text("/d/y", "y").await.expect("written");
    files.write_text("/a", "one").await.expect("written");
    files.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).await.expect("deleted");
    files.write_text("/b", "b").await.expect("written");
    fixture.inner.create_text("/d/y", "foreign").await.expect("written");
    let before = fixture.inner.snapshot();

    let error = undo(files, 3).await.expect_err("the second has a conflict");
    assert_conflict(&error, "/d/y");
    assert!(error.message().contains("1 newer operations were undone before"), "{error}");
    assert!(!fixture.inner.exists("/d/x").await.expect("known"), "nothing of it is done");
    assert_eq!(before.diff(&fixture.inner.snapshot()).changes.len(), 1, "only the newest is taken back");
    assert_eq!(files.history(&cx()).await.expect("listed").len(), 2);

    fixture.inner.delete_file("/d/y").await.expect("removed");
    assert_eq!(undo(files, 3).await.expect("undone"), 2);
    fixture.has(&[("/d/x", "x"), ("/d/y", "y")]);
}

#[tokio::test]
async fn a_change_that_fails_has_no_record() {
    let fixture = fixture();
    let files = &fixture.files;
    files.create_text("/a", "one").await.expect("written");
    files.create_text("/a", "two").await.expect_err("it is there");
    files.edit_text("/a", "missing", "x").await.expect_err("no match");
    files.delete_file("/missing").await.expect_err("missing");
    files.delete(&cx(), DeleteRequest::new(VfsPath::root()).recursive()).await.expect_err("the root stays");
    assert_eq!(files.history(&cx()).await.expect("listed").len(), 1);

    for (fault, recorded) in
        [(FaultInjection::new(ErrorKind::Unavailable), 1), (FaultInjection::new(ErrorKind::Unavailable).after(), 2)]
    {
        let failing = fixture.failing(&fault.only(Operation::Write));
        failing.write_text("/a", "three").await.expect_err("it fails");
        assert_eq!(failing.history(&cx()).await.expect("listed").len(), recorded, "only the second has happened");
    }
    assert_eq!(undo(files, 1).await.expect("undone"), 1);
    fixture.has(&[("/a", "one")]);
}

#[tokio::test]
async fn a_change_whose_process_ended_is_settled_by_the_present_files() {
    for has_happened in [false, true] {
        let fixture = fixture();
        fixture.inner.create_text("/a", "one").await.expect("written");
        let dead = unresponsive(&fixture, Operation::Write, has_happened);
        assert!(dead.write_text("/a", "two").now_or_never().is_none());
        let history = fixture.again().history(&cx()).await.expect("listed");
        assert_eq!(history.len(), usize::from(has_happened));
        assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), usize::from(has_happened));
        fixture.has(&[("/a", "one")]);
    }
}

/// Performs an operation, or does not, and never responds.
#[derive(Debug)]
struct Unresponsive {
    operation: Operation,
    has_happened: bool,
}

impl Interceptor for Unresponsive {
    fn name(&self) -> &'static str {
        "unresponsive"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if Q::OPERATION != self.operation {
            return request.send(inner, cx).await;
        }
        if self.has_happened {
            drop(request.send(inner, cx).await);
        }
        futures::future::pending().await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// Returns checkpoints over the files of `fixture`, which never respond to `operation`.
fn unresponsive(fixture: &Fixture, operation: Operation, has_happened: bool) -> CheckpointedBackend {
    let inner = Arc::<MemoryBackend>::clone(&fixture.inner) as Arc<dyn Backend>;
    let files = Intercepted::new(inner, Arc::new(Unresponsive { operation, has_happened }));
    checkpoints(&fixture.store).over(Arc::new(files))
}

#[tokio::test]
async fn a_deletion_whose_process_ended_is_settled_without_what_others_wrote_since() {
    for has_happened in [false, true] {
        let fixture = fixture();
        fixture.files.create_text("/d/a", "one").await.expect("written");
        fixture.inner.create_text("/d/c", "kept").await.expect("written");
        let dead = unresponsive(&fixture, Operation::Delete, has_happened);
        let delete = DeleteRequest::new(path("/d")).recursive();
        assert!(dead.delete(&cx(), delete).now_or_never().is_none());
        fixture.inner.write_text("/d/a", "two").await.expect("written");
        fixture.inner.create_text("/d/b", "new").await.expect("written");
        let history = fixture.again().history(&cx()).await.expect("listed");
        assert_eq!(history.len(), if has_happened { 2 } else { 1 }, "a deletion that never happened has no record");
        assert_conflict(&undo(&fixture.again(), 1).await.expect_err("the content would be lost"), "/d/a");
        fixture.inner.delete_file("/d/a").await.expect("removed");
        if has_happened {
            assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
            fixture.has(&[("/d/a", "one"), ("/d/b", "new"), ("/d/c", "kept")]);
        }
    }
}

#[tokio::test]
async fn a_deletion_of_a_file_that_is_written_again_keeps_the_deleted_content() {
    let fixture = fixture();
    fixture.inner.create_text("/a", "one").await.expect("written");
    let dead = unresponsive(&fixture, Operation::Delete, true);
    assert!(dead.delete(&cx(), DeleteRequest::new(path("/a"))).now_or_never().is_none());
    fixture.inner.create_text("/a", "other").await.expect("written");
    assert_conflict(&undo(&fixture.again(), 1).await.expect_err("the content would be lost"), "/a");
    fixture.inner.delete_file("/a").await.expect("removed");
    assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
    fixture.has(&[("/a", "one")]);
}

#[tokio::test]
async fn contents_are_kept_although_another_process_wrote_every_file_again() {
    for to in [None, Some("/d/b")] {
        let fixture = fixture();
        for (at, text) in [("/d/a", "1"), ("/d/b", "2")] {
            fixture.inner.create_text(at, text).await.expect("written");
        }
        match to {
            None => {
                let dead = unresponsive(&fixture, Operation::Delete, true);
                assert!(dead.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).now_or_never().is_none());
            }
            Some(to) => {
                let dead = unresponsive(&fixture, Operation::Rename, true);
                let rename = RenameRequest::new(path("/d/a"), path(to)).overwrite();
                assert!(dead.rename(&cx(), rename).now_or_never().is_none());
            }
        }
        for at in ["/d/a", "/d/b"] {
            fixture.inner.write_text(at, "other").await.expect("written");
        }
        assert_conflict(&undo(&fixture.again(), 1).await.expect_err("the contents would be lost"), "/d/a");
        for at in ["/d/a", "/d/b"] {
            fixture.inner.delete_file(at).await.expect("removed");
        }
        assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1, "{to:?}");
        fixture.has(&[("/d/a", "1"), ("/d/b", "2")]);
    }
}

#[tokio::test]
async fn a_deletion_that_removed_some_files_is_undone_as_a_whole_or_not_at_all() {
    let fixture = fixture();
    for at in ["/d/a", "/d/b", "/d/c"] {
        fixture.inner.create_text(at, "old").await.expect("written");
    }
    let dead = unresponsive(&fixture, Operation::Delete, false);
    let delete = DeleteRequest::new(path("/d")).recursive();
    assert!(dead.delete(&cx(), delete).now_or_never().is_none());
    fixture.inner.delete_file("/d/a").await.expect("removed");
    fixture.inner.write_text("/d/b", "other").await.expect("written");
    assert_conflict(&undo(&fixture.again(), 1).await.expect_err("the content would be lost"), "/d/b");
    fixture.has(&[("/d/b", "other"), ("/d/c", "old")]);
    fixture.inner.delete_file("/d/b").await.expect("removed");
    assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
    fixture.has(&[("/d/a", "old"), ("/d/b", "old"), ("/d/c", "old")]);
}

#[tokio::test]
async fn a_rename_that_replaced_its_target_but_did_not_remove_its_source_is_undone() {
    let fixture = fixture();
    for (at, text) in [("/log", "new"), ("/log.1", "old")] {
        fixture.inner.create_text(at, text).await.expect("written");
    }
    let dead = unresponsive(&fixture, Operation::Rename, false);
    let rename = RenameRequest::new(path("/log"), path("/log.1")).overwrite();
    assert!(dead.rename(&cx(), rename).now_or_never().is_none());
    fixture.inner.write_text("/log.1", "new").await.expect("written");
    assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
    fixture.has(&[("/log", "new"), ("/log.1", "old")]);
}

#[tokio::test]
async fn a_rename_over_a_file_that_never_happened_has_no_record_after_its_source_is_edited() {
    let fixture = fixture();
    for (at, text) in [("/log", "new"), ("/log.1", "old")] {
        fixture.inner.create_text(at, text).await.expect("written");
    }
    let dead = unresponsive(&fixture, Operation::Rename, false);
    let rename = RenameRequest::new(path("/log"), path("/log.1")).overwrite();
    assert!(dead.rename(&cx(), rename).now_or_never().is_none());
    fixture.inner.append_text("/log", " line").await.expect("written");
    assert_eq!(undo(&fixture.again(), 1).await.expect("nothing to undo"), 0);
    fixture.has(&[("/log", "new line"), ("/log.1", "old")]);
}

#[tokio::test]
async fn a_rename_that_never_happened_is_settled_without_what_others_wrote_since() {
    for source in ["one", "two"] {
        let fixture = fixture();
        fixture.inner.create_text("/x/g", "one").await.expect("written");
        let dead = unresponsive(&fixture, Operation::Rename, false);
        let rename = RenameRequest::new(path("/x"), path("/y"));
        assert!(dead.rename(&cx(), rename).now_or_never().is_none());
        fixture.inner.create_text("/y/g", "other").await.expect("written");
        if source == "one" {
            assert_eq!(undo(&fixture.again(), 1).await.expect("nothing is left"), 0);
            assert!(fixture.again().history(&cx()).await.expect("listed").is_empty());
        } else {
            // It may as well have happened before both files were written again.
            fixture.inner.write_text("/x/g", source).await.expect("written");
            assert_conflict(&undo(&fixture.again(), 1).await.expect_err("nothing is replaced"), "/x/g");
        }
        fixture.has(&[("/x/g", source), ("/y/g", "other")]);
    }
}

#[tokio::test]
async fn a_rename_whose_source_is_written_again_is_undone_as_a_whole_or_not_at_all() {
    let fixture = fixture();
    for (at, text) in [("/x/g", "g"), ("/x/h", "h"), ("/log", "old"), ("/log.1", "older")] {
        fixture.inner.create_text(at, text).await.expect("written");
    }
    for (from, to, again) in [("/x", "/y", "/x/g"), ("/log", "/log.1", "/log")] {
        let dead = unresponsive(&fixture, Operation::Rename, true);
        let rename = RenameRequest::new(path(from), path(to)).overwrite();
        assert!(dead.rename(&cx(), rename).now_or_never().is_none());
        fixture.inner.create_text(again, "other").await.expect("written");
        assert_conflict(&undo(&fixture.again(), 1).await.expect_err("another process wrote the source"), again);
        fixture.inner.delete_file(again).await.expect("removed");
        assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
    }
    fixture.has(&[("/x/g", "g"), ("/x/h", "h"), ("/log", "old"), ("/log.1", "older")]);
}

/// Backend whose edits lose against another writer.
#[derive(Debug)]
struct Contended;

impl Interceptor for Contended {
    fn name(&self) -> &'static str {
        "contended"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if Q::OPERATION == Operation::Edit {
            inner.write_text("/a", "other").await?;
            return Err(Error::of(ErrorKind::Busy));
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn an_edit_that_loses_against_another_writer_has_no_record() {
    let fixture = fixture();
    fixture.inner.create_text("/a", "one").await.expect("written");
    let inner = Arc::<MemoryBackend>::clone(&fixture.inner) as Arc<dyn Backend>;
    let files = checkpoints(&fixture.store).over(Arc::new(Intercepted::new(inner, Arc::new(Contended))));
    assert_eq!(files.edit_text("/a", "one", "two").await.expect_err("it lost").kind(), ErrorKind::Busy);
    assert_eq!(undo(&fixture.again(), 1).await.expect("nothing to undo"), 0);
    fixture.has(&[("/a", "other")]);
}

#[tokio::test]
async fn a_change_that_cannot_be_settled_refuses_no_later_one() {
    let fixture = fixture();
    for at in ["/d/a", "/d/b"] {
        fixture.inner.create_text(at, "old").await.expect("written");
    }
    let dead = unresponsive(&fixture, Operation::Delete, false);
    let delete = DeleteRequest::new(path("/d")).recursive();
    assert!(dead.delete(&cx(), delete).now_or_never().is_none());
    fixture.inner.delete_file("/d/a").await.expect("removed");
    let failing = |kind| fixture.failing(&FaultInjection::new(kind).only(Operation::Ls));
    for kind in [ErrorKind::Unavailable, ErrorKind::Cancelled] {
        let error = failing(kind).write_text("/new", "new").await.expect_err("it may be settled later");
        assert_eq!(error.kind(), kind);
    }
    let unreadable = failing(ErrorKind::PermissionDenied);
    unreadable.write_text("/new", "new").await.expect("written");
    assert_eq!(unreadable.history(&cx()).await.expect("listed").len(), 2);
    let error = undo(&unreadable, 2).await.expect_err("the deletion cannot be undone");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert_eq!(undo(&fixture.again(), 2).await.expect("undone"), 1);
    fixture.has(&[("/d/a", "old"), ("/d/b", "old")]);
}

#[tokio::test]
async fn a_deletion_of_files_that_a_listing_does_not_show_is_refused() {
    let state: FilesState =
        serde_json::from_str(r#"{"/d/a": {"content": "text"}, "/d/a/b": {"content": "text"}}"#).expect("a state");
    let inner = Arc::new(StateBackend::session(state));
    let files = checkpoints(&Arc::new(MemoryBackend::new())).over(Arc::<StateBackend>::clone(&inner));
    let deleted = files.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).await;
    let error = deleted.expect_err("the content of /d/a/b cannot be stored");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Unsupported, Some("/d/a")));
    assert_eq!(inner.state().len(), 2);
}

#[tokio::test]
async fn a_change_whose_contents_cannot_be_stored_is_refused() {
    let fixture = fixture();
    fixture.inner.create_text("/a", "one").await.expect("written");
    for (operation, kind) in [(Operation::Write, ErrorKind::StorageFull), (Operation::Ls, ErrorKind::PermissionDenied)]
    {
        let store = FaultInjection::new(kind).only(operation).layer(Arc::<MemoryBackend>::clone(&fixture.store));
        let files = Checkpoints::new(store, path(DIRECTORY)).over(Arc::<MemoryBackend>::clone(&fixture.inner));
        let error = files.write_text("/a", "two").await.expect_err("refused");
        let expected = if kind == ErrorKind::StorageFull { kind } else { ErrorKind::Internal };
        assert_eq!((error.kind(), error.path()), (expected, Some("/a")));
    }
    fixture.has(&[("/a", "one")]);
}

#[tokio::test]
async fn the_history_is_bounded() {
    let fixture = fixture();
    let limited = checkpoints(&fixture.store).max_undo(3);
    let files = limited.over(Arc::<MemoryBackend>::clone(&fixture.inner));
    for number in 0..120 {
        files.write_text("/a", &number.to_string()).await.expect("written");
    }
    assert_eq!(files.history(&cx()).await.expect("listed").len(), 3);
    assert!(fixture.objects().await < 30, "{} contents", fixture.objects().await);
    assert_eq!(undo(&files, 9).await.expect("undone"), 3);
    fixture.has(&[("/a", "116")]);
    let none = limited.max_undo(0).over(Arc::<MemoryBackend>::clone(&fixture.inner));
    none.write_text("/a", "x").await.expect("written");
    assert!(none.history(&cx()).await.expect("listed").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_at_once_have_right_contents_before_them() {
    let fixture = fixture();
    fixture.inner.create_text("/a", "").await.expect("written");
    let tasks = (0..20).map(|_| {
        let files = fixture.files.clone();
        tokio::spawn(async move { files.append_text("/a", "x").await.map(drop) })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("joined").expect("written");
    }
    for left in (0..20).rev() {
        undo(&fixture.files, 1).await.expect("undone");
        assert_eq!(fixture.inner.read_text("/a").await.expect("read").len(), left);
    }
}
