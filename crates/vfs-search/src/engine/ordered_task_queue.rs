//! Ordered task queue: pending work and result slots, both sorted by path, with bounded buffering.
//!
//! Work and results have keys that sort as paths do. A range of steps that a worker claims becomes a slot under the
//! key of its first step, and the results of the task go into that slot. The rest of the task is queued again as work
//! with larger keys. So several workers can list and search at once, each on the first unclaimed range, while the
//! consumer empties the slots in order: the first slot is ready as soon as no work with a smaller key is left.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::received_item_queue::ReceivedItemQueue;
use crate::engine::search_visitor::RequestedFile;
use crate::search_item::{SearchCounts, SearchItem};
use crate::walk::pending_steps::{DirSteps, PendingSteps};
use crate::walk::walk_options::MAX_ENTRIES;

/// Maximum number of steps in one claim. The first claims are smaller, so that the first results arrive soon.
const MAX_CLAIM_STEPS: usize = 32;

/// Maximum number of complete slots without visible items, as a multiple of the window. Such slots use almost no memory,
/// and let the other workers continue while one searches a huge file.
const MAX_QUIET_SLOTS_PER_OPEN: usize = 16;

/// The sort key of work and slots, compared as bytes: the full path of an entry, with a trailing `/` for its contents.
pub(crate) type PathKey = Arc<str>;

/// Limits on how far a search may run ahead of its consumer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunAheadLimits {
    /// Maximum number of slots that are not complete or hold visible items.
    pub(crate) window: usize,
    /// Maximum bytes of items, apart from those of the first slot.
    pub(crate) budget: usize,
    /// Maximum bytes of items in the first slot.
    pub(crate) head_budget: usize,
    /// Approximate maximum number of entries that are listed.
    pub(crate) max_entries: u64,
}

impl RunAheadLimits {
    /// Returns the limits for a pool of `workers` threads.
    pub(crate) fn for_workers(workers: usize) -> Self {
        let max_entries = MAX_ENTRIES;
        Self { window: workers * 128, budget: 4 << 20, head_budget: 512 << 10, max_entries }
    }
}

/// The pending work and the slots of one search.
#[derive(Debug)]
pub(crate) struct OrderedTaskQueue {
    limits: RunAheadLimits,
    /// Whether the start of the walk has not been located yet.
    is_new: bool,
    work: BTreeMap<PathKey, DirSteps>,
    slots: BTreeMap<PathKey, QueueSlot>,
    /// Number of slots with a parked task.
    parked: usize,
    /// Number of complete slots without visible items.
    quiet: usize,
    /// Bytes in all slots.
    buffered: usize,
    /// Whether the slots have reached a limit. Stays set until they are well below it.
    is_full: bool,
    /// Counts of the slots without visible items that were skipped.
    passed_counts: SearchCounts,
    claim_steps: usize,
}

/// A unit of work for a worker, with the key of its slot.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) key: PathKey,
    pub(crate) kind: TaskKind,
}

/// The work of a task, with the point at which it resumes.
#[derive(Debug)]
pub(crate) enum TaskKind {
    /// Compile the request, locate the start of the walk, and begin it there.
    Start,
    /// Resume the visit of the file that the request names. `Start` begins it.
    RequestedFile(ResumableTask<RequestedFile>),
    /// Continue the walk of a subtree.
    Walk(ResumableTask<PendingSteps>),
}

/// Work together with the point at which it resumes.
#[derive(Debug)]
pub(crate) struct ResumableTask<W> {
    pub(crate) work: W,
    /// The last line of the first file that an earlier time slice delivered, or 0.
    pub(crate) resume_line: u64,
}

impl<W> ResumableTask<W> {
    pub(crate) fn new(work: W) -> Self {
        Self { work, resume_line: 0 }
    }
}

/// The items of one task that the consumer has not taken yet.
#[derive(Debug, Default)]
struct QueueSlot {
    /// The items, in the batches in which they arrived; no batch is empty.
    batches: Vec<Vec<SearchItem>>,
    bytes: usize,
    /// Whether any item is more than counts.
    is_visible: bool,
    is_done: bool,
    /// The rest of the task, which stopped for lack of room.
    parked: Option<TaskKind>,
}

/// The state of the first slots, as the consumer sees it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QueueHeadState {
    /// Some items were taken.
    Items,
    /// There are no items yet.
    Waiting,
    /// There are no items, and none will follow.
    Finished,
}

/// The next task that can be claimed.
enum NextTask {
    Start,
    Parked(PathKey),
    Work,
}

impl OrderedTaskQueue {
    pub(crate) fn new(limits: RunAheadLimits) -> Self {
        Self {
            limits,
            is_new: true,
            work: BTreeMap::new(),
            slots: BTreeMap::new(),
            parked: 0,
            quiet: 0,
            buffered: 0,
            is_full: false,
            passed_counts: SearchCounts::default(),
            claim_steps: 1,
        }
    }

    /// Creates the queue of a search that is over.
    pub(crate) fn closed() -> Self {
        let limits = RunAheadLimits { window: 0, budget: 0, head_budget: 0, max_entries: 0 };
        Self { is_new: false, ..Self::new(limits) }
    }

    /// Returns whether no task is left that could be claimed, now or once there is room.
    pub(crate) fn is_out_of_work(&self) -> bool {
        !self.is_new && self.work.is_empty() && self.parked == 0
    }

