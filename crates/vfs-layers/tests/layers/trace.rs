//! Spans and metrics of operations.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, ErrorKind, GrepRequest, Interceptor, Layer, OpContext, Operation, RenameRequest, Result,
};
use vfs_layers::{Delay, Trace};

use super::support::{memory, millis, minutes, path, read, search, within};

/// Keeps the fields of every span, and which spans were entered.
#[derive(Debug, Clone, Default)]
struct Spans(Arc<Mutex<Vec<Seen>>>, Arc<Mutex<Vec<Id>>>);

#[derive(Debug, Clone, Default)]
struct Seen {
    name: &'static str,
    parent: Option<u64>,
    fields: BTreeMap<&'static str, String>,
    entered: usize,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

impl Spans {
    fn change(&self, id: &Id, change: impl FnOnce(&mut Seen)) {
        let index = usize::try_from(id.into_u64()).expect("few spans") - 1;
        change(&mut self.0.lock().expect("not poisoned")[index]);
    }

    /// The fields of the only span of this layer.
    fn only(&self) -> BTreeMap<&'static str, String> {
        let all = self.0.lock().expect("not poisoned");
        let mut own = all.iter().filter(|span| span.name == "vfs");
        let fields = own.next().expect("a span").fields.clone();
        assert_eq!(own.count(), 0);
        fields
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut seen =
            Seen { name: span.metadata().name(), parent: span.parent().map(Id::into_u64), ..Seen::default() };
        span.record(&mut seen);
        let mut all = self.0.lock().expect("not poisoned");
        all.push(seen);
        Id::from_u64(all.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.change(id, |seen| values.record(seen));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &Id) {
        self.change(id, |seen| seen.entered += 1);
        self.1.lock().expect("not poisoned").push(id.clone());
    }

    fn exit(&self, _: &Id) {
        self.1.lock().expect("not poisoned").pop();
    }
}

/// Keeps the spans of this thread until the guard goes.
async fn watched() -> (Spans, DefaultGuard) {
    let spans = Spans::default();
    let guard = tracing::subscriber::set_default(spans.clone());
    let files = Trace::new().layer(memory().await);
    // If another thread without a subscriber reaches the spans first, `tracing` may cache that no subscriber is
    // interested.
    loop {
        for parent in [tracing::Span::none(), tracing::info_span!("parent")] {
            read(&*files, &OpContext::new().with_span(parent), "/a").await.expect("read");
        }
        let seen = std::mem::take(&mut *spans.0.lock().expect("not poisoned"));
        if seen.iter().filter(|span| span.name == "vfs").count() == 2 {
            return (spans, guard);
        }
        tracing::callsite::rebuild_interest_cache();
    }
}

#[tokio::test(start_paused = true)]
async fn a_span_has_the_request_and_the_outcome() {
    let (spans, _guard) = watched().await;
    let files = Trace::new().layer(Delay::new(millis(7)).layer(memory().await));
    let cx = OpContext::new().with_actor("planner").with_session("s1");
    files.rename(&cx, RenameRequest::new(path("/a"), path("/b"))).await.expect("moved");
    let expected = [
        ("operation", "rename"),
        ("path", "/a"),
        ("to", "/b"),
        ("actor", "planner"),
        ("session", "s1"),
        ("backend", "delay(memory)"),
        ("outcome", "ok"),
        ("duration_us", "7000"),
    ];
    assert_eq!(spans.only(), expected.map(|(name, value)| (name, value.to_owned())).into());
}

#[tokio::test]
async fn contents_and_patterns_are_in_no_field() {
    let (spans, _guard) = watched().await;
    let files = Trace::new().layer(memory().await);
    files.create_text("/b", "a secret").await.expect("written");
    files.edit_text("/b", "secret", "other secret").await.expect("edited");
    files.grep_text("secret").await.expect("searched");
    let all = format!("{:?}", spans.0.lock().expect("not poisoned"));
    assert!(all.contains("grep") && !all.contains("secret"), "{all}");
}

#[tokio::test(start_paused = true)]
async fn the_outcome_is_the_error_code_or_dropped() {
    for (outcome, drops) in [("not_found", false), ("dropped", true)] {
        let (spans, _guard) = watched().await;
        let files = Trace::new().layer(Delay::new(millis(1)).layer(memory().await));
        if drops {
            tokio::time::timeout(millis(0), files.read_text("/missing")).await.expect_err("dropped");
        } else {
            files.read_text("/missing").await.expect_err("missing");
        }
        assert_eq!(spans.only().get("outcome").map(String::as_str), Some(outcome));
    }
}

/// Says which span the operation finds in its context and around it.
#[derive(Debug, Default)]
struct Found(Mutex<Vec<(Option<u64>, Option<u64>)>>, Spans);

impl Interceptor for Found {
    fn name(&self) -> &'static str {
        "found"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        self.note(cx);
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        self.note(&cx);
        call.start(cx)
    }
}

