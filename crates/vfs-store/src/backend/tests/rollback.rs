//! Rollback of renames and copies that fail or are cancelled at any step, in a store that changes one value at a time.

use std::sync::Arc;

use vfs_core::error::ErrorDetail;
use vfs_core::{Backend, BackendExt, CopyRequest, DeleteRequest, ErrorKind, OpContext, RenameRequest};

use super::probe::LostResponse;
use super::{Probe, cx, path};
use crate::{Key, MemoryStore, Namespace, NewValue, Precondition, PutOutcome, Store as _, StoreBackend, StoreConfig};

pub(super) async fn contents(store: &MemoryStore) -> Vec<(String, String)> {
    let files = StoreBackend::new(store.clone());
    let mut contents = Vec::new();
    for info in files.glob_files("**").await.expect("a search") {
        contents.push((info.path.to_string(), files.read_text(info.path.as_str()).await.expect("it is there")));
    }
    contents
}

pub(super) async fn stage() -> (StoreBackend<Arc<Probe>>, Arc<Probe>, MemoryStore) {
    let store = MemoryStore::single_valued();
    let probe = Arc::new(Probe::new(store.clone()));
    let files = StoreBackend::new(Arc::clone(&probe));
    for at in ["/d/a", "/d/b/c", "/d/e", "/t"] {
        files.create_text(at, &format!("of {at}\n")).await.expect("it is new");
    }
    (files, probe, store)
}

#[tokio::test]
async fn a_delete_that_fails_midway_reports_the_number_of_removed_files_and_one_that_failed() {
    for removed in 0..3 {
        let (files, probe, store) = stage().await;
        // The first delete is for a file at the path itself.
        probe.fail_after(1 + removed);
        let delete = DeleteRequest::new(path("/d")).recursive();
        let error = files.delete(&cx(), delete).await.expect_err("the store becomes unavailable");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{removed}");
        let expected = (removed > 0).then_some(ErrorDetail::PartialDelete { files: removed as u64 });
        assert_eq!(error.detail(), expected.as_ref(), "{error:?}");
        let left: Vec<_> = contents(&store).await.into_iter().map(|(at, _)| at).collect();
        assert_eq!(left.len(), 4 - removed);
        assert!(left.iter().any(|at| Some(at.as_str()) == error.path()), "{error:?}");
    }
}

#[tokio::test]
async fn a_transfer_that_fails_at_any_step_never_loses_a_file() {
    for step in 0..6 {
        let (files, probe, store) = stage().await;
        let before = contents(&store).await;
        probe.fail_after(step);
        let rename = RenameRequest::new(path("/d"), path("/n"));
        let error = files.rename(&cx(), rename).await.expect_err("the store becomes unavailable");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{step}");
        let texts = |found: Vec<(String, String)>| {
            found.into_iter().map(|(_, text)| text).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(
            texts(contents(&store).await),
            texts(before),
            "{step}: nothing can be rolled back, and nothing is lost"
        );
    }
}

#[tokio::test]
async fn a_transfer_that_is_cancelled_midway_is_rolled_back() {
    for (at, is_copy) in [(1, false), (2, false), (3, false), (5, false), (1, true), (3, true)] {
        let (files, probe, store) = stage().await;
        let before = contents(&store).await;
        let cx = OpContext::new();
        let token = cx.cancel_token().clone();
        probe.take_all();
        probe.before(move |name, count| {
            let step = if name == "delete" { count + 3 } else { count };
            if (name == "put" || name == "delete") && step == at {
                token.cancel();
            }
        });
        let kind = if is_copy {
            files.copy(&cx, CopyRequest::new(path("/d"), path("/n"))).await.map(drop)
        } else {
            files.rename(&cx, RenameRequest::new(path("/d"), path("/n"))).await.map(drop)
        };
        assert_eq!(kind.expect_err("cancelled").kind(), ErrorKind::Cancelled, "{at}");
        assert_eq!(contents(&store).await, before, "{at} {is_copy}");
    }
}

/// After `busy` a caller repeats the call, as nothing was changed.
#[tokio::test(start_paused = true)]
async fn a_transfer_that_is_partly_rolled_back_is_not_busy() {
    for is_locked in [true, false] {
        let (files, probe, store) = stage().await;
        let other = StoreBackend::new(store.clone());
        probe.take_all();
        if is_locked {
            probe.fail(Some(("delete", ErrorKind::Busy)));
        } else {
            let attempts = StoreConfig::DEFAULT_EDIT_ATTEMPTS as usize;
            probe.before(move |name, count| {
                if name == "delete" {
                    // The deletes of the source are followed by that of the target.
                    let at = if count <= attempts { "/d/a" } else { "/n" };
                    futures::executor::block_on(other.write_text(at, &format!("{count}\n"))).expect("it is written");
                }
            });
        }
        let rename = RenameRequest::new(path("/d/a"), path("/n"));
        let error = files.rename(&cx(), rename).await.expect_err("the source cannot be removed");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Unavailable, Some("/n")), "{is_locked}: {error}");
        assert!(error.message().contains("could not be rolled back"), "{error}");
        let paths: Vec<_> = contents(&store).await.into_iter().map(|(at, _)| at).collect();
        assert_eq!(paths, ["/d/a", "/d/b/c", "/d/e", "/n", "/t"], "{is_locked}");
    }
}

