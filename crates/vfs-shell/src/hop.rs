//! The bridge to what blocks.

use tokio::runtime::Handle;
use vfs_core::{Error, ErrorKind, Result};

/// The runtime that commands run on.
pub(crate) fn runtime() -> Result<Handle> {
    Handle::try_current().map_err(|_| {
        Error::new(ErrorKind::Unsupported, "commands are run within a tokio runtime only; enter one first")
    })
}

/// Does `work` on the runtime's pool for what blocks. Where the call is dropped before the work has begun, it never does.
pub(crate) async fn hop<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    vfs_search::run_blocking(&runtime()?, work).await
}
