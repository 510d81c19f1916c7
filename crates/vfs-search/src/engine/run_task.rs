//! Execution of one task: a depth-first walk of a subtree, which begins no step after its time.
//!
//! Steps that are left then are returned, for any worker to continue.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use vfs_core::Result;
use vfs_core::search::LinkMode;
use vfs_core::tree::{ChildKind, LookupResult};

use super::item_batcher::ItemBatcher;
use super::search::{Search, TaskOutput, TaskResult};
use crate::engine::ordered_task_queue::{PathKey, ResumableTask, Task, TaskKind};
use crate::engine::search_visitor::{RequestedFile, SearchVisitor};
use crate::search_item::{ItemSink as _, SearchItem};
use crate::walk::dir_entries::{DirEntries, FilterDecision, WalkEntry, WalkStep, WalkStepKind};
use crate::walk::dir_reader::{DirReader, SharedWalkState};
use crate::walk::pending_steps::{DirSteps, PendingSteps};
use crate::walk::sequential_walk::OutsideDirTracker;
use crate::walk::walk_findings::WalkFindings;
use crate::walk::walk_options::WalkControl;

/// Duration for which a worker continues with a subtree: long compared with the cost of a claim, and no longer than a
/// consumer waits anyway.
const MAX_TASK_TIME: Duration = Duration::from_millis(1);

/// Duration for which a worker continues with a subtree if a time slice waits for a thread.
const MAX_CONTENDED_TASK_TIME: Duration = Duration::from_micros(200);

/// Why the walk of a subtree ended.
enum WalkEnd {
    Finished,
    TimeIsUp,
    NoRoom,
}

impl<V: SearchVisitor> Search<V> {
    /// Runs a claimed task.
    pub(super) fn run_task(self: &Arc<Self>, worker_state: &mut Option<V::WorkerState>, task: Task) -> TaskResult {
        self.check()?;
        let key = &task.key;
        match task.kind {
            TaskKind::Start => self.run_start(worker_state, key),
            TaskKind::RequestedFile(file) => self.visit_named(worker_state, file, key),
            TaskKind::Walk(subtree) => self.walk(worker_state, subtree, WalkFindings::default(), key),
        }
    }

    /// Compiles the request, locates the start of the walk, and continues from there.
    fn run_start(self: &Arc<Self>, worker_state: &mut Option<V::WorkerState>, key: &PathKey) -> TaskResult {
        let visitor = V::new(&self.req)?;
        let visitor = self.visitor.get_or_init(|| visitor);
        let path = V::path(&self.req);
        let mut findings = WalkFindings::default();
        let subtree = match Arc::clone(&self.tree).lookup(path).map_err(|error| error.or_path(path))? {
            _ if visitor.has_zero_limit() => PendingSteps::default(),
            LookupResult::File { dir, name } => {
                let file = RequestedFile { dir, name, path: path.clone() };
                return self.visit_named(worker_state, ResumableTask::new(file), key);
            }
            LookupResult::Directory(dir) => {
                let check = || self.check();
                let control = WalkControl { filter: visitor, check: &check };
                let options = visitor.options();
                let follow = (options.links == LinkMode::Follow)
                    .then(|| OutsideDirTracker::for_parallel_walk(&self.tree, path, self.max_entries));
                let state = self.walk_state.get_or_init(|| SharedWalkState::new(follow, self.max_entries));
                let reader = DirReader { tree: &self.tree, control, options, state };
                let entries = reader.start(dir, path, &mut findings)?;
                match entries {
                    Some(entries) => PendingSteps::new(self.filter_entries(visitor, entries)?),
                    None => PendingSteps::default(),
                }
            }
        };
        self.walk(worker_state, ResumableTask::new(subtree), findings, key)
    }

    /// Takes the steps of a subtree until its time is up or there is no room for its results. Puts `findings` first.
    fn walk(
        self: &Arc<Self>,
        worker_state: &mut Option<V::WorkerState>,
        progress: ResumableTask<PendingSteps>,
        findings: WalkFindings,
        key: &PathKey,
    ) -> TaskResult {
        let ResumableTask { work, mut resume_line } = progress;
        let walker = SubtreeWalker::new(self, key, work)?;
        walker.batcher.borrow_mut().add_findings(findings);
        let walk_end =
            walker.walk(worker_state.get_or_insert_with(|| walker.visitor.new_worker_state()), &mut resume_line)?;
        self.check()?;
        let (subtree, items) = (walker.subtree.into_inner(), walker.batcher.into_inner().into_remaining());
        Ok(match walk_end {
            WalkEnd::Finished => TaskOutput { work: None, items, rest: None },
            WalkEnd::TimeIsUp => TaskOutput { work: Some(subtree), items, rest: None },
            WalkEnd::NoRoom => TaskOutput {
                work: None,
                items,
                rest: Some(TaskKind::Walk(ResumableTask { work: subtree, resume_line })),
            },
        })
    }

    /// Visits the file that the request names.
    fn visit_named(
        self: &Arc<Self>,
        worker_state: &mut Option<V::WorkerState>,
        mut file: ResumableTask<RequestedFile>,
        key: &PathKey,
    ) -> TaskResult {
        let walker = SubtreeWalker::new(self, key, PendingSteps::default())?;
        walker.batcher.borrow_mut().begin_file(file.resume_line);
        let (worker_state, mut item_sink) =
            (worker_state.get_or_insert_with(|| walker.visitor.new_worker_state()), &walker.batcher);
        walker.visitor.visit_named(worker_state, &file.work, &mut item_sink, &|| walker.checkpoint())?;
        let is_done = walker.batcher.borrow_mut().end_file(&mut file.resume_line);
        self.check()?;
        let rest = (!is_done).then_some(TaskKind::RequestedFile(file));
        Ok(TaskOutput { work: None, items: walker.batcher.into_inner().into_remaining(), rest })
    }

