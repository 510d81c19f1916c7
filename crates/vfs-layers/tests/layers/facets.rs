//! Commands and watches through the layers.

use std::sync::Arc;

use futures::StreamExt;
use futures::future::poll_immediate;
use tokio::time::sleep;
use vfs_core::watch::{WatchEvent, WatchRequest};
use vfs_core::{
    Backend, BackendExt, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, Layer, OpContext, Operation, Result,
};
use vfs_layers::{
    Audit, Cache, ConcurrencyLimit, FaultInjection, MemorySink, Outcome, Quota, QuotaLimits, ReadOnly, Retry, Timeout,
    Trace,
};
use vfs_testkit::WithFakeFacets;

use super::support::{memory, minutes, path};

async fn shelled() -> Arc<dyn Backend> {
    Arc::new(WithFakeFacets::new(memory().await))
}

async fn execute(files: &dyn Backend, command: &str) -> Result<ExecuteResponse> {
    files.as_shell().expect("a shell").execute(&OpContext::new(), ExecuteRequest::new(command)).await
}

async fn execute_stream(files: &dyn Backend, command: &str) -> Vec<Result<ExecuteEvent>> {
    let shell = files.as_streaming_shell().expect("a shell");
    shell.execute_stream(OpContext::new(), ExecuteRequest::new(command)).collect().await
}

fn watch(files: &dyn Backend) -> futures::stream::BoxStream<'static, Result<WatchEvent>> {
    files.as_watch().expect("a watch").watch(OpContext::new(), WatchRequest::new(path("/")))
}

#[tokio::test]
async fn commands_are_refused_where_files_are_read_only() {
    let files = ReadOnly.layer(shelled().await);
    assert_eq!(execute(&*files, "x").await.expect_err("refused").kind(), ErrorKind::PermissionDenied);
    let events = execute_stream(&*files, "x").await;
    assert_eq!(events[0].as_ref().expect_err("refused").kind(), ErrorKind::PermissionDenied);
    assert!(!files.exists("/command").await.expect("known"));
}

#[tokio::test]
async fn a_command_is_recorded_with_its_text() {
    let sink = MemorySink::new();
    let audit = Audit::new(sink.clone());
    let files = audit.layer(shelled().await);
    execute(&*files, "make test").await.expect("run");
    assert_eq!(execute_stream(&*files, "make more").await.len(), 2);
    let shell = files.as_streaming_shell().expect("a shell");
    let mut dropped = shell.execute_stream(OpContext::new(), ExecuteRequest::new("make less"));
    dropped.next().await.expect("an item").expect("output");
    drop(dropped);
    let mut watched = watch(&*files);
    watched.next().await.expect("an item").expect("an event");
    drop(watched);
    audit.flush().await.expect("all records are stored");
    let records = sink.records();
    let seen: Vec<_> = records.iter().map(|record| (record.detail.as_deref(), record.outcome)).collect();
    let expected = [
        (Some("make test"), Outcome::Ok),
        (Some("make more"), Outcome::Ok),
        (Some("make less"), Outcome::Dropped),
        (None, Outcome::Dropped),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn files_that_a_command_wrote_are_counted_before_the_next_change() {
    let (files, meter) = Quota::new(QuotaLimits::new().max_bytes(30)).metered(shelled().await);
    files.write_text("/b", "12345678").await.expect("room");
    execute(&*files, "12345").await.expect("run");
    assert_eq!(meter.usage(&OpContext::new()).await.expect("known").bytes, 25);
    execute_stream(&*files, "1234567890").await;
    let error = files.write_text("/c", "1").await.expect_err("it is full");
    assert!(error.message().contains("30 are in use"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_needs_no_permit_and_has_no_timeout_by_default() {
    let limit = ConcurrencyLimit::new(1).queue(0).layer(shelled().await);
    let mut watched = watch(&*limit);
    watched.next().await.expect("an item").expect("an event");
    assert!(limit.read_text("/a").await.is_ok());

    let timeout = Timeout::new(minutes(10));
    let mut endless = watch(&*timeout.layer(shelled().await));
    endless.next().await.expect("an item").expect("an event");
    sleep(minutes(5000)).await;
    assert!(poll_immediate(endless.next()).await.is_none(), "it goes on");

    let bounded = watch(&*timeout.for_operation(Operation::Watch, minutes(50)).layer(shelled().await));
    let events: Vec<_> = bounded.collect().await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[1].as_ref().expect_err("late").kind(), ErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_command_is_retried_only_if_it_has_not_begun() {
    for (kind, runs) in [(ErrorKind::Busy, true), (ErrorKind::Unavailable, false)] {
        let files =
            Retry::new().layer(FaultInjection::new(kind).only(Operation::Execute).next(1).layer(shelled().await));
        assert_eq!(execute(&*files, "x").await.is_ok(), runs);
        let fault = FaultInjection::new(kind).only(Operation::ExecuteStream).next(1);
        let files = Retry::new().layer(fault.layer(shelled().await));
        assert_eq!(execute_stream(&*files, "x").await.len(), if runs { 2 } else { 1 });
    }
}

#[tokio::test]
async fn a_streamed_command_holds_its_permit_and_is_traced_to_its_end() {
    let trace = Trace::new();
    let files = trace.layer(ConcurrencyLimit::new(1).queue(0).layer(Cache::new(1000).layer(shelled().await)));
    let shell = files.as_streaming_shell().expect("a shell");
    let mut events = shell.execute_stream(OpContext::new(), ExecuteRequest::new("x"));
    events.next().await.expect("an item").expect("output");
    assert_eq!(files.read_text("/a").await.expect_err("the limit is reached").kind(), ErrorKind::Busy);
    assert!(matches!(events.next().await, Some(Ok(ExecuteEvent::Exit(_)))));
    drop(events);
    assert!(files.read_text("/a").await.is_ok());
    let metrics = trace.metrics().of(Operation::ExecuteStream);
    assert_eq!((metrics.calls, metrics.dropped), (1, 0), "it had come to its end");
}
