//! Settlement of operations whose outcome is not known, or that another process interfered with.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use vfs_core::error::ErrorDetail;
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, DeleteRequest, Error, ErrorKind, Interceptor, Layer, OpContext, Operation, OperationId,
    RenameRequest, Result,
};
use vfs_layers::{FaultInjection, Idempotency};
use vfs_memory::MemoryBackend;
use vfs_versions::CheckpointedBackend;

use super::{Fixture, assert_conflict, checkpoints, cx, fixture, undo};
use crate::support::path;

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
        assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
        let others = [("/d/b", "new"), ("/d/c", "kept")];
        let restored = if has_happened { [("/d/a", "one")].as_slice() } else { &[] };
        fixture.has(&[restored, &others].concat());
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
        fixture.create(&[("/d/a", "1"), ("/d/b", "2")]).await;
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
    fixture.create(&[("/log", "new"), ("/log.1", "old")]).await;
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
    fixture.create(&[("/log", "new"), ("/log.1", "old")]).await;
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
    fixture.create(&[("/x/g", "g"), ("/x/h", "h"), ("/log", "old"), ("/log.1", "older")]).await;
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

#[tokio::test]
async fn a_target_that_another_process_wrote_after_a_rename_is_not_replaced() {
    let fixture = fixture();
    fixture.create(&[("/log", "old"), ("/log.1", "older"), ("/x/g", "g"), ("/x/h", "h")]).await;
    let dead = unresponsive(&fixture, Operation::Rename, true);
    for (from, to) in [("/log", "/log.1"), ("/x", "/y")] {
        let rename = RenameRequest::new(path(from), path(to)).overwrite();
        assert!(dead.rename(&cx(), rename).now_or_never().is_none());
        if to == "/log.1" {
            fixture.inner.write_text(to, "other").await.expect("written");
            assert_conflict(&undo(&fixture.again(), 1).await.expect_err("another process wrote the target"), to);
            fixture.inner.delete_file(to).await.expect("removed");
        } else {
            fixture.inner.write_text("/y/g", "edited").await.expect("written");
            fixture.inner.create_text("/y/new", "new").await.expect("written");
        }
        assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
    }
    let others = [("/y/g", "edited"), ("/y/new", "new")];
    fixture.has(&[[("/log", "old"), ("/log.1", "older"), ("/x/g", "g"), ("/x/h", "h")].as_slice(), &others].concat());
}

#[tokio::test]
async fn a_file_that_was_removed_after_a_rename_is_restored() {
    let fixture = fixture();
    fixture.create(&[("/x/g", "g"), ("/x/h", "h")]).await;
    let dead = unresponsive(&fixture, Operation::Rename, true);
    assert!(dead.rename(&cx(), RenameRequest::new(path("/x"), path("/y"))).now_or_never().is_none());
    fixture.inner.delete_file("/y/g").await.expect("removed");
    assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
    fixture.has(&[("/x/g", "g"), ("/x/h", "h")]);
}

#[tokio::test]
async fn a_file_below_the_path_of_a_write_that_never_happened_is_kept() {
    let fixture = fixture();
    let dead = unresponsive(&fixture, Operation::Write, false);
    assert!(dead.create_text("/a", "text").now_or_never().is_none());
    fixture.inner.create_text("/a/b", "other").await.expect("written");
    assert_eq!(undo(&fixture.again(), 1).await.expect("nothing to undo"), 0);
    fixture.has(&[("/a/b", "other")]);
}

/// Performs an operation, or fails with an error in its place, and then an action of another process.
#[derive(Debug)]
struct Interfered {
    operation: Operation,
    error: Option<Error>,
    action: for<'a> fn(&'a MemoryBackend) -> BoxFuture<'a, Result<()>>,
    files: Arc<MemoryBackend>,
}

