//! What layers need of every operation: the path that an error names, and waiting that the caller can end.

use std::pin::pin;

use futures::future::{Either, pending, select};
use tokio::time::{Instant, sleep_until};
use vfs_core::{Action, Error, ErrorKind, OpContext, Result, VfsPath};

/// The path that an error about `action` names: its first, or the root where it has none.
pub(crate) fn place(action: Action<'_>) -> VfsPath {
    action.paths().next().cloned().unwrap_or_else(VfsPath::root)
}

/// What `work` gives, unless the caller cancels or its deadline passes first; both end in an error at `path`.
///
/// Needs a tokio timer where the context has a deadline.
pub(crate) async fn while_wanted<T>(cx: &OpContext, path: &VfsPath, work: impl Future<Output = T>) -> Result<T> {
    cx.check().map_err(|error| error.or_path(path))?;
    let deadline = async {
        match cx.deadline() {
            Some(deadline) => sleep_until(Instant::from_std(deadline)).await,
            None => pending().await,
        }
    };
    let (cancel, deadline) = (pin!(cx.cancel_token().cancelled()), pin!(deadline));
    match select(pin!(work), select(cancel, deadline)).await {
        Either::Left((done, _)) => Ok(done),
        Either::Right((Either::Left(_), _)) => Err(cancelled(path)),
        Either::Right((Either::Right(_), _)) => Err(late(path)),
    }
}

fn cancelled(path: &VfsPath) -> Error {
    Error::at(ErrorKind::Cancelled, path)
}

fn late(path: &VfsPath) -> Error {
    let message = "the deadline passed while it waited for its turn; allow more time or try again later";
    Error::new(ErrorKind::Timeout, message).with_path(path)
}
