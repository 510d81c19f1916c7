//! Access to the tokio runtime and its blocking pool.

use tokio::runtime::Handle;
use vfs_core::{Error, ErrorKind, Result};

/// Returns the runtime of the caller.
pub(crate) fn current_runtime() -> Result<Handle> {
    Handle::try_current().map_err(|_| {
        Error::new(ErrorKind::Unsupported, "running a command failed: there is no tokio runtime; call from within one")
    })
}

/// Runs `work` on the blocking pool. If the call is dropped before the work has begun, it never runs.
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    vfs_search::run_blocking(&current_runtime()?, work).await
}
