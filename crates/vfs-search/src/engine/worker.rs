//! What a worker does with a claim: it takes the steps of a stretch one after the other, down into the directories, and
//! leaves what it has no time for to whoever comes next.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use vfs_core::Result;
use vfs_core::tree::{ChildKind, Tree};

use super::search::{Checked, Search};
use super::slot_writer::WorkerSlot;
use super::task_output::{Done, Outcome};
use crate::engine::batch::Collector;
use crate::engine::ordered_queue::{Job, Key, Progress};
use crate::engine::pool::Worker;
use crate::engine::visitor::{Named, Quest};
use crate::item::{Item, Outlet as _};
use crate::walk::dir_entries::{Entry, Findings, Judgement, Level, Stage, Step};
use crate::walk::dir_reader::Opener;
use crate::walk::subtree::{Cursor, Stretch};

/// How long a worker goes on with a stretch: long beside what a claim costs, and no longer than a consumer waits anyway.
const LONG_STRETCH: Duration = Duration::from_millis(1);

/// How long it does so where others wait for a worker.
const SHORT_STRETCH: Duration = Duration::from_micros(200);

/// How long a worker is at one file before it asks for a stand-in, where others wait for a worker.
const LONG_FILE: Duration = Duration::from_millis(25);

/// Why a stretch was left.
enum Left {
    Finished,
    TimeIsUp,
    NoRoom,
}

impl<T: Tree, Q: Quest> Search<T, Q> {
    /// Takes the steps of a stretch, until it has had its time or there is no room for what it brings in; `findings` go
    /// before that.
    pub(super) fn walk(
        self: &Arc<Self>,
        worker: &Worker,
        tools: &mut Option<Q::Tools>,
        progress: Progress<Stretch<T::Dir>>,
        findings: Findings,
        key: &Key,
    ) -> Outcome<T::Dir> {
        let Progress { what, mut brought_in } = progress;
        let walker = Walker::new(self, worker, key, what)?;
        walker.collector.borrow_mut().note(findings);
        let left = walker.walk(tools.get_or_insert_with(|| walker.quest.tools()), &mut brought_in)?;
        self.check()?;
        let (stretch, items) = (walker.stretch.into_inner(), walker.collector.into_inner().into_rest());
        Ok(match left {
            Left::Finished => Done { work: None, items, rest: None },
            Left::TimeIsUp => Done { work: Some(stretch), items, rest: None },
            Left::NoRoom => Done { work: None, items, rest: Some(Job::Walk(Progress { what: stretch, brought_in })) },
        })
    }

    /// Visits the file that the request names.
    pub(super) fn visit_named(
        self: &Arc<Self>,
        worker: &Worker,
        tools: &mut Option<Q::Tools>,
        mut file: Progress<Named<T::Dir>>,
        key: &Key,
    ) -> Outcome<T::Dir> {
        let walker = Walker::new(self, worker, key, Stretch::default())?;
        walker.collector.borrow_mut().begin_file(file.brought_in);
        let (tools, mut outlet) = (tools.get_or_insert_with(|| walker.quest.tools()), &walker.collector);
        walker.quest.visit_named(tools, &*self.tree, &file.what, &mut outlet, &|| walker.is_interrupted())?;
        let is_done = walker.collector.borrow_mut().end_file(&mut file.brought_in);
        self.check()?;
        let rest = (!is_done).then_some(Job::Named(file));
        Ok(Done { work: None, items: walker.collector.into_inner().into_rest(), rest })
    }

    /// What is to be done in a level.
    pub(super) fn judged(&self, quest: &Q, worker: &Worker, mut level: Level<T::Dir>) -> Result<Cursor<T::Dir>> {
        let guide = Checked { search: self, quest, worker };
        level.judge(&guide, |entry| match entry.kind() {
            // It takes a look at the disk to tell what a link leads to, which is left until its turn comes.
            ChildKind::Link => Ok(Judgement::Take),
            _ => quest.judge(&*self.tree, entry),
        })?;
        Ok(Cursor { steps: 0..level.len(), level: Arc::new(level) })
    }

    /// Leaves the steps of a stretch, beyond the next, to whoever has nothing to do.
    fn share(self: &Arc<Self>, stretch: &RefCell<Stretch<T::Dir>>) {
        if !stretch.borrow().is_divisible() || !self.hungry.swap(false, Ordering::Relaxed) {
            return;
        }
        let shared = stretch.borrow_mut().split_off();
        let mut state = self.lock();
        if self.is_closed() {
            drop(state);
            return;
        }
        state.frontier.push_all(shared);
        let wants_turn = state.wants_turn(&self.pool);
        drop(state);
        self.queue(wants_turn);
    }
}

