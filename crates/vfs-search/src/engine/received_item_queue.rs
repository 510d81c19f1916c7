//! Queue of item batches that a consumer takes item by item.

use std::collections::VecDeque;
use std::vec;

use vfs_core::GrepMatch;

use crate::search_item::SearchItem;

/// Items in order, on their way to the consumer.
#[derive(Debug, Default)]
pub(crate) struct ReceivedItemQueue {
    current: vec::IntoIter<SearchItem>,
    rest: VecDeque<Vec<SearchItem>>,
}

impl ReceivedItemQueue {
    /// Appends a batch.
    pub(crate) fn push(&mut self, items: Vec<SearchItem>) {
        self.rest.push_back(items);
    }

    /// Returns the next item.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<SearchItem> {
        loop {
            if let Some(item) = self.current.next() {
                return Some(item);
            }
            self.current = self.rest.pop_front()?.into_iter();
        }
    }

    /// Returns the next item if it is a match in the current batch and `predicate` accepts it.
    #[inline]
    pub(crate) fn pop_match_if(&mut self, predicate: impl FnOnce(&GrepMatch) -> bool) -> Option<GrepMatch> {
        match self.current.as_slice().first() {
            Some(SearchItem::Match(line)) if predicate(line) => {}
            _ => return None,
        }
        match self.current.next() {
            Some(SearchItem::Match(line)) => Some(line),
            _ => None,
        }
    }

    /// Returns whether no item is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.as_slice().is_empty() && self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::VfsPath;
    use vfs_core::search::MatchedFile;

    use super::*;

    fn list(counts: impl IntoIterator<Item = u64>) -> Vec<SearchItem> {
        counts.into_iter().map(|count| SearchItem::File(MatchedFile::new(VfsPath::root(), Some(count)))).collect()
    }

    fn counts(batches: &mut ReceivedItemQueue) -> Vec<u64> {
        let count = |item| match item {
            SearchItem::File(file) => file.count.unwrap_or_default(),
            _ => 0,
        };
        std::iter::from_fn(|| batches.pop()).map(count).collect()
    }

    #[test]
    fn items_come_in_the_order_of_their_batches() {
        let mut batches = ReceivedItemQueue::default();
        assert!(batches.is_empty());
        for items in [list(0..100), list([]), list(100..101), list(101..400)] {
            batches.push(items);
        }
        assert!(!batches.is_empty());
        assert_eq!(counts(&mut batches), (0..400).collect::<Vec<_>>());
        assert!(batches.is_empty());
        batches.push(list([]));
        assert!(counts(&mut batches).is_empty());
    }
}
