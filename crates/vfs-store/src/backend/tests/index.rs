//! Names that are cached between searches.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::test_runner::{Config, TestRunner};
use vfs_core::{
    Backend, BackendExt, DeleteRequest, GlobRequest, GrepRequest, LsRequest, ReadRequest, RenameRequest, StatRequest,
};

use super::{Probe, cx, path, probed};
use crate::{MemoryStore, StoreBackend, StoreConfig};

async fn paths(files: &impl Backend, pattern: &str) -> Vec<String> {
    let found = files.glob(&cx(), GlobRequest::new(pattern)).await.expect("a search");
    found.entries.into_iter().map(|info| info.path.to_string()).collect()
}

#[tokio::test]
async fn a_second_search_lists_nothing_and_sees_changes_of_other_handles() {
    let store = MemoryStore::new();
    let other = StoreBackend::new(store.clone());
    let (files, probe) = probed(store);
    for n in 0..40 {
        other.create_text(&format!("/d{}/f{n}", n % 4), "text\n").await.expect("it is new");
    }
    assert_eq!(paths(&files, "**/f1*").await.len(), 11);
    assert!(probe.take("list all") > 1, "it comes in pages");
    probe.take_all();

    other.create_text("/d9/f1-new", "needle\n").await.expect("it is new");
    other.rename(&cx(), RenameRequest::new(path("/d1"), path("/e"))).await.expect("it is there");
    other.delete(&cx(), DeleteRequest::new(path("/d2")).recursive()).await.expect("it is there");
    other.edit_text("/d0/f0", "text", "needle").await.expect("it is there");
    let found = paths(&files, "**/f1*").await;
    assert_eq!(found, paths(&other, "**/f1*").await);
    assert!(found.contains(&"/d9/f1-new".to_owned()) && found.contains(&"/e/f1".to_owned()));
    let matches = files.grep_text("needle").await.expect("a search");
    let matched: Vec<_> = matches.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(matched, ["/d0/f0", "/d9/f1-new"]);
    let calls = probe.take_all();
    assert_eq!((calls.get("list all"), calls.get("list level")), (None, None), "{calls:?}");
}

#[tokio::test]
async fn a_request_for_a_part_lists_only_this_part() {
    let (files, probe) = probed(MemoryStore::new());
    for n in 0..60 {
        files.create_text(&format!("/d{}/s/f{n}.rs", n % 3), "text\n").await.expect("it is new");
    }
    probe.take_all();
    files.stat(&cx(), StatRequest::new(path("/d1/s/f1.rs"))).await.expect("it is there");
    assert_eq!(probe.take_all(), BTreeMap::from([("head", 1)]));
    files.read(&cx(), ReadRequest::new(path("/d1/s/f1.rs"))).await.expect("it is there");
    assert_eq!(probe.take_all(), BTreeMap::from([("get", 1)]));
    files.ls(&cx(), LsRequest::new(path("/d1"))).await.expect("it is there");
    assert_eq!(probe.take_all(), BTreeMap::from([("head", 1), ("list level", 1)]));
    assert_eq!(paths(&files, "d1/s/*.rs").await.len(), 20);
    assert_eq!(paths(&files, "d1/s/f1.rs").await, ["/d1/s/f1.rs"]);
    assert_eq!(probe.take("list all"), 0, "the namespace is not listed for a few names");
    probe.take_all();
    assert_eq!(paths(&files, "*.rs").await.len(), 60);
    assert!(probe.take("list all") > 0);
    assert_eq!(paths(&files, "d1/s/*.rs").await.len(), 20);
    let calls = probe.take_all();
    assert!(!calls.contains_key("list level") && calls.contains_key("since"), "cached names are used: {calls:?}");
}

#[tokio::test]
async fn names_are_listed_again_if_changes_expired_or_the_namespace_is_too_large() {
    let store = MemoryStore::new();
    let files = StoreBackend::new(store.clone());
    let small = StoreBackend::with_config(store.clone(), StoreConfig::new().index_entries(5));
    files.create_text("/a/f", "needle\n").await.expect("it is new");
    assert_eq!(
        (paths(&files, "**").await, paths(&small, "**").await),
        (vec!["/a/f".to_owned()], vec!["/a/f".to_owned()])
    );
    let other = StoreBackend::new(store);
    for n in 0..4200 {
        other.write_text("/a/busy", &n.to_string()).await.expect("it is written");
    }
    for n in 0..9 {
        other.create_text(&format!("/b/{n}"), "needle\n").await.expect("it is new");
    }
    let expected = paths(&other, "**").await;
    assert_eq!(expected.len(), 11);
    for backend in [&files, &small] {
        assert_eq!(paths(backend, "**").await, expected);
        assert_eq!(backend.grep_text("needle").await.expect("a search").len(), 10);
    }
    other.delete_file("/b/3").await.expect("it is there");
    for backend in [&files, &small] {
        assert_eq!(backend.grep_text("needle").await.expect("a search").len(), 9);
    }
}

