//! Interceptor that refuses every change and every command.

use std::sync::Arc;

use vfs_core::backend::AccessMode;
use vfs_core::operation::{
    Intercepted, OperationClass, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest,
};
use vfs_core::{Backend, Capabilities, Error, ErrorKind, Interceptor, Layer, OpContext, Result};

/// Refuses every change and every command.
///
/// # Behaviour
///
/// * Reads pass, and so do dry runs of an edit, and taking, listing and forgetting snapshots, which leave the files
///   alone. Restoring a snapshot is refused.
/// * A shell stays visible and refuses every command, because the effect of a command cannot be predicted.
/// * Refused operations do not reach the backend. The capabilities say [`AccessMode::ReadOnly`].
///
/// # Errors
///
/// `permission_denied` at the operation's first path, or at the root if it has none.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, ErrorKind, Layer};
/// use vfs_layers::ReadOnly;
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let files = MemoryBackend::new();
/// files.create_text("/a", "text").await?;
/// let shown = ReadOnly.layer(Arc::new(files));
/// assert_eq!(shown.read_text("/a").await?, "text");
/// assert_eq!(shown.delete_file("/a").await.expect_err("refused").kind(), ErrorKind::PermissionDenied);
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOnly;

impl Layer for ReadOnly {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Intercepted::new(inner, Arc::new(*self)))
    }
}

impl ReadOnly {
    fn check(request: RequestRef<'_>) -> Result<()> {
        if request.class() == OperationClass::Read {
            return Ok(());
        }
        let message = "these files are read-only; write somewhere else";
        Err(Error::new(ErrorKind::PermissionDenied, message).with_path(&request.primary_path()))
    }
}

impl Interceptor for ReadOnly {
    fn name(&self) -> &'static str {
        "read_only"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        Self::check(request.as_request_ref())?;
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        match Self::check(call.request().as_request_ref()) {
            Ok(()) => call.start(cx),
            Err(error) => error.into_stream(),
        }
    }

    fn capabilities(&self, mut inner: Capabilities) -> Capabilities {
        inner.access = AccessMode::ReadOnly;
        inner
    }
}
