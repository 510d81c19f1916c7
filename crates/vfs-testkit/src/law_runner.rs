//! Table concatenation and the runner of a single law, shared by every kind of law.

use std::any::Any;
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
/// The thread of a law that hangs is left behind, because it cannot be stopped.
///
/// # Errors
///
/// If the law panics, returns an error, or has not ended after ten minutes. The message begins with the number.
pub fn run_law<T: Send + 'static>(
    number: &'static str,
    law: impl Future<Output = vfs_core::Result<T>> + Send + 'static,
) -> Result<T, Failed> {
    let reason = match run_with_timeout(HANG_TIMEOUT, move || run(law)) {
        Some(Ok(Ok(value))) => return Ok(value),
        Some(Ok(Err(error))) => format!("{error:?}"),
        Some(Err(panic)) => panic_message(&*panic).to_owned(),
        None => format!("no answer after {HANG_TIMEOUT:?}"),
    };
    Err(format!("{number} is broken: {reason}").into())
}

/// Returns the message of a panic, which was printed with its backtrace when it happened.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the law panicked")
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

/// Returns the result or the panic of `work`, or `None` if it takes longer than `timeout`; its thread is then left behind,
/// because a thread that blocks cannot be stopped.
fn run_with_timeout<T: Send + 'static>(
    timeout: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<thread::Result<T>> {
    let (sender, receiver) = mpsc::channel();
    let worker = thread::spawn(move || {
        let outcome = panic::catch_unwind(panic::AssertUnwindSafe(work));
        // The receiver is dropped only after a timeout, when the outcome has no reader.
        drop(sender.send(outcome));
    });
    match receiver.recv_timeout(timeout) {
        Ok(outcome) => {
            drop(worker.join());
            Some(outcome)
        }
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
    fn work_that_blocks_is_abandoned() {
        let (sender, receiver) = mpsc::channel::<()>();
        assert!(run_with_timeout(Duration::from_millis(10), move || receiver.recv().is_err()).is_none());
        drop(sender);
        assert!(matches!(run_with_timeout(HANG_TIMEOUT, || 7), Some(Ok(7))));
    }

    #[test]
    fn a_law_that_fails_or_panics_is_named_by_its_number() {
        let message = |law: Result<(), Failed>| law.expect_err("it is broken").message().map(str::to_owned);
        let fails = async { Err(vfs_core::Error::of(vfs_core::ErrorKind::Internal)) };
        assert!(message(run_law("X1", fails)).is_some_and(|message| message.starts_with("X1 is broken: ")));
        for (law, expected) in [(7, "X2 is broken: seven, not 7"), (8, "X2 is broken: eight")] {
            let law = run_law("X2", async move {
                assert!(law != 7, "seven, not {law}");
                panic!("eight");
            });
            assert_eq!(message(law).as_deref(), Some(expected));
        }
    }
}
