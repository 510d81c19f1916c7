//! Retries: which operations, which errors, which delays.

use std::sync::Arc;

use tokio::time::Instant;
use vfs_core::operation::Intercepted;
use vfs_core::{
    Backend, BackendExt, EditRequest, ErrorKind, FileUploadRequest, Layer, OpContext, Operation, WriteMode,
};
use vfs_layers::{Delay, FaultInjection, Retry};
use vfs_memory::MemoryBackend;
use vfs_testkit::CallCounter;

use super::support::{memory, millis, minutes, path, read, search, within, write};

/// Returns a backend that fails at first, and the counter of its calls.
async fn failing(kind: ErrorKind, calls: u64) -> (Arc<dyn Backend>, Arc<CallCounter>) {
    let counting = Arc::new(CallCounter::default());
    let fault = FaultInjection::new(kind).next(calls).layer(memory().await);
    (Arc::new(Intercepted::new(fault, Arc::clone(&counting))), counting)
}

#[tokio::test(start_paused = true)]
async fn a_read_is_retried_until_it_succeeds_or_attempts_run_out() {
    for (faults, calls, succeeds) in [(0, 1, true), (3, 4, true), (4, 4, false)] {
        let (inner, counting) = failing(ErrorKind::Unavailable, faults).await;
        let answer = Retry::new().layer(inner).read_text("/a").await;
        assert_eq!((answer.is_ok(), counting.total()), (succeeds, calls));
    }
}

#[tokio::test(start_paused = true)]
async fn changes_with_an_unknown_outcome_are_not_retried_and_all_are_after_busy() {
    for (kind, mode, calls) in [
        (ErrorKind::Unavailable, WriteMode::Append, 1),
        (ErrorKind::Unavailable, WriteMode::CreateNew, 1),
        (ErrorKind::Timeout, WriteMode::Append, 1),
        (ErrorKind::Timeout, WriteMode::Overwrite, 2),
        (ErrorKind::Unavailable, WriteMode::Overwrite, 2),
        (ErrorKind::Busy, WriteMode::Append, 2),
        (ErrorKind::Busy, WriteMode::CreateNew, 2),
    ] {
        let (inner, counting) = failing(kind, 1).await;
        let answer = write(&*Retry::new().layer(inner), "/b", "x", mode.clone()).await;
        assert_eq!((answer.is_ok(), counting.total()), (calls == 2, calls), "{kind} {mode:?}");
    }
    let (inner, counting) = failing(ErrorKind::Unavailable, 1).await;
    let edit = EditRequest::new(path("/a"), "one", "two").replace_all();
    Retry::new().layer(inner).edit(&OpContext::new(), edit).await.expect_err("not repeated");
    assert_eq!(counting.total(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_append_whose_response_was_lost_is_applied_once() {
    let inner = memory().await;
    let lossy = FaultInjection::new(ErrorKind::Unavailable).next(1).after().layer(Arc::<MemoryBackend>::clone(&inner));
    write(&*Retry::new().layer(lossy), "/b", "x", WriteMode::Append).await.expect_err("not repeated");
    assert_eq!(inner.read_text("/b").await.expect("written"), "x");
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_retried_and_files_of_an_upload_are() {
    let (inner, counting) = failing(ErrorKind::Busy, 0).await;
    Retry::new().layer(inner).read_text("/missing").await.expect_err("missing");
    assert_eq!(counting.total(), 1);
    let (inner, counting) = failing(ErrorKind::Unavailable, 2).await;
    let files = Retry::new().layer(inner);
    let answers = files.upload_files(&OpContext::new(), vec![FileUploadRequest::new(path("/u"), "x")]).await;
    assert!(answers[0].cause.is_none(), "{answers:?}");
    assert_eq!(counting.calls(Operation::Upload), 3);
}

#[tokio::test(start_paused = true)]
async fn delays_are_random_and_their_bound_doubles_up_to_the_maximum() {
    let (mut shortest, mut longest) = (millis(10_000), millis(0));
    for _ in 0..200 {
        let (inner, _) = failing(ErrorKind::Busy, 4).await;
        let files = Retry::new().attempts(5).min_delay(millis(100)).max_delay(millis(250)).layer(inner);
        let begun = Instant::now();
        files.read_text("/a").await.expect("at last");
        longest = longest.max(begun.elapsed());
        shortest = shortest.min(begun.elapsed());
    }
    // 100 + 200 + 250 + 250, and a millisecond for each timer.
    assert!(longest <= millis(804) && longest > millis(400), "{longest:?}");
    assert!(shortest < millis(400), "{shortest:?}");
}

#[tokio::test(start_paused = true)]
async fn no_retry_sleeps_beyond_the_deadline() {
    let (inner, counting) = failing(ErrorKind::Busy, 100).await;
    let files = Retry::new().attempts(50).min_delay(minutes(40)).max_delay(minutes(40)).layer(inner);
    let begun = Instant::now();
    let error = read(&*files, &within(minutes(100)), "/a").await.expect_err("busy");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(begun.elapsed() <= minutes(100), "{:?}", begun.elapsed());
    assert!(counting.total() > 1);
}

#[tokio::test(start_paused = true)]
async fn cancellation_ends_a_delay() {
    let counting = Arc::new(CallCounter::default());
    let busy = FaultInjection::new(ErrorKind::Busy).layer(Delay::new(millis(1)).layer(memory().await));
    let inner = Arc::new(Intercepted::new(busy, Arc::clone(&counting)));
    let files = Retry::new().attempts(1_000_000).min_delay(millis(60_000)).max_delay(millis(60_000)).layer(inner);
    let cx = OpContext::new();
    let token = cx.cancel_token().clone();
    let cancel = async {
        tokio::time::sleep(millis(300_000)).await;
        token.cancel();
    };
    let begun = Instant::now();
    let (answer, ()) = futures::join!(read(&*files, &cx, "/a"), cancel);
    assert_eq!(answer.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    assert_eq!(begun.elapsed(), millis(300_000));
    assert!(counting.total() < 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_retried_at_its_beginning_only() {
    let (inner, counting) = failing(ErrorKind::Unavailable, 2).await;
    let events = search(&*Retry::new().layer(inner), &OpContext::new()).await;
    assert_eq!((events.len(), events.iter().all(Result::is_ok)), (4, true), "{events:?}");
    assert_eq!(counting.calls(Operation::GrepStream), 3);

    let counting = Arc::new(CallCounter::default());
    let lossy = FaultInjection::new(ErrorKind::Unavailable).after().layer(memory().await);
    let inner = Arc::new(Intercepted::new(lossy, Arc::clone(&counting)));
    let events = search(&*Retry::new().layer(inner), &OpContext::new()).await;
    assert!(events.last().expect("items").is_err());
    assert_eq!(counting.calls(Operation::GrepStream), 1);
}
