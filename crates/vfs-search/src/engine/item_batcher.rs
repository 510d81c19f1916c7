//! Batching of a worker's items, so that the lock of the search is not taken for each item.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use vfs_core::timer::Timer;

use super::search::{Search, SearchState, wake};
use crate::engine::ordered_task_queue::PathKey;
use crate::engine::search_visitor::SearchVisitor;
use crate::search_item::{ItemSink, SearchCounts, SearchItem};
use crate::walk::walk_findings::WalkFindings;

/// Maximum number of items in a batch before it is handed over.
const MAX_BATCH_ITEMS: usize = 512;

/// Maximum size of a batch in bytes before it is handed over.
const MAX_BATCH_BYTES: usize = 64 << 10;

/// Minimum time between two wakes of the consumer by one task. The consumer would take each full batch that is handed over
/// earlier, and sleep again; so a timer wakes it for them.
const WAKE_INTERVAL: Duration = Duration::from_millis(1);

/// Interval at which a worker that waits for the consumer checks the context.
const CONTEXT_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Whether the slot of a task accepts more items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotAdmission {
    Open,
    /// The slot has to be checked, or the worker has to wait for it.
    Unknown,
    /// The slot accepts no more until the consumer has made room, or ever, if the search is over.
    Closed,
}

/// Collects the items of one task into batches for the task's slot.
pub(super) struct ItemBatcher<'a, V: SearchVisitor> {
    search: &'a Arc<Search<V>>,
    key: &'a PathKey,
    items: Vec<SearchItem>,
    bytes: usize,
    counts: SearchCounts,
    admission: SlotAdmission,
    /// When this task woke the consumer last, if it did.
    last_wake: Option<Instant>,
    /// Wakes the consumer for batches that were handed over without a wake, even if the worker is stuck in a read then.
    wake_timer: Option<Timer>,
    /// The last line of the file that was delivered; lines up to it are dropped.
    resume_line: u64,
    /// Whether an item of the file was put, or refused: then the end of the file is an item of its own and not only a
    /// count.
    has_shown: bool,
    /// Whether an item of the file was refused. Every later one is then refused too, so that the file is not taken for complete if
    /// the slot accepts items again before its end.
    was_refused: bool,
    is_file_done: bool,
}

impl<'a, V: SearchVisitor> ItemBatcher<'a, V> {
    pub(super) fn new(search: &'a Arc<Search<V>>, key: &'a PathKey) -> Self {
        Self {
            search,
            key,
            bytes: 0,
            items: Vec::new(),
            counts: SearchCounts::default(),
            admission: SlotAdmission::Unknown,
            last_wake: None,
            wake_timer: None,
            resume_line: 0,
            has_shown: false,
            was_refused: false,
            is_file_done: false,
        }
    }

    /// Starts a file: the following items belong to it, and its lines up to `resume_line` are in the slot already.
    pub(super) fn begin_file(&mut self, resume_line: u64) {
        self.resume_line = resume_line;
        self.has_shown = resume_line > 0;
        self.was_refused = false;
        self.is_file_done = false;
    }

    /// Ends a file and returns whether it is complete. Sets `resume_line` to the last delivered line of an incomplete
    /// file, and to 0 otherwise, for the next file.
    pub(super) fn end_file(&mut self, resume_line: &mut u64) -> bool {
        *resume_line = if self.is_file_done { 0 } else { self.resume_line };
        self.is_file_done
    }

    /// Adds the findings of the walk, even if there is no room: the walk does not report them a second time.
    pub(super) fn add_findings(&mut self, findings: WalkFindings) {
        self.counts += SearchCounts::from_findings(&findings);
        if findings.problems.is_empty() {
            return;
        }
        self.push_counts();
        let items = findings.problems.into_iter().map(SearchItem::Problem);
        self.items.extend(items.inspect(|item| self.bytes += item.cost()));
    }

    /// Returns whether the slot accepts more items. Items that were put before are delivered in any case.
    fn admits_more(&mut self) -> bool {
        if self.admission == SlotAdmission::Unknown {
            self.admission = self.current_admission(&self.search.lock());
        }
        if self.admission == SlotAdmission::Unknown {
            self.admission = self.search.pool.run_with_compensation(|| self.wait_for_admission());
        }
        self.admission == SlotAdmission::Open
    }

    /// Returns the items that are not handed over yet, and their cost.
    pub(super) fn into_remaining(mut self) -> (Vec<SearchItem>, usize) {
        self.push_counts();
        (self.items, self.bytes)
    }

    fn push_counts(&mut self) {
        if !self.counts.is_empty() {
            self.bytes += size_of::<SearchItem>();
            self.items.push(SearchItem::Counts(std::mem::take(&mut self.counts)));
        }
    }

    /// Hands the batch over if the consumer may be woken for it.
    pub(super) fn flush_if_due(&mut self) {
        if !self.items.is_empty() && self.is_due() {
            self.flush();
        }
    }

