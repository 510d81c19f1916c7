//! Changes whose response is lost, in a store that changes one value at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use vfs_core::{
    Backend, BackendExt, CopyRequest, Error, ErrorKind, FileUploadRequest, OpContext, RenameRequest, WriteMode,
    WriteRequest,
};

use super::probe::LostResponse;
use super::rollback::{contents, stage};
use super::{Probe, cx, path, probed};
use crate::{
    Key, MemoryStore, Namespace, NewValue, Precondition, PutOutcome, STAGED_PART_BYTES, Store as _, StoreBackend,
};

async fn rename(files: &StoreBackend<Arc<Probe>>, cx: &OpContext, (from, to): (&str, &str)) -> Result<(), Error> {
    let request = RenameRequest::new(path(from), path(to)).overwrite();
    files.rename(cx, request).await.map(drop)
}

fn texts(found: Vec<(String, String)>) -> BTreeSet<String> {
    found.into_iter().map(|(_, text)| text).collect()
}

#[tokio::test]
async fn a_rename_that_may_have_been_applied_is_rolled_back() {
    let ways = [("/d/a", "/n"), ("/d/a", "/t"), ("/d", "/n")];
    for (way, call) in ways.iter().flat_map(|way| ["put", "delete"].map(|call| (way, call))) {
        for count in 1..=(if way.0 == "/d" { 3 } else { 1 }) {
            let (files, probe, store) = stage().await;
            let before = contents(&store).await;
            probe.take_all();
            probe.lose(call, count, LostResponse::Unavailable);
            let error = rename(&files, &cx(), *way).await.expect_err("the outcome is unknown");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{way:?} {call} {count}");
            assert_eq!(contents(&store).await, before, "{way:?} {call} {count}");
        }
    }
}

#[tokio::test]
async fn a_rename_over_a_large_file_is_rolled_back_without_holding_the_files_in_memory() {
    for (call, lost) in
        [("put", LostResponse::Unavailable), ("delete", LostResponse::Unavailable), ("delete", LostResponse::Timeout)]
    {
        let (files, probe, store) = stage().await;
        for (at, letter) in [("/d/a", "a"), ("/t", "t")] {
            files.write_text(at, &letter.repeat(2 * STAGED_PART_BYTES)).await.expect("it is there");
        }
        let before = contents(&store).await;
        probe.take_all();
        probe.lose(call, 1, lost);
        probe.add_staging();
        probe.refuse_longer_reads(STAGED_PART_BYTES as u64);
        let error = rename(&files, &cx(), ("/d/a", "/t")).await.expect_err("the outcome is unknown");
        assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout), "{call}: {error}");
        assert!(contents(&store).await == before, "{call} {lost:?}: a file was changed");
    }
}

#[tokio::test]
async fn a_large_file_that_was_replaced_is_restored_by_the_second_attempt() {
    let (files, probe, store) = stage().await;
    for (at, letter) in [("/d/a", "a"), ("/t", "t")] {
        files.write_text(at, &letter.repeat(2 * STAGED_PART_BYTES)).await.expect("it is there");
    }
    probe.take_all();
    probe.add_staging();
    let (other, failing) = (StoreBackend::new(store), Arc::downgrade(&probe));
    probe.before(move |name, count| {
        let failing = failing.upgrade().expect("the probe calls this");
        match (name, count) {
            ("delete", 1) => futures::executor::block_on(other.delete_file("/d/a")).expect("it is there"),
            ("put", 2) => failing.fail(Some(("put", ErrorKind::Unavailable))),
            _ => failing.fail(None),
        }
    });
    let error = rename(&files, &cx(), ("/d/a", "/t")).await.expect_err("the first attempt to restore the file failed");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let restored = files.read_text("/t").await.expect("it is there");
    assert!(restored == "t".repeat(2 * STAGED_PART_BYTES), "{} bytes", restored.len());
    assert!(!files.exists("/d/a").await.expect("it is known"));
}

#[tokio::test]
async fn a_copy_that_may_have_been_applied_is_rolled_back() {
    for count in 1..=3 {
        let (files, probe, store) = stage().await;
        let before = contents(&store).await;
        probe.take_all();
        probe.lose("put", count, LostResponse::Unavailable);
        let error =
            files.copy(&cx(), CopyRequest::new(path("/d"), path("/n"))).await.expect_err("the outcome is unknown");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(contents(&store).await, before, "{count}");
    }
}

