//! The parallel search: workers claim work and fill slots, the consumer empties the slots in order.
//!
//! A search has at most as many turns at once as its pool has workers. In a turn a worker claims one stretch of the walk
//! after another. It ends its turn when there is nothing to claim, or for want of room, and after each claim where others
//! wait for a worker. Whoever brings in more work or makes room queues the turns that are wanted.
//!
//! A worker whose stretch has brought in more than there is room for does not wait. It parks what is left of its claim;
//! when the consumer has made room that goes on, from the beginning of the file it stopped in, and leaves out the lines
//! that it brought in before. Only for the slot that the consumer is at a worker waits, since it is about to be emptied;
//! where that takes long and its thread is missed it parks too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use vfs_core::alarm::Alarm;
use vfs_core::tree::{Located, Tree};
use vfs_core::{Error, ErrorKind, LinkMode, OpContext, Result};

use super::task_output::{Done, Outcome, guarded};
use crate::engine::batch_pool::Lists;
use crate::engine::ordered_queue::{Claim, Frontier, Head, Job, Key, Progress, Tuning};
use crate::engine::pool::{Pool, Task, Worker};
use crate::engine::visitor::{Named, Quest};
use crate::glob::Shown;
use crate::item::Item;
use crate::walk::dir_entries::Findings;
use crate::walk::dir_reader::{Opener, WalkState};
use crate::walk::options::Guide;
use crate::walk::sequential::Follow;
use crate::walk::subtree::Stretch;

/// How soon a consumer that was woken is woken again, except for the end.
const WAKE_EVERY: Duration = Duration::from_millis(1);

/// One search, shared by its workers and its consumer.
pub(crate) struct Search<T: Tree, Q: Quest> {
    pub(super) tree: Arc<T>,
    pub(super) cx: OpContext,
    req: Q::Request,
    pub(super) pool: Pool,
    quest: OnceLock<Q>,
    walk_state: OnceLock<WalkState<T::Dir>>,
    max_entries: u64,
    state: Mutex<State<T::Dir>>,
    /// Told when there is room for more items, or no more are wanted.
    pub(super) room: Condvar,
    closed: AtomicBool,
    /// Whether a worker had nothing to claim; whoever has steps to spare shares them.
    pub(super) hungry: AtomicBool,
    /// By the threads that used them last, which they are fastest on.
    tools: Mutex<Vec<(ThreadId, Q::Tools)>>,
}

pub(super) struct State<D> {
    pub(super) frontier: Frontier<D>,
    /// Turns that are queued or under way.
    turns: usize,
    /// Workers that wait for room.
    pub(super) waiting: usize,
    waker: Option<Waker>,
    /// When the consumer was woken last, if it was.
    woken: Option<Instant>,
    /// Wakes the consumer for what came soon after.
    soon: Option<Alarm>,
    failure: Option<Error>,
}

/// How soon a consumer is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Haste {
    /// Within a millisecond.
    Soon,
    Now,
}

/// What a consumer found.
pub(crate) enum Taken {
    /// Some items.
    Items,
    /// Nothing yet; it will be woken.
    Pending,
    /// Nothing, and nothing will come.
    Finished,
}

impl<D> State<D> {
    /// Whether one more turn is to be queued, on the workers of `pool`; the caller does so.
    ///
    /// A search has more than one only where no other waits, so that each gets its share and the queue stays short.
    pub(super) fn wants_turn(&mut self, pool: &Pool) -> bool {
        let most = if pool.is_wanted() { 1 } else { pool.workers() };
        let wants = self.turns < most && self.failure.is_none() && self.frontier.has_next();
        self.turns += usize::from(wants);
        wants
    }
}

