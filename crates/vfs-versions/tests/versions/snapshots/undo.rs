//! Undo of single operations.

use std::sync::Arc;

use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, ErrorKind, FileUploadRequest, Layer, Operation, RenameRequest,
    VfsPath,
};
use vfs_layers::FaultInjection;
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_versions::Checkpoints;

use super::{DIRECTORY, assert_conflict, checkpoints, cx, fixture, undo};
use crate::support::path;

#[tokio::test]
async fn every_operation_is_undone() {
    let fixture = fixture();
    let files = &fixture.files;
    fixture.create(&[("/a", "one"), ("/b", "b"), ("/d/x", "x"), ("/d/e/y", "y"), ("/bin", "\0")]).await;
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
                let upload = |at| FileUploadRequest::new(path(at), "uploaded");
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
async fn a_rename_to_an_excluded_path_is_undone_without_its_target() {
    let fixture = fixture();
    for at in ["/d/x", "/d/y"] {
        fixture.inner.create_text(at, "old").await.expect("written");
    }
    let files = checkpoints(&fixture.store).exclude(path("/trash")).over(Arc::<MemoryBackend>::clone(&fixture.inner));
    files.rename(&cx(), RenameRequest::new(path("/d"), path("/trash/d"))).await.expect("renamed");
    fixture.inner.write_text("/trash/d/x", "other").await.expect("written");
    let undone = files.undo(&cx(), 1).await.expect("undone");
    assert_eq!((undone.entries.len(), undone.files), (1, 2));
    fixture.has(&[("/d/x", "old"), ("/d/y", "old"), ("/trash/d/x", "other"), ("/trash/d/y", "old")]);
}

#[tokio::test]
async fn an_undone_rename_leaves_what_is_in_an_excluded_directory() {
    let fixture = fixture();
    fixture.inner.create_text("/d/x", "old").await.expect("written");
    let files = checkpoints(&fixture.store).exclude(path("/e/tmp")).over(Arc::<MemoryBackend>::clone(&fixture.inner));
    files.rename(&cx(), RenameRequest::new(path("/d"), path("/e"))).await.expect("renamed");
    fixture.inner.create_text("/e/tmp/z", "other").await.expect("written");
    assert_eq!(undo(&files, 1).await.expect("undone"), 1);
    fixture.has(&[("/d/x", "old"), ("/e/tmp/z", "other")]);
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
