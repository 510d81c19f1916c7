//! The bridge to what blocks.

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use vfs_core::{Error, ErrorKind, Result};

/// The runtime that commands run on.
pub(crate) fn runtime() -> Result<Handle> {
    Handle::try_current().map_err(|_| {
        Error::new(ErrorKind::Unsupported, "commands are run within a tokio runtime only; enter one first")
    })
}

/// Does `work` on the runtime's pool for what blocks. Where the call is dropped before the work has begun, it never does.
pub(crate) async fn hop<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let mut task = Queued(runtime()?.spawn_blocking(work));
    (&mut task.0)
        .await
        .map_err(|_| Error::new(ErrorKind::Internal, "the operation panicked or the runtime is shutting down"))
}

/// Work that is taken back when dropped, unless it has begun.
struct Queued<T>(JoinHandle<T>);

impl<T> Drop for Queued<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