impl<T: Tree, Q: Quest> Search<T, Q> {
    pub(crate) fn new(tree: Arc<T>, cx: OpContext, req: Q::Request, pool: Pool, tuning: Tuning) -> Self {
        let (max_entries, frontier) = (tuning.max_entries, Frontier::new(tuning));
        Self {
            tree,
            cx,
            req,
            pool,
            quest: OnceLock::new(),
            walk_state: OnceLock::new(),
            max_entries,
            state: Mutex::new(State {
                frontier,
                turns: 0,
                waiting: 0,
                waker: None,
                woken: None,
                soon: None,
                failure: None,
            }),
            room: Condvar::new(),
            closed: AtomicBool::new(false),
            hungry: AtomicBool::new(true),
            tools: Mutex::default(),
        }
    }

    pub(crate) fn context(&self) -> &OpContext {
        &self.cx
    }

    pub(crate) fn request(&self) -> &Q::Request {
        &self.req
    }

    /// The consumer's waker, where there is something for it.
    ///
    /// It is not woken again right away: where there is much to find it would do nothing but wake up and fall asleep. What
    /// comes first, and the end, it hears of at once.
    pub(super) fn waker(self: &Arc<Self>, state: &mut State<T::Dir>, haste: Haste) -> Option<Waker> {
        if !state.frontier.is_ready() && state.failure.is_none() {
            return None;
        }
        state.waker.as_ref()?;
        let now = Instant::now();
        let next = state.woken.map_or(now, |woken| woken + WAKE_EVERY);
        let is_over = state.frontier.is_finished() || state.failure.is_some();
        if haste == Haste::Soon && !is_over && now < next && !self.is_closed() {
            state.soon.get_or_insert_with(|| self.wakes_at(next));
            return None;
        }
        state.woken = Some(now);
        state.soon = None;
        state.waker.take()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Begins the work.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<()> {
        self.lock().turns += 1;
        let task: Arc<dyn Task> = Arc::clone(self) as _;
        self.pool.submit(task)
    }

    /// Moves the items that are next to `ready`, or keeps `waker` until there are some.
    pub(crate) fn take(self: &Arc<Self>, ready: &mut Lists, waker: &Waker) -> Taken {
        let mut state = self.lock();
        if let Some(error) = state.failure.take() {
            ready.push(vec![Item::Failed(error)]);
            return Taken::Items;
        }
        let head = state.frontier.take(ready);
        let taken = match head {
            Head::Items => Taken::Items,
            Head::Finished => Taken::Finished,
            Head::Waiting => {
                state.waker = Some(waker.clone());
                Taken::Pending
            }
        };
        let wants_turn = state.wants_turn(&self.pool);
        let is_waited_for = state.waiting > 0;
        drop(state);
        if is_waited_for {
            self.room.notify_all();
        }
        self.queue(wants_turn);
        taken
    }

    /// Ends the work: nobody wants any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mut state = self.lock();
        let frontier = std::mem::replace(&mut state.frontier, Frontier::closed());
        let (waker, soon) = (state.waker.take(), state.soon.take());
        drop(state);
        self.room.notify_all();
        // Dropped without the lock: they hold directories, and wakers may run anything.
        drop((frontier, waker, soon));
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<T::Dir>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.is_closed() || self.cx.check().is_err()
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.is_closed() {
            return Err(Error::new(ErrorKind::Cancelled, "nobody wants the rest"));
        }
        self.cx.check()
    }

    /// Queues a further turn, where one is wanted.
    pub(super) fn queue(self: &Arc<Self>, wants_turn: bool) {
        if !wants_turn {
            return;
        }
        let task: Arc<dyn Task> = Arc::clone(self) as _;
        if let Err(error) = self.pool.resubmit(task) {
            // Nobody is left to go on with it.
            let mut state = self.lock();
            state.turns -= 1;
            state.failure = Some(error);
            let waker = self.waker(&mut state, Haste::Soon);
            drop(state);
            wake(waker);
        }
    }

