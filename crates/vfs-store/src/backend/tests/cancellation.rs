//! Cancelled and late calls, which stop waiting for the store.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::poll_immediate;
use vfs_core::watch::WatchRequest;
use vfs_core::{
    Backend, BackendExt, DeleteRequest, EditRequest, Error, ErrorKind, FileUploadRequest, GlobRequest, GrepRequest,
    LsRequest, OpContext, ReadRequest, RenameRequest, StatRequest, Watch, WriteRequest,
};

use super::{cx, path, probed};
use crate::backend::coordination::shutdown_aware_runtime::ShutdownAwareRuntime;
use crate::{MemoryStore, StoreBackend};

/// Runs each operation and returns its error.
async fn errors(files: &impl Backend, cx: &OpContext) -> Vec<(&'static str, Option<Error>)> {
    let f = || path("/d/f");
    let upload = async { files.upload_files(cx, vec![FileUploadRequest::new(path("/u"), "x")]).await.remove(0).cause };
    let download = async { files.download_files(cx, vec![f()]).await.remove(0).cause };
    let stream =
        async { files.grep_stream(cx.clone(), GrepRequest::literal("text")).next().await.and_then(Result::err) };
    vec![
        ("stat", files.stat(cx, StatRequest::new(f())).await.err()),
        ("ls", files.ls(cx, LsRequest::new(path("/d"))).await.err()),
        ("ls -r", files.ls(cx, LsRequest::new(path("/")).recursive()).await.err()),
        ("read", files.read(cx, ReadRequest::new(f())).await.err()),
        ("write", files.write(cx, WriteRequest::new(path("/w"), "x")).await.err()),
        ("edit", files.edit(cx, EditRequest::new(f(), "text", "x")).await.err()),
        ("delete", files.delete(cx, DeleteRequest::new(f())).await.err()),
        ("rename", files.rename(cx, RenameRequest::new(f(), path("/r"))).await.err()),
        ("glob", files.glob(cx, GlobRequest::new("d/*")).await.err()),
        ("grep", files.grep(cx, GrepRequest::literal("text")).await.err()),
        ("grep_stream", stream.await),
        ("upload", upload.await),
        ("download", download.await),
    ]
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_the_wait_for_a_store_that_does_not_answer() {
    for store in [MemoryStore::new(), MemoryStore::single_valued()] {
        let (files, probe) = probed(store);
        files.create_text("/d/f", "text\n").await.expect("it is new");
        probe.close();
        for (operation, error) in errors(&files, &cx().with_timeout(Duration::from_secs(3))).await {
            let error = error.unwrap_or_else(|| panic!("{operation} succeeded"));
            assert_eq!(error.kind(), ErrorKind::Timeout, "{operation}");
            assert!(error.path().is_some(), "{operation}");
        }
        probe.open();
        assert_eq!(files.read_text("/d/f").await.expect("it is as it was"), "text\n");
        assert_eq!(files.list_dir("/").await.expect("a listing").len(), 1, "nothing was made");
    }
}

#[tokio::test]
async fn cancellation_ends_the_wait() {
    let (files, probe) = probed(MemoryStore::new());
    files.create_text("/d/f", "text\n").await.expect("it is new");
    probe.close();
    let cx = cx();
    let mut calls = Box::pin(errors(&files, &cx));
    assert!(poll_immediate(&mut calls).await.is_none(), "the store does not answer");
    cx.cancel_token().cancel();
    for (operation, error) in calls.await {
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Cancelled), "{operation}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_is_dropped_frees_its_workers() {
    let pool = vfs_search::Pool::new(2);
    let probe = std::sync::Arc::new(super::Probe::new(MemoryStore::single_valued()));
    let config = crate::StoreConfig::new().search_pool(pool.clone());
    let files = StoreBackend::with_config(std::sync::Arc::clone(&probe), config);
    files.create_text("/d/f", "text\n").await.expect("it is new");
    let (send, receive) = tokio::sync::mpsc::unbounded_channel();
    let gate = std::sync::Arc::downgrade(&probe);
    probe.before(move |name, _| {
        if name == "get"
            && let Some(probe) = gate.upgrade()
        {
            probe.close();
            // The receiver no longer exists after the test.
            let _ = send.send(());
        }
    });
    let mut receive = receive;
    let cx = cx();
    let mut search = Box::pin(files.grep(&cx, GrepRequest::literal("text")));
    tokio::select! {
        found = &mut search => panic!("the file cannot be read: {found:?}"),
        signal = receive.recv() => assert!(signal.is_some()),
    }
    drop(search);
    while pool.stats().busy > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_feed_ends_with_its_context() {
    let files = StoreBackend::new(MemoryStore::new());
    let late = OpContext::new().with_timeout(Duration::from_secs(3));
    let events: Vec<_> = files.watch(late, WatchRequest::default()).collect().await;
    assert_eq!(
        events.into_iter().map(|event| event.map_err(|error| error.kind()).err()).collect::<Vec<_>>(),
        [Some(ErrorKind::Timeout)]
    );
}

/// A thread that waits with a timer of the runtime is woken when the runtime ends.
#[test]
fn a_search_ends_with_the_runtime_in_which_it_started() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let runtime = tokio.block_on(async { ShutdownAwareRuntime::current() }).expect("there is one");
    let (sender, waits) = std::sync::mpsc::channel();
    let search = std::thread::spawn(move || {
        runtime.wait(async {
            let mut late = pin!(tokio::time::sleep(Duration::from_secs(3600)));
            poll_fn(|context| {
                let ended = late.as_mut().poll(context);
                // The receiver no longer exists after the first poll.
                let _ = sender.send(());
                ended
            })
            .await;
            Ok(())
        })
    });
    waits.recv().expect("it waits");
    tokio.shutdown_background();
    let found = search.join().expect("no panic");
    assert_eq!(found.expect_err("the runtime has ended").kind(), ErrorKind::Cancelled);
}
