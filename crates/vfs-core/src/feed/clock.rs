//! Ends waiting when a deadline passes, where there is no runtime that could.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use crate::cancel::CancelToken;

/// Cancels a token at a moment, unless it is dropped before.
#[derive(Debug)]
pub(super) struct Alarm {
    key: (Instant, u64),
}

#[derive(Default)]
struct Clock {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    alarms: BTreeMap<(Instant, u64), CancelToken>,
    last: u64,
    is_running: bool,
}

fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::default)
}

impl Alarm {
    /// Cancels `token` at `moment`. Where no thread can be started nothing does, and a deadline is noticed when the stream
    /// is next polled.
    pub(super) fn set(moment: Instant, token: CancelToken) -> Self {
        let clock = clock();
        let mut state = clock.lock();
        state.last += 1;
        let key = (moment, state.last);
        state.alarms.insert(key, token);
        if !state.is_running {
            state.is_running = thread::Builder::new().name("vfs-feed-clock".into()).spawn(|| clock.run()).is_ok();
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
                    let due = state.alarms.pop_first();
                    // Cancelled without the lock: a waker may run anything.
                    drop(state);
                    if let Some((_, token)) = due {
                        token.cancel();
                    }
                    state = self.lock();
                }
            }
        }
    }
}
