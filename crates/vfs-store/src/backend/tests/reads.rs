//! Reads of large files in blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use vfs_core::{Backend, ErrorKind, FileUploadRequest, ReadRequest, Version, window};

use super::{Probe, cx, path, probed};
use crate::{Key, MemoryStore, Namespace, NewValue, Precondition, Store as _, StoreBackend};

/// Lines of different lengths, a little over 9 MiB.
fn log() -> Bytes {
    (0..200_000).map(|n| format!("{n} {}\n", "x".repeat(n % 83))).collect::<String>().into()
}

fn requests() -> Vec<ReadRequest> {
    let read = || ReadRequest::new(path("/log"));
    vec![
        read().lines(0, 10),
        read().lines(99_000, 10),
        read().lines(199_990, 100),
        read().lines(300_000, 1),
        read().max_bytes(1000),
        read(),
        read().bytes(5_000_000, Some(5_000_100)),
        read().bytes(9_000_000, None),
        read().bytes(u64::MAX, None),
        read().bytes(20_000_000, Some(20_000_001)),
        read().bytes(7, Some(3)),
        read().bytes(8_000_000, Some(8_000_000)),
        read().bytes(3, Some(9_000_000)).max_bytes(100),
        read().bytes(1, Some(4)).lines(1, 1),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_of_large_files_are_equal_to_windows_of_bytes_in_memory() {
    let (files, probe) = probed(MemoryStore::new());
    let (text, binary) = (log(), Bytes::from([0xe9_u8, 0, 1, 2].repeat(2 << 20)));
    for content in [text, binary] {
        let version = files
            .upload_files(&cx(), vec![FileUploadRequest::new(path("/log"), content.clone())])
            .await
            .remove(0)
            .version;
        for request in requests() {
            let expected = window::read_bytes(&content, &request, version.clone().expect("it was written"));
            let found = files.read(&cx(), request.clone()).await;
            assert_eq!(found, expected, "{request:?}");
        }
        probe.take_all();
        let request = ReadRequest::new(path("/log")).bytes(5_000_000, Some(5_000_100));
        let expected_gets = if content[0] == 0xe9 { 2 } else { 1 };
        files.read(&cx(), request).await.expect("it is there");
        assert_eq!(probe.take("get"), expected_gets, "the range, and the start of a binary file");
        assert_eq!(files.download_files(&cx(), vec![path("/log")]).await.remove(0).content, Some(content));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changes_meanwhile_is_read_at_one_version() {
    for changes in [1, 2, usize::MAX] {
        let store = MemoryStore::new();
        let probe = Arc::new(Probe::new(store.clone()));
        let files = StoreBackend::new(Arc::clone(&probe));
        let key = Key::new(Namespace::default(), path("/log"));
        let content = |n: usize| Bytes::from(format!("{n:07}\n").repeat(1 << 20));
        let put = move |store: &MemoryStore, n: usize| {
            let value = NewValue::new(content(n), chrono::Utc::now());
            let _replaced =
                futures::executor::block_on(store.put(&key, value, &Precondition::Any)).expect("memory is there");
        };
        put(&store, 0);
        let made = AtomicUsize::new(0);
        probe.before(move |name, count| {
            if name == "get" && count % 2 == 0 && made.load(Ordering::SeqCst) < changes {
                put(&store, made.fetch_add(1, Ordering::SeqCst) + 1);
            }
        });
        let answer = files.read(&cx(), ReadRequest::new(path("/log"))).await;
        if changes == usize::MAX {
            assert_eq!(answer.expect_err("it never stays").kind(), ErrorKind::Busy);
            continue;
        }
        let read = answer.expect("it is the same for long enough");
        let vfs_core::Content::Text(text) = read.content else { panic!("it is text") };
        assert_eq!(text, format!("{changes:07}\n").repeat(1 << 20));
        assert_eq!(read.version, Version::new(crate::store::version_of(text.as_bytes()).as_str()));
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn large_reads_leave_threads_to_a_store_that_needs_them() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let done = runtime.block_on(async {
        let store = crate::SqliteStore::open(crate::SqliteConfig::in_memory()).await.expect("it opens");
        let files = StoreBackend::new(store);
        let uploaded = files.upload_files(&cx(), vec![FileUploadRequest::new(path("/log"), log())]).await;
        assert_eq!(uploaded[0].cause, None);
        let reads = (0..100_u64).map(|n| {
            let files = files.clone();
            let request = ReadRequest::new(path("/log")).lines(190_000 + n, 10);
            tokio::spawn(async move { files.read(&cx(), request).await.map(|read| read.start_line) })
        });
        // If threads and reads wait for each other, this never completes; the timeout only ends the test.
        let reads = futures::future::join_all(reads);
        tokio::time::timeout(std::time::Duration::from_secs(120), reads).await
    });
    runtime.shutdown_background();
    for (n, read) in (0_u64..).zip(done.expect("every read ends")) {
        assert_eq!(read.expect("no panic").expect("it is there"), 190_001 + n);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_dropped_sends_no_more_requests() {
    let (files, probe) = probed(MemoryStore::new());
    files
        .upload_files(&cx(), vec![FileUploadRequest::new(path("/log"), Bytes::from(vec![b'x'; 64 << 20]))])
        .await
        .remove(0);
    probe.take_all();
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
    let gate = Arc::downgrade(&probe);
    probe.before(move |name, count| {
        if name == "get" && count == 2 {
            if let Some(probe) = gate.upgrade() {
                probe.close();
            }
            // The receiver no longer exists after the test.
            let _ = send.send(());
        }
    });
    let cx = cx();
    let mut read = Box::pin(files.read(&cx, ReadRequest::new(path("/log")).lines(10, 10)));
    tokio::select! {
        read = &mut read => panic!("the second block cannot be read: {read:?}"),
        signal = receive.recv() => assert!(signal.is_some()),
    }
    drop(read);
    // The thread of the read references the backend and its store until it ends.
    let left = Arc::downgrade(&probe);
    drop((files, probe));
    while left.strong_count() > 0 {
        tokio::task::yield_now().await;
    }
}
