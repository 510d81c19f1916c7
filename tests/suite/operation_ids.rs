//! Operation ids of callers, beside what layers and mounts write on their own behalf.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vfs_composite::CompositeBackend;
use vfs_core::operation::{Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, Error, ErrorKind, Interceptor, OpContext, OperationId, RenameRequest, Result, WriteMode,
    WriteRequest,
};
use vfs_store::{MemoryStore, StoreBackend};
use vfs_versions::OverlayBackend;

use super::links::path;

/// A backend whose first deletion fails.
#[derive(Debug, Default)]
struct FirstDeletionFails {
    has_failed: AtomicBool,
}

impl Interceptor for FirstDeletionFails {
    fn name(&self) -> &'static str {
        "first_deletion_fails"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if matches!(request.as_request_ref(), RequestRef::Delete(_)) && !self.has_failed.swap(true, Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::PermissionDenied, "it fails on purpose"));
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

fn store() -> Arc<dyn Backend> {
    Arc::new(StoreBackend::new(MemoryStore::new()))
}

fn with_id(id: &str) -> OpContext {
    OpContext::new().with_operation_id(OperationId::parse(id).expect("a valid id"))
}

#[tokio::test]
async fn a_rename_across_mounts_that_was_rolled_back_is_made_when_it_is_repeated_with_its_id() -> Result<()> {
    let source: Arc<dyn Backend> = Arc::new(Intercepted::new(store(), Arc::new(FirstDeletionFails::default())));
    let files = CompositeBackend::new(source).with_mount("/m", store())?;
    files.create_text("/a", "text").await?;
    let cx = with_id("run-1/step-1");
    let rename = || files.rename(&cx, RenameRequest::new(path("/a"), path("/m/a")));
    assert_eq!(rename().await.map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied));
    assert_eq!(files.read_text("/a").await?, "text");
    assert!(files.read_text("/m/a").await.is_err_and(|error| error.kind() == ErrorKind::NotFound));
    rename().await?;
    assert_eq!(files.read_text("/m/a").await?, "text");
    assert!(files.read_text("/a").await.is_err_and(|error| error.kind() == ErrorKind::NotFound));
    Ok(())
}

#[tokio::test]
async fn an_overlay_records_every_mutation_of_callers_that_use_one_id() -> Result<()> {
    let (base, records, cx) = (store(), store(), with_id("run-1"));
    base.create_text("/a", "old").await?;
    let overlay = OverlayBackend::open(Arc::clone(&base), Arc::clone(&records), path("/overlay")).await?;
    for (name, content) in [("/a", "first"), ("/b", "first"), ("/a", "second"), ("/b", "first")] {
        overlay.write(&cx, WriteRequest::new(path(name), content).mode(WriteMode::Overwrite)).await?;
    }
    drop(overlay);
    let overlay = OverlayBackend::open(Arc::clone(&base), records, path("/overlay")).await?;
    assert_eq!((overlay.read_text("/a").await?, overlay.read_text("/b").await?), ("second".into(), "first".into()));
    overlay.commit(&cx).await?;
    assert_eq!((base.read_text("/a").await?, base.read_text("/b").await?), ("second".into(), "first".into()));
    Ok(())
}
