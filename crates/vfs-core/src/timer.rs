//! Something done when a moment comes, where there is no runtime that could: one thread for the whole process.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

/// Rings at a moment, unless it is dropped before.
///
/// # Behaviour
///
/// * All alarms ring on one thread, which starts with the first one: what rings must be short, such as waking a task or
///   cancelling a token. A panic in it is caught and ends nothing else.
/// * One that is dropped while it rings still rings to its end.
/// * Where no thread can be started, none rings: alarms only shorten waiting, and a deadline is also looked at by whoever
///   works on.
///
/// ```
/// use std::time::{Duration, Instant};
/// use vfs_core::CancelToken;
/// use vfs_core::alarm::Alarm;
///
/// let token = CancelToken::new();
/// let rings = token.clone();
/// let _alarm = Alarm::set(Instant::now() + Duration::from_millis(1), move || rings.cancel());
/// futures::executor::block_on(token.cancelled());
/// ```
#[must_use = "an alarm that is dropped does not ring"]
pub struct Alarm {
    key: (Instant, u64),
}

type Ring = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Clock {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    alarms: BTreeMap<(Instant, u64), Ring>,
    last: u64,
    is_running: bool,
}

fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::default)
}

impl Alarm {
    /// Calls `ring` at `moment`.
    pub fn set(moment: Instant, ring: impl FnOnce() + Send + 'static) -> Self {
        let clock = clock();
        let mut state = clock.lock();
        state.last += 1;
        let key = (moment, state.last);
        state.alarms.insert(key, Box::new(ring));
        if !state.is_running {
            state.is_running = thread::Builder::new().name("vfs-clock".into()).spawn(|| clock.run()).is_ok();
        }
        clock.changed.notify_one();
        Self { key }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // What it holds is dropped without the lock: that may be an alarm, too.
        let _ring = clock().lock().alarms.remove(&self.key);
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("moment", &self.key.0).finish_non_exhaustive()
    }
}

impl Clock {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            match state.alarms.first_key_value().map(|(key, _)| key.0) {
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(moment) if moment > now => {
                    let waited = self.changed.wait_timeout(state, moment - now);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    let due = state.alarms.pop_first();
                    // Rung without the lock: a waker may run anything.
                    drop(state);
                    if let Some((_, ring)) = due {
                        // The panic hook has told of it; the alarms of others ring on.
                        let _rung = catch_unwind(AssertUnwindSafe(ring));
                    }
                    state = self.lock();
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
        let alarm = |after: u64, name: &'static str| {
            let sender = sender.clone();
            Alarm::set(now + Duration::from_millis(after), move || sender.send(name).expect("the test listens"))
        };
        let _never = alarm(3_600_000, "never");
        let _early = alarm(10, "early");
        drop(alarm(200, "dropped"));
        // On a machine that stood still it rang before it was dropped.
        let was_dropped_in_time = now.elapsed() < Duration::from_millis(200);
        let _late = alarm(220, "late");
        let mut rung: Vec<_> = receiver.iter().take_while(|name| *name != "late").collect();
        if !was_dropped_in_time {
            rung.retain(|name| *name != "dropped");
        }
        assert_eq!(rung, ["early"]);
    }

    #[test]
    fn an_alarm_that_panics_or_holds_another_is_no_harm() {
        let (sender, receiver) = mpsc::channel();
        let now = Instant::now();
        let _panics = Alarm::set(now, || std::panic::resume_unwind(Box::new("an alarm that panics")));
        let never = Alarm::set(now + Duration::from_secs(3600), || ());
        drop(Alarm::set(now + Duration::from_secs(3600), move || drop(never)));
        let _rings = Alarm::set(Instant::now(), move || sender.send(()).expect("the test listens"));
        assert_eq!(receiver.recv(), Ok(()));
    }
}
