//! Operation ids: a mutation that is sent again, and one whose outcome is unknown.

use std::sync::Arc;

use futures::FutureExt as _;
use vfs_core::backend::OperationIdSupport;
use vfs_core::operation::Intercepted;
use vfs_core::{
    Backend, BackendExt, ErrorKind, Layer, OpContext, OperationId, Result, VfsPath, WriteMode, WriteRequest,
    WriteResult,
};
use vfs_layers::{FaultInjection, Idempotency};

use super::support::{memory, path};
use super::unresponsive::Unresponsive;

async fn append(files: &Arc<dyn Backend>, id: &str, text: &str) -> Result<WriteResult> {
    let cx = OpContext::new().with_operation_id(OperationId::parse(id).expect("a valid id"));
    files.write(&cx, WriteRequest::new(path("/b"), text.to_owned()).mode(WriteMode::Append)).await
}

#[tokio::test]
async fn a_repeated_mutation_is_made_once_and_returns_the_first_result() {
    let inner = memory().await;
    let files = Idempotency::new().layer(inner);
    assert_eq!(files.capabilities(&VfsPath::root()).operation_ids, OperationIdSupport::Process);
    let first = append(&files, "one", "x").await.expect("it is made");
    assert_eq!(append(&files, "one", "x").await.expect("it is remembered"), first);
    append(&files, "two", "x").await.expect("it is made");
    assert_eq!(files.read_text("/b").await.expect("written"), "xx");
    let error = append(&files, "one", "another").await.expect_err("another request");
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn a_mutation_with_an_unknown_outcome_is_a_conflict_when_it_is_repeated() {
    let inner = memory().await;
    let lossy = FaultInjection::new(ErrorKind::Unavailable).next(1).after().layer(inner);
    let files = Idempotency::new().layer(lossy);
    assert_eq!(append(&files, "id", "x").await.expect_err("the answer is lost").kind(), ErrorKind::Unavailable);
    let error = append(&files, "id", "x").await.expect_err("the outcome is unknown");
    assert_eq!((error.kind(), error.path().map(ToString::to_string)), (ErrorKind::Conflict, Some("/b".to_owned())));
    assert!(error.message().contains("outcome unknown"), "{error}");
    assert_eq!(files.read_text("/b").await.expect("written"), "x");
}

#[tokio::test]
async fn a_mutation_that_failed_is_made_when_it_is_repeated() {
    let inner = memory().await;
    let busy = FaultInjection::new(ErrorKind::Busy).next(1).layer(inner);
    let files = Idempotency::new().layer(busy);
    assert_eq!(append(&files, "id", "x").await.expect_err("busy").kind(), ErrorKind::Busy);
    append(&files, "id", "x").await.expect("it is made");
    assert_eq!(files.read_text("/b").await.expect("written"), "x");
}

#[tokio::test]
async fn the_outcome_of_a_dropped_call_is_unknown() {
    let inner = Arc::new(Intercepted::new(memory().await, Arc::new(Unresponsive)));
    let files = Idempotency::new().layer(inner);
    assert!(append(&files, "id", "x").now_or_never().is_none(), "the call waits");
    assert_eq!(append(&files, "id", "x").await.expect_err("the outcome is unknown").kind(), ErrorKind::Conflict);
}
