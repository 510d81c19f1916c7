//! What a worker has found and not handed over yet, so that the lock is not taken for each item.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::item::{Counts, Item, ItemSink};
use crate::walk::dir_entries::WalkFindings;

/// Items that a worker collects before it hands them over.
const MAX_BATCH_ITEMS: usize = 512;

/// Bytes that a worker collects before it hands them over.
const MAX_BATCH_BYTES: usize = 64 << 10;

/// How long a worker keeps what it has found, as far as it has an occasion to hand it over.
const FLUSH_INTERVAL: Duration = Duration::from_millis(1);

/// Whether a slot may take more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capacity {
    Available,
    /// To be looked at, or waited for.
    Unknown,
    /// Not until the consumer has made some.
    Full,
    /// Nobody wants any more.
    Closed,
}

/// Where items are handed over.
pub(crate) trait BatchTarget {
    /// Takes items that cost `bytes`, and says whether there is room for more.
    fn write_batch(&self, items: &mut Vec<Item>, bytes: usize) -> Capacity;

    /// Whether there is room for more; waits for it where that is worthwhile. Where `items` has no memory it may be given some.
    fn capacity(&self, items: &mut Vec<Item>) -> Capacity;
}

/// Collects the items of one claim.
pub(crate) struct Batcher<S> {
    slot: S,
    items: Vec<Item>,
    bytes: usize,
    counts: Counts,
    capacity: Capacity,
    /// When items were handed over last, if any were.
    last_flush: Option<Instant>,
    /// The last line of the file that was brought in; those up to it are left out.
    resume_line: u64,
    /// Whether an item of the file was put, or could not be: then its end counts for more than a number.
    has_shown: bool,
    is_file_done: bool,
}

impl<S: BatchTarget> Batcher<S> {
    pub(crate) fn new(slot: S) -> Self {
        Self {
            slot,
            bytes: 0,
            items: Vec::new(),
            counts: Counts::default(),
            capacity: Capacity::Unknown,
            last_flush: None,
            resume_line: 0,
            has_shown: false,
            is_file_done: false,
        }
    }

    /// The items that follow are those of one file, whose lines up to `resume_line` are in the slot already.
    pub(crate) fn begin_file(&mut self, resume_line: u64) {
        self.resume_line = resume_line;
        self.has_shown = resume_line > 0;
        self.is_file_done = false;
    }

    /// Whether the file is done. Sets the last line that was brought in of one that is not; of the next it is 0.
    pub(crate) fn end_file(&mut self, resume_line: &mut u64) -> bool {
        *resume_line = if self.is_file_done { 0 } else { self.resume_line };
        self.is_file_done
    }

    /// Takes what was found beside entries, whether there is room for it or not: it is not found again.
    pub(crate) fn add_findings(&mut self, findings: WalkFindings) {
        self.counts += Counts::from_findings(&findings);
        if findings.problems.is_empty() {
            return;
        }
        self.push_counts();
        let items = findings.problems.into_iter().map(Item::Problem);
        self.items.extend(items.inspect(|item| self.bytes += item.cost()));
    }

    /// Whether more is taken. What was put before is in any case.
    fn has_capacity(&mut self) -> bool {
        if self.capacity == Capacity::Unknown {
            self.capacity = self.slot.capacity(&mut self.items);
        }
        self.capacity == Capacity::Available
    }

    /// What is left to hand over, and what it costs.
    pub(crate) fn into_remaining(mut self) -> (Vec<Item>, usize) {
        self.push_counts();
        (self.items, self.bytes)
    }

    fn push_counts(&mut self) {
        if !self.counts.is_empty() {
            self.bytes += size_of::<Item>();
            self.items.push(Item::Counts(std::mem::take(&mut self.counts)));
        }
    }

    /// Hands over what a consumer has waited for long enough.
    pub(crate) fn flush_if_due(&mut self) {
        if !self.items.is_empty() && self.is_due() {
            self.flush();
        }
    }

    /// Whether the consumer is not to wait any longer. What is found first is not kept from it at all: opening the next file
    /// may take for ever.
    fn is_due(&self) -> bool {
        self.last_flush.is_none_or(|last_flush| last_flush.elapsed() >= FLUSH_INTERVAL)
    }

    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.capacity = self.slot.write_batch(&mut self.items, bytes);
        self.last_flush = Some(Instant::now());
    }
}

impl<S: BatchTarget> ItemSink for Batcher<S> {
    #[inline]
    fn put(&mut self, item: Item) -> ControlFlow<()> {
        if let Item::Done { searched, left_early: false, skipped } = item
            && !self.has_shown
        {
            self.counts += Counts { searched: searched.into(), skipped, ..Counts::default() };
            self.is_file_done = true;
            return ControlFlow::Continue(());
        }
        let line = item.line();
        if line.is_some_and(|line| line <= self.resume_line) {
            return ControlFlow::Continue(());
        }
        self.has_shown = true;
        if !self.has_capacity() {
            return ControlFlow::Break(());
        }
        self.push_counts();
        self.resume_line = line.unwrap_or(self.resume_line);
        self.is_file_done = matches!(item, Item::Done { .. });
        self.bytes += item.cost();
        self.items.push(item);
        // Only between lines and after a file: a file that is begun again leaves out the lines it had, and nothing else.
        let is_much = self.items.len() >= MAX_BATCH_ITEMS || self.bytes >= MAX_BATCH_BYTES;
        if (line.is_some() && is_much) || (self.is_file_done && (is_much || self.is_due())) {
            self.flush();
        }
        ControlFlow::Continue(())
    }
}

/// Shared with what looks, between two pieces of a file, whether items are due.
impl<S: BatchTarget> ItemSink for &RefCell<Batcher<S>> {
    fn put(&mut self, item: Item) -> ControlFlow<()> {
        self.borrow_mut().put(item)
    }
}
