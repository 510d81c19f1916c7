//! Interceptor that polls backend operations inside the caller's tokio runtime.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use tokio::runtime::Handle;
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, Interceptor, OpContext, Result};

/// Wraps `backend` so that its operations run in `runtime`. The interpreter has a runtime of its own, whose threads have large
/// stacks.
pub(crate) fn bridge_runtime(runtime: Option<Handle>, backend: &Arc<dyn Backend>) -> Arc<dyn Backend> {
    match runtime {
        Some(runtime) => Arc::new(Intercepted::new(Arc::clone(backend), Arc::new(RuntimeInterceptor(runtime)))),
        None => Arc::clone(backend),
    }
}

/// Interceptor that enters the caller's runtime around each poll.
struct RuntimeInterceptor(Handle);

impl fmt::Debug for RuntimeInterceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RuntimeInterceptor")
    }
}

impl Interceptor for RuntimeInterceptor {
    fn name(&self) -> &'static str {
        "runtime_bridge"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let mut sent = pin!(request.send(inner, cx));
        poll_fn(|task| {
            let _entered = self.0.enter();
            sent.as_mut().poll(task)
        })
        .await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let entered = self.0.enter();
        let mut items = call.start(cx);
        drop(entered);
        stream::poll_fn(move |task| {
            let _entered = self.0.enter();
            items.poll_next_unpin(task)
        })
        .boxed()
    }
}