#[tokio::test]
async fn an_upload_that_may_have_been_applied_overwrites_no_later_edit() {
    for (lost, kind) in [
        (LostResponse::Unavailable, ErrorKind::Unavailable),
        (LostResponse::Timeout, ErrorKind::Timeout),
        (LostResponse::Internal, ErrorKind::Internal),
    ] {
        let (files, probe) = probed(MemoryStore::new());
        let other = StoreBackend::new(probe.store.clone());
        probe.take_all();
        probe.lose("batch", 1, lost);
        probe.before(move |name, _| {
            if name == "batch made" {
                let edit = WriteRequest::new(path("/u/1"), "edited\n").mode(WriteMode::Overwrite);
                futures::executor::block_on(other.write(&cx(), edit)).expect("it is there");
            }
        });
        let upload = ["/u/1", "/u/2"].map(|at| FileUploadRequest::new(path(at), "uploaded\n"));
        for response in files.upload_files(&cx(), upload.to_vec()).await {
            assert_eq!(response.cause.expect("the outcome is unknown").kind(), kind);
        }
        assert_eq!(files.read_text("/u/1").await.expect("it is there"), "edited\n", "{lost:?}");
    }
}

#[tokio::test]
async fn a_file_of_another_writer_in_place_of_a_doubtful_copy_stays() {
    let (files, probe, store) = stage().await;
    let other = StoreBackend::new(store.clone());
    probe.take_all();
    probe.lose("put", 1, LostResponse::Unavailable);
    probe.before(move |name, count| {
        if name == "get" && count == 2 {
            futures::executor::block_on(other.write_text("/n", "another\n")).expect("it is written");
        }
    });
    rename(&files, &cx(), ("/d/a", "/n")).await.expect_err("the outcome is unknown");
    assert_eq!(files.read_text("/n").await.expect("it is another's"), "another\n");
    assert_eq!(files.read_text("/d/a").await.expect("it is not moved"), "of /d/a\n");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_never_acknowledged_ends_at_the_deadline_and_loses_nothing() {
    for (call, count) in [("put", 1), ("put", 2), ("delete", 1), ("delete", 2), ("delete", 3)] {
        let (files, probe, store) = stage().await;
        let before = texts(contents(&store).await);
        probe.take_all();
        probe.lose(call, count, LostResponse::Forever);
        let error = rename(&files, &cx().with_timeout(Duration::from_secs(3)), ("/d", "/n")).await;
        assert_eq!(error.expect_err("the outcome is unknown").kind(), ErrorKind::Timeout, "{call} {count}");
        assert_eq!(texts(contents(&store).await), before, "{call} {count}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancellation_while_the_only_copy_is_moved_loses_nothing() {
    let (files, probe, store) = stage().await;
    let before = texts(contents(&store).await);
    probe.take_all();
    probe.lose("delete", 1, LostResponse::Forever);
    let cx = cx();
    let token = cx.cancel_token().clone();
    probe.before(move |name, _| {
        if name == "delete made" {
            token.cancel();
        }
    });
    let error = rename(&files, &cx, ("/d/a", "/n")).await.expect_err("it is cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(texts(contents(&store).await), before);
}

#[tokio::test]
async fn a_new_file_that_may_have_been_stored_below_another_file_is_removed() {
    let (files, probe, store) = stage().await;
    let key = |at| Key::new(Namespace::default(), path(at));
    let (other, above) = (store.clone(), key("/x"));
    probe.take_all();
    probe.lose("put", 1, LostResponse::Unavailable);
    probe.before(move |name, count| {
        if name == "put" && count == 1 {
            let value = NewValue::new("x\n".into(), chrono::Utc::now());
            let put = futures::executor::block_on(other.put(&above, value, &Precondition::Absent));
            assert!(matches!(put, Ok(PutOutcome::Applied(_))));
        }
    });
    let error = files.write(&cx(), WriteRequest::new(path("/x/y"), "y\n")).await.expect_err("the outcome is unknown");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(store.head(&key("/x")).await.expect("memory is there").is_some());
    assert_eq!(store.head(&key("/x/y")).await.expect("memory is there"), None);
}
