//! Schedules of injected faults.

use std::sync::Arc;

use vfs_core::{BackendExt, ErrorKind, GrepEvent, Layer, OpContext, Operation};
use vfs_layers::FaultInjection;
use vfs_memory::MemoryBackend;

use super::support::{memory, search};

async fn failed_reads(fault: FaultInjection, calls: usize) -> Vec<usize> {
    let files = fault.layer(memory().await);
    let mut failed = Vec::new();
    for call in 1..=calls {
        if let Err(error) = files.read_text("/a").await {
            assert_eq!((error.kind(), error.path()), (ErrorKind::Unavailable, Some("/a")));
            failed.push(call);
        }
    }
    failed
}

#[tokio::test]
async fn the_schedule_says_which_calls_fail() {
    let fault = || FaultInjection::new(ErrorKind::Unavailable);
    assert_eq!(failed_reads(fault(), 3).await, [1, 2, 3]);
    assert_eq!(failed_reads(fault().next(2), 5).await, [1, 2]);
    assert_eq!(failed_reads(fault().every(3), 7).await, [3, 6]);
    assert_eq!(failed_reads(fault().every(0), 5).await, [0; 0]);
    assert_eq!(failed_reads(fault().randomly(1.0, 1), 2).await, [1, 2]);
    assert_eq!(failed_reads(fault().randomly(0.0, 1), 9).await, [0; 0]);
    let some = failed_reads(fault().randomly(0.5, 7), 100).await;
    assert!((20..80).contains(&some.len()), "{some:?}");
    assert_eq!(failed_reads(fault().randomly(0.5, 7), 100).await, some);
}

#[tokio::test]
async fn operations_that_are_not_named_do_not_fail_and_do_not_count() {
    let files = FaultInjection::new(ErrorKind::Busy).only(Operation::Write).next(1).layer(memory().await);
    assert!(files.read_text("/a").await.is_ok());
    assert_eq!(files.write_text("/b", "x").await.expect_err("named").kind(), ErrorKind::Busy);
    assert!(files.write_text("/b", "x").await.is_ok());
}

#[tokio::test]
async fn two_backends_under_one_value_fail_independently() {
    let fault = FaultInjection::new(ErrorKind::Busy).next(1);
    for files in [fault.layer(memory().await), fault.layer(memory().await)] {
        assert!(files.read_text("/a").await.is_err());
        assert!(files.read_text("/a").await.is_ok());
    }
}

#[tokio::test]
async fn a_fault_before_the_operation_prevents_it_and_one_after_it_does_not() {
    let fault = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Write);
    for (fault, written) in [(fault.clone(), false), (fault.after(), true)] {
        let inner = memory().await;
        fault.layer(Arc::<MemoryBackend>::clone(&inner)).write_text("/b", "x").await.expect_err("fails");
        assert_eq!(inner.exists("/b").await.expect("known"), written);
    }
}

#[tokio::test]
async fn a_stream_fails_at_its_beginning_or_instead_of_its_last_item() {
    let fault = FaultInjection::new(ErrorKind::Unavailable).only(Operation::GrepStream);
    let begin = search(&*fault.layer(memory().await), &OpContext::new()).await;
    assert_eq!(begin.len(), 1);
    assert_eq!(begin[0].as_ref().expect_err("fails").kind(), ErrorKind::Unavailable);

    let events = search(&*fault.after().layer(memory().await), &OpContext::new()).await;
    let (last, before) = events.split_last().expect("there are items");
    assert_eq!(last.as_ref().expect_err("fails").kind(), ErrorKind::Unavailable);
    assert_eq!(before.len(), 3);
    assert!(before.iter().all(|event| matches!(event, Ok(GrepEvent::Match(_)))), "{before:?}");
}
