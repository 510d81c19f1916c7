//! Blocking work on a runtime's pool; a pool that cannot start a thread is an error, not a panic.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures::channel::oneshot;
use tokio::runtime::Handle;
use vfs_core::{Error, ErrorKind, Result};

/// Runs `work` on the blocking pool of `runtime`, and returns its value. If the future is dropped before `work` has
/// started, it never runs.
///
/// # Errors
///
/// `busy` if the pool has no thread and none can be started; `work` does not run then, neither now nor later.
/// `internal` if `work` panicked or the runtime is shutting down.
pub async fn run_blocking<T, F>(runtime: &Handle, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let pending = UnstartedTaskGuard(Arc::new(Mutex::new(Some(work))));
    let pooled = Arc::clone(&pending.0);
    let run = move || {
        let work = pooled.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(work) = work {
            // The caller may have dropped the future, so that the value is not needed any more.
            let _ = sender.send(work());
        }
    };
    // If the pool cannot start its first thread, it panics and leaves the closure in its queue for a thread that may
    // start later. That thread must find nothing to do.
    STARTING.set(true);
    let spawned = catch_unwind(AssertUnwindSafe(|| drop(runtime.spawn_blocking(run))));
    STARTING.set(false);
    if spawned.is_err() && pending.take().is_some() {
        return Err(Error::new(
            ErrorKind::Busy,
            "no thread can be started for the operation: the limit of processes is reached, or a filter of system calls refuses clone3; try again",
        ));
    }
    receiver
        .await
        .map_err(|_| Error::new(ErrorKind::Internal, "the operation panicked or the runtime is shutting down"))
}

thread_local! {
    /// Whether this thread is asking a pool to start a thread.
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether a panic of the calling thread is one that [`run_blocking`] converts to an error. A panic hook can
/// then leave the report to the caller that gets the error.
pub fn is_starting_thread() -> bool {
    STARTING.get()
}

/// Work that is discarded on drop, unless it has started.
struct UnstartedTaskGuard<F>(Arc<Mutex<Option<F>>>);

impl<F> UnstartedTaskGuard<F> {
    fn take(&self) -> Option<F> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<F> Drop for UnstartedTaskGuard<F> {
    fn drop(&mut self) {
        self.take();
    }
}
