//! What is to be searched and what was found, in the order of the walk, and how much of it there may be.
//!
//! Work and results are kept by keys that sort as paths do. A stretch of the walk that is claimed becomes a slot under the
//! key of its first step, which its results go to; what is left of it comes back as work, whose keys lie behind that. So
//! several workers may list and search at once, each the first thing that nobody has claimed, and the consumer empties the
//! slots in order: the first slot is ready for it as soon as no work is left before it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::batch_pool::{Lists, keep};
use crate::engine::visitor::Named;
use crate::item::{Item, Tally};
use crate::walk::options::MAX_ENTRIES;
use crate::walk::subtree::{Cursor, Stretch};

/// Most steps that are claimed at once. The first claims are smaller, so that the first results are there soon.
const LARGEST_CLAIM: usize = 32;

/// How many slots that are complete and show nothing there may be for one that is not. They hold next to nothing, and let the
/// other workers go on while one is at a huge file.
const QUIET_FOR_ONE: usize = 16;

/// What sorts work and slots, as bytes: the full path of an entry, with a `/` for what lies below it.
pub(crate) type Key = Arc<str>;

/// How far a search may be ahead of its consumer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Most slots that are not complete, or show something.
    pub(crate) window: usize,
    /// Most bytes of items, apart from those of the first slot.
    pub(crate) budget: usize,
    /// Most bytes of items of the first slot.
    pub(crate) head_budget: usize,
    /// About how many entries are listed at most.
    pub(crate) max_entries: u64,
}

impl Tuning {
    /// What suits a pool of `workers`.
    pub(crate) fn for_workers(workers: usize) -> Self {
        let max_entries = MAX_ENTRIES;
        Self { window: workers * 128, budget: 4 << 20, head_budget: 512 << 10, max_entries }
    }
}

/// The work and the slots of one search.
#[derive(Debug)]
pub(crate) struct Frontier<D> {
    tuning: Tuning,
    /// Whether it is still to be found where the walk starts.
    is_new: bool,
    work: BTreeMap<Key, Cursor<D>>,
    slots: BTreeMap<Key, Slot<D>>,
    /// How many slots hold a parked job.
    parked: usize,
    /// How many slots are complete and show nothing.
    quiet: usize,
    /// Bytes in all slots.
    buffered: usize,
    /// Whether there was too much in the slots, until there is much less.
    is_full: bool,
    /// Empty lists that were emptied by the consumer, for the workers to fill again.
    spares: Vec<Vec<Item>>,
    /// What the slots that showed nothing were counted as.
    passed: Tally,
    claim_size: usize,
}

/// Something for a worker to do, with its slot's key.
#[derive(Debug)]
pub(crate) struct Claim<D> {
    pub(crate) key: Key,
    pub(crate) job: Job<D>,
}

#[derive(Debug)]
pub(crate) enum Job<D> {
    /// Find where the walk starts.
    Start,
    /// Visit the file that the request names.
    Named(Progress<Named<D>>),
    /// Go on with a stretch of the walk.
    Walk(Progress<Stretch<D>>),
}

/// What is visited, and how far that has come.
#[derive(Debug)]
pub(crate) struct Progress<W> {
    pub(crate) what: W,
    /// The last line of its first file that was brought in by an earlier turn, or 0.
    pub(crate) brought_in: u64,
}

impl<W> Progress<W> {
    pub(crate) fn new(what: W) -> Self {
        Self { what, brought_in: 0 }
    }
}

#[derive(Debug)]
struct Slot<D> {
    /// Its items, in the lists that came; none of them is empty.
    lists: Vec<Vec<Item>>,
    bytes: usize,
    /// Whether there is more than counts among the items.
    shows: bool,
    is_done: bool,
    /// What is left of its job, which stopped for want of room.
    parked: Option<Job<D>>,
}

impl<D> Default for Slot<D> {
    fn default() -> Self {
        Self { lists: Vec::new(), bytes: 0, shows: false, is_done: false, parked: None }
    }
}

