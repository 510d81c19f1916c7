//! What a worker has found and not handed over yet, so that the lock is not taken for each item.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::item::{Item, Outlet, Tally};
use crate::walk::dir_entries::Findings;

/// Items that a worker collects before it hands them over.
const FLUSH_ITEMS: usize = 512;

/// Bytes that a worker collects before it hands them over.
const FLUSH_BYTES: usize = 64 << 10;

/// How long a worker keeps what it has found, as far as it has an occasion to hand it over.
const FLUSH_AFTER: Duration = Duration::from_millis(1);

/// Whether a slot may take more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Enough,
    /// To be looked at, or waited for.
    Unknown,
    /// Not until the consumer has made some.
    Short,
    /// Nobody wants any more.
    Unwanted,
}

/// Where items are handed over.
pub(crate) trait Slot {
    /// Takes items that cost `bytes`, and says whether there is room for more.
    fn emit(&self, items: &mut Vec<Item>, bytes: usize) -> Room;

    /// Whether there is room for more; waits for it where that is worthwhile. Where `items` has no memory it may be given some.
    fn room(&self, items: &mut Vec<Item>) -> Room;
}

/// Collects the items of one claim.
pub(crate) struct Collector<S> {
    slot: S,
    items: Vec<Item>,
    bytes: usize,
    tally: Tally,
    room: Room,
    /// When items were handed over last, if any were.
    flushed: Option<Instant>,
    /// The last line of the file that was brought in; those up to it are left out.
    brought_in: u64,
    /// Whether an item of the file was put, or could not be: then its end counts for more than a number.
    has_shown: bool,
    is_file_done: bool,
}

impl<S: Slot> Collector<S> {
    pub(crate) fn new(slot: S) -> Self {
        Self {
            slot,
            bytes: 0,
            items: Vec::new(),
            tally: Tally::default(),
            room: Room::Unknown,
            flushed: None,
            brought_in: 0,
            has_shown: false,
            is_file_done: false,
        }
    }

    /// The items that follow are those of one file, whose lines up to `brought_in` are in the slot already.
    pub(crate) fn begin_file(&mut self, brought_in: u64) {
        self.brought_in = brought_in;
        self.has_shown = brought_in > 0;
        self.is_file_done = false;
    }

    /// Whether the file is done. Sets the last line that was brought in of one that is not; of the next it is 0.
    pub(crate) fn end_file(&mut self, brought_in: &mut u64) -> bool {
        *brought_in = if self.is_file_done { 0 } else { self.brought_in };
        self.is_file_done
    }

    /// Takes what was found beside entries, whether there is room for it or not: it is not found again.
    pub(crate) fn note(&mut self, findings: Findings) {
        self.tally += Tally::of(&findings);
        if findings.problems.is_empty() {
            return;
        }
        self.push_tally();
        let items = findings.problems.into_iter().map(Item::Problem);
        self.items.extend(items.inspect(|item| self.bytes += item.cost()));
    }

    /// Whether more is taken. What was put before is in any case.
    fn has_room(&mut self) -> bool {
        if self.room == Room::Unknown {
            self.room = self.slot.room(&mut self.items);
        }
        self.room == Room::Enough
    }

    /// What is left to hand over, and what it costs.
    pub(crate) fn into_rest(mut self) -> (Vec<Item>, usize) {
        self.push_tally();
        (self.items, self.bytes)
    }

    fn push_tally(&mut self) {
        if !self.tally.is_empty() {
            self.bytes += size_of::<Item>();
            self.items.push(Item::Tally(std::mem::take(&mut self.tally)));
        }
    }

    /// Hands over what a consumer has waited for long enough.
    pub(crate) fn flush_old(&mut self) {
        if !self.items.is_empty() && self.is_due() {
            self.flush();
        }
    }

    /// Whether the consumer is not to wait any longer. What is found first is not kept from it at all: opening the next file
    /// may take for ever.
    fn is_due(&self) -> bool {
        self.flushed.is_none_or(|flushed| flushed.elapsed() >= FLUSH_AFTER)
    }

    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.room = self.slot.emit(&mut self.items, bytes);
        self.flushed = Some(Instant::now());
    }
}

impl<S: Slot> Outlet for Collector<S> {
    #[inline]
    fn put(&mut self, item: Item) -> ControlFlow<()> {
        if let Item::Done { searched, left_early: false, skipped } = item
            && !self.has_shown
        {
            self.tally += Tally { searched: searched.into(), skipped, ..Tally::default() };
            self.is_file_done = true;
            return ControlFlow::Continue(());
        }
        let line = item.line();
        if line.is_some_and(|line| line <= self.brought_in) {
            return ControlFlow::Continue(());
        }
        self.has_shown = true;
        if !self.has_room() {
            return ControlFlow::Break(());
        }
        self.push_tally();
        self.brought_in = line.unwrap_or(self.brought_in);
        self.is_file_done = matches!(item, Item::Done { .. });
        self.bytes += item.cost();
        self.items.push(item);
        // Only between lines and after a file: a file that is begun again leaves out the lines it had, and nothing else.
        let is_much = self.items.len() >= FLUSH_ITEMS || self.bytes >= FLUSH_BYTES;
        if (line.is_some() && is_much) || (self.is_file_done && (is_much || self.is_due())) {
            self.flush();
        }
        ControlFlow::Continue(())
    }
}

/// Shared with what looks, between two pieces of a file, whether items are due.
impl<S: Slot> Outlet for &RefCell<Collector<S>> {
    fn put(&mut self, item: Item) -> ControlFlow<()> {
        self.borrow_mut().put(item)
    }
}
