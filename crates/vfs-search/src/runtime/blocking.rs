//! Work on a runtime's pool for what blocks, where a pool without threads is an error and not a panic.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures::channel::oneshot;
use tokio::runtime::Handle;
use vfs_core::{Error, ErrorKind, Result};

/// Runs `work` on the pool of `runtime` for what blocks, and returns its value. If the future is dropped before `work` has
/// begun, it never runs.
///
/// # Errors
///
/// `busy` if the pool has no thread and none can be started; `work` is not run then, neither now nor later. `internal` if
/// `work` panicked or the runtime is shutting down.
pub async fn run_blocking<T, F>(runtime: &Handle, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let pending = PendingWork(Arc::new(Mutex::new(Some(work))));
    let pooled = Arc::clone(&pending.0);
    let run = move || {
        let work = pooled.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(work) = work {
            // Nobody may be waiting for the value any more.
            let _ = sender.send(work());
        }
    };
    // The pool panics if it cannot start its first thread, and leaves the work in its queue for a thread that may be started
    // later: that one must find nothing to do.
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
    /// Whether this thread asks a pool to start a thread.
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether a panic of the calling thread is one that [`run_blocking`] turns into an error, for a panic hook that
/// leaves reporting it to whoever gets that error.
pub fn is_starting_thread() -> bool {
    STARTING.get()
}

/// Work that is taken back when dropped, unless it has begun.
struct PendingWork<F>(Arc<Mutex<Option<F>>>);

impl<F> PendingWork<F> {
    fn take(&self) -> Option<F> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<F> Drop for PendingWork<F> {
    fn drop(&mut self) {
        self.take();
    }
}
