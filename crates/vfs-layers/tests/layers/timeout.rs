//! Timeouts of operations and streams.

use std::sync::Arc;

use futures::StreamExt;
use tokio::time::Instant;
use vfs_core::operation::Intercepted;
use vfs_core::{
    Backend, BackendExt, ErrorKind, GrepRequest, Layer, OpContext, OpenWriterRequest, Operation, WriteMode,
};
use vfs_layers::{Delay, FaultInjection, Timeout};

use super::support::{memory, minutes, read, search, within, write};
use super::unresponsive::Unresponsive;

async fn stuck() -> Arc<dyn Backend> {
    Arc::new(Intercepted::new(memory().await, Arc::new(Unresponsive)))
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_observes_its_context_ends_at_the_deadline() {
    let files = Timeout::new(minutes(50)).layer(Delay::new(minutes(1000)).layer(memory().await));
    let begun = Instant::now();
    let error = read(&*files, &OpContext::new(), "/a").await.expect_err("late");
    assert_eq!((error.kind(), error.path(), begun.elapsed()), (ErrorKind::Timeout, Some("/a"), minutes(50)));
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_backend_is_dropped_after_the_grace_period() {
    let files = Timeout::new(minutes(50)).layer(stuck().await);
    let begun = Instant::now();
    let error = write(&*files, "/b", "x", WriteMode::CreateNew).await.expect_err("late");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Timeout, Some("/b")));
    assert_eq!(begun.elapsed(), minutes(50) + Timeout::GRACE);
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_both_deadlines_counts() {
    let files = Timeout::new(minutes(500)).layer(stuck().await);
    let begun = Instant::now();
    read(&*files, &within(minutes(20)), "/a").await.expect_err("late");
    assert_eq!(begun.elapsed(), minutes(20) + Timeout::GRACE);
    let begun = Instant::now();
    read(&*files, &within(minutes(900)), "/a").await.expect_err("late");
    assert_eq!(begun.elapsed(), minutes(500) + Timeout::GRACE);
}

#[tokio::test(start_paused = true)]
async fn an_operation_can_have_its_own_timeout() {
    let slow = Delay::new(minutes(100)).layer(memory().await);
    let files = Timeout::new(minutes(50)).for_operation(Operation::Stat, minutes(150)).layer(slow);
    assert!(files.stat_path("/a").await.is_ok());
    assert!(files.read_text("/a").await.is_err());
    let files = Timeout::new(minutes(500)).for_operation(Operation::Grep, minutes(50)).layer(stuck().await);
    let begun = Instant::now();
    search(&*files, &OpContext::new()).await;
    assert_eq!(begun.elapsed(), minutes(50) + Timeout::GRACE, "it holds for the stream");
    let endless = Timeout::new(tokio::time::Duration::MAX).layer(memory().await);
    assert!(endless.read_text("/a").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_limit_for_opening_a_writer_does_not_hold_for_its_chunks_and_commit() {
    // Durations in real time: the context of a writer is checked by the clock of the system.
    let timeout = Timeout::new(std::time::Duration::ZERO).for_operation(Operation::CommitWriter, minutes(50));
    let files = timeout.layer(memory().await);
    let request = OpenWriterRequest::new(vfs_core::VfsPath::parse("/new").expect("a path"));
    let mut writer = files.open_writer(&OpContext::new(), request).await.expect("opening it does not wait");
    writer.write("x".into()).await.expect("the chunk is written");
    writer.commit().await.expect("the commit has its own limit");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_at_its_deadline_with_what_came_before() {
    let files = Timeout::new(minutes(50)).layer(stuck().await);
    let begun = Instant::now();
    let events = search(&*files, &OpContext::new()).await;
    assert_eq!(begun.elapsed(), minutes(50) + Timeout::GRACE);
    let (last, before) = events.split_last().expect("there are items");
    assert_eq!((before.len(), before.iter().all(Result::is_ok)), (3, true), "{before:?}");
    let error = last.as_ref().expect_err("late");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Timeout, Some("/")));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_of_a_ready_stream_is_late_too() {
    let files = Timeout::new(minutes(50)).layer(stuck().await);
    let mut events = files.grep_stream(OpContext::new(), GrepRequest::literal("one"));
    assert!(events.next().await.expect("an item").is_ok());
    tokio::time::sleep(minutes(500)).await;
    assert_eq!(events.next().await.expect("an item").expect_err("late").kind(), ErrorKind::Timeout);
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_after_its_last_item_even_if_polled_late() {
    let broken = FaultInjection::new(ErrorKind::Unavailable).layer(memory().await);
    let mut events = Timeout::new(minutes(50)).layer(broken).grep_stream(OpContext::new(), GrepRequest::literal("one"));
    let error = events.next().await.expect("an item").expect_err("no search begins");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    tokio::time::sleep(minutes(500)).await;
    assert!(events.next().await.is_none());
}
