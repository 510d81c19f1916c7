//! Concurrency limit: order of waiting, permits of streams, deadlines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use futures::future::{join_all, poll_immediate};
use tokio::time::Instant;
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, BackendExt, ErrorKind, GrepRequest, Interceptor, Layer, OpContext, Result};
use vfs_layers::{ConcurrencyLimit, Delay};

use super::support::{memory, millis, minutes, read, within};

/// Remembers how many were in it at once.
#[derive(Debug, Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Interceptor for Gauge {
    fn name(&self) -> &'static str {
        "gauge"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let answer = request.send(inner, cx).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        answer
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

async fn slow() -> Arc<dyn Backend> {
    Delay::new(millis(10)).layer(memory().await)
}

#[tokio::test(start_paused = true)]
async fn the_limit_holds_for_all_clones_and_every_operation_completes() {
    let gauge = Arc::new(Gauge::default());
    let files = ConcurrencyLimit::new(3).layer(Arc::new(Intercepted::new(slow().await, Arc::clone(&gauge))));
    let begun = Instant::now();
    let tasks = (0..30).map(|_| {
        let files = Arc::clone(&files);
        tokio::spawn(async move { files.read_text("/a").await.expect("read") })
    });
    join_all(tasks).await.into_iter().for_each(|task| drop(task.expect("no panic")));
    assert_eq!(gauge.most.load(Ordering::SeqCst), 3);
    assert_eq!(begun.elapsed(), millis(100));
}

#[tokio::test(start_paused = true)]
async fn waiting_operations_begin_in_order() {
    let files = ConcurrencyLimit::new(0).layer(slow().await);
    let order = std::sync::Mutex::new(Vec::new());
    let calls = (0..10).map(|n| {
        let (files, order) = (&files, &order);
        async move {
            files.read_text("/a").await.expect("read");
            order.lock().expect("not poisoned").push(n);
        }
    });
    join_all(calls).await;
    assert_eq!(order.into_inner().expect("not poisoned"), (0..10).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_the_deadline_and_on_cancellation_and_frees_the_queue() {
    let files = ConcurrencyLimit::new(1).queue(1).layer(Delay::new(minutes(500)).layer(memory().await));
    let first = tokio::spawn({
        let files = Arc::clone(&files);
        async move { files.read_text("/a").await }
    });
    tokio::task::yield_now().await;
    let begun = Instant::now();
    let late = read(&*files, &within(minutes(20)), "/a").await.expect_err("late");
    assert_eq!((late.kind(), late.path(), begun.elapsed()), (ErrorKind::Timeout, Some("/a"), minutes(20)));

    let cx = OpContext::new();
    let mut waiting = Box::pin(read(&*files, &cx, "/a"));
    assert!(poll_immediate(&mut waiting).await.is_none(), "the place of the one before is free again");
    let error = files.read_text("/a").await.expect_err("one waits already");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Busy, Some("/a")));
    cx.cancel_token().cancel();
    assert_eq!(waiting.await.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    assert!(first.await.expect("no panic").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stream_holds_its_permit_until_it_ends_or_is_dropped() {
    let files = ConcurrencyLimit::new(1).queue(0).layer(memory().await);
    let begin = || files.grep_stream(OpContext::new(), GrepRequest::literal("one"));
    let mut ended = begin();
    assert!(files.read_text("/a").await.is_ok(), "a stream that was not polled holds nothing");
    assert!(ended.next().await.expect("an item").is_ok());
    assert_eq!(files.read_text("/a").await.expect_err("the limit is reached").kind(), ErrorKind::Busy);
    while ended.next().await.is_some() {}
    assert!(files.read_text("/a").await.is_ok(), "it ended");

    let mut dropped = begin();
    assert!(dropped.next().await.expect("an item").is_ok());
    assert!(files.read_text("/a").await.is_err());
    drop(dropped);
    assert!(files.read_text("/a").await.is_ok(), "it was dropped");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_operation_releases_its_permit() {
    let files = ConcurrencyLimit::new(1).queue(0).layer(slow().await);
    let cx = OpContext::new();
    let mut running = Box::pin(read(&*files, &cx, "/a"));
    assert!(poll_immediate(&mut running).await.is_none());
    drop(running);
    assert!(files.read_text("/a").await.is_ok());
}