impl Interceptor for Interfered {
    fn name(&self) -> &'static str {
        "interfered"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if Q::OPERATION != self.operation {
            return request.send(inner, cx).await;
        }
        let output = match &self.error {
            Some(error) => Err(error.clone()),
            None => request.send(inner, cx).await,
        };
        (self.action)(&self.files).await?;
        output
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// Returns the files of `fixture`, where `action` follows each `operation`, or its `error`.
fn interfered(
    fixture: &Fixture,
    operation: Operation,
    error: Option<Error>,
    action: for<'a> fn(&'a MemoryBackend) -> BoxFuture<'a, Result<()>>,
) -> Arc<dyn Backend> {
    let files = Arc::clone(&fixture.inner);
    let inner = Arc::<MemoryBackend>::clone(&files) as Arc<dyn Backend>;
    Arc::new(Intercepted::new(inner, Arc::new(Interfered { operation, error, action, files })))
}

#[tokio::test]
async fn an_edit_that_loses_against_another_writer_has_no_record() {
    let fixture = fixture();
    fixture.inner.create_text("/a", "one").await.expect("written");
    let inner = interfered(&fixture, Operation::Edit, Some(Error::of(ErrorKind::Busy)), |files| {
        files.write_text("/a", "other").map_ok(drop).boxed()
    });
    let files = checkpoints(&fixture.store).over(inner);
    assert_eq!(files.edit_text("/a", "one", "two").await.expect_err("it lost").kind(), ErrorKind::Busy);
    assert_eq!(undo(&fixture.again(), 1).await.expect("nothing to undo"), 0);
    fixture.has(&[("/a", "other")]);
}

#[tokio::test]
async fn a_deletion_that_failed_after_some_files_is_undone_whatever_its_error() {
    let fixture = fixture();
    for at in ["/d/a", "/d/b"] {
        fixture.inner.create_text(at, "old").await.expect("written");
    }
    let error = Error::of(ErrorKind::PathEscape).with_detail(ErrorDetail::PartialDelete { files: 1 });
    let inner = interfered(&fixture, Operation::Delete, Some(error), |files| {
        files.write_text("/d/a", "other").map_ok(drop).boxed()
    });
    let files = checkpoints(&fixture.store).over(inner);
    let deleted = files.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).await;
    assert_eq!(deleted.expect_err("it failed").kind(), ErrorKind::PathEscape);
    assert_conflict(&undo(&files, 1).await.expect_err("the content would be lost"), "/d/a");
    fixture.inner.delete_file("/d/a").await.expect("removed");
    assert_eq!(undo(&files, 1).await.expect("undone"), 1);
    fixture.has(&[("/d/a", "old"), ("/d/b", "old")]);
}

#[tokio::test]
async fn a_rename_that_moved_some_files_is_undone_whatever_its_error() {
    let fixture = fixture();
    fixture.create(&[("/x/g", "g"), ("/x/h", "h")]).await;
    let inner = interfered(&fixture, Operation::Rename, Some(Error::of(ErrorKind::Conflict)), |files| {
        async {
            files.rename(&cx(), RenameRequest::new(path("/x/g"), path("/y/g"))).await?;
            files.create_text("/x/g", "other").await.map(drop)
        }
        .boxed()
    });
    let files = checkpoints(&fixture.store).over(inner);
    let renamed = files.rename(&cx(), RenameRequest::new(path("/x"), path("/y"))).await;
    assert_eq!(renamed.expect_err("it failed").kind(), ErrorKind::Conflict);
    assert_conflict(&undo(&files, 1).await.expect_err("another process wrote the source"), "/x/g");
    fixture.inner.delete_file("/x/g").await.expect("removed");
    assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
    fixture.has(&[("/x/g", "g"), ("/x/h", "h")]);
}

#[tokio::test]
async fn a_failed_rename_that_lost_a_file_keeps_its_content() {
    let fixture = fixture();
    fixture.create(&[("/x/g", "g"), ("/x/h", "h")]).await;
    let inner = interfered(&fixture, Operation::Rename, Some(Error::of(ErrorKind::QuotaExceeded)), |files| {
        async {
            files.delete_file("/x/g").await?;
            files.create_text("/y/g", "other").await.map(drop)
        }
        .boxed()
    });
    let files = checkpoints(&fixture.store).over(inner);
    let renamed = files.rename(&cx(), RenameRequest::new(path("/x"), path("/y"))).await;
    assert_eq!(renamed.expect_err("it failed").kind(), ErrorKind::QuotaExceeded);
    assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
    fixture.has(&[("/x/g", "g"), ("/x/h", "h"), ("/y/g", "other")]);
}

