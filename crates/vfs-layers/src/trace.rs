//! Interceptor that records tracing spans and metrics.

use std::ops::Deref;
use std::sync::Arc;
use std::task::{Poll, ready};

use futures::StreamExt as _;
use futures::stream;
use tokio::time::Instant;
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span, info_span};
use vfs_core::operation::{Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, Interceptor, Layer, OpContext, Operation, Result};

use crate::outcome::Outcome;
use crate::trace_metrics::TraceMetrics;

/// Records a `tracing` span and metrics of every operation.
///
/// # Behaviour
///
/// * The span is named `vfs`, has the level `INFO`, and has the fields `operation`, `path`, `to` (the second path of
///   a rename or copy), `actor`, `session` and `backend`, as far as they exist. Its parent is the span of the context
///   or, if that has none, the current one.
/// * At its end it gets `outcome`, which is `ok`, the code of the error, or `dropped` if the caller dropped the
///   operation before its end; and `duration_us`, in microseconds.
/// * The operation runs in the span, and finds it in its context. The span of a stream lasts from its first poll to
///   its last item or its drop.
/// * Neither contents nor patterns nor commands are recorded.
/// * [`metrics`](Self::metrics) belong to the value: all backends that it and its clones are put around share them.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, Layer, Operation};
/// use vfs_layers::Trace;
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let trace = Trace::new();
/// let files = trace.layer(Arc::new(MemoryBackend::new()));
/// files.create_text("/a", "text").await?;
/// assert_eq!(trace.metrics().of(Operation::Write).calls, 1);
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Trace {
    metrics: Arc<TraceMetrics>,
}

impl Trace {
    /// Returns an interceptor whose metrics start at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the metrics, which later operations continue to update.
    pub fn metrics(&self) -> Arc<TraceMetrics> {
        Arc::clone(&self.metrics)
    }
}

impl Layer for Trace {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Intercepted::new(inner, Arc::new(self.clone())))
    }
}

impl Interceptor for Trace {
    fn name(&self) -> &'static str {
        "trace"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let span = span(inner, cx, request.as_request_ref());
        let mut running = OperationSpan::new(Q::OPERATION, &span, &*self.metrics);
        let result = if span.is_disabled() {
            request.send(inner, cx).await
        } else {
            let cx = cx.clone().with_span(span.clone());
            Box::pin(request.send(inner, &cx).instrument(span)).await
        };
        running.outcome = Outcome::of(&result);
        result
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let span = span(&**call.inner(), &cx, call.request().as_request_ref());
        let running = OperationSpan::new(Q::OPERATION, &span, self.metrics());
        let cx = if span.is_disabled() { cx } else { cx.with_span(span.clone()) };
        running.observe::<Q>(span.in_scope(|| call.start(cx)))
    }
}

fn span(inner: &dyn Backend, cx: &OpContext, request: RequestRef<'_>) -> Span {
    let operation = request.operation().code();
    let span = if cx.span().is_none() {
        info_span!("vfs", operation, path = Empty, to = Empty, actor = cx.actor(), session = cx.session(),
            backend = %inner, outcome = Empty, duration_us = Empty)
    } else {
        info_span!(parent: cx.span(), "vfs", operation, path = Empty, to = Empty, actor = cx.actor(),
            session = cx.session(), backend = %inner, outcome = Empty, duration_us = Empty)
    };
    if !span.is_disabled() {
        for (field, path) in ["path", "to"].into_iter().zip(request.paths()) {
            span.record(field, display(path));
        }
    }
    span
}

/// The span of a running operation. Dropping it records the end of the operation.
struct OperationSpan<M: Deref<Target = TraceMetrics>> {
    operation: Operation,
    span: Span,
    metrics: M,
    started_at: Instant,
    outcome: Outcome,
}

impl<M: Deref<Target = TraceMetrics>> OperationSpan<M> {
    fn new(operation: Operation, span: &Span, metrics: M) -> Self {
        Self { operation, span: span.clone(), metrics, started_at: Instant::now(), outcome: Outcome::Dropped }
    }
}

impl<M: Deref<Target = TraceMetrics>> Drop for OperationSpan<M> {
    fn drop(&mut self) {
        let elapsed = self.started_at.elapsed();
        self.metrics.add(self.operation, self.outcome, elapsed);
        if self.span.is_disabled() {
            return;
        }
        self.span.record("outcome", self.outcome.code());
        self.span.record("duration_us", u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX));
    }
}

impl OperationSpan<Arc<TraceMetrics>> {
    /// Returns `items`, and records how they end.
    fn observe<Q: StreamRequest>(self, mut items: ResultStream<Q::Output>) -> ResultStream<Q::Output> {
        let mut running = Some(self);
        stream::poll_fn(move |task| {
            let _entered = running.as_ref().map(|running| running.span.clone().entered());
            let item = ready!(items.poll_next_unpin(task));
            match (&item, &mut running) {
                (Some(item), Some(running)) => {
                    if let Some(outcome) = Outcome::of_last_item::<Q>(item) {
                        running.outcome = outcome;
                    }
                }
                (None, Some(ended)) => {
                    if ended.outcome == Outcome::Dropped {
                        ended.outcome = Outcome::Ok;
                    }
                    running = None;
                }
                (_, None) => {}
            }
            Poll::Ready(item)
        })
        .fuse()
        .boxed()
    }
}
