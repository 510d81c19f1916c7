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

use crate::engine::batch_pool::{BatchPool, recycle};
use crate::engine::visitor::NamedFile;
use crate::item::{Counts, Item};
use crate::walk::options::MAX_ENTRIES;
use crate::walk::subtree::{StepRange, Subtree};

/// Most steps that are claimed at once. The first claims are smaller, so that the first results are there soon.
const MAX_CLAIM_STEPS: usize = 32;

/// How many slots that are complete and show nothing there may be for one that is not. They hold next to nothing, and let the
/// other workers go on while one is at a huge file.
const MAX_QUIET_SLOTS_PER_OPEN: usize = 16;

/// What sorts work and slots, as bytes: the full path of an entry, with a `/` for what lies below it.
pub(crate) type PathKey = Arc<str>;

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
pub(crate) struct OrderedQueue<D> {
    tuning: Tuning,
    /// Whether it is still to be found where the walk starts.
    is_new: bool,
    work: BTreeMap<PathKey, StepRange<D>>,
    slots: BTreeMap<PathKey, QueueSlot<D>>,
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
    passed_counts: Counts,
    claim_steps: usize,
}

/// Something for a worker to do, with its slot's key.
#[derive(Debug)]
pub(crate) struct Task<D> {
    pub(crate) key: PathKey,
    pub(crate) kind: TaskKind<D>,
}

#[derive(Debug)]
pub(crate) enum TaskKind<D> {
    /// Find where the walk starts.
    Start,
    /// Visit the file that the request names.
    NamedFile(Resumable<NamedFile<D>>),
    /// Go on with a stretch of the walk.
    Walk(Resumable<Subtree<D>>),
}

/// What is visited, and how far that has come.
#[derive(Debug)]
pub(crate) struct Resumable<W> {
    pub(crate) work: W,
    /// The last line of its first file that was brought in by an earlier turn, or 0.
    pub(crate) resume_line: u64,
}

impl<W> Resumable<W> {
    pub(crate) fn new(work: W) -> Self {
        Self { work, resume_line: 0 }
    }
}

#[derive(Debug)]
struct QueueSlot<D> {
    /// Its items, in the lists that came; none of them is empty.
    batches: Vec<Vec<Item>>,
    bytes: usize,
    /// Whether there is more than counts among the items.
    is_visible: bool,
    is_done: bool,
    /// What is left of its job, which stopped for want of room.
    parked: Option<TaskKind<D>>,
}

impl<D> Default for QueueSlot<D> {
    fn default() -> Self {
        Self { batches: Vec::new(), bytes: 0, is_visible: false, is_done: false, parked: None }
    }
}

/// What the consumer got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeadState {
    /// Some items.
    Items,
    /// Nothing yet.
    Waiting,
    /// Nothing, and nothing will come.
    Finished,
}

/// What may be claimed next.
enum NextTask {
    Start,
    Parked(PathKey),
    Work,
}

impl<D> OrderedQueue<D> {
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
            passed_counts: Counts::default(),
            claim_steps: 1,
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
    pub(crate) fn claim(&mut self) -> Option<Task<D>> {
        match self.next()? {
            NextTask::Start => {
                self.is_new = false;
                Some(self.open_slot(PathKey::from(""), TaskKind::Start))
            }
            NextTask::Parked(key) => {
                let kind = self.slots.get_mut(&key)?.parked.take()?;
                self.parked -= 1;
                Some(Task { key, kind })
            }
            NextTask::Work => {
                let (key, mut range) = self.work.pop_first()?;
                let first = range.take(self.claim_steps);
                self.claim_steps = (self.claim_steps * 2).min(MAX_CLAIM_STEPS);
                self.push(range);
                Some(self.open_slot(key, TaskKind::Walk(Resumable::new(Subtree::new(first)))))
            }
        }
    }

    /// Adds what is left of `subtree` to the work.
    pub(crate) fn push_subtree(&mut self, subtree: Subtree<D>) {
        subtree.into_ranges().for_each(|range| self.push(range));
    }

    /// Adds work, if there is any in `range`.
    pub(crate) fn push(&mut self, range: StepRange<D>) {
        if !range.steps.is_empty() {
            self.work.insert(range.entries.key(range.steps.start), range);
        }
    }

    fn open_slot(&mut self, key: PathKey, kind: TaskKind<D>) -> Task<D> {
        self.slots.insert(Arc::clone(&key), QueueSlot::default());
        Task { key, kind }
    }