#[tokio::test]
async fn a_failed_rename_whose_target_is_gone_keeps_its_content() {
    let fixture = fixture();
    fixture.create(&[("/a", "new"), ("/b", "old")]).await;
    let inner = interfered(&fixture, Operation::Rename, Some(Error::of(ErrorKind::NotFound)), |files| {
        files.delete_file("/b").map_ok(drop).boxed()
    });
    let files = checkpoints(&fixture.store).over(inner);
    let renamed = files.rename(&cx(), RenameRequest::new(path("/a"), path("/b")).overwrite()).await;
    assert_eq!(renamed.expect_err("it failed").kind(), ErrorKind::NotFound);
    assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
    fixture.has(&[("/a", "new"), ("/b", "old")]);
}

#[tokio::test]
async fn a_target_that_was_written_meanwhile_keeps_what_a_rename_may_have_replaced() {
    for error in [None, Some(ErrorKind::QuotaExceeded)] {
        let fixture = fixture();
        fixture.create(&[("/a", "new"), ("/b", "old")]).await;
        let rename = RenameRequest::new(path("/a"), path("/b")).overwrite();
        match error {
            None => {
                let dead = unresponsive(&fixture, Operation::Rename, false);
                assert!(dead.rename(&cx(), rename).now_or_never().is_none());
                fixture.inner.write_text("/b", "other").await.expect("written");
            }
            Some(kind) => {
                let inner = interfered(&fixture, Operation::Rename, Some(Error::of(kind)), |files| {
                    files.write_text("/b", "other").map_ok(drop).boxed()
                });
                let renamed = checkpoints(&fixture.store).over(inner).rename(&cx(), rename).await;
                assert_eq!(renamed.expect_err("it failed").kind(), kind);
            }
        }
        assert_conflict(&undo(&fixture.again(), 1).await.expect_err("a content would be lost"), "/b");
        fixture.inner.delete_file("/b").await.expect("removed");
        assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
        fixture.has(&[("/a", "new"), ("/b", "old")]);
    }
}

#[tokio::test]
async fn a_source_that_is_gone_after_a_failed_rename_is_restored_if_its_target_may_have_it() {
    for (old, is_restored) in [("new", true), ("old", false)] {
        let fixture = fixture();
        fixture.create(&[("/a", "new"), ("/b", old)]).await;
        let inner = interfered(&fixture, Operation::Rename, Some(Error::of(ErrorKind::NotFound)), |files| {
            files.delete_file("/a").map_ok(drop).boxed()
        });
        let rename = RenameRequest::new(path("/a"), path("/b")).overwrite();
        let renamed = checkpoints(&fixture.store).over(inner).rename(&cx(), rename).await;
        assert_eq!(renamed.expect_err("it failed").kind(), ErrorKind::NotFound);
        assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), usize::from(is_restored), "{old}");
        let source = [("/a", "new")];
        fixture.has(&[if is_restored { &source } else { [].as_slice() }, &[("/b", old)]].concat());
    }
}

#[tokio::test]
async fn a_moved_file_that_is_lost_is_kept_although_its_source_is_written_again() {
    let fixture = fixture();
    fixture.create(&[("/log", "old")]).await;
    let dead = unresponsive(&fixture, Operation::Rename, true);
    assert!(dead.rename(&cx(), RenameRequest::new(path("/log"), path("/log.1"))).now_or_never().is_none());
    fixture.inner.delete_file("/log.1").await.expect("removed");
    fixture.inner.create_text("/log", "other").await.expect("written");
    assert_conflict(&undo(&fixture.again(), 1).await.expect_err("the content would be lost"), "/log");
    fixture.inner.delete_file("/log").await.expect("removed");
    assert_eq!(undo(&fixture.again(), 1).await.expect("undone"), 1);
    fixture.has(&[("/log", "old")]);
}

