//! Records of dropped operations, which precede every further operation.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::poll_immediate;
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, BackendExt, ErrorKind, GrepRequest, Interceptor, Layer, OpContext, Result};
use vfs_layers::{Audit, AuditRecord, AuditSink, MemorySink, OnSinkFailure};
use vfs_memory::MemoryBackend;

use super::Moody;
use crate::support::memory;

/// Never completes operations on `/slow`, and notes the number of stored records when each other operation begins.
#[derive(Debug)]
struct Peek {
    sink: MemorySink,
    seen: Mutex<Vec<usize>>,
}

impl Interceptor for Peek {
    fn name(&self) -> &'static str {
        "peek"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if request.as_request_ref().paths().any(|path| path.as_str() == "/slow") {
            pending::<()>().await;
        }
        self.seen.lock().expect("not poisoned").push(self.sink.records().len());
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

impl Peek {
    fn new(sink: &MemorySink) -> Arc<Self> {
        Arc::new(Self { sink: sink.clone(), seen: Mutex::default() })
    }

    fn around(self: &Arc<Self>, files: Arc<MemoryBackend>) -> Arc<dyn Backend> {
        Arc::new(Intercepted::new(files, Arc::clone(self)))
    }

    fn seen(&self) -> Vec<usize> {
        self.seen.lock().expect("not poisoned").clone()
    }
}

#[tokio::test]
async fn the_record_of_a_dropped_operation_is_written_before_the_next_operation_begins() {
    let sink = MemorySink::new();
    let peek = Peek::new(&sink);
    let files = Audit::new(sink.clone()).layer(peek.around(memory().await));
    assert!(poll_immediate(Box::pin(files.read_text("/slow"))).await.is_none());
    files.read_text("/a").await.expect("read");
    // A stream that was not polled yet has begun, too.
    drop(files.grep_stream(OpContext::new(), GrepRequest::literal("one")));
    drop(files.as_watch().map(|watch| watch.watch(OpContext::new(), Default::default())));
    files.read_text("/a").await.expect("read");
    let seen = peek.seen();
    assert_eq!((seen.first(), seen.last()), (Some(&1), Some(&(sink.records().len() - 1))), "{seen:?}");
}

#[tokio::test]
async fn the_next_operation_is_refused_if_the_record_of_a_dropped_one_cannot_be_written() {
    let sink = Moody::default();
    let peek = Peek::new(&sink.sink);
    let audit = Audit::new(sink.clone());
    let files = audit.layer(peek.around(memory().await));
    sink.refuses.store(true, Ordering::SeqCst);
    assert!(poll_immediate(Box::pin(files.read_text("/slow"))).await.is_none());
    let error = files.read_text("/a").await.expect_err("refused");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Unavailable, Some("/a")));
    assert_eq!(peek.seen(), [0; 0], "it did not begin");

    let goes_on = audit.clone().on_sink_failure(OnSinkFailure::Continue).layer(peek.around(memory().await));
    goes_on.read_text("/a").await.expect("this one waits for no sink");
    sink.refuses.store(false, Ordering::SeqCst);
    files.read_text("/a").await.expect("it works again");
    assert_eq!(peek.seen(), [0, 2]);
}

/// Holds the first record for ever, unless it comes again.
#[derive(Debug, Clone, Default)]
struct Holding {
    has_held: Arc<AtomicBool>,
    sink: MemorySink,
}

#[async_trait]
impl AuditSink for Holding {
    async fn append(&self, record: &AuditRecord) -> Result<()> {
        if !self.has_held.swap(true, Ordering::SeqCst) {
            pending::<()>().await;
        }
        self.sink.append(record).await
    }
}

#[tokio::test]
async fn a_record_dropped_on_its_way_to_the_sink_is_written_before_the_next_operation_begins() {
    let sink = Holding::default();
    let peek = Peek::new(&sink.sink);
    let files = Audit::new(sink.clone()).layer(peek.around(memory().await));
    assert!(poll_immediate(Box::pin(files.read_text("/a"))).await.is_none(), "it waits for the sink");
    files.read_text("/a").await.expect("read");
    assert_eq!(peek.seen(), [0, 1]);
    assert_eq!(sink.sink.records().len(), 2);
}
