//! What batches have brought in, in order, and how much of it there may be.

use std::collections::VecDeque;

use crate::sink::Item;

/// How far a search may be ahead of its consumer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Most batches under way.
    pub(crate) window: usize,
    /// Most bytes of items, apart from those of the first batch.
    pub(crate) budget: usize,
    /// Most bytes of items of the first batch.
    pub(crate) head_budget: usize,
}

impl Tuning {
    /// What suits a pool of `workers`.
    pub(crate) fn for_workers(workers: usize) -> Self {
        Self { window: workers * 4, budget: 4 << 20, head_budget: 512 << 10 }
    }
}

/// One slot for each batch under way.
#[derive(Debug)]
pub(crate) struct Slots {
    tuning: Tuning,
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    first: u64,
    /// Bytes in all slots.
    buffered: usize,
}

#[derive(Debug, Default)]
struct Slot {
    items: Vec<Item>,
    bytes: usize,
    done: bool,
}

/// What the first slot had.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// Some items.
    Items,
    /// Nothing yet.
    Waiting,
    /// There is no slot.
    None,
}

impl Slots {
    pub(crate) fn new(tuning: Tuning) -> Self {
        Self { tuning, slots: VecDeque::new(), first: 0, buffered: 0 }
    }

    /// Opens a slot that begins with `item`; the result is its number.
    pub(crate) fn open(&mut self, item: Item) -> u64 {
        self.slots.push_back(Slot { items: vec![item], ..Slot::default() });
        self.first + self.slots.len() as u64 - 1
    }

    /// Whether the consumer waits for slot `index` alone.
    pub(crate) fn is_head(&self, index: u64) -> bool {
        index == self.first
    }

    /// Whether another batch may be begun.
    pub(crate) fn has_room(&self) -> bool {
        self.slots.len() < self.tuning.window && self.buffered < self.tuning.budget
    }

    /// Whether slot `index` may take more. The first may while the rest may not, or no slot would ever be emptied.
    pub(crate) fn admits(&self, index: u64) -> bool {
        match self.slots.front() {
            Some(head) if self.is_head(index) => head.bytes < self.tuning.head_budget,
            _ => self.buffered < self.tuning.budget,
        }
    }

    /// Whether a batch that had to stop may go on in slot `index`. It begins a file again, so there has to be room enough
    /// to make that worthwhile.
    pub(crate) fn invites(&self, index: u64) -> bool {
        if self.is_head(index) { self.admits(index) } else { self.buffered < self.tuning.budget / 2 }
    }

    /// Adds `items`, which cost `bytes`; `false` where the slot is gone.
    pub(crate) fn add(&mut self, index: u64, items: &mut Vec<Item>, bytes: usize) -> bool {
        let Some(slot) = self.slot(index) else {
            return false;
        };
        slot.items.append(items);
        slot.bytes += bytes;
        self.buffered += bytes;
        true
    }

    /// Marks slot `index` as complete, `last` being its last item.
    pub(crate) fn finish(&mut self, index: u64, last: Option<Item>) {
        if let Some(slot) = self.slot(index) {
            slot.items.extend(last);
            slot.done = true;
        }
    }

    /// Moves what the first slot has to `ready`, and on to the next slot where it is complete.
    pub(crate) fn take(&mut self, ready: &mut VecDeque<Item>) -> Head {
        while let Some(head) = self.slots.front_mut() {
            let items = std::mem::take(&mut head.items);
            self.buffered -= std::mem::take(&mut head.bytes);
            let done = head.done;
            if done {
                self.slots.pop_front();
                self.first += 1;
            }
            if !items.is_empty() {
                ready.extend(items);
                return Head::Items;
            }
            if !done {
                return Head::Waiting;
            }
        }
        Head::None
    }

    fn slot(&mut self, index: u64) -> Option<&mut Slot> {
        let at = usize::try_from(index.checked_sub(self.first)?).ok()?;
        self.slots.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::{FileCount, VfsPath};

    use super::*;

    fn item(count: u64) -> Item {
        Item::File(FileCount::new(VfsPath::root(), Some(count)))
    }

    fn counts(ready: &mut VecDeque<Item>) -> Vec<u64> {
        let count = |item| match item {
            Item::File(file) => file.count.unwrap_or_default(),
            _ => 0,
        };
        ready.drain(..).map(count).collect()
    }

    #[test]
    fn items_come_in_the_order_of_their_slots() {
        let mut slots = Slots::new(Tuning { window: 3, budget: 100, head_budget: 10 });
        let mut ready = VecDeque::new();
        let (a, b) = (slots.open(item(1)), slots.open(item(10)));
        slots.finish(b, Some(item(11)));
        assert_eq!(slots.take(&mut ready), Head::Items);
        assert_eq!(counts(&mut ready), [1]);
        assert_eq!(slots.take(&mut ready), Head::Waiting);
        assert!(slots.add(a, &mut vec![item(2)], 5));
        slots.finish(a, None);
        assert_eq!((slots.take(&mut ready), slots.take(&mut ready)), (Head::Items, Head::Items));
        assert_eq!(counts(&mut ready), [2, 10, 11]);
        assert_eq!(slots.take(&mut ready), Head::None);
        assert!(!slots.add(a, &mut vec![item(3)], 5));
    }

    #[test]
    fn the_first_slot_takes_more_when_the_others_may_not() {
        let mut slots = Slots::new(Tuning { window: 2, budget: 20, head_budget: 10 });
        let (a, b) = (slots.open(item(1)), slots.open(item(2)));
        assert!(!slots.has_room());
        assert!(slots.add(b, &mut vec![item(3)], 20));
        assert!(slots.admits(a) && !slots.admits(b));
        assert!(slots.invites(a) && !slots.invites(b));
        assert!(slots.add(a, &mut vec![item(4)], 10));
        assert!(!slots.admits(a));
        assert_eq!(slots.take(&mut VecDeque::new()), Head::Items);
        assert!(slots.admits(a));
        slots.finish(a, None);
        assert_eq!(slots.take(&mut VecDeque::new()), Head::Items);
        assert!(slots.admits(b) && slots.has_room());
    }
}
