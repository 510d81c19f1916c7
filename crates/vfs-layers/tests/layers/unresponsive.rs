//! Interceptor that never answers, and ignores its context.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use vfs_core::operation::{AnyOutput, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, Error, ErrorKind, GrepEvent, Interceptor, OpContext, Problem, Result, VfsPath};

/// Never answers; a search as a stream has three items at once, and then no end.
#[derive(Debug)]
pub(crate) struct Unresponsive;

impl Interceptor for Unresponsive {
    fn name(&self) -> &'static str {
        "stuck"
    }

    async fn call<Q: UnaryRequest>(&self, _inner: &dyn Backend, _cx: &OpContext, _request: Q) -> Result<Q::Output> {
        std::future::pending().await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, _cx: OpContext, _call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let problem = Problem::from(Error::at(ErrorKind::NotText, &VfsPath::root()));
        let events = vec![GrepEvent::Problem(problem); 3];
        let items = events.into_iter().filter_map(|event| Q::from_any_output(AnyOutput::GrepStream(event)).map(Ok));
        stream::iter(items.collect::<Vec<_>>()).chain(stream::pending()).boxed()
    }
}
