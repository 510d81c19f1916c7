//! Writer of a task's slot: appends items, and waits for room where that is worthwhile.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use vfs_core::tree::Tree;

use super::search::{Search, SearchState, wake};
use crate::engine::batch::{BatchTarget, Capacity};
use crate::engine::ordered_queue::PathKey;
use crate::engine::visitor::SearchVisitor;
use crate::item::Item;

/// Interval at which a worker that waits for the consumer checks the context.
const CONTEXT_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The slot of a task, as the worker that fills it sees it.
pub(super) struct SlotWriter<'a, T: Tree, V: SearchVisitor> {
    pub(super) search: &'a Arc<Search<T, V>>,
    pub(super) key: &'a PathKey,
}

impl<T: Tree, V: SearchVisitor> BatchTarget for SlotWriter<'_, T, V> {
    fn write_batch(&self, items: &mut Vec<Item>, bytes: usize) -> Capacity {
        let mut state = self.search.lock();
        if !state.queue.add(self.key, items, bytes) {
            return Capacity::Closed;
        }
        let waker = state.take_waker();
        drop(state);
        wake(waker);
        Capacity::Unknown
    }

    fn capacity(&self) -> Capacity {
        let capacity = self.current_capacity(&self.search.lock());
        if capacity == Capacity::Unknown {
            self.search.pool.run_with_compensation(|| self.wait_for_capacity())
        } else {
            capacity
        }
    }
}

impl<T: Tree, V: SearchVisitor> SlotWriter<'_, T, V> {
    /// Returns whether the slot accepts more items; unknown if it is worth waiting.
    fn current_capacity(&self, state: &SearchState<T::Dir>) -> Capacity {
        if self.search.is_closed() {
            Capacity::Closed
        } else if state.queue.admits(self.key) {
            Capacity::Available
        } else if state.queue.is_head(self.key) {
            Capacity::Unknown
        } else {
            Capacity::Full
        }
    }

    fn wait_for_capacity(&self) -> Capacity {
        loop {
            let mut state = self.search.lock();
            let capacity = self.current_capacity(&state);
            if capacity != Capacity::Unknown {
                return capacity;
            }
            state.waiting += 1;
            let waited = self.search.capacity_available.wait_timeout(state, CONTEXT_CHECK_INTERVAL);
            let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
            drop(state);
            // If the consumer does not poll the search at present, nobody else checks the context.
            if self.search.cx.check().is_err() {
                return Capacity::Closed;
            }
            if waited.timed_out() && self.search.pool.should_yield() {
                return Capacity::Full;
            }
        }
    }
}