#[tokio::test]
async fn a_new_file_that_cannot_be_removed_again_is_not_busy() {
    for lost in [None, Some(LostResponse::Unavailable)] {
        let (files, probe, store) = stage().await;
        let other = store.clone();
        probe.take_all();
        if let Some(lost) = lost {
            probe.lose("put", 1, lost);
        }
        probe.fail(Some(("delete", ErrorKind::Busy)));
        probe.before(move |name, _| {
            if name == "put" {
                let value = NewValue::new("x\n".into(), chrono::Utc::now());
                let above = Key::new(Namespace::default(), path("/x"));
                let put = futures::executor::block_on(other.put(&above, value, &Precondition::Absent));
                assert!(matches!(put, Ok(PutOutcome::Applied(_))));
            }
        });
        let error = files.create_text("/x/y", "y\n").await.expect_err("another writer created '/x'");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Unavailable, Some("/x/y")), "{lost:?}: {error}");
        let remaining = store.head(&Key::new(Namespace::default(), path("/x/y"))).await.expect("memory is there");
        assert!(remaining.is_some(), "{lost:?}: it remains");
    }
}

#[tokio::test]
async fn changes_of_the_source_by_other_writers_are_moved_too() {
    let (files, probe, store) = stage().await;
    let other = StoreBackend::new(store.clone());
    probe.take_all();
    probe.before(move |name, count| {
        if name == "delete" && count == 1 {
            futures::executor::block_on(other.write_text("/d/a", "newer\n")).expect("it is written");
            futures::executor::block_on(other.delete_file("/d/e")).expect("it is there");
        }
    });
    files.rename(&cx(), RenameRequest::new(path("/d"), path("/n"))).await.expect("it is moved");
    let expected = [("/n/a", "newer\n"), ("/n/b/c", "of /d/b/c\n"), ("/t", "of /t\n")];
    assert_eq!(contents(&store).await, expected.map(|(at, text)| (at.to_owned(), text.to_owned())));
}

#[tokio::test]
async fn a_transfer_preserves_the_times_of_files() {
    for store in [MemoryStore::new(), MemoryStore::single_valued()] {
        let files = StoreBackend::new(store);
        files.create_text("/a", "one\n").await.expect("it is new");
        files.write_text("/a", "two\n").await.expect("it is there");
        let before = files.stat_path("/a").await.expect("it is there");
        assert!(before.created_at.is_some() && before.created_at <= before.modified_at);
        files.rename(&cx(), RenameRequest::new(path("/a"), path("/b/c"))).await.expect("it is there");
        let after = files.stat_path("/b/c").await.expect("it is there");
        assert_eq!((after.created_at, after.modified_at), (before.created_at, before.modified_at));
        files.edit_text("/b/c", "two", "three").await.expect("it is there");
        assert_eq!(files.stat_path("/b/c").await.expect("it is there").created_at, before.created_at);
    }
}
