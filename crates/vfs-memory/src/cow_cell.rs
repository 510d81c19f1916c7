//! Copy-on-write cell with optimistic writers and a change feed.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use vfs_core::change_log::ChangeLog;
use vfs_core::watch::Change;
use vfs_core::{OpContext, Result};

/// Number of optimistic attempts before a writer computes its change under the lock.
const MAX_OPTIMISTIC_ATTEMPTS: usize = 3;

/// A value that is replaced as a whole.
///
/// Readers take the current value and never wait. A writer computes a successor from the current value, and stores it
/// if the value has not been replaced meanwhile; otherwise it retries with the newest. After a few conflicts it
/// computes under the writer lock, so that no writer starves. The lock is never held across an await, because nothing
/// here is async.
///
/// Events are pushed to the feed under the lock, right after the value was replaced: their order is that of the
/// changes.
pub(crate) struct CowCell<T> {
    current: ArcSwap<T>,
    writers: Mutex<()>,
    feed: ChangeLog,
}

impl<T> CowCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { current: ArcSwap::from_pointee(value), writers: Mutex::new(()), feed: ChangeLog::new() }
    }

    /// Returns the current value.
    pub(crate) fn load(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Returns the feed of changes of the value.
    pub(crate) fn feed(&self) -> &ChangeLog {
        &self.feed
    }

    /// Replaces the value by the successor that `compute` returns, or leaves it if that is `None`. `compute` may run
    /// several times; the result is that of the last run.
    ///
    /// `events_of` returns the events of the change, and is only called if there are subscribers.
    pub(crate) fn update<R>(
        &self,
        cx: &OpContext,
        compute: impl Fn(&T) -> Result<(Option<T>, R)>,
        events_of: impl Fn(&T, &R) -> Vec<Change>,
    ) -> Result<R> {
        for _ in 0..MAX_OPTIMISTIC_ATTEMPTS {
            cx.check()?;
            let before = self.load();
            let (next, result) = compute(&before)?;
            let Some(next) = next.map(Arc::new) else { return Ok(result) };
            let writers = self.lock_writers();
            if Arc::ptr_eq(&before, &self.current.load()) {
                self.current.store(next);
                self.feed.push(|| events_of(&before, &result));
                self.unlock_and_notify(writers);
                return Ok(result);
            }
        }
        let writers = self.lock_writers();
        cx.check()?;
        let before = self.load();
        let (next, result) = compute(&before)?;
        if let Some(next) = next {
            self.current.store(Arc::new(next));
            self.feed.push(|| events_of(&before, &result));
            self.unlock_and_notify(writers);
        }
        Ok(result)
    }

    /// Replaces the value by the result of `next` under the lock; `events_of` returns the events of the change.
    pub(crate) fn replace<R>(&self, next: impl FnOnce(&T) -> (T, R), events_of: impl FnOnce(&T) -> Vec<Change>) -> R {
        let writers = self.lock_writers();
        let before = self.load();
        let (next, result) = next(&before);
        self.current.store(Arc::new(next));
        self.feed.push(|| events_of(&before));
        self.unlock_and_notify(writers);
        result
    }

    /// Releases the lock before it wakes subscribers: a waker can run any code, even a change of this value.
    fn unlock_and_notify(&self, writers: MutexGuard<'_, ()>) {
        drop(writers);
        self.feed.wake();
    }

    fn lock_writers(&self) -> MutexGuard<'_, ()> {
        // A panic leaves no partial state behind: the value is replaced in one step.
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: fmt::Debug> fmt::Debug for CowCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CowCell").field(&*self.current.load()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use vfs_core::ErrorKind;
    use vfs_core::watch::WatchRequest;

    use super::*;

    fn silent(_: &i32) -> Vec<Change> {
        Vec::new()
    }

    #[test]
    fn a_writer_retries_after_conflicts_and_finally_takes_the_lock() {
        let shared = CowCell::new(0);
        let runs = Cell::new(0);
        let result = shared.update(
            &OpContext::new(),
            |before| {
                runs.set(runs.get() + 1);
                if runs.get() <= MAX_OPTIMISTIC_ATTEMPTS {
                    shared.replace(|value| (value + 10, ()), silent);
                }
                Ok((Some(before + 1), *before))
            },
            |_, _| Vec::new(),
        );
        assert_eq!((result, *shared.load()), (Ok(30), 31));
    }

    #[test]
    fn the_value_stays_if_nothing_changes_or_the_operation_is_cancelled() {
        let shared = CowCell::new(1);
        let before = shared.load();
        let events_of = |_: &i32, _: &i32| panic!("nothing was changed");
        let _subscriber = shared.feed().subscribe(OpContext::new(), WatchRequest::default());
        assert_eq!(shared.update(&OpContext::new(), |before| Ok((None, *before)), events_of), Ok(1));
        assert!(Arc::ptr_eq(&before, &shared.load()));

        let cx = OpContext::new();
        cx.cancel_token().cancel();
        let error = shared.update(&cx, |_| Ok((Some(2), 2)), events_of).expect_err("cancelled");
        assert_eq!((error.kind(), *shared.load()), (ErrorKind::Cancelled, 1));
    }

    #[test]
    fn a_panic_in_a_change_does_not_stop_the_next() {
        let shared = Arc::new(CowCell::new(1));
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