    /// Claims something, or ends the turn.
    fn claim(self: &Arc<Self>, mut state: MutexGuard<'_, State<T::Dir>>) -> Option<Claim<T::Dir>> {
        let claim = if state.failure.is_none() { state.frontier.claim() } else { None };
        if claim.is_none() {
            state.turns -= 1;
            self.hungry.store(state.frontier.is_out_of_work(), Ordering::Relaxed);
        }
        // Whoever has nothing to claim may wait for the consumer to make room.
        let haste = if claim.is_some() { Haste::Soon } else { Haste::Now };
        let waker = self.waker(&mut state, haste);
        let wants_turn = claim.is_some() && state.wants_turn(&self.pool);
        drop(state);
        wake(waker);
        self.queue(wants_turn);
        claim
    }

    /// Does what was claimed.
    fn work(self: &Arc<Self>, worker: &Worker, tools: &mut Option<Q::Tools>, claim: Claim<T::Dir>) -> Outcome<T::Dir> {
        worker.beat();
        self.check()?;
        let key = &claim.key;
        match claim.job {
            Job::Start => self.start(worker, tools, key),
            Job::Named(file) => self.visit_named(worker, tools, file, key),
            Job::Walk(stretch) => self.walk(worker, tools, stretch, Findings::default(), key),
        }
    }

    pub(super) fn quest(&self) -> Result<&Q> {
        self.quest.get().ok_or_else(|| Error::new(ErrorKind::Internal, "work before the start"))
    }

    pub(super) fn walk_state(&self) -> Result<&WalkState<T::Dir>> {
        self.walk_state.get().ok_or_else(|| Error::new(ErrorKind::Internal, "work before the start"))
    }

    /// Compiles the request, finds where the walk starts, and goes on from there.
    fn start(self: &Arc<Self>, worker: &Worker, tools: &mut Option<Q::Tools>, key: &Key) -> Outcome<T::Dir> {
        let quest = Q::new(&self.req)?;
        let quest = self.quest.get_or_init(|| quest);
        let path = Q::path(&self.req);
        let mut findings = Findings::default();
        let stretch = match self.tree.locate(path).map_err(|error| error.or_path(path))? {
            _ if quest.wants_nothing() => Stretch::default(),
            Located::File { dir, name } => {
                let file = Named { dir, name, path: path.clone() };
                return self.visit_named(worker, tools, Progress::new(file), key);
            }
            Located::Directory(dir) => {
                let (guide, options) = (Checked { search: self, quest, worker }, quest.options());
                let follow =
                    (options.links == LinkMode::Follow).then(|| Follow::parallel(&*self.tree, path, self.max_entries));
                let state = self.walk_state.get_or_init(|| WalkState::new(follow, self.max_entries));
                let opener = Opener { tree: &*self.tree, guide: &guide, options, state };
                let level = opener.start(dir, path, &mut findings)?;
                match level {
                    Some(level) => Stretch::new(self.judged(quest, worker, level)?),
                    None => Stretch::default(),
                }
            }
        };
        self.walk(worker, tools, Progress::new(stretch), findings, key)
    }

    /// Hands over what came of a claim; the result is the state, still locked.
    fn settle(&self, key: &Key, outcome: Outcome<T::Dir>) -> MutexGuard<'_, State<T::Dir>> {
        let done = outcome.unwrap_or_else(|error| {
            let item = Item::Failed(error);
            Done { work: None, items: (vec![item], 0), rest: None }
        });
        let mut state = self.lock();
        if self.is_closed() {
            drop(state);
            // Dropped without the lock.
            drop(done);
            return self.lock();
        }
        let (mut items, bytes) = done.items;
        state.frontier.add(key, &mut items, bytes);
        state.frontier.keep(items);
        if let Some(work) = done.work {
            state.frontier.push_all(work);
        }
        match done.rest {
            None => state.frontier.finish(key),
            Some(rest) => {
                if state.frontier.park(key, rest).is_some() {
                    state.failure = Some(Error::new(ErrorKind::Internal, "a slot went before its job was done"));
                }
            }
        }
        state
    }
}

