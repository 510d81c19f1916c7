//! Files that can only be looked at.

use std::sync::Arc;

use vfs_core::{
    Access, Around, Backend, Capabilities, Effect, Error, ErrorKind, Layer, OpContext, Request, Result, Wrapped,
};

/// Refuses every change and every command.
///
/// # Behaviour
///
/// * What only looks passes, also an edit that is a dry run, and taking, listing and forgetting snapshots, which leave the
///   files alone. Going back to a snapshot is refused.
/// * A shell stays visible, and refuses: nothing can say what a command will do.
/// * Refused operations do not reach the backend. Its capabilities say [`Access::ReadOnly`].
///
/// # Errors
///
/// `permission_denied` at the operation's first path, the root where it has none.
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
/// assert_eq!(shown.remove("/a").await.expect_err("refused").kind(), ErrorKind::PermissionDenied);
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOnly;

impl Layer for ReadOnly {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Wrapped::new(inner, Arc::new(*self)))
    }
}

impl Around for ReadOnly {
    fn name(&self) -> &'static str {
        "read_only"
    }

    async fn around<Q: Request>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if request.action().effect() == Effect::Looks {
            return request.send(inner, cx).await;
        }
        let message = "the files are read-only here; look at them, and write somewhere else";
        Err(Error::new(ErrorKind::PermissionDenied, message).with_path(&request.action().primary_path()))
    }

    fn capabilities(&self, mut inner: Capabilities) -> Capabilities {
        inner.access = Access::ReadOnly;
        inner
    }
}
