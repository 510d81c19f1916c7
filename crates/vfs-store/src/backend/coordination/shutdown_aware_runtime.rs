//! Blocking waits for a store on threads outside of its tokio runtime.

use std::future::pending;
use std::pin::pin;

use futures::future::{Either, select};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use vfs_core::{CancelToken, Error, ErrorKind, Result};

/// Handle of the tokio runtime in which an operation was started, with a signal of its shutdown.
///
/// After the shutdown of a runtime, its timer and connections panic in a future that still uses them. The shutdown
/// drops all tasks first, so the drop of a task that does nothing else is the signal. A future that is polled at that
/// very moment may still panic, as tokio offers no earlier signal; the search pool survives the panic.
#[derive(Debug)]
pub(crate) struct ShutdownAwareRuntime {
    handle: Handle,
    shutdown: CancelToken,
    watch_task: AbortHandle,
}

impl ShutdownAwareRuntime {
    /// Returns the runtime of the caller, or `None` outside of a runtime.
    pub(crate) fn current() -> Option<Self> {
        let handle = Handle::try_current().ok()?;
        let shutdown = CancelToken::new();
        let guard = shutdown.clone().drop_guard();
        let watch_task = handle.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        });
        Some(Self { handle, shutdown, watch_task: watch_task.abort_handle() })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Blocks the thread until `answer` is ready, or returns `cancelled` if the runtime shuts down first.
    pub(crate) fn wait<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        self.handle.block_on(async {
            match select(pin!(self.shutdown.cancelled()), pin!(answer)).await {
                Either::Left(_) => Err(Error::new(ErrorKind::Cancelled, "the tokio runtime is shutting down")),
                Either::Right((answer, _)) => answer,
            }
        })
    }
}

impl Drop for ShutdownAwareRuntime {
    fn drop(&mut self) {
        self.watch_task.abort();
    }
}
