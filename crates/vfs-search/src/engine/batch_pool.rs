//! Items in the lists that workers filled: handed over whole, and given back empty to be filled again.

use std::collections::VecDeque;

use vfs_core::GrepMatch;

use crate::item::Item;

/// Most empty lists that are kept. A list holds about as many bytes as a worker collects before it hands them over, so this
/// is what the consumer is behind at most.
const MOST_EMPTY: usize = 64;

/// How many items an empty list has room for that is kept; a shorter one is made as fast.
const ROOMY: usize = 64;

/// Keeps the list `items` in `spares`, where it is empty and of use.
pub(crate) fn keep(items: Vec<Item>, spares: &mut Vec<Vec<Item>>) {
    if items.is_empty() && items.capacity() >= ROOMY && spares.len() < MOST_EMPTY {
        spares.push(items);
    }
}

/// Items in order, on their way to the consumer.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    first: VecDeque<Item>,
    rest: VecDeque<Vec<Item>>,
    empty: Vec<Vec<Item>>,
}

impl Lists {
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
            keep(Vec::from(std::mem::take(&mut self.first)), &mut self.empty);
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
    pub(crate) fn give_back(&mut self, spares: &mut Vec<Vec<Item>>) {
        let room = MOST_EMPTY.saturating_sub(spares.len()).min(self.empty.len());
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

    fn counts(lists: &mut Lists) -> Vec<u64> {
        let count = |item| match item {
            Item::File(file) => file.count.unwrap_or_default(),
            _ => 0,
        };
        std::iter::from_fn(|| lists.pop()).map(count).collect()
    }

    #[test]
    fn items_come_in_order_and_their_lists_are_used_again() {
        let mut lists = Lists::default();
        assert!(lists.is_empty());
        for items in [list(0..100), list([]), list(100..101), list(101..400)] {
            lists.push(items);
        }
        assert!(!lists.is_empty());
        assert_eq!(counts(&mut lists), (0..400).collect::<Vec<_>>());
        assert!(lists.is_empty());
        lists.push(list([]));
        assert_eq!(counts(&mut lists), []);

        let mut spares = Vec::new();
        lists.give_back(&mut spares);
        // The one of one item is not worth it.
        assert_eq!(spares.len(), 2);
        assert!(spares.iter().all(|spare| spare.is_empty() && spare.capacity() >= ROOMY));
        lists.give_back(&mut spares);
        assert_eq!(spares.len(), 2);
    }

    #[test]
    fn no_more_empty_lists_are_kept_than_are_of_use() {
        let mut lists = Lists::default();
        (0..3 * MOST_EMPTY).for_each(|_| lists.push(list(0..100)));
        assert_eq!(counts(&mut lists).len(), 300 * MOST_EMPTY);
        let mut spares: Vec<_> = (0..10).map(|_| Vec::new()).collect();
        lists.give_back(&mut spares);
        assert_eq!(spares.len(), MOST_EMPTY);
    }
}
