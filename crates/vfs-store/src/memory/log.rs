//! Bounded change log of a namespace.

use std::collections::VecDeque;
use std::sync::Arc;

use event_listener::Event;

use crate::store::{ChangePage, ChangeRecord, Sequence};

/// How many changes are remembered.
const LOG_CAPACITY: usize = 4096;

/// The newest changes of a namespace, numbered from 1.
#[derive(Debug, Default)]
pub(super) struct MemoryLog {
    newest: VecDeque<ChangeRecord>,
    last: u64,
    told: Arc<Event>,
}

impl MemoryLog {
    pub(super) fn tell(&mut self, changes: impl IntoIterator<Item = ChangeRecord>) {
        for change in changes {
            if self.newest.len() == LOG_CAPACITY {
                self.newest.pop_front();
            }
            self.newest.push_back(change);
            self.last += 1;
        }
        self.told.notify(usize::MAX);
    }

    /// Wakes whoever listens at every change.
    pub(super) fn told(&self) -> Arc<Event> {
        Arc::clone(&self.told)
    }

    pub(super) fn position(&self) -> Sequence {
        Sequence(self.last)
    }

    pub(super) fn since(&self, seen: Sequence, limit: usize) -> ChangePage {
        let forgotten = self.last - self.newest.len() as u64;
        if !(forgotten..=self.last).contains(&seen.0) {
            return ChangePage::Expired(self.position());
        }
        let skipped = usize::try_from(seen.0 - forgotten).unwrap_or(usize::MAX);
        let numbers = (seen.0 + 1..).map(Sequence);
        let changes: Vec<_> = numbers.zip(self.newest.iter().skip(skipped).cloned()).take(limit.max(1)).collect();
        let next = changes.last().map_or(seen, |(position, _)| *position);
        ChangePage::Changes { changes, next, has_more: next < self.position() }
    }
}
