//! Bounded change log of a namespace.

use std::collections::VecDeque;
use std::sync::Arc;

use event_listener::Event;

use crate::store::{ChangePage, ChangeRecord, Sequence};

/// Maximum number of changes in the log.
const LOG_CAPACITY: usize = 4096;

/// The newest changes of a namespace, numbered from 1.
#[derive(Debug, Default)]
pub(super) struct MemoryChangeLog {
    newest: VecDeque<ChangeRecord>,
    last: u64,
    event: Arc<Event>,
}

impl MemoryChangeLog {
    pub(super) fn append(&mut self, changes: impl IntoIterator<Item = ChangeRecord>) {
        for change in changes {
            if self.newest.len() == LOG_CAPACITY {
                self.newest.pop_front();
            }
            self.newest.push_back(change);
            self.last += 1;
        }
        self.event.notify(usize::MAX);
    }

    /// Returns the event that notifies its listeners of every change.
    pub(super) fn event(&self) -> Arc<Event> {
        Arc::clone(&self.event)
    }

    pub(super) fn last_sequence(&self) -> Sequence {
        Sequence(self.last)
    }

    pub(super) fn since(&self, seen: Sequence, limit: usize) -> ChangePage {
        let dropped = self.last - self.newest.len() as u64;
        if !(dropped..=self.last).contains(&seen.0) {
            return ChangePage::Expired(self.last_sequence());
        }
        let skipped = usize::try_from(seen.0 - dropped).unwrap_or(usize::MAX);
        let numbers = (seen.0 + 1..).map(Sequence);
        let changes: Vec<_> = numbers.zip(self.newest.iter().skip(skipped).cloned()).take(limit.max(1)).collect();
        let next = changes.last().map_or(seen, |(sequence, _)| *sequence);
        ChangePage::Changes { changes, next, has_more: next < self.last_sequence() }
    }
}
