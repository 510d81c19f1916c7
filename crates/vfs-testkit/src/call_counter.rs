//! Interceptor that counts calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vfs_core::operation::{ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, Interceptor, OpContext, Operation, Result};

/// Counts the calls of each operation; each file of an upload or download is one.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::operation::Intercepted;
/// use vfs_core::{Backend, BackendExt, Operation};
/// use vfs_testkit::CallCounter;
///
/// async fn two_reads(backend: Arc<dyn Backend>) -> vfs_core::Result<()> {
///     let counting = Arc::new(CallCounter::default());
///     let counted = Intercepted::new(backend, Arc::clone(&counting));
///     counted.read_text("/a").await?;
///     counted.read_text("/b").await?;
///     assert_eq!(counting.calls(Operation::Read), 2);
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct CallCounter {
    calls: Vec<AtomicU64>,
}

impl Default for CallCounter {
    fn default() -> Self {
        Self { calls: Operation::ALL.iter().map(|_| AtomicU64::new(0)).collect() }
    }
}

impl CallCounter {
    /// Returns the number of calls of `operation`.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.calls[operation as usize].load(Ordering::Relaxed)
    }

    /// Returns the number of all calls.
    pub fn total(&self) -> u64 {
        self.calls.iter().map(|calls| calls.load(Ordering::Relaxed)).sum()
    }
}

impl Interceptor for CallCounter {
    fn name(&self) -> &'static str {
        "counting"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        self.calls[Q::OPERATION as usize].fetch_add(1, Ordering::Relaxed);
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        self.calls[Q::OPERATION as usize].fetch_add(1, Ordering::Relaxed);
        call.start(cx)
    }
}
