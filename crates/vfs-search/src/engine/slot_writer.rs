//! The slot of a claim, as the worker that fills it sees it: where items go, and whether there is room for more.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use vfs_core::tree::Tree;

use super::search::{Haste, Search, State, wake};
use crate::engine::batch::{Room, Slot};
use crate::engine::ordered_queue::Key;
use crate::engine::pool::Worker;
use crate::engine::visitor::Quest;
use crate::item::Item;

/// How often a worker that waits for the consumer looks at the context.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A slot, as the worker that fills it sees it.
pub(super) struct WorkerSlot<'a, T: Tree, Q: Quest> {
    pub(super) search: &'a Arc<Search<T, Q>>,
    pub(super) worker: &'a Worker,
    pub(super) key: &'a Key,
}

impl<T: Tree, Q: Quest> Slot for WorkerSlot<'_, T, Q> {
    fn emit(&self, items: &mut Vec<Item>, bytes: usize) -> Room {
        let mut state = self.search.lock();
        if !state.frontier.add(self.key, items, bytes) {
            return Room::Unwanted;
        }
        let waker = self.search.waker(&mut state, Haste::Soon);
        drop(state);
        wake(waker);
        self.worker.beat();
        Room::Unknown
    }

    fn room(&self, items: &mut Vec<Item>) -> Room {
        let mut state = self.search.lock();
        let room = self.room_now(&state);
        if items.capacity() == 0 {
            *items = state.frontier.spare();
        }
        drop(state);
        if room == Room::Unknown { self.worker.stand_in(|| self.wait_for_room()) } else { room }
    }
}

impl<T: Tree, Q: Quest> WorkerSlot<'_, T, Q> {
    /// Whether there is room for more; unknown where it is worth waiting.
    fn room_now(&self, state: &State<T::Dir>) -> Room {
        if self.search.is_closed() {
            Room::Unwanted
        } else if state.frontier.admits(self.key) {
            Room::Enough
        } else if state.frontier.is_head(self.key) {
            Room::Unknown
        } else {
            Room::Short
        }
    }

    fn wait_for_room(&self) -> Room {
        loop {
            let mut state = self.search.lock();
            let room = self.room_now(&state);
            if room != Room::Unknown {
                return room;
            }
            if let Some(waker) = self.search.waker(&mut state, Haste::Now) {
                drop(state);
                waker.wake();
                continue;
            }
            state.waiting += 1;
            let waited = self.search.room.wait_timeout(state, LOOK_EVERY);
            let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
            drop(state);
            // Nobody polls a search whose consumer is elsewhere, so the context is looked at here.
            if self.search.cx.check().is_err() {
                return Room::Unwanted;
            }
            if waited.timed_out() && self.worker.is_missed() {
                return Room::Short;
            }
        }
    }
}
