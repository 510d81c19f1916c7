//! Blocking waits for a store on threads outside of the runtime.

use std::future::pending;
use std::pin::pin;

use futures::future::{Either, select};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use vfs_core::{CancelToken, Error, ErrorKind, Result};

/// The runtime that work was begun in.
///
/// Its timer and its connections panic for whoever still waits for them after its end. Tasks are dropped before these: one that
/// does nothing else tells that the end has come. Who is just then at work with a timer may still panic, as no other way is known to
/// tell; the thread that it is on outlives that.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    ended: CancelToken,
    watch: AbortHandle,
}

impl Runtime {
    /// That of the caller, where there is one.
    pub(crate) fn current() -> Option<Self> {
        let handle = Handle::try_current().ok()?;
        let ended = CancelToken::new();
        let guard = ended.clone().drop_guard();
        let watch = handle.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        });
        Some(Self { handle, ended, watch: watch.abort_handle() })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits for `answer`, unless the runtime ends first.
    pub(crate) fn wait<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        self.handle.block_on(async {
            match select(pin!(self.ended.cancelled()), pin!(answer)).await {
                Either::Left(_) => Err(Error::new(ErrorKind::Cancelled, "the program is ending")),
                Either::Right((answer, _)) => answer,
            }
        })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.watch.abort();
    }
}
