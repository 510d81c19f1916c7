//! Wakes consumers when their deadline passes, whatever the workers are at.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Instant;

/// Something that can be woken.
pub(crate) trait Sleeper: Send + Sync + 'static {
    fn wake(&self);
}

/// Wakes its sleeper at a moment, unless it is dropped before.
#[derive(Debug)]
pub(crate) struct Alarm {
    key: (Instant, u64),
}

#[derive(Default)]
struct Clock {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    alarms: BTreeMap<(Instant, u64), Weak<dyn Sleeper>>,
    next: u64,
    is_running: bool,
}

fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::default)
}

impl Alarm {
    /// Wakes `sleeper` at `moment`.
    ///
    /// Where no thread can be started there is no alarm: a deadline is then noticed by the workers alone.
    pub(crate) fn set<S: Sleeper>(moment: Instant, sleeper: &Arc<S>) -> Self {
        let clock = clock();
        let mut state = clock.lock();
        state.next += 1;
        let key = (moment, state.next);
        let sleeper: Weak<dyn Sleeper> = Arc::downgrade(sleeper) as Weak<dyn Sleeper>;
        state.alarms.insert(key, sleeper);
        if !state.is_running {
            state.is_running = thread::Builder::new().name("vfs-search-clock".into()).spawn(|| clock.run()).is_ok();
        }
        clock.changed.notify_one();
        Self { key }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        clock().lock().alarms.remove(&self.key);
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
                    let sleeper = state.alarms.pop_first().and_then(|(_, sleeper)| sleeper.upgrade());
                    // Woken without the lock: a waker may run anything.
                    drop(state);
                    if let Some(sleeper) = sleeper {
                        sleeper.wake();
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

    struct Ring(Mutex<mpsc::Sender<&'static str>>, &'static str);

    impl Sleeper for Ring {
        fn wake(&self) {
            self.0.lock().expect("not poisoned").send(self.1).expect("the test listens");
        }
    }

    #[test]
    fn alarms_ring_in_order_unless_dropped() {
        let (sender, receiver) = mpsc::channel();
        let ring = |name| Arc::new(Ring(Mutex::new(sender.clone()), name));
        let (late, early, dropped) = (ring("late"), ring("early"), ring("dropped"));
        let now = Instant::now();
        let _late = Alarm::set(now + Duration::from_millis(40), &late);
        let _early = Alarm::set(now + Duration::from_millis(10), &early);
        drop(Alarm::set(now + Duration::from_millis(5), &dropped));
        assert_eq!(receiver.recv(), Ok("early"));
        assert_eq!(receiver.recv(), Ok("late"));
        assert!(receiver.try_recv().is_err());
    }
}
