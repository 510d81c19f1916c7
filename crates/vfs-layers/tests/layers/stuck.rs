//! A layer that never answers, and does not look at its context.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use vfs_core::{
    Around, Backend, Error, ErrorKind, GrepEvent, GrepRequest, OpContext, Problem, Request, Result, VfsPath,
};

/// Never answers; a search as a stream has three items at once, and then no end.
#[derive(Debug)]
pub(crate) struct Stuck;

impl Around for Stuck {
    fn name(&self) -> &'static str {
        "stuck"
    }

    async fn around<Q: Request>(&self, _inner: &dyn Backend, _cx: &OpContext, _request: Q) -> Result<Q::Output> {
        std::future::pending().await
    }

    fn streamed(
        self: Arc<Self>,
        _cx: OpContext,
        _request: GrepRequest,
        _events: BoxStream<'static, Result<GrepEvent>>,
    ) -> BoxStream<'static, Result<GrepEvent>> {
        let problem = Problem::from(Error::at(ErrorKind::NotText, &VfsPath::root()));
        stream::iter(vec![Ok(GrepEvent::Problem(problem)); 3]).chain(stream::pending()).boxed()
    }
}
