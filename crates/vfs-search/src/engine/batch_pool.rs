//! Queue of item batches that recycles the allocations of emptied batches.

use std::collections::VecDeque;

use vfs_core::GrepMatch;

use crate::item::Item;

/// Maximum number of empty batches that are kept. A batch holds about as many bytes as a worker collects before it
/// hands them over, so this is as far as the consumer lags behind at most.
const MAX_SPARE_BATCHES: usize = 64;

/// Minimum capacity, in items, of an empty batch that is kept; allocating a smaller one is as fast.
const MIN_SPARE_CAPACITY: usize = 64;

/// Keeps the batch `items` in `spares` if it is empty and worth keeping.
pub(crate) fn recycle(items: Vec<Item>, spares: &mut Vec<Vec<Item>>) {
    if items.is_empty() && items.capacity() >= MIN_SPARE_CAPACITY && spares.len() < MAX_SPARE_BATCHES {
        spares.push(items);
    }
}

/// Items in order, on their way to the consumer.
#[derive(Debug, Default)]
pub(crate) struct BatchPool {
    first: VecDeque<Item>,
    rest: VecDeque<Vec<Item>>,
    empty: Vec<Vec<Item>>,
}

impl BatchPool {
    /// Appends a batch.
    pub(crate) fn push(&mut self, items: Vec<Item>) {
        self.rest.push_back(items);
    }

    /// Returns the next item.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.first.pop_front() {
                return Some(item);
            }
            // Neither conversion copies anything, since the batch that is replaced is empty.
            recycle(Vec::from(std::mem::take(&mut self.first)), &mut self.empty);
            self.first = VecDeque::from(self.rest.pop_front()?);
        }
    }

    /// Returns the next item if it is a match in the current batch and `wanted` accepts it.
    #[inline]
    pub(crate) fn pop_match_if(&mut self, wanted: impl FnOnce(&GrepMatch) -> bool) -> Option<GrepMatch> {
        match self.first.front() {
            Some(Item::Match(line)) if wanted(line) => {}
            _ => return None,
        }
        match self.first.pop_front() {
            Some(Item::Match(line)) => Some(line),
            _ => None,
        }
    }

    /// Returns whether no item is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.rest.is_empty()
    }

    /// Moves emptied batches to `spares` until that has enough.
    pub(crate) fn return_spares(&mut self, spares: &mut Vec<Vec<Item>>) {
        let room = MAX_SPARE_BATCHES.saturating_sub(spares.len()).min(self.empty.len());
        spares.extend(self.empty.drain(..room));
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::{FileCount, VfsPath};

    use super::*;

    fn list(counts: impl IntoIterator<Item = u64>) -> Vec<Item> {
        counts.into_iter().map(|count| Item::File(FileCount::new(VfsPath::root(), Some(count)))).collect()
    }

    fn counts(batches: &mut BatchPool) -> Vec<u64> {
        let count = |item| match item {
            Item::File(file) => file.count.unwrap_or_default(),
            _ => 0,
        };
        std::iter::from_fn(|| batches.pop()).map(count).collect()
    }

    #[test]
    fn items_come_in_order_and_their_lists_are_used_again() {
        let mut batches = BatchPool::default();
        assert!(batches.is_empty());
        for items in [list(0..100), list([]), list(100..101), list(101..400)] {
            batches.push(items);
        }
        assert!(!batches.is_empty());
        assert_eq!(counts(&mut batches), (0..400).collect::<Vec<_>>());
        assert!(batches.is_empty());
        batches.push(list([]));
        assert_eq!(counts(&mut batches), []);

        let mut spares = Vec::new();
        batches.return_spares(&mut spares);
        // The batch of one item is too small to be kept.
        assert_eq!(spares.len(), 2);
        assert!(spares.iter().all(|spare| spare.is_empty() && spare.capacity() >= MIN_SPARE_CAPACITY));
        batches.return_spares(&mut spares);
        assert_eq!(spares.len(), 2);
    }

    #[test]
    fn no_more_empty_lists_are_kept_than_are_of_use() {
        let mut batches = BatchPool::default();
        (0..3 * MAX_SPARE_BATCHES).for_each(|_| batches.push(list(0..100)));
        assert_eq!(counts(&mut batches).len(), 300 * MAX_SPARE_BATCHES);
        let mut spares: Vec<_> = (0..10).map(|_| Vec::new()).collect();
        batches.return_spares(&mut spares);
        assert_eq!(spares.len(), MAX_SPARE_BATCHES);
    }
}