/// A worker on a stretch.
struct Walker<'a, T: Tree, Q: Quest> {
    search: &'a Arc<Search<T, Q>>,
    worker: &'a Worker,
    quest: &'a Q,
    collector: RefCell<Collector<WorkerSlot<'a, T, Q>>>,
    stretch: RefCell<Stretch<T::Dir>>,
    start: Instant,
}

impl<'a, T: Tree, Q: Quest> Walker<'a, T, Q> {
    fn new(search: &'a Arc<Search<T, Q>>, worker: &'a Worker, key: &'a Key, stretch: Stretch<T::Dir>) -> Result<Self> {
        let collector = RefCell::new(Collector::new(WorkerSlot { search, worker, key }));
        let stretch = RefCell::new(stretch);
        Ok(Self { search, worker, quest: search.quest()?, collector, stretch, start: Instant::now() })
    }

    fn walk(&self, tools: &mut Q::Tools, brought_in: &mut u64) -> Result<Left> {
        loop {
            self.share();
            let next = self.stretch.borrow().next();
            let Some((level, step)) = next else {
                return Ok(Left::Finished);
            };
            let is_done = match step.stage {
                Stage::Descent => {
                    self.descend(level, step)?;
                    true
                }
                Stage::Problem(index) => self.put(Item::Problem(level.problem(index).clone())),
                Stage::Entry => self.visit(tools, Entry::of(&level, step), brought_in),
            };
            if !is_done {
                return Ok(Left::NoRoom);
            }
            if step.stage != Stage::Descent {
                self.stretch.borrow_mut().advance();
            }
            self.search.check()?;
            self.worker.beat();
            let time = if self.worker.is_wanted() { SHORT_STRETCH } else { LONG_STRETCH };
            if self.start.elapsed() >= time {
                return Ok(Left::TimeIsUp);
            }
        }
    }

    /// Visits an entry; whether it is done.
    fn visit(&self, tools: &mut Q::Tools, entry: Entry<'_, T::Dir>, brought_in: &mut u64) -> bool {
        let judgement = match entry.kind() {
            ChildKind::Link => self.quest.judge(&*self.search.tree, entry),
            _ => Ok(Judgement::Take),
        };
        if !matches!(judgement, Ok(Judgement::Take)) {
            // It may have been a file whose lines an earlier turn brought in.
            *brought_in = 0;
        }
        match judgement {
            Ok(Judgement::Take) => {}
            Ok(Judgement::Pass) => return true,
            Ok(Judgement::SkipLink) => {
                self.collector.borrow_mut().note(Findings::skipped_link());
                return true;
            }
            Err(error) => return self.put(Item::Problem(entry.problem(error))),
        }
        self.collector.borrow_mut().begin_file(*brought_in);
        let mut outlet = &self.collector;
        self.quest.visit(tools, &*self.search.tree, entry, &mut outlet, &|| self.is_interrupted());
        self.collector.borrow_mut().end_file(brought_in)
    }

    fn put(&self, item: Item) -> bool {
        self.collector.borrow_mut().put(item).is_continue()
    }

    /// Goes down the directory that `step` leads to. What it is in is let go before, unless there is more to be done in it,
    /// so that a chain of single directories holds one of them at a time.
    fn descend(&self, level: Arc<Level<T::Dir>>, step: Step) -> Result<()> {
        self.stretch.borrow_mut().advance();
        let Self { search, quest, worker, .. } = *self;
        let mut findings = Findings::default();
        let guide = Checked { search, quest, worker };
        let (options, state) = (quest.options(), search.walk_state()?);
        let opener = Opener { tree: &*search.tree, guide: &guide, options, state };
        let below = opener.descend(&level, step, &mut findings)?;
        if let Some(below) = below {
            let below = search.judged(quest, worker, below)?;
            self.stretch.borrow_mut().enter(below);
        }
        self.collector.borrow_mut().note(findings);
        Ok(())
    }

    fn share(&self) {
        if self.search.hungry.load(Ordering::Relaxed) {
            self.search.share(&self.stretch);
        }
    }

    /// Looks, between two pieces of a file, whether to go on, and at what others wait for.
    fn is_interrupted(&self) -> bool {
        // Without a beat the worker is late, and is stood in for. A file cannot be left for others: it would begin again.
        if !self.worker.is_wanted() || self.start.elapsed() < LONG_FILE {
            self.worker.beat();
        }
        self.share();
        self.collector.borrow_mut().flush_old();
        self.search.is_interrupted()
    }
}
