//! A value that many read and change at once.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use vfs_core::change_log::ChangeLog;
use vfs_core::{Change, OpContext, Result};

/// How often a change is computed beside others before it waits for its turn.
const ATTEMPTS_BESIDE_OTHERS: usize = 3;

/// A value that is replaced as a whole.
///
/// Readers take it as it is and never wait. A writer computes its successor from the value it saw and puts it in place if
/// that value is still there; else it starts again from the newest. One that was overtaken a few times computes while it
/// keeps the others from replacing the value, so that nobody is overtaken for ever. The lock is never held across an
/// await: nothing here is async.
///
/// What became of the files is told to the feed under the lock, right after the value was replaced: the order of events is
/// that of the changes.
pub(crate) struct Shared<T> {
    current: ArcSwap<T>,
    turn: Mutex<()>,
    feed: ChangeLog,
}

impl<T> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { current: ArcSwap::from_pointee(value), turn: Mutex::new(()), feed: ChangeLog::new() }
    }

    /// The value of now.
    pub(crate) fn load(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Tells of changes of the value.
    pub(crate) fn feed(&self) -> &ChangeLog {
        &self.feed
    }

    /// Replaces the value by what `compute` makes of the newest, or leaves it where that is `None`. `compute` may run
    /// several times; the result is that of the run which counted.
    ///
    /// `tell` says what became of the value that was there, and is only asked where somebody wants to know.
    pub(crate) fn update<R>(
        &self,
        cx: &OpContext,
        compute: impl Fn(&T) -> Result<(Option<T>, R)>,
        tell: impl Fn(&T, &R) -> Vec<Change>,
    ) -> Result<R> {
        for _ in 0..ATTEMPTS_BESIDE_OTHERS {
            cx.check()?;
            let seen = self.load();
            let (next, result) = compute(&seen)?;
            let Some(next) = next.map(Arc::new) else { return Ok(result) };
            let turn = self.take_turn();
            if Arc::ptr_eq(&seen, &self.current.load()) {
                self.current.store(next);
                self.feed.push(|| tell(&seen, &result));
                self.wake(turn);
                return Ok(result);
            }
        }
        let turn = self.take_turn();
        cx.check()?;
        let seen = self.load();
        let (next, result) = compute(&seen)?;
        if let Some(next) = next {
            self.current.store(Arc::new(next));
            self.feed.push(|| tell(&seen, &result));
            self.wake(turn);
        }
        Ok(result)
    }

    /// Replaces the value by what `next` makes of it, at once; `tell` says what became of the value that was there.
    pub(crate) fn replace<R>(&self, next: impl FnOnce(&T) -> (T, R), tell: impl FnOnce(&T) -> Vec<Change>) -> R {
        let turn = self.take_turn();
        let seen = self.load();
        let (next, result) = next(&seen);
        self.current.store(Arc::new(next));
        self.feed.push(|| tell(&seen));
        self.wake(turn);
        result
    }

    /// Ends a turn and wakes who waits for its events: a waker may run anything, even a change of this value.
    fn wake(&self, turn: MutexGuard<'_, ()>) {
        drop(turn);
        self.feed.wake();
    }

    fn take_turn(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data that a panic could have left half done: the value is replaced in one step.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&*self.current.load()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use vfs_core::{ErrorKind, WatchRequest};

    use super::*;

    fn silent(_: &i32) -> Vec<Change> {
        Vec::new()
    }

    #[test]
    fn one_who_is_overtaken_starts_again_and_in_the_end_is_not_overtaken() {
        let shared = Shared::new(0);
        let runs = Cell::new(0);
        let result = shared.update(
            &OpContext::new(),
            |seen| {
                runs.set(runs.get() + 1);
                if runs.get() <= ATTEMPTS_BESIDE_OTHERS {
                    shared.replace(|value| (value + 10, ()), silent);
                }
                Ok((Some(seen + 1), *seen))
            },
            |_, _| Vec::new(),
        );
        assert_eq!((result, *shared.load()), (Ok(30), 31));
    }

    #[test]
    fn nothing_is_replaced_where_nothing_changes_or_the_work_is_cancelled() {
        let shared = Shared::new(1);
        let before = shared.load();
        let tell = |_: &i32, _: &i32| panic!("nothing was changed");
        let _subscriber = shared.feed().subscribe(OpContext::new(), WatchRequest::default());
        assert_eq!(shared.update(&OpContext::new(), |seen| Ok((None, *seen)), tell), Ok(1));
        assert!(Arc::ptr_eq(&before, &shared.load()));

        let cx = OpContext::new();
        cx.cancel_token().cancel();
        let error = shared.update(&cx, |_| Ok((Some(2), 2)), tell).expect_err("cancelled");
        assert_eq!((error.kind(), *shared.load()), (ErrorKind::Cancelled, 1));
    }

    #[test]
    fn a_panic_in_a_change_does_not_stop_the_next() {
        let shared = Arc::new(Shared::new(1));
        let other = Arc::clone(&shared);
        assert!(
            std::thread::spawn(move || other.replace(|_| -> (i32, ()) { panic!("on purpose") }, silent))
                .join()
                .is_err()
        );
        assert_eq!(shared.replace(|value| (value + 1, ()), silent), ());
        assert_eq!(*shared.load(), 2);
    }
}
