//! One-shot timers without a runtime, for implementers of backends: one thread per process.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

/// A one-shot timer that calls a function at an instant, unless it is dropped before.
///
/// # Behaviour
///
/// * One thread, started with the first timer, calls all functions. They must return soon: wake a task, cancel a token. A panic
///   in one of them is caught and affects no other timer.
/// * If the timer is dropped while its function runs, the function completes.
/// * If the thread cannot be started, no timer fires. Use timers to shorten a wait, and check the deadline as well.
///
/// ```
/// use std::time::{Duration, Instant};
/// use vfs_core::CancelToken;
/// use vfs_core::timer::Timer;
///
/// let token = CancelToken::new();
/// let fires = token.clone();
/// let _timer = Timer::set(Instant::now() + Duration::from_millis(1), move || fires.cancel());
/// futures::executor::block_on(token.cancelled());
/// ```
#[must_use = "a timer that is dropped does not fire"]
pub struct Timer {
    key: (Instant, u64),
}

/// The function that a timer calls.
type TimerCallback = Box<dyn FnOnce() + Send>;

/// The thread that runs all timers, and the queue from which it takes them.
#[derive(Default)]
struct TimerThread {
    queue: Mutex<TimerQueue>,
    changed: Condvar,
}

/// The timers that have not fired, by instant.
#[derive(Default)]
struct TimerQueue {
    timers: BTreeMap<(Instant, u64), TimerCallback>,
    last: u64,
    is_running: bool,
}

fn timer_thread() -> &'static TimerThread {
    static TIMER_THREAD: OnceLock<TimerThread> = OnceLock::new();
    TIMER_THREAD.get_or_init(TimerThread::default)
}

impl Timer {
    /// Returns a timer that calls `callback` at `moment`.
    pub fn set(moment: Instant, callback: impl FnOnce() + Send + 'static) -> Self {
        let timer_thread = timer_thread();
        let mut queue = timer_thread.lock();
        queue.last += 1;
        let key = (moment, queue.last);
        queue.timers.insert(key, Box::new(callback));
        if !queue.is_running {
            queue.is_running = thread::Builder::new().name("vfs-timer".into()).spawn(|| timer_thread.run()).is_ok();
        }
        timer_thread.changed.notify_one();
        Self { key }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // The callback is dropped without the lock, as it may own another timer.
        let _callback = timer_thread().lock().timers.remove(&self.key);
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("moment", &self.key.0).finish_non_exhaustive()
    }
}

impl TimerThread {
    fn lock(&self) -> MutexGuard<'_, TimerQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut queue = self.lock();
        loop {
            let now = Instant::now();
            match queue.timers.first_key_value().map(|(key, _)| key.0) {
                None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(moment) if moment > now => {
                    let waited = self.changed.wait_timeout(queue, moment - now);
                    queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    let due = queue.timers.pop_first();
                    // Called without the lock: a waker may run any code.
                    drop(queue);
                    if let Some((_, callback)) = due {
                        // The panic hook has reported the panic; the other timers still fire.
                        let _outcome = catch_unwind(AssertUnwindSafe(callback));
                    }
                    queue = self.lock();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn alarms_ring_in_order_unless_dropped() {
        let (sender, receiver) = mpsc::channel();
        let now = Instant::now();
        let timer = |after: u64, name: &'static str| {
            let sender = sender.clone();
            Timer::set(now + Duration::from_millis(after), move || sender.send(name).expect("the test listens"))
        };
        let _never = timer(3_600_000, "never");
        let _early = timer(10, "early");
        drop(timer(200, "dropped"));
        // If the machine stalled, the timer may have fired before it was dropped.
        let was_dropped_in_time = now.elapsed() < Duration::from_millis(200);
        let _late = timer(220, "late");
        let mut fired: Vec<_> = receiver.iter().take_while(|name| *name != "late").collect();
        if !was_dropped_in_time {
            fired.retain(|name| *name != "dropped");
        }
        assert_eq!(fired, ["early"]);
    }

    #[test]
    fn a_timer_that_panics_or_owns_another_affects_no_other_timer() {
        let (sender, receiver) = mpsc::channel();
        let now = Instant::now();
        let _panics = Timer::set(now, || std::panic::resume_unwind(Box::new("a timer that panics")));
        let never = Timer::set(now + Duration::from_secs(3600), || ());
        drop(Timer::set(now + Duration::from_secs(3600), move || drop(never)));
        let _fires = Timer::set(Instant::now(), move || sender.send(()).expect("the test listens"));
        assert_eq!(receiver.recv(), Ok(()));
    }
}
