//! Spans and numbers.

use std::ops::Deref;
use std::sync::Arc;
use std::task::{Poll, ready};

use futures::StreamExt as _;
use futures::stream;
use tokio::time::Instant;
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span, info_span};
use vfs_core::{
    Backend, Intercepted, Interceptor, Layer, OpContext, Operation, RequestRef, Result, ResultStream, StreamCall,
    StreamRequest, UnaryRequest,
};

use crate::metrics::Metrics;
use crate::outcome::Outcome;

/// Puts a `tracing` span around every operation, and counts.
///
/// # Behaviour
///
/// * The span is named `vfs`, of level `INFO`, and has the fields `operation`, `path`, `to` (the second path of a rename or
///   copy), `actor`, `session` and `backend`, as far as there is such a thing. Its parent is the span of the context, or,
///   where that has none, the current one.
/// * At its end it gets `outcome`, which is `ok`, the code of the error, or `dropped` where the caller dropped it before
///   its end; and `duration_us`, in microseconds.
/// * The operation runs in the span, and finds it in its context. That of a stream lasts from its first poll to its last
///   item or its drop.
/// * Neither contents nor patterns nor commands are in it.
/// * [`metrics`](Self::metrics) belong to the value: all backends that it and its clones are put around count together.
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
    metrics: Arc<Metrics>,
}

impl Trace {
    /// Traces, and counts from zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was counted, and will be.
    pub fn metrics(&self) -> Arc<Metrics> {
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
        let mut running = Running::new(Q::OPERATION, &span, &*self.metrics);
        let answer = if span.is_disabled() {
            request.send(inner, cx).await
        } else {
            let cx = cx.clone().with_span(span.clone());
            Box::pin(request.send(inner, &cx).instrument(span)).await
        };
        running.outcome = Outcome::of(&answer);
        answer
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let span = span(&**call.inner(), &cx, call.request().as_request_ref());
        let running = Running::new(Q::OPERATION, &span, self.metrics());
        let cx = if span.is_disabled() { cx } else { cx.with_span(span.clone()) };
        running.watch::<Q>(span.in_scope(|| call.start(cx)))
    }
}

fn span(inner: &dyn Backend, cx: &OpContext, action: RequestRef<'_>) -> Span {
    let operation = action.operation().code();
    let span = if cx.span().is_none() {
        info_span!("vfs", operation, path = Empty, to = Empty, actor = cx.actor(), session = cx.session(),
            backend = %inner, outcome = Empty, duration_us = Empty)
    } else {
        info_span!(parent: cx.span(), "vfs", operation, path = Empty, to = Empty, actor = cx.actor(),
            session = cx.session(), backend = %inner, outcome = Empty, duration_us = Empty)
    };
    if !span.is_disabled() {
        for (field, path) in ["path", "to"].into_iter().zip(action.paths()) {
            span.record(field, display(path));
        }
    }
    span
}

/// An operation that has begun. Its end is its drop.
struct Running<M: Deref<Target = Metrics>> {
    operation: Operation,
    span: Span,
    metrics: M,
    begun: Instant,
    outcome: Outcome,
}

impl<M: Deref<Target = Metrics>> Running<M> {
    fn new(operation: Operation, span: &Span, metrics: M) -> Self {
        Self { operation, span: span.clone(), metrics, begun: Instant::now(), outcome: Outcome::Dropped }
    }
}

impl<M: Deref<Target = Metrics>> Drop for Running<M> {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        self.metrics.add(self.operation, self.outcome, took);
        if self.span.is_disabled() {
            return;
        }
        self.span.record("outcome", self.outcome.code());
        self.span.record("duration_us", u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
}

impl Running<Arc<Metrics>> {
    /// Returns `items`, and notes how they end.
    fn watch<Q: StreamRequest>(self, mut items: ResultStream<Q::Output>) -> ResultStream<Q::Output> {
        let mut running = Some(self);
        stream::poll_fn(move |task| {
            let _entered = running.as_ref().map(|running| running.span.clone().entered());
            let item = ready!(items.poll_next_unpin(task));
            match (&item, &mut running) {
                (Some(item), Some(running)) => {
                    if let Some(outcome) = Outcome::of_last::<Q>(item) {
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