impl Found {
    fn note(&self, cx: &OpContext) {
        let current = self.1.1.lock().expect("not poisoned").last().map(Id::into_u64);
        let given = cx.span().id().map(|id| id.into_u64());
        self.0.lock().expect("not poisoned").push((given, current));
    }
}

#[tokio::test]
async fn the_operation_is_in_its_span_below_that_of_the_caller_and_a_stream_is_to_its_end() {
    let (spans, _guard) = watched().await;
    let found = Arc::new(Found(Mutex::default(), spans.clone()));
    let files = Trace::new().layer(Arc::new(Intercepted::new(memory().await, Arc::clone(&found))));
    let outer = tracing::info_span!("outer");
    let parent = outer.id().map(|id| id.into_u64());
    let cx = OpContext::new().with_span(outer);
    read(&*files, &cx, "/a").await.expect("read");
    assert_eq!(search(&*files, &cx).await.len(), 4);
    let seen = spans.0.lock().expect("not poisoned").clone();
    let own: Vec<_> = seen.iter().zip(1_u64..).filter(|(span, _)| span.name == "vfs").collect();
    assert!(own.iter().all(|(span, _)| span.parent == parent && parent.is_some()), "{own:?}");
    let expected: Vec<_> = own.iter().map(|(_, id)| (Some(*id), Some(*id))).collect();
    assert_eq!(*found.0.lock().expect("not poisoned"), expected);
    assert_eq!(own[1].0.fields.get("outcome").map(String::as_str), Some("ok"));
    assert!(own[1].0.entered >= 4, "at every poll: {own:?}");
}

#[tokio::test(start_paused = true)]
async fn metrics_count_calls_errors_drops_and_time() {
    let trace = Trace::new();
    let files = trace.layer(Delay::new(minutes(10)).layer(memory().await));
    for _ in 0..3 {
        files.read_text("/a").await.expect("read");
    }
    files.read_text("/missing").await.expect_err("missing");
    read(&*files, &within(minutes(4)), "/a").await.expect_err("late");
    tokio::time::timeout(minutes(1), files.read_text("/a")).await.expect_err("dropped");

    let reads = trace.metrics().of(Operation::Read);
    assert_eq!((reads.calls, reads.dropped), (6, 1));
    assert_eq!(reads.errors, [(ErrorKind::NotFound, 1), (ErrorKind::Timeout, 1)].into());
    assert_eq!((reads.total, reads.max), (minutes(45), minutes(10)));
    assert_eq!(trace.metrics().all().len(), 1);
}

#[tokio::test]
async fn a_stream_counts_once_when_it_ends_or_is_dropped() {
    let trace = Trace::new();
    let files = trace.layer(memory().await);
    search(&*files, &OpContext::new()).await;
    let mut dropped = files.grep_stream(OpContext::new(), GrepRequest::literal("one"));
    assert!(dropped.next().await.expect("an item").is_ok());
    assert_eq!(trace.metrics().of(Operation::GrepStream).calls, 1);
    drop(dropped);
    let streams = trace.metrics().of(Operation::GrepStream);
    assert_eq!((streams.calls, streams.dropped, streams.errors.len()), (2, 1, 0));
}