    /// Filters the entries of a directory and returns the steps that remain.
    fn filter_entries(&self, visitor: &V, mut entries: DirEntries) -> Result<DirSteps> {
        let check = || self.check();
        entries.retain(WalkControl { filter: visitor, check: &check }, |entry| match entry.kind() {
            // A link is resolved by a lookup in the tree, which waits until the step is taken.
            ChildKind::Link => Ok(FilterDecision::Keep),
            _ => visitor.filter_entry(entry),
        })?;
        Ok(DirSteps { steps: 0..entries.len(), entries: Arc::new(entries) })
    }

    /// Hands the steps of a subtree beyond the next one to workers without work.
    fn share(self: &Arc<Self>, subtree: &RefCell<PendingSteps>) {
        if !subtree.borrow().is_divisible() || !self.is_starved.swap(false, Ordering::Relaxed) {
            return;
        }
        let shared = subtree.borrow_mut().split_off();
        let mut state = self.lock();
        if self.is_closed() {
            drop(state);
            return;
        }
        state.queue.push_subtree(shared);
        let has_slice = state.reserve_slice(&self.pool);
        drop(state);
        self.submit_slice(has_slice);
    }
}

/// The walk of one worker through a subtree.
struct SubtreeWalker<'a, V: SearchVisitor> {
    search: &'a Arc<Search<V>>,
    visitor: &'a V,
    batcher: RefCell<ItemBatcher<'a, V>>,
    subtree: RefCell<PendingSteps>,
    start: Instant,
}

impl<'a, V: SearchVisitor> SubtreeWalker<'a, V> {
    fn new(search: &'a Arc<Search<V>>, key: &'a PathKey, subtree: PendingSteps) -> Result<Self> {
        let batcher = RefCell::new(ItemBatcher::new(search, key));
        let subtree = RefCell::new(subtree);
        Ok(Self { search, visitor: search.visitor()?, batcher, subtree, start: Instant::now() })
    }

    fn walk(&self, worker_state: &mut V::WorkerState, resume_line: &mut u64) -> Result<WalkEnd> {
        loop {
            self.share();
            let next = self.subtree.borrow().next();
            let Some((entries, step)) = next else {
                return Ok(WalkEnd::Finished);
            };
            let is_done = match step.kind {
                WalkStepKind::Descent => {
                    self.descend(entries, step)?;
                    true
                }
                WalkStepKind::Problem(index) => self.put(SearchItem::Problem(entries.problem(index).clone())),
                WalkStepKind::Entry => self.visit(worker_state, WalkEntry::of(&entries, step), resume_line),
            };
            if !is_done {
                return Ok(WalkEnd::NoRoom);
            }
            if step.kind != WalkStepKind::Descent {
                self.subtree.borrow_mut().advance();
            }
            self.search.check()?;
            let time = if self.search.pool.has_queued_slices() { MAX_CONTENDED_TASK_TIME } else { MAX_TASK_TIME };
            if self.start.elapsed() >= time {
                return Ok(WalkEnd::TimeIsUp);
            }
        }
    }

    /// Visits an entry and returns whether it is complete.
    fn visit(&self, worker_state: &mut V::WorkerState, entry: WalkEntry<'_>, resume_line: &mut u64) -> bool {
        let decision = match entry.kind() {
            ChildKind::Link => self.visitor.filter_entry(entry),
            _ => Ok(FilterDecision::Keep),
        };
        if !matches!(decision, Ok(FilterDecision::Keep)) {
            // The entry may have been a file whose lines an earlier time slice delivered.
            *resume_line = 0;
        }
        match decision {
            Ok(FilterDecision::Keep) => {}
            Ok(FilterDecision::Drop) => return true,
            Ok(FilterDecision::SkipLink) => {
                self.batcher.borrow_mut().add_findings(WalkFindings::skipped_link());
                return true;
            }
            Err(error) => return self.put(SearchItem::Problem(entry.problem(error))),
        }
        self.batcher.borrow_mut().begin_file(*resume_line);
        let mut item_sink = &self.batcher;
        self.visitor.visit(worker_state, entry, &mut item_sink, &|| self.checkpoint());
        self.batcher.borrow_mut().end_file(resume_line)
    }

    fn put(&self, item: SearchItem) -> bool {
        self.batcher.borrow_mut().put(item).is_continue()
    }

    /// Enters the directory that `step` leads to. Its parent is released first, unless it has further steps, so that a
    /// chain of single directories holds one of them at a time.
    fn descend(&self, entries: Arc<DirEntries>, step: WalkStep) -> Result<()> {
        self.subtree.borrow_mut().advance();
        let Self { search, visitor, .. } = *self;
        let mut findings = WalkFindings::default();
        let check = || search.check();
        let control = WalkControl { filter: visitor, check: &check };
        let (options, state) = (visitor.options(), search.walk_state()?);
        let reader = DirReader { tree: &search.tree, control, options, state };
        let below = reader.descend(&entries, step, &mut findings)?;
        if let Some(below) = below {
            let below = search.filter_entries(visitor, below)?;
            self.subtree.borrow_mut().enter(below);
        }
        self.batcher.borrow_mut().add_findings(findings);
        Ok(())
    }

    fn share(&self) {
        if self.search.is_starved.load(Ordering::Relaxed) {
            self.search.share(&self.subtree);
        }
    }

    /// Serves other workers and the consumer between two chunks of a file, and returns whether to stop.
    fn checkpoint(&self) -> bool {
        self.share();
        self.batcher.borrow_mut().flush_if_due();
        self.search.is_interrupted()
    }
}