    fn next(&mut self) -> Option<NextTask> {
        if self.is_new {
            return Some(NextTask::Start);
        }
        // Once full it is so until there is much less, so that workers do not stop and go with each item.
        let Tuning { window, budget, .. } = self.tuning;
        let (part, open_slots) = (if self.is_full { 2 } else { 1 }, self.slots.len() - self.quiet);
        self.is_full = self.buffered >= budget / part
            || open_slots >= window.div_ceil(part)
            || self.quiet >= window * MAX_QUIET_SLOTS_PER_OPEN / part;
        if self.parked > 0
            && let Some((key, _)) = self.slots.iter().find(|(_, slot)| slot.parked.is_some())
        {
            // It begins a file again, so there has to be room enough to make that worthwhile.
            let has_capacity =
                if self.is_head(key) { self.admits(key) } else { self.buffered < self.tuning.budget / 2 };
            if has_capacity {
                return Some(NextTask::Parked(Arc::clone(key)));
            }
        }
        let (first, _) = self.work.first_key_value()?;
        (!self.is_full || self.slots.keys().next().is_none_or(|slot| first < slot)).then_some(NextTask::Work)
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
        slot.is_visible |= items.iter().any(Item::is_visible);
        slot.batches.push(take_or_shrink(items));
        slot.bytes += bytes;
        self.buffered += bytes;
        true
    }

    /// An empty list, with room where there is one that was used before.
    pub(crate) fn take_spare(&mut self) -> Vec<Item> {
        self.spares.pop().unwrap_or_default()
    }

    /// Keeps a list that was emptied.
    pub(crate) fn recycle(&mut self, items: Vec<Item>) {
        recycle(items, &mut self.spares);
    }

    /// Marks slot `key` as complete.
    pub(crate) fn finish(&mut self, key: &str) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.is_done = true;
            self.quiet += usize::from(!slot.is_visible);
        }
        self.skip_quiet_slots();
    }

    /// Keeps what is left of the job of slot `key` until there is room. Gives it back where nobody wants it any more.
    pub(crate) fn park(&mut self, key: &str, kind: TaskKind<D>) -> Option<TaskKind<D>> {
        let Some(slot) = self.slots.get_mut(key) else {
            return Some(kind);
        };
        slot.parked = Some(kind);
        self.parked += 1;
        None
    }

    /// Goes past the complete slots at the front that show nothing, so that the consumer need not be woken for them.
    fn skip_quiet_slots(&mut self) {
        while let Some((key, slot)) = self.slots.first_key_value()
            && slot.is_done
            && !slot.is_visible
            && self.is_head(key)
            && let Some((_, slot)) = self.slots.pop_first()
        {
            self.buffered -= slot.bytes;
            self.quiet -= 1;
            for item in slot.batches.into_iter().flatten() {
                if let Item::Counts(counts) = item {
                    self.passed_counts += counts;
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
            Some((key, slot)) => slot.is_visible && self.is_head(key),
            None => self.is_out_of_work(),
        }
    }

    /// Moves what the first slots have to `ready`.
    pub(crate) fn take(&mut self, ready: &mut BatchPool) -> HeadState {
        ready.return_spares(&mut self.spares);
        if !self.is_ready() {
            return HeadState::Waiting;
        }
        let passed_counts = std::mem::take(&mut self.passed_counts);
        if !passed_counts.is_empty() {
            ready.push(vec![Item::Counts(passed_counts)]);
        }
        while let Some((key, _)) = self.slots.first_key_value()
            && self.is_head(key)
            && let Some(mut head) = self.slots.first_entry()
        {
            let slot = head.get_mut();
            slot.batches.drain(..).for_each(|items| ready.push(items));
            self.buffered -= std::mem::take(&mut slot.bytes);
            let was_visible = std::mem::take(&mut slot.is_visible);
            if !slot.is_done {
                break;
            }
            head.remove();
            self.quiet -= usize::from(!was_visible);
        }
        if ready.is_empty() { HeadState::Finished } else { HeadState::Items }
    }
}

/// What is in `items`: a long list as it is, and few items without all of its memory.
fn take_or_shrink(items: &mut Vec<Item>) -> Vec<Item> {
    if items.len() >= items.capacity() / 4 {
        return std::mem::take(items);
    }
    let mut few = Vec::with_capacity(items.len());
    few.append(items);
    few
}
