//! Items in the lists that workers filled: handed over whole, and given back empty to be filled again.

use std::collections::VecDeque;

use vfs_core::GrepMatch;

use crate::item::Item;

/// Most empty lists that are kept. A list holds about as many bytes as a worker collects before it hands them over, so this
/// is what the consumer is behind at most.
const MAX_SPARE_BATCHES: usize = 64;

/// How many items an empty list has room for that is kept; a shorter one is made as fast.
const MIN_SPARE_CAPACITY: usize = 64;

/// Keeps the list `items` in `spares`, where it is empty and of use.
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
    /// Adds items behind the others.
    pub(crate) fn push(&mut self, items: Vec<Item>) {
        self.rest.push_back(items);
    }

    /// The next item.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.first.pop_front() {
                return Some(item);
            }
            // Neither way is anything copied, since there is nothing left in the one that goes.
            recycle(Vec::from(std::mem::take(&mut self.first)), &mut self.empty);
            self.first = VecDeque::from(self.rest.pop_front()?);
        }
    }

    /// The next item, if it is a match in the list that is being emptied, and is `wanted`.
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

    /// Whether there is nothing left.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.rest.is_empty()
    }

    /// Moves the lists that were emptied to `spares`, as long as that has not enough.
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
        // The one of one item is not worth it.
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
