//! Laws as named tests.

use std::future::Future;
use std::panic;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};
use vfs_core::backend::Access;

use crate::laws::{ALL, Law};
use crate::target::TargetFactory;

/// A law that has not ended after this time hangs: longer than a law's own waits take one after the other.
const DEADLINE: Duration = Duration::from_secs(600);

/// Every law of the factory's [tier](crate::Tier) as a trial `backend::operation::law`, each on a fresh target and a runtime
/// of its own.
///
/// A law that needs what the target does not have is shown as ignored, with the reason. One that has not ended after
/// ten minutes fails.
pub fn trials(factory: TargetFactory) -> Vec<Trial> {
    ALL.iter()
        .filter(|law| factory.tier.runs(law.tier))
        .map(|law| {
            let factory = factory.clone();
            let name = format!("{}::{}::{}", factory.name, law.operation, law.name);
            Trial::ignorable_test(name, move || try_law(&factory, *law))
        })
        .collect()
}

fn try_law(factory: &TargetFactory, law: Law) -> Result<Completion, Failed> {
    let target = (factory.make)();
    if target.backend.capabilities(&target.base).access == Access::ReadOnly {
        return Ok(Completion::ignored_with("nothing can be written here, and a law begins with files of its own"));
    }
    if let Some(reason) = law.need.missing_in(&target) {
        return Ok(Completion::ignored_with(reason));
    }
    try_within(law.number, async move { (law.run)(&target).await })?;
    Ok(Completion::Completed)
}

/// Runs the law of the behaviour `number` to its end, or to the deadline.
pub(crate) fn try_within<T: Send + 'static>(
    number: &'static str,
    law: impl Future<Output = vfs_core::Result<T>> + Send + 'static,
) -> Result<T, Failed> {
    match within(DEADLINE, move || run(law)) {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(format!("{number} is broken: {error:?}").into()),
        None => Err(format!("{number} is broken: no answer after {DEADLINE:?}").into()),
    }
}

/// Runs `future` to its end on a runtime of its own.
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

/// What `work` gives, or `None` where it takes longer than `deadline`: its thread is then left behind, because a thread
/// that blocks cannot be stopped. A panic of `work` goes on in the caller.
fn within<T: Send + 'static>(deadline: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    let worker = thread::spawn(move || {
        let outcome = panic::catch_unwind(panic::AssertUnwindSafe(work));
        // The receiver is gone only where the deadline passed, and then nobody asks.
        drop(sender.send(outcome));
    });
    match receiver.recv_timeout(deadline) {
        Ok(Ok(value)) => {
            // The value is there, so what is left of the thread is its end.
            drop(worker.join());
            Some(value)
        }
        Ok(Err(panic)) => panic::resume_unwind(panic),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_blocks_is_given_up_and_a_panic_is_passed_on() {
        let (hold, held) = mpsc::channel::<()>();
        assert_eq!(within(Duration::from_millis(10), move || held.recv().is_err()), None);
        drop(hold);
        assert_eq!(within(DEADLINE, || 7), Some(7));
        let panic = panic::catch_unwind(|| within(DEADLINE, || panic!("broken law")));
        assert_eq!(panic.expect_err("passed on").downcast_ref(), Some(&"broken law"));
    }

    #[test]
    fn laws_have_names_of_their_own() {
        let mut names: Vec<_> = ALL.iter().map(|law| (law.operation, law.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