/// Names that are listed while others change the files include every change that was acknowledged before the search.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loading_misses_no_change() {
    for round in 0..20 {
        let store = MemoryStore::new();
        let writer = StoreBackend::new(store.clone());
        for n in 0..30 {
            writer.create_text(&format!("/{}/{n}", n % 5), "text\n").await.expect("it is new");
        }
        let files = StoreBackend::new(Arc::new(Probe::new(store)));
        let changes = async {
            for n in 0..30 {
                writer
                    .rename(
                        &cx(),
                        RenameRequest::new(path(&format!("/{}/{n}", n % 5)), path(&format!("/x{}/{n}", n % 3))),
                    )
                    .await
                    .expect("it is there");
                if n % 3 == round % 3 {
                    writer.delete_file(&format!("/x{}/{n}", n % 3)).await.expect("it is there");
                }
            }
        };
        let searches = async {
            for _ in 0..4 {
                paths(&files, "**").await;
            }
        };
        futures::join!(changes, searches);
        assert_eq!(paths(&files, "**").await, paths(&writer, "**").await);
    }
}

/// Compares two handles of one store with a store without an index, after any changes.
#[test]
fn any_changes_of_another_handle_are_seen() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let steps = proptest::collection::vec((0..5_u8, "(/[ab]){1,3}", "(/[ab]){1,3}"), 1..40);
    let mut runner = TestRunner::new(Config::with_cases(60));
    let outcome = runner.run(&steps, |steps| {
        runtime.block_on(async {
            let store = MemoryStore::new();
            let (files, reader) = (StoreBackend::new(store.clone()), StoreBackend::new(store));
            let model = model_without_index();
            for (kind, from, to) in steps {
                let (a, b) = (change(&files, kind, &from, &to).await, change(&model, kind, &from, &to).await);
                assert_eq!(a, b, "{kind} {from} {to}");
                assert_eq!(paths(&reader, "**").await, paths(&model, "**").await);
                let grep = |files| async move { Backend::grep(files, &cx(), GrepRequest::literal("abc")).await };
                let (found, expected) = (grep(&reader as &dyn Backend).await, grep(&model as &dyn Backend).await);
                assert_eq!(found, expected);
            }
        });
        Ok(())
    });
    outcome.expect("every sequence of changes is seen");
}

/// Returns the model: a backend over a store without a change log.
fn model_without_index() -> StoreBackend<MemoryStore> {
    StoreBackend::new(MemoryStore::single_valued())
}

async fn change(files: &dyn Backend, kind: u8, from: &str, to: &str) -> Option<vfs_core::ErrorKind> {
    let content = Bytes::from(format!("abc {from}\n"));
    let outcome = match kind {
        0 | 1 => files.write(&cx(), vfs_core::WriteRequest::new(path(from), content)).await.map(drop),
        2 => files.delete(&cx(), DeleteRequest::new(path(from)).recursive()).await.map(drop),
        3 => files.rename(&cx(), RenameRequest::new(path(from), path(to)).overwrite()).await.map(drop),
        _ => files.copy(&cx(), vfs_core::CopyRequest::new(path(from), path(to)).overwrite()).await.map(drop),
    };
    outcome.err().map(|error| error.kind())
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_was_too_large_is_listed_again_after_a_while() {
    let probe = Arc::new(Probe::new(MemoryStore::new()));
    let files = StoreBackend::with_config(Arc::clone(&probe), StoreConfig::new().index_entries(5));
    for n in 0..9 {
        files.create_text(&format!("/d/{n}"), "text\n").await.expect("it is new");
    }
    assert_eq!(paths(&files, "**").await.len(), 9);
    for n in 0..6 {
        files.delete_file(&format!("/d/{n}")).await.expect("it is there");
    }
    probe.take_all();
    assert_eq!(paths(&files, "**").await.len(), 3);
    assert_eq!(probe.take("list all"), 0, "it is not listed each time");
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    assert_eq!(paths(&files, "**").await.len(), 3);
    assert_eq!(probe.take("list all"), 1);
    probe.take_all();
    assert_eq!(paths(&files, "**").await.len(), 3);
    let calls = probe.take_all();
    assert_eq!((calls.get("list all"), calls.get("list level"), calls.get("since")), (None, None, Some(&1)));
}

#[tokio::test]
async fn concurrent_searches_whose_changes_expired_list_once() {
    let store = MemoryStore::new();
    let (files, probe) = probed(store.clone());
    let other = StoreBackend::new(store);
    other.create_text("/a/f", "text\n").await.expect("it is new");
    assert_eq!(paths(&files, "**").await.len(), 1);
    for n in 0..4200 {
        other.write_text("/a/busy", &n.to_string()).await.expect("it is written");
    }
    probe.take_all();
    let searches = (0..8).map(|_| paths(&files, "**"));
    for found in futures::future::join_all(searches).await {
        assert_eq!(found.len(), 2);
    }
    assert_eq!(probe.take("list all"), 1);
}
