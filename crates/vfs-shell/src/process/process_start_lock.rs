//! Process-wide lock that serialises the starts of processes.
//!
//! A forked copy of this process has copies of all its descriptors, until it closes them or executes. If one of them is a
//! file that was being written at that moment, the file stays open for writing that much longer, and executing it fails with
//! `ETXTBSY`, even for a command that started after the write was done. So no process is started before the copies made for
//! the previous one are closed.
//!
//! The same holds for the pipes of a command, which end when the last copy is closed: they are created under the lock.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time after which the next start no longer waits for the current one. A start takes about a millisecond, unless its
/// program cannot be read.
const START_LOCK_TIMEOUT: Duration = Duration::from_secs(1);

static STATE: Mutex<StartLockState> = Mutex::new(StartLockState { now: None, last: 0 });
static RELEASED: Condvar = Condvar::new();

/// Number and begin of the start that holds the lock, and the last number given out.
struct StartLockState {
    now: Option<(u64, Instant)>,
    last: u64,
}

/// Guard of the process-wide lock that serialises the starts of processes.
pub(crate) struct ProcessStartLock(u64);

impl ProcessStartLock {
    /// Waits for the lock. After [`START_LOCK_TIMEOUT`] the next start proceeds beside the current one.
    pub(crate) fn acquire() -> Self {
        let mut state = state();
        while let Some((_, since)) = state.now
            && let Some(left) = START_LOCK_TIMEOUT.checked_sub(since.elapsed())
        {
            (state, _) = RELEASED.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        state.last += 1;
        state.now = Some((state.last, Instant::now()));
        Self(state.last)
    }
}

impl Drop for ProcessStartLock {
    fn drop(&mut self) {
        let mut state = state();
        if state.now.is_some_and(|(number, _)| number == self.0) {
            state.now = None;
            RELEASED.notify_one();
        }
    }
}

fn state() -> MutexGuard<'static, StartLockState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}
