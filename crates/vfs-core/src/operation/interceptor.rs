//! Interceptors, which run around every operation of a backend.

use std::fmt;
use std::sync::Arc;

use super::request::{StreamRequest, UnaryRequest};
use super::result_stream::{ResultStream, deferred_stream};
use crate::backend::{Backend, Capabilities};
use crate::context::OpContext;
use crate::error::Result;

/// Code that runs around each operation of a backend.
///
/// # Behaviour
///
/// * [`call`](Self::call) receives every operation with one result, and [`stream`](Self::stream) every streaming one, those of
///   facets included; each file of an upload or download is one operation. An interceptor may perform the operation with the same
///   or another context, delay it, repeat it, or refuse it.
/// * An interceptor does not change the namespace of the backend.
///
/// [`Intercepted`](crate::operation::Intercepted) is the resulting backend.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::operation::{ResultStream, StreamCall, StreamRequest, UnaryRequest};
/// use vfs_core::{Backend, Interceptor, Layer, OpContext, Result};
///
/// #[derive(Debug)]
/// struct Logged;
///
/// impl Interceptor for Logged {
///     fn name(&self) -> &'static str {
///         "logged"
///     }
///
///     async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
///         tracing::info!(operation = %Q::OPERATION, "call");
///         request.send(inner, cx).await
///     }
///
///     fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
///         tracing::info!(operation = %Q::OPERATION, "call");
///         call.start(cx)
///     }
/// }
///
/// fn logged(files: Arc<dyn Backend>) -> Arc<dyn Backend> {
///     Arc::new(Logged).layer(files)
/// }
/// ```
pub trait Interceptor: fmt::Debug + Send + Sync + 'static {
    /// Returns the name that `Display` of the resulting backend shows.
    fn name(&self) -> &'static str;

    /// Performs an operation with one result on `inner`, or refuses it.
    fn call<Q: UnaryRequest>(
        &self,
        inner: &dyn Backend,
        cx: &OpContext,
        request: Q,
    ) -> impl Future<Output = Result<Q::Output>> + Send;

    /// Performs a streaming operation, or refuses it.
    ///
    /// The method is called when the caller first polls the stream.
    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output>;

    /// Returns the capabilities of the resulting backend, given those of the inner one.
    fn capabilities(&self, inner: Capabilities) -> Capabilities {
        inner
    }
}

/// A streaming operation that an [`Interceptor`] received and has not started.
///
/// # Behaviour
///
/// A change feed starts before the interceptor is called, so that no event is missed while the interceptor waits; the first
/// [`start`](Self::start) returns that feed. Every other operation starts with `start`.
pub struct StreamCall<Q: StreamRequest> {
    inner: Arc<dyn Backend>,
    request: Q,
    begun: Option<ResultStream<Q::Output>>,
}

impl<Q: StreamRequest> StreamCall<Q> {
    pub(super) fn new(inner: Arc<dyn Backend>, request: Q, begun: Option<ResultStream<Q::Output>>) -> Self {
        Self { inner, request, begun }
    }

    /// Returns the backend that performs the operation.
    pub fn inner(&self) -> &Arc<dyn Backend> {
        &self.inner
    }

    /// Returns the request.
    pub fn request(&self) -> &Q {
        &self.request
    }

    /// Starts the operation.
    pub fn start(mut self, cx: OpContext) -> ResultStream<Q::Output> {
        self.restart(cx)
    }

    /// Starts the operation; later calls start it again.
    pub fn restart(&mut self, cx: OpContext) -> ResultStream<Q::Output> {
        self.begun.take().unwrap_or_else(|| self.request.clone().start(&*self.inner, cx))
    }

    /// Starts the operation once `admission` has completed, or returns its error.
    pub fn start_after(
        self,
        cx: OpContext,
        admission: impl Future<Output = Result<()>> + Send + 'static,
    ) -> ResultStream<Q::Output> {
        deferred_stream(async move { admission.await.map(|()| self.start(cx)) })
    }
}

impl<Q: StreamRequest> fmt::Debug for StreamCall<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamCall").field("request", &self.request).finish_non_exhaustive()
    }
}