#[tokio::test]
async fn a_rename_over_a_file_of_equal_content_that_never_happened_has_no_record() {
    let fixture = fixture();
    fixture.create(&[("/a", "same"), ("/b", "same")]).await;
    let dead = unresponsive(&fixture, Operation::Rename, false);
    let rename = RenameRequest::new(path("/a"), path("/b")).overwrite();
    assert!(dead.rename(&cx(), rename).now_or_never().is_none());
    fixture.inner.write_text("/a", "edited").await.expect("written");
    assert_eq!(undo(&fixture.again(), 1).await.expect("nothing to undo"), 0);
    fixture.has(&[("/a", "edited"), ("/b", "same")]);
}

#[tokio::test]
async fn a_rename_that_failed_without_effect_has_no_record() {
    let untouched: for<'a> fn(&'a MemoryBackend) -> BoxFuture<'a, Result<()>> = |_| async { Ok(()) }.boxed();
    for (kind, action) in [
        (ErrorKind::Conflict, untouched),
        (ErrorKind::Conflict, |files| files.write_text("/a", "other").map_ok(drop).boxed()),
        (ErrorKind::NotFound, |files| {
            async { files.rename(&cx(), RenameRequest::new(path("/a"), path("/c"))).await.map(drop) }.boxed()
        }),
    ] {
        let fixture = fixture();
        fixture.inner.create_text("/a", "a").await.expect("written");
        let inner = interfered(&fixture, Operation::Rename, Some(Error::of(kind)), action);
        let files = checkpoints(&fixture.store).over(inner);
        let renamed = files.rename(&cx(), RenameRequest::new(path("/a"), path("/b"))).await;
        assert_eq!(renamed.expect_err("it failed").kind(), kind);
        assert!(files.history(&cx()).await.expect("listed").is_empty());
    }
}

#[tokio::test]
async fn a_failed_deletion_that_removed_no_recorded_file_has_no_record() {
    let fixture = fixture();
    fixture.inner.create_text("/d/a", "a").await.expect("written");
    let error = Error::of(ErrorKind::PathEscape).with_detail(ErrorDetail::PartialDelete { files: 1 });
    let inner = interfered(&fixture, Operation::Delete, Some(error), |_| async { Ok(()) }.boxed());
    let files = checkpoints(&fixture.store).over(inner);
    let deleted = files.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).await;
    assert_eq!(deleted.expect_err("it failed").kind(), ErrorKind::PathEscape);
    assert!(files.history(&cx()).await.expect("listed").is_empty());
}

#[tokio::test]
async fn what_another_process_writes_while_a_rename_is_undone_is_not_removed() {
    let fixture = fixture();
    fixture.files.create_text("/x/g", "g").await.expect("written");
    fixture.files.rename(&cx(), RenameRequest::new(path("/x"), path("/y"))).await.expect("renamed");
    let inner =
        interfered(&fixture, Operation::Rename, None, |files| files.write_text("/x/g", "other").map_ok(drop).boxed());
    let files = checkpoints(&fixture.store).over(inner);
    assert_conflict(&undo(&files, 2).await.expect_err("another process wrote the file"), "/x/g");
    fixture.has(&[("/x/g", "other")]);
}

#[tokio::test]
async fn a_change_with_an_operation_id_is_undone_although_its_source_is_written_again() {
    let fixture = fixture();
    fixture.create(&[("/log", "old"), ("/log.1", "older")]).await;
    let inner =
        interfered(&fixture, Operation::Rename, None, |files| files.create_text("/log", "other").map_ok(drop).boxed());
    let files = checkpoints(&fixture.store).over(Idempotency::new().layer(inner));
    let cx = cx().with_operation_id(OperationId::parse("rotate").expect("a valid id"));
    let rename = RenameRequest::new(path("/log"), path("/log.1")).overwrite();
    files.rename(&cx, rename.clone()).await.expect("renamed");
    assert_conflict(&undo(&files, 1).await.expect_err("another process wrote the source"), "/log");
    fixture.inner.delete_file("/log").await.expect("removed");
    assert_eq!(undo(&files, 1).await.expect("undone"), 1);
    fixture.has(&[("/log", "old"), ("/log.1", "older")]);
    files.rename(&cx, rename).await.expect("renamed before");
    assert!(files.history(&cx).await.expect("listed").is_empty(), "a replay changes nothing");
    fixture.has(&[("/log", "old"), ("/log.1", "older")]);
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
