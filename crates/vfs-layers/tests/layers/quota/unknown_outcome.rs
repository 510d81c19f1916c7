//! Usage after changes with an unknown outcome.

use std::sync::Arc;

use futures::future::poll_immediate;
use tokio::sync::Semaphore;
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, CopyRequest, Error, ErrorKind, ExecuteRequest, Interceptor, OpContext, Operation, Result,
};
use vfs_layers::{Quota, QuotaLimits};
use vfs_memory::MemoryBackend;
use vfs_testkit::WithFakeFacets;

use super::{stored, tracked};
use crate::support::{memory, path};

/// Withholds the result of a listing until the semaphore has permits.
#[derive(Debug)]
struct DelayedListing(Semaphore);

impl Interceptor for DelayedListing {
    fn name(&self) -> &'static str {
        "delayed listing"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let result = request.send(inner, cx).await;
        if Q::OPERATION == Operation::Ls {
            drop(self.0.acquire().await);
        }
        result
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn a_command_that_ends_while_the_files_are_counted_has_them_counted_again() {
    let store = memory().await;
    let delayed = Arc::new(DelayedListing(Semaphore::new(0)));
    let shelled = Arc::new(WithFakeFacets::new(Arc::<MemoryBackend>::clone(&store)));
    let inner = Arc::new(Intercepted::new(shelled, Arc::clone(&delayed)));
    let (files, meter) = Quota::new(QuotaLimits::new().max_bytes(100)).metered(inner);
    let mut counting = Box::pin(tracked(&meter));
    assert!(poll_immediate(&mut counting).await.is_none(), "the listing is under way");
    let command = ExecuteRequest::new("make twelve");
    files.as_shell().expect("it has one").execute(&OpContext::new(), command).await.expect("it runs");
    delayed.0.add_permits(Semaphore::MAX_PERMITS / 2);
    counting.await;
    assert_eq!((tracked(&meter).await, stored(&*store).await), ((2, 23), (2, 23)));
}

/// Copies one of the requested files, and then fails.
#[derive(Debug)]
struct Half(ErrorKind);

impl Interceptor for Half {
    fn name(&self) -> &'static str {
        "half"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if Q::OPERATION == Operation::Copy {
            inner.copy(cx, CopyRequest::new(path("/a"), path("/d/a"))).await?;
            return Err(Error::at(self.0, &path("/d")));
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn the_files_that_a_failed_copy_left_are_counted_whatever_its_error() {
    for kind in [ErrorKind::AlreadyExists, ErrorKind::Conflict, ErrorKind::TooLarge, ErrorKind::StorageFull] {
        let store = memory().await;
        store.create_text("/s/a", "text").await.expect("written");
        let inner = Arc::new(Intercepted::new(Arc::<MemoryBackend>::clone(&store), Arc::new(Half(kind))));
        let (files, meter) = Quota::new(QuotaLimits::new().max_files(3)).metered(inner);
        let copy = CopyRequest::new(path("/s"), path("/d"));
        assert_eq!(files.copy(&OpContext::new(), copy).await.expect_err("half of it").kind(), kind);
        assert_eq!((tracked(&meter).await, stored(&*store).await), ((3, 28), (3, 28)), "{kind:?}");
        let error = files.create_text("/b", "").await.expect_err("a fourth file");
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    }
}