    /// Returns whether a task can be claimed now.
    pub(crate) fn has_next(&mut self) -> bool {
        self.next().is_some()
    }

    /// Claims the first pending task, if there is room for its results.
    pub(crate) fn claim(&mut self) -> Option<Task> {
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
                Some(self.open_slot(key, TaskKind::Walk(ResumableTask::new(PendingSteps::new(first)))))
            }
        }
    }

    /// Adds the remaining ranges of `subtree` to the pending work.
    pub(crate) fn push_subtree(&mut self, subtree: PendingSteps) {
        subtree.into_ranges().for_each(|range| self.push(range));
    }

    /// Adds `range` to the pending work, unless it is empty.
    pub(crate) fn push(&mut self, range: DirSteps) {
        if !range.steps.is_empty() {
            self.work.insert(range.entries.key(range.steps.start), range);
        }
    }

    fn open_slot(&mut self, key: PathKey, kind: TaskKind) -> Task {
        self.slots.insert(Arc::clone(&key), QueueSlot::default());
        Task { key, kind }
    }

    fn next(&mut self) -> Option<NextTask> {
        if self.is_new {
            return Some(NextTask::Start);
        }
        // A full queue stays full until it is well below the limit, so that workers do not stop and start with each
        // item.
        let RunAheadLimits { window, budget, .. } = self.limits;
        let (part, open_slots) = (if self.is_full { 2 } else { 1 }, self.slots.len() - self.quiet);
        self.is_full = self.buffered >= budget / part
            || open_slots >= window.div_ceil(part)
            || self.quiet >= window * MAX_QUIET_SLOTS_PER_OPEN / part;
        if self.parked > 0
            && let Some((key, _)) = self.slots.iter().find(|(_, slot)| slot.parked.is_some())
        {
            // A parked task starts its file again, so it resumes only when there is enough room to make that
            // worthwhile.
            let has_capacity =
                if self.is_head(key) { self.admits(key) } else { self.buffered < self.limits.budget / 2 };
            if has_capacity {
                return Some(NextTask::Parked(Arc::clone(key)));
            }
        }
        let (first, _) = self.work.first_key_value()?;
        (!self.is_full || self.slots.keys().next().is_none_or(|slot| first < slot)).then_some(NextTask::Work)
    }

    /// Returns whether slot `key` is the only one that the consumer waits for.
    pub(crate) fn is_head(&self, key: &str) -> bool {
        let is_first = self.slots.keys().next().is_some_and(|first| **first == *key);
        is_first && !self.is_new && self.work.keys().next().is_none_or(|first| **first > *key)
    }

    /// Returns whether slot `key` accepts more items. The first slot has a budget of its own, and accepts items even
    /// if the others do not, or no slot would ever be emptied.
    pub(crate) fn admits(&self, key: &str) -> bool {
        match self.slots.get(key) {
            Some(slot) if self.is_head(key) => slot.bytes < self.limits.head_budget,
            _ => self.buffered < self.limits.budget,
        }
    }

    /// Appends `items`, which cost `bytes`, to slot `key`. Returns `false` if the slot no longer exists.
    pub(crate) fn add(&mut self, key: &str, items: &mut Vec<SearchItem>, bytes: usize) -> bool {
        let Some(slot) = self.slots.get_mut(key) else {
            return false;
        };
        if items.is_empty() {
            return true;
        }
        slot.is_visible |= items.iter().any(SearchItem::is_visible);
        slot.batches.push(take_or_shrink(items));
        slot.bytes += bytes;
        self.buffered += bytes;
        true
    }

    /// Marks slot `key` as complete.
    pub(crate) fn finish(&mut self, key: &str) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.is_done = true;
            self.quiet += usize::from(!slot.is_visible);
        }
        self.skip_quiet_slots();
    }

    /// Parks the rest of the task of slot `key` until there is room. Returns the task if the slot no longer exists.
    pub(crate) fn park(&mut self, key: &str, kind: TaskKind) -> Option<TaskKind> {
        let Some(slot) = self.slots.get_mut(key) else {
            return Some(kind);
        };
        slot.parked = Some(kind);
        self.parked += 1;
        None
    }

    /// Removes complete slots without visible items from the front, so that the consumer need not be woken for them.
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
                if let SearchItem::Counts(counts) = item {
                    self.passed_counts += counts;
                }
            }
        }
    }

    /// Returns whether the consumer would receive items or the end of the search.
    pub(crate) fn is_ready(&self) -> bool {
        match self.slots.first_key_value() {
            Some((key, slot)) => slot.is_visible && self.is_head(key),
            None => self.is_out_of_work(),
        }
    }

    /// Moves the items of the first slots to `ready`.
    pub(crate) fn take(&mut self, ready: &mut ReceivedItemQueue) -> QueueHeadState {
        if !self.is_ready() {
            return QueueHeadState::Waiting;
        }
        let passed_counts = std::mem::take(&mut self.passed_counts);
        if !passed_counts.is_empty() {
            ready.push(vec![SearchItem::Counts(passed_counts)]);
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
        if ready.is_empty() { QueueHeadState::Finished } else { QueueHeadState::Items }
    }
}

/// Takes the contents of `items`: a well-filled list as it is, a few items in a smaller allocation.
fn take_or_shrink(items: &mut Vec<SearchItem>) -> Vec<SearchItem> {
    if items.len() >= items.capacity() / 4 {
        return std::mem::take(items);
    }
    let mut few = Vec::with_capacity(items.len());
    few.append(items);
    few
}