    /// Returns whether the consumer may be woken. The first items are handed over at once: opening the next file may take
    /// arbitrarily long.
    fn is_due(&self) -> bool {
        self.last_wake.is_none_or(|last_wake| last_wake.elapsed() >= WAKE_INTERVAL)
    }

    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut state = self.search.lock();
        let has_slot = state.queue.add(self.key, &mut self.items, bytes);
        // Decided once the batch is in the queue: a timer that fires later sees it.
        let is_due = self.is_due();
        let waker = if is_due { state.take_waker() } else { None };
        drop(state);
        wake(waker);
        self.admission = if has_slot { SlotAdmission::Unknown } else { SlotAdmission::Closed };
        if is_due {
            self.last_wake = Some(Instant::now());
            self.wake_timer = None;
        } else if let (Some(last_wake), None) = (self.last_wake, &self.wake_timer) {
            self.wake_timer = Some(self.search.set_wake_timer(last_wake + WAKE_INTERVAL));
        }
    }

    /// Returns whether the slot accepts more items, or `Unknown` if the worker should wait for the consumer.
    fn current_admission(&self, state: &SearchState) -> SlotAdmission {
        if self.search.is_closed() {
            SlotAdmission::Closed
        } else if state.queue.admits(self.key) {
            SlotAdmission::Open
        } else if state.queue.is_head(self.key) {
            SlotAdmission::Unknown
        } else {
            SlotAdmission::Closed
        }
    }

    fn wait_for_admission(&self) -> SlotAdmission {
        loop {
            let mut state = self.search.lock();
            let admission = self.current_admission(&state);
            if admission != SlotAdmission::Unknown {
                return admission;
            }
            if let Some(waker) = state.take_waker() {
                drop(state);
                waker.wake();
                continue;
            }
            state.waiting += 1;
            let waited = self.search.capacity_available.wait_timeout(state, CONTEXT_CHECK_INTERVAL);
            let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
            drop(state);
            // If the consumer does not poll the search at present, no other code checks the context.
            let is_over = self.search.cx.check().is_err();
            if is_over || (waited.timed_out() && self.search.pool.should_yield()) {
                return SlotAdmission::Closed;
            }
        }
    }
}

impl<V: SearchVisitor> ItemSink for ItemBatcher<'_, V> {
    #[inline]
    fn put(&mut self, item: SearchItem) -> ControlFlow<()> {
        if let SearchItem::Done { searched, left_early: false, skipped } = item
            && !self.has_shown
        {
            self.counts += SearchCounts { searched: searched.into(), skipped, ..SearchCounts::default() };
            self.is_file_done = true;
            return ControlFlow::Continue(());
        }
        let line = item.line();
        if line.is_some_and(|line| line <= self.resume_line) {
            return ControlFlow::Continue(());
        }
        self.has_shown = true;
        if self.was_refused || !self.admits_more() {
            self.was_refused = true;
            return ControlFlow::Break(());
        }
        if self.items.capacity() == 0 {
            // Growing the list step by step would copy the items of a full batch several times.
            self.items.reserve_exact(MAX_BATCH_ITEMS);
        }
        self.push_counts();
        self.resume_line = line.unwrap_or(self.resume_line);
        self.is_file_done = matches!(item, SearchItem::Done { .. });
        self.bytes += item.cost();
        self.items.push(item);
        // Flush only between lines and after a file: a worker that starts a file again skips the lines it has
        // delivered, but nothing else.
        let is_full = self.items.len() >= MAX_BATCH_ITEMS || self.bytes >= MAX_BATCH_BYTES;
        if (line.is_some() && is_full) || (self.is_file_done && (is_full || self.is_due())) {
            self.flush();
        }
        ControlFlow::Continue(())
    }
}

/// The batcher is shared with the callback that checks, between two chunks of a file, whether a batch is due.
impl<V: SearchVisitor> ItemSink for &RefCell<ItemBatcher<'_, V>> {
    fn put(&mut self, item: SearchItem) -> ControlFlow<()> {
        self.borrow_mut().put(item)
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::search::Skipped;
    use vfs_core::{CancelToken, Error, ErrorKind, LsRequest, OpContext, Problem};

    use super::*;
    use crate::engine::ordered_task_queue::RunAheadLimits;
    use crate::engine::pool::Pool;
    use crate::engine::received_item_queue::ReceivedItemQueue;
    use crate::ops::ls::LsVisitor;
    use crate::testing::{TestTree, path};

    #[test]
    fn a_file_is_incomplete_after_a_refused_item_although_there_is_room_at_its_end() {
        const BUDGET: usize = 10_000;
        let problem = || Problem::new("/a".to_owned(), &Error::of(ErrorKind::Internal));
        let cancel = CancelToken::new();
        let cx = OpContext::new().with_cancel_token(cancel.clone());
        let limits = RunAheadLimits { window: 1, budget: BUDGET, head_budget: BUDGET, max_entries: 1 };
        let request = LsRequest::new(path("/"));
        let search: Arc<Search<LsVisitor>> =
            Arc::new(Search::new(Arc::new(TestTree::new([])), cx, request, Pool::new(1), limits));
        let key = search.lock().queue.claim().expect("the start").key;
        let mut batcher = ItemBatcher::new(&search, &key);
        batcher.add_findings(WalkFindings { problems: vec![problem()], ..WalkFindings::default() });
        batcher.begin_file(0);
        // The consumer has not taken what is in the slot, and the worker gives up its wait, as the search is over.
        assert!(search.lock().queue.add(&key, &mut vec![SearchItem::Problem(problem())], BUDGET));
        cancel.cancel();
        assert!(batcher.put(SearchItem::Problem(problem())).is_break());
        search.lock().queue.take(&mut ReceivedItemQueue::default());
        batcher.flush_if_due();
        let end = SearchItem::Done { searched: true, left_early: false, skipped: Skipped::default() };
        assert!(batcher.put(end).is_break());
        let mut resume_line = 0;
        assert!(!batcher.end_file(&mut resume_line));
    }
}