/// What the consumer got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// Some items.
    Items,
    /// Nothing yet.
    Waiting,
    /// Nothing, and nothing will come.
    Finished,
}

/// What may be claimed next.
enum Next {
    Start,
    Parked(Key),
    Work,
}

impl<D> Frontier<D> {
    pub(crate) fn new(tuning: Tuning) -> Self {
        Self {
            tuning,
            is_new: true,
            work: BTreeMap::new(),
            slots: BTreeMap::new(),
            parked: 0,
            quiet: 0,
            buffered: 0,
            is_full: false,
            spares: Vec::new(),
            passed: Tally::default(),
            claim_size: 1,
        }
    }

    /// The frontier of a search that nobody wants any more.
    pub(crate) fn closed() -> Self {
        let tuning = Tuning { window: 0, budget: 0, head_budget: 0, max_entries: 0 };
        Self { is_new: false, ..Self::new(tuning) }
    }

    /// Whether nothing is left that could be claimed, now or when there is room.
    pub(crate) fn is_out_of_work(&self) -> bool {
        !self.is_new && self.work.is_empty() && self.parked == 0
    }

    /// Whether there is something to claim.
    pub(crate) fn has_next(&mut self) -> bool {
        self.next().is_some()
    }

    /// Takes the first thing that is to be done, if there is room for what it brings in.
    pub(crate) fn claim(&mut self) -> Option<Claim<D>> {
        match self.next()? {
            Next::Start => {
                self.is_new = false;
                Some(self.open(Key::from(""), Job::Start))
            }
            Next::Parked(key) => {
                let job = self.slots.get_mut(&key)?.parked.take()?;
                self.parked -= 1;
                Some(Claim { key, job })
            }
            Next::Work => {
                let (key, mut cursor) = self.work.pop_first()?;
                let first = cursor.take(self.claim_size);
                self.claim_size = (self.claim_size * 2).min(LARGEST_CLAIM);
                self.push(cursor);
                Some(self.open(key, Job::Walk(Progress::new(Stretch::new(first)))))
            }
        }
    }

    /// Adds what is left of `stretch` to the work.
    pub(crate) fn push_all(&mut self, stretch: Stretch<D>) {
        stretch.into_cursors().for_each(|cursor| self.push(cursor));
    }

    /// Adds work, if there is any in `cursor`.
    pub(crate) fn push(&mut self, cursor: Cursor<D>) {
        if !cursor.steps.is_empty() {
            self.work.insert(cursor.level.key(cursor.steps.start), cursor);
        }
    }

    fn open(&mut self, key: Key, job: Job<D>) -> Claim<D> {
        self.slots.insert(Arc::clone(&key), Slot::default());
        Claim { key, job }
    }

    fn next(&mut self) -> Option<Next> {
        if self.is_new {
            return Some(Next::Start);
        }
        // Once full it is so until there is much less, so that workers do not stop and go with each item.
        let Tuning { window, budget, .. } = self.tuning;
        let (part, open) = (if self.is_full { 2 } else { 1 }, self.slots.len() - self.quiet);
        self.is_full = self.buffered >= budget / part
            || open >= window.div_ceil(part)
            || self.quiet >= window * QUIET_FOR_ONE / part;
        if self.parked > 0
            && let Some((key, _)) = self.slots.iter().find(|(_, slot)| slot.parked.is_some())
        {
            // It begins a file again, so there has to be room enough to make that worthwhile.
            let is_invited = if self.is_head(key) { self.admits(key) } else { self.buffered < self.tuning.budget / 2 };
            if is_invited {
                return Some(Next::Parked(Arc::clone(key)));
            }
        }
        let (first, _) = self.work.first_key_value()?;
        (!self.is_full || self.slots.keys().next().is_none_or(|slot| first < slot)).then_some(Next::Work)
    }

    /// Whether the consumer waits for slot `key` alone.
    pub(crate) fn is_head(&self, key: &str) -> bool {
        let is_first = self.slots.keys().next().is_some_and(|first| **first == *key);
        is_first && !self.is_new && self.work.keys().next().is_none_or(|first| **first > *key)
    }