/// Steers the walk of a search.
pub(super) struct Checked<'a, T: Tree, Q: Quest> {
    pub(super) search: &'a Search<T, Q>,
    pub(super) quest: &'a Q,
    pub(super) worker: &'a Worker,
}

impl<T: Tree, Q: Quest> Guide for Checked<'_, T, Q> {
    fn enters(&self, relative: &str, name: &str) -> bool {
        self.quest.enters(relative, name)
    }

    fn names(&self, relative: &str) -> Option<Vec<String>> {
        self.quest.names(relative)
    }

    fn asks_dotted(&self, relative: &str, name: &str) -> Shown {
        self.quest.asks_dotted(relative, name)
    }

    fn check(&self) -> Result<()> {
        self.worker.beat();
        self.search.check()
    }

    fn check_aside(&self) -> Result<()> {
        self.search.check()
    }
}

impl<T: Tree, Q: Quest> Task for Search<T, Q> {
    fn turn(self: Arc<Self>, worker: &Worker) {
        let turn = Turn(&self);
        let mut tools = self.borrow_tools();
        let mut claim = self.claim(self.lock());
        while let Some(next) = claim {
            let key = Arc::clone(&next.key);
            let outcome = guarded(|| self.work(worker, &mut tools, next));
            if outcome.is_err() {
                // A panic, or a line that was too long, may have left anything behind.
                tools = None;
            }
            let state = self.settle(&key, outcome);
            if worker.is_wanted() {
                self.make_way(state);
                break;
            }
            claim = self.claim(state);
        }
        self.return_tools(tools);
        drop(turn);
    }
}

/// A turn under way. Where it ends in a panic outside of a claim, the search fails instead of waiting for ever.
struct Turn<'a, T: Tree, Q: Quest>(&'a Arc<Search<T, Q>>);

impl<T: Tree, Q: Quest> Drop for Turn<'_, T, Q> {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let mut state = self.0.lock();
        // It may have been counted as ended already; a search that has failed queues no further turn either way.
        state.turns = state.turns.saturating_sub(1);
        state.failure = Some(Error::new(ErrorKind::Internal, "a search worker panicked between two claims"));
        let waker = state.waker.take();
        drop(state);
        // A waker runs what it likes, and a second panic here would end the process.
        let _woken = guarded(|| {
            wake(waker);
            Ok(())
        });
    }
}

impl<T: Tree, Q: Quest> Search<T, Q> {
    /// Ends a turn for the sake of others that wait for the worker; another is queued behind them, where one is wanted.
    fn make_way(self: &Arc<Self>, mut state: MutexGuard<'_, State<T::Dir>>) {
        state.turns -= 1;
        let waker = self.waker(&mut state, Haste::Soon);
        let wants_turn = state.wants_turn(&self.pool);
        drop(state);
        wake(waker);
        self.queue(wants_turn);
    }

    fn borrow_tools(&self) -> Option<Q::Tools> {
        let mut all = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = thread::current().id();
        let mine = all.iter().position(|(owner, _)| *owner == thread);
        mine.map(|at| all.swap_remove(at)).or_else(|| all.pop()).map(|(_, tools)| tools)
    }

    fn return_tools(&self, tools: Option<Q::Tools>) {
        if let Some(tools) = tools {
            self.tools.lock().unwrap_or_else(PoisonError::into_inner).push((thread::current().id(), tools));
        }
    }
}

impl<T: Tree, Q: Quest> Search<T, Q> {
    /// Wakes the consumer at `moment`, whatever the workers are at, unless the alarm is dropped before.
    pub(crate) fn wakes_at(self: &Arc<Self>, moment: Instant) -> Alarm {
        let search = Arc::downgrade(self);
        Alarm::set(moment, move || {
            if let Some(search) = search.upgrade() {
                search.wake();
            }
        })
    }

    fn wake(&self) {
        let mut state = self.lock();
        state.woken = Some(Instant::now());
        let (waker, soon) = (state.waker.take(), state.soon.take());
        drop(state);
        drop(soon);
        wake(waker);
    }
}

pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
