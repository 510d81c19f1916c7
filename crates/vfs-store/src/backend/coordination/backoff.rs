//! Exponential backoff between the attempts of a change that competes with other writers.

use std::time::Duration;

use tokio::time::sleep;
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};
use vfs_search::run_until_cancelled;

/// Upper bound of the pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(64);

/// Waits before the next attempt: exponential backoff with full jitter; `retries` attempts have failed after the first one.
pub(crate) async fn backoff(cx: &OpContext, path: &VfsPath, retries: u32) -> Result<()> {
    let max = Duration::from_millis(1).saturating_mul(1 << retries.min(6)).min(MAX_PAUSE);
    let pause = max.mul_f64(fastrand::f64());
    run_until_cancelled(cx, path, sleep(pause)).await
}

/// Returns the error for a change that lost against other writers in every attempt.
pub(crate) fn contended(path: &VfsPath) -> Error {
    Error::new(ErrorKind::Busy, "other writers keep changing the files at this path; try again").with_path(path)
}