    /// Whether slot `key` may take more. The first may while the rest may not, or no slot would ever be emptied.
    pub(crate) fn admits(&self, key: &str) -> bool {
        match self.slots.get(key) {
            Some(slot) if self.is_head(key) => slot.bytes < self.tuning.head_budget,
            _ => self.buffered < self.tuning.budget,
        }
    }

    /// Takes `items`, which cost `bytes`; `false` where the slot is gone.
    pub(crate) fn add(&mut self, key: &str, items: &mut Vec<Item>, bytes: usize) -> bool {
        let Some(slot) = self.slots.get_mut(key) else {
            return false;
        };
        if items.is_empty() {
            return true;
        }
        slot.shows |= items.iter().any(Item::shows);
        slot.lists.push(whole_or_few(items));
        slot.bytes += bytes;
        self.buffered += bytes;
        true
    }

    /// An empty list, with room where there is one that was used before.
    pub(crate) fn spare(&mut self) -> Vec<Item> {
        self.spares.pop().unwrap_or_default()
    }

    /// Keeps a list that was emptied.
    pub(crate) fn keep(&mut self, items: Vec<Item>) {
        keep(items, &mut self.spares);
    }

    /// Marks slot `key` as complete.
    pub(crate) fn finish(&mut self, key: &str) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.is_done = true;
            self.quiet += usize::from(!slot.shows);
        }
        self.pass();
    }

    /// Keeps what is left of the job of slot `key` until there is room. Gives it back where nobody wants it any more.
    pub(crate) fn park(&mut self, key: &str, job: Job<D>) -> Option<Job<D>> {
        let Some(slot) = self.slots.get_mut(key) else {
            return Some(job);
        };
        slot.parked = Some(job);
        self.parked += 1;
        None
    }

    /// Goes past the complete slots at the front that show nothing, so that the consumer need not be woken for them.
    fn pass(&mut self) {
        while let Some((key, slot)) = self.slots.first_key_value()
            && slot.is_done
            && !slot.shows
            && self.is_head(key)
            && let Some((_, slot)) = self.slots.pop_first()
        {
            self.buffered -= slot.bytes;
            self.quiet -= 1;
            for item in slot.lists.into_iter().flatten() {
                if let Item::Tally(tally) = item {
                    self.passed += tally;
                }
            }
        }
    }

    /// Whether all is done; there may be something left to take.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_out_of_work() && self.slots.values().all(|slot| slot.is_done)
    }

    /// Whether the consumer would get something, if only the end.
    pub(crate) fn is_ready(&self) -> bool {
        match self.slots.first_key_value() {
            Some((key, slot)) => slot.shows && self.is_head(key),
            None => self.is_out_of_work(),
        }
    }

    /// Moves what the first slots have to `ready`.
    pub(crate) fn take(&mut self, ready: &mut Lists) -> Head {
        ready.give_back(&mut self.spares);
        if !self.is_ready() {
            return Head::Waiting;
        }
        let passed = std::mem::take(&mut self.passed);
        if !passed.is_empty() {
            ready.push(vec![Item::Tally(passed)]);
        }
        while let Some((key, _)) = self.slots.first_key_value()
            && self.is_head(key)
            && let Some(mut head) = self.slots.first_entry()
        {
            let slot = head.get_mut();
            slot.lists.drain(..).for_each(|items| ready.push(items));
            self.buffered -= std::mem::take(&mut slot.bytes);
            let showed = std::mem::take(&mut slot.shows);
            if !slot.is_done {
                break;
            }
            head.remove();
            self.quiet -= usize::from(!showed);
        }
        if ready.is_empty() { Head::Finished } else { Head::Items }
    }
}

/// What is in `items`: a long list as it is, and few items without all of its memory.
fn whole_or_few(items: &mut Vec<Item>) -> Vec<Item> {
    if items.len() >= items.capacity() / 4 {
        return std::mem::take(items);
    }
    let mut few = Vec::with_capacity(items.len());
    few.append(items);
    few
}
