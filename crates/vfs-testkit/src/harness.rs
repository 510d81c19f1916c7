//! Table concatenation and the runner of a single law, shared by every kind of law.

use std::future::Future;
use std::panic;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;

/// Time after which a law counts as hung, longer than all waits of one law together.
const HANG_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs the law of the behaviour `number` on a runtime of its own, and returns its result.
///
/// # Behaviour
///
/// A panic of the law is resumed in the caller. The thread of a law that hangs is left behind, because it cannot be
/// stopped.
///
/// # Errors
///
/// If the law returns an error, or has not ended after ten minutes.
pub fn run_law<T: Send + 'static>(
    number: &'static str,
    law: impl Future<Output = vfs_core::Result<T>> + Send + 'static,
) -> Result<T, Failed> {
    match run_with_timeout(HANG_TIMEOUT, move || run(law)) {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(format!("{number} is broken: {error:?}").into()),
        None => Err(format!("{number} is broken: no answer after {HANG_TIMEOUT:?}").into()),
    }
}

/// Runs `future` to completion on a runtime of its own.
///
/// # Panics
///
/// If the system has no threads left for a runtime.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built")
        .block_on(future)
}

/// Returns the result of `work`, or `None` if it takes longer than `timeout`; its thread is then left behind, because a
/// thread that blocks cannot be stopped. A panic of `work` is resumed in the caller.
fn run_with_timeout<T: Send + 'static>(timeout: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    let worker = thread::spawn(move || {
        let outcome = panic::catch_unwind(panic::AssertUnwindSafe(work));
        // The receiver is dropped only after a timeout, when the outcome has no reader.
        drop(sender.send(outcome));
    });
    match receiver.recv_timeout(timeout) {
        Ok(Ok(value)) => {
            drop(worker.join());
            Some(value)
        }
        Ok(Err(panic)) => panic::resume_unwind(panic),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
    }
}

/// Returns the number of laws in all `tables`.
pub const fn count<T>(tables: &[&[T]]) -> usize {
    let (mut total, mut table) = (0, 0);
    while table < tables.len() {
        total += tables[table].len();
        table += 1;
    }
    total
}

/// Concatenates `tables` into one array of `N` laws, where `N` is their [`count`].
///
/// # Panics
///
/// If there is no law, or another number of laws than `N`.
pub const fn flatten<T: Copy, const N: usize>(tables: &[&[T]]) -> [T; N] {
    let mut all = [tables[0][0]; N];
    let (mut at, mut table) = (0, 0);
    while table < tables.len() {
        let mut law = 0;
        while law < tables[table].len() {
            all[at] = tables[table][law];
            at += 1;
            law += 1;
        }
        table += 1;
    }
    assert!(at == N, "N is the number of laws");
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_blocks_is_abandoned_and_a_panic_is_passed_on() {
        let (sender, receiver) = mpsc::channel::<()>();
        assert_eq!(run_with_timeout(Duration::from_millis(10), move || receiver.recv().is_err()), None);
        drop(sender);
        assert_eq!(run_with_timeout(HANG_TIMEOUT, || 7), Some(7));
        let panic = panic::catch_unwind(|| run_with_timeout(HANG_TIMEOUT, || panic!("broken law")));
        assert_eq!(panic.expect_err("passed on").downcast_ref(), Some(&"broken law"));
    }
}
