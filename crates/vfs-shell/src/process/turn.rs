//! Starting one process after the other.
//!
//! A copy of this process has copies of all its descriptors, until it closes them or becomes another program. Where one is of
//! a file that was being written at that moment, the file is open for writing that much longer, and whoever executes it,
//! perhaps a command that was started after all of it had been written, is told that it is busy. So no process is started
//! before the copies are gone that were made for the one before it.
//!
//! The same goes for the pipes of a command, which end when the last copy is gone: they are made in its turn.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After so long the next start does not wait for one any longer. It takes about a millisecond unless its program cannot be
/// read.
const LONGEST_TURN: Duration = Duration::from_secs(1);

static STARTING: Mutex<Starting> = Mutex::new(Starting { now: None, last: 0 });
static ENDED: Condvar = Condvar::new();

/// Which start it is the turn of, since when, and the number of the last one that had it.
struct Starting {
    now: Option<(u64, Instant)>,
    last: u64,
}

/// The turn of one start, which ends when this is dropped.
pub(crate) struct Turn(u64);

impl Turn {
    /// Waits for it. Where one takes too long, the next goes on beside it.
    pub(crate) fn wait() -> Self {
        let mut starting = starting();
        while let Some((_, since)) = starting.now
            && let Some(left) = LONGEST_TURN.checked_sub(since.elapsed())
        {
            (starting, _) = ENDED.wait_timeout(starting, left).unwrap_or_else(PoisonError::into_inner);
        }
        starting.last += 1;
        starting.now = Some((starting.last, Instant::now()));
        Self(starting.last)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut starting = starting();
        if starting.now.is_some_and(|(number, _)| number == self.0) {
            starting.now = None;
            ENDED.notify_one();
        }
    }
}

fn starting() -> MutexGuard<'static, Starting> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}
