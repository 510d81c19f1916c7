//! Cache of contents: hits, evictions, limits.

use std::sync::Arc;

use vfs_core::operation::Intercepted;
use vfs_core::{Backend, BackendExt, ErrorKind, Layer, OpContext, Operation, ReadRequest};
use vfs_layers::{Cache, FaultInjection};
use vfs_memory::MemoryBackend;
use vfs_testkit::CallCounter;

use super::support::path;

/// Returns a cache around an empty store, the store, and the counter of the calls that reach it.
fn cached(cache: Cache) -> (Arc<dyn Backend>, MemoryBackend, Arc<CallCounter>) {
    let (store, counting) = (MemoryBackend::new(), Arc::new(CallCounter::default()));
    let counted = Intercepted::new(Arc::new(store.clone()), Arc::clone(&counting));
    (cache.layer(Arc::new(counted)), store, counting)
}

fn fetched(counting: &CallCounter) -> (u64, u64) {
    (counting.calls(Operation::Download), counting.calls(Operation::Read))
}

#[tokio::test]
async fn a_file_is_fetched_once_and_every_window_of_it_is_answered() {
    let (files, store, counting) = cached(Cache::new(1 << 20));
    let text: String = (0..1000).map(|n| format!("line {n}\n")).collect();
    store.create_text("/a", &text).await.expect("written");
    let cx = OpContext::new();
    let whole = ReadRequest::new(path("/a"));
    for request in [whole.clone(), whole.clone().lines(10, 5), whole.clone().bytes(3, Some(9)), whole.max_bytes(100)] {
        let answer = files.read(&cx, request.clone()).await.expect("read");
        assert_eq!(answer, store.read(&cx, request).await.expect("read"));
    }
    assert_eq!(fetched(&counting), (1, 0));
    let past = ReadRequest::new(path("/a")).offset(5000);
    assert_eq!(files.read(&cx, past.clone()).await, store.read(&cx, past).await);
    assert_eq!((counting.calls(Operation::Stat), fetched(&counting)), (5, (1, 0)));
}

#[tokio::test]
async fn changes_by_others_are_seen_at_once() {
    let (files, store, counting) = cached(Cache::new(1 << 20));
    for (round, text) in ["one", "two", "one"].into_iter().enumerate() {
        store.write_text("/a", text).await.expect("written");
        assert_eq!(files.read_text("/a").await.expect("read"), text);
        assert_eq!(files.read_text("/a").await.expect("read"), text);
        assert_eq!(fetched(&counting), (round as u64 + 1, 0));
    }
    store.delete_file("/a").await.expect("removed");
    assert_eq!(files.read_text("/a").await.expect_err("the file was deleted").kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_change_through_the_layer_evicts_the_file_at_once() {
    // Room for two files of 700 bytes, and not for three.
    let (files, _, counting) = cached(Cache::new(2000));
    for name in ["/a", "/b", "/c"] {
        files.write_text(name, &"x".repeat(700)).await.expect("written");
    }
    files.read_text("/a").await.expect("read");
    files.read_text("/b").await.expect("read");
    files.delete_file("/b").await.expect("removed");
    files.read_text("/c").await.expect("read");
    assert_eq!(fetched(&counting), (3, 0));
    files.read_text("/a").await.expect("read");
    assert_eq!(fetched(&counting), (3, 0), "it did not have to go for the third");
}

#[tokio::test]
async fn the_least_recently_read_file_is_evicted_first() {
    let (files, _, counting) = cached(Cache::new(2000));
    for name in ["/a", "/b", "/c"] {
        files.write_text(name, &"x".repeat(700)).await.expect("written");
    }
    for name in ["/a", "/b", "/a", "/c", "/a"] {
        files.read_text(name).await.expect("read");
    }
    assert_eq!(fetched(&counting), (3, 0));
    files.read_text("/b").await.expect("read");
    assert_eq!(fetched(&counting), (4, 0));
}

#[tokio::test]
async fn files_over_the_limit_are_not_cached() {
    let (files, _, counting) = cached(Cache::new(1 << 20).max_file_size(10));
    files.write_text("/small", &"x".repeat(10)).await.expect("written");
    files.write_text("/large", &"x".repeat(11)).await.expect("written");
    for _ in 0..2 {
        files.read_text("/small").await.expect("read");
        files.read_text("/large").await.expect("read");
    }
    assert_eq!(fetched(&counting), (1, 2));

    let (files, _, counting) = cached(Cache::new(0));
    files.write_text("/a", "x").await.expect("written");
    files.read_text("/a").await.expect("read");
    files.read_text("/a").await.expect("read");
    assert_eq!(fetched(&counting), (2, 0));
}

#[tokio::test]
async fn a_failed_download_falls_back_to_the_read_of_the_backend() {
    let store = MemoryBackend::new();
    store.create_text("/a", "text").await.expect("written");
    let broken = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Stat).only(Operation::Download);
    let files = Cache::new(1 << 20).layer(broken.layer(Arc::new(store)));
    assert_eq!(files.read_text("/a").await.expect("read"), "text");
}
