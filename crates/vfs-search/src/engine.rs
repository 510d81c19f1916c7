//! The parallel search: workers take batches of haystacks and fill slots, the consumer empties the slots in order.
//!
//! The source of haystacks is a baton. It is queued for a worker, which takes a batch from it and passes it on before it
//! searches the batch. So there is one walker at a time without a lock, and a search has one place in the queue of the pool
//! however much there is to do. Where the window is full, or a search has as many workers as there are, the baton is put
//! down, and the consumer or a worker that is done picks it up again.
//!
//! A worker whose batch has brought in more than there is room for does not wait. It parks what is left of the batch and
//! ends its turn; when the consumer has made room the batch goes on, from the beginning of the file it stopped in, and leaves
//! out the lines that it brought in before. Only for the batch that the consumer is at a worker waits, since it is about to
//! be emptied; where that takes long and its thread is missed it parks too.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use vfs_core::{Error, ErrorKind, GrepRequest, OpContext, Result};

use crate::alarm::Sleeper;
use crate::haystack::FileSearcher;
use crate::plan::Plan;
use crate::pool::{Pool, Task, Worker};
use crate::sink::{Item, Outlet};
use crate::slots::{Head, Slots, Tuning};
use crate::source::{Batch, BatchPart, Source};
use crate::tree::Tree;

/// Items that a worker collects before it puts them into its slot.
const FLUSH_ITEMS: usize = 128;

/// Bytes that a worker collects before it puts them into its slot.
const FLUSH_BYTES: usize = 32 << 10;

/// How often a worker that waits for the consumer looks at the context.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One search, shared by its workers and its consumer.
pub(crate) struct Search<T: Tree> {
    tree: Arc<T>,
    cx: OpContext,
    req: GrepRequest,
    pool: Pool,
    plan: OnceLock<Plan>,
    state: Mutex<State<T::Dir>>,
    /// Told when there is room for more items, or no more are wanted.
    room: Condvar,
    closed: AtomicBool,
    searchers: Mutex<Vec<FileSearcher>>,
}

struct State<D> {
    baton: Baton<D>,
    slots: Slots,
    waker: Option<Waker>,
    /// Jobs that stopped for want of room, by their slots.
    parked: BTreeMap<u64, Job<D>>,
    /// How many of the queued turns are for parked jobs.
    resuming: usize,
    /// How many jobs workers are at.
    working: usize,
}

/// What is to be done of a batch.
struct Job<D> {
    parts: VecDeque<BatchPart<D>>,
    /// The last line of the first part that was brought in by an earlier turn, or 0.
    brought_in: u64,
}

/// Where the source is.
enum Baton<D> {
    /// Nobody has asked yet.
    New,
    /// In the pool's queue.
    Queued(Option<Source<D>>),
    /// With a worker.
    Held,
    /// Put down until the consumer has taken something.
    Down(Option<Source<D>>),
    /// All was handed out, or no more is wanted.
    Done,
}

/// A batch, and the source of those after it.
type Walked<D> = (Batch<D>, Option<Source<D>>);

/// What a consumer found.
pub(crate) enum Taken {
    /// Some items.
    Items,
    /// Nothing yet; it will be woken.
    Pending,
    /// Nothing, and nothing will come.
    Finished,
}

impl<T: Tree> Search<T> {
    pub(crate) fn new(tree: Arc<T>, cx: OpContext, req: GrepRequest, pool: Pool, tuning: Tuning) -> Self {
        let state = State {
            baton: Baton::New,
            slots: Slots::new(tuning),
            waker: None,
            parked: BTreeMap::new(),
            resuming: 0,
            working: 0,
        };
        Self {
            tree,
            cx,
            req,
            pool,
            plan: OnceLock::new(),
            state: Mutex::new(state),
            room: Condvar::new(),
            closed: AtomicBool::new(false),
            searchers: Mutex::default(),
        }
    }

    pub(crate) fn context(&self) -> &OpContext {
        &self.cx
    }

    pub(crate) fn request(&self) -> &GrepRequest {
        &self.req
    }

    /// Begins the work, unless it has begun.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<()> {
        {
            let mut state = self.lock();
            let Baton::New = state.baton else {
                return Ok(());
            };
            state.baton = Baton::Queued(None);
        }
        let task: Arc<dyn Task> = Arc::clone(self) as _;
        self.pool.submit(task)
    }

    /// Moves the items of the first slot to `ready`, or keeps `waker` until there are some.
    pub(crate) fn take(self: &Arc<Self>, ready: &mut VecDeque<Item>, waker: &Waker) -> Taken {
        let mut state = self.lock();
        let taken = match state.slots.take(ready) {
            Head::Items => Taken::Items,
            Head::None if matches!(state.baton, Baton::Done) => Taken::Finished,
            Head::None | Head::Waiting => {
                state.waker = Some(waker.clone());
                Taken::Pending
            }
        };
        let turns = state.wanted_turns(self.pool.workers());
        drop(state);
        self.room.notify_all();
        self.queue(turns);
        taken
    }

    /// Ends the work: nobody wants any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mut state = self.lock();
        let baton = std::mem::replace(&mut state.baton, Baton::Done);
        let slots = std::mem::replace(&mut state.slots, Slots::new(Tuning { window: 0, budget: 0, head_budget: 0 }));
        let waker = state.waker.take();
        let parked = std::mem::take(&mut state.parked);
        drop(state);
        self.room.notify_all();
        // Dropped without the lock: they hold directories, and wakers may run anything.
        drop((baton, slots, waker, parked));
    }

    fn lock(&self) -> MutexGuard<'_, State<T::Dir>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_interrupted(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.cx.check().is_err()
    }

    fn check(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Cancelled, "nobody wants the rest"));
        }
        self.cx.check()
    }

    /// Queues `turns` further turns.
    fn queue(self: &Arc<Self>, turns: usize) {
        for _ in 0..turns {
            let task: Arc<dyn Task> = Arc::clone(self) as _;
            if let Err(error) = self.pool.resubmit(task) {
                return self.abandon(error);
            }
        }
    }

    /// Ends the search where nobody is left to go on with it.
    fn abandon(&self, error: Error) {
        let mut state = self.lock();
        let parked = std::mem::take(&mut state.parked);
        for index in parked.keys() {
            state.slots.finish(*index, Some(Item::Failed(error.clone())));
        }
        drop(state);
        drop(parked);
        self.end_with(error);
    }

    /// The first half of a turn: takes a batch from the source.
    fn walk(&self, worker: &Worker, source: Option<Source<T::Dir>>) -> Result<Walked<T::Dir>> {
        let check = || {
            worker.beat();
            self.check()
        };
        check()?;
        let (plan, mut source) = match (self.plan.get(), source) {
            (Some(plan), Some(source)) => (plan, source),
            _ => {
                let plan = Plan::new(&self.req)?;
                let plan = self.plan.get_or_init(|| plan);
                (plan, Source::start(&*self.tree, &self.req, plan, &check)?)
            }
        };
        if plan.wants_nothing() {
            return Ok((Batch::nothing(), None));
        }
        let batch = source.next_batch(&*self.tree, plan, &check)?;
        let rest = (!batch.is_last).then_some(source);
        Ok((batch, rest))
    }

    /// Between the halves: opens a slot for the batch, and passes the baton on.
    fn publish(self: &Arc<Self>, batch: &Batch<T::Dir>, rest: Option<Source<T::Dir>>) -> Option<u64> {
        let mut state = self.lock();
        if self.closed.load(Ordering::Acquire) {
            return None;
        }
        let walked = Item::Walked { skipped: batch.report.skipped, too_deep: batch.report.too_deep };
        let index = state.slots.open(walked);
        state.baton = match rest {
            Some(source) => Baton::Down(Some(source)),
            None => Baton::Done,
        };
        state.working += 1;
        let turns = state.wanted_turns(self.pool.workers());
        drop(state);
        self.queue(turns);
        Some(index)
    }

    /// The second half of a turn: searches the files of a batch. The result is what is left of it for want of room.
    fn search(&self, worker: &Worker, mut job: Job<T::Dir>, index: u64) -> Result<Option<Job<T::Dir>>> {
        let Some(plan) = self.plan.get() else {
            return Err(Error::new(ErrorKind::Internal, "a batch without a plan"));
        };
        let pooled = self.searchers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut searcher = pooled.unwrap_or_else(|| FileSearcher::new(plan));
        let mut outlet = SlotOutlet::new(self, worker, index);
        while let Some(part) = job.parts.pop_front() {
            self.check()?;
            worker.beat();
            let is_done = match &part {
                _ if !outlet.has_room() => false,
                BatchPart::Problem(problem) => outlet.put(Item::Problem(problem.clone())).is_continue(),
                BatchPart::Haystack(haystack) => {
                    outlet.begin_file(job.brought_in);
                    let interrupted = || {
                        worker.beat();
                        self.is_interrupted()
                    };
                    let opened = haystack.open(&*self.tree);
                    searcher.search(plan, opened, &|| haystack.path(), &mut outlet, &interrupted);
                    job.brought_in = outlet.brought_in;
                    outlet.is_file_done
                }
            };
            if !is_done {
                job.parts.push_front(part);
                break;
            }
            job.brought_in = 0;
        }
        self.check()?;
        outlet.flush();
        self.searchers.lock().unwrap_or_else(PoisonError::into_inner).push(searcher);
        Ok((!job.parts.is_empty()).then_some(job))
    }

    /// Keeps what is left of the batch of slot `index` until there is room.
    fn park(self: &Arc<Self>, index: u64, job: Job<T::Dir>) {
        let mut state = self.lock();
        state.working -= 1;
        let unwanted = if self.closed.load(Ordering::Acquire) { Some(job) } else { state.parked.insert(index, job) };
        // The consumer may have made room since the worker looked.
        let turns = state.wanted_turns(self.pool.workers());
        drop(state);
        drop(unwanted);
        self.queue(turns);
    }

    /// Marks a slot as complete.
    fn finish(self: &Arc<Self>, index: u64, error: Option<Error>) {
        let mut state = self.lock();
        state.working -= 1;
        state.slots.finish(index, error.map(Item::Failed));
        let waker = state.waker_of(index);
        let turns = state.wanted_turns(self.pool.workers());
        drop(state);
        wake(waker);
        self.queue(turns);
    }

    /// Ends the search with `error`, after what was found before.
    fn end_with(&self, error: Error) {
        let mut state = self.lock();
        let index = state.slots.open(Item::Failed(error));
        state.slots.finish(index, None);
        let baton = std::mem::replace(&mut state.baton, Baton::Done);
        let waker = state.waker.take();
        drop(state);
        drop(baton);
        wake(waker);
    }

    /// Puts items into a slot.
    fn emit(&self, index: u64, items: &mut Vec<Item>, bytes: usize) -> Room {
        let mut state = self.lock();
        if !state.slots.add(index, items, bytes) {
            return Room::Unwanted;
        }
        let waker = state.waker_of(index);
        drop(state);
        wake(waker);
        Room::Unknown
    }

    /// Whether there is room for more in slot `index`; waits for it where the consumer is at this slot.
    fn room(&self, worker: &Worker, index: u64) -> Room {
        let room = self.room_now(&self.lock(), index);
        if room == Room::Unknown { worker.stand_in(|| self.wait_for_room(worker, index)) } else { room }
    }

    /// Whether there is room for more in slot `index`; unknown where it is worth waiting.
    fn room_now(&self, state: &State<T::Dir>, index: u64) -> Room {
        if self.closed.load(Ordering::Acquire) {
            Room::Unwanted
        } else if state.slots.admits(index) {
            Room::Enough
        } else if state.slots.is_head(index) {
            Room::Unknown
        } else {
            Room::Short
        }
    }

    fn wait_for_room(&self, worker: &Worker, index: u64) -> Room {
        loop {
            let state = self.lock();
            let room = self.room_now(&state, index);
            if room != Room::Unknown {
                return room;
            }
            let (state, waited) = self.room.wait_timeout(state, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner);
            drop(state);
            // Nobody polls a search whose consumer is elsewhere, so the context is looked at here.
            if self.cx.check().is_err() {
                return Room::Unwanted;
            }
            if waited.timed_out() && worker.is_missed() {
                return Room::Short;
            }
        }
    }
}

/// Whether a slot may take more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Enough,
    /// To be looked at, or waited for.
    Unknown,
    /// Not until the consumer has made some.
    Short,
    /// Nobody wants any more.
    Unwanted,
}

impl<D> State<D> {
    /// The consumer's waker, where it waits for slot `index`.
    fn waker_of(&mut self, index: u64) -> Option<Waker> {
        if self.slots.is_head(index) { self.waker.take() } else { None }
    }

    /// How many further turns there is something to do for, at a search that may have `workers`; the caller queues them.
    fn wanted_turns(&mut self, workers: usize) -> usize {
        usize::from(self.resume(workers)) + usize::from(self.pick_up(workers))
    }

    /// Whether a turn is to be queued for a parked job. The first goes on first, and always where the consumer waits for it.
    fn resume(&mut self, workers: usize) -> bool {
        let Some(&index) = self.parked.keys().nth(self.resuming) else {
            return false;
        };
        let is_free = self.slots.is_head(index) || self.working + self.resuming < workers;
        let goes_on = is_free && self.slots.invites(index);
        self.resuming += usize::from(goes_on);
        goes_on
    }

    /// Takes the baton up again where it was put down and there is room.
    fn pick_up(&mut self, workers: usize) -> bool {
        if !self.slots.has_room() || self.working + self.resuming >= workers {
            return false;
        }
        match std::mem::replace(&mut self.baton, Baton::Done) {
            Baton::Down(source) => {
                self.baton = Baton::Queued(source);
                true
            }
            other => {
                self.baton = other;
                false
            }
        }
    }
}

impl<T: Tree> Search<T> {
    /// What a turn is for: a parked job, or the next batch.
    fn next_job(self: &Arc<Self>, worker: &Worker) -> Option<(u64, Job<T::Dir>)> {
        let source = {
            let mut state = self.lock();
            if state.resuming > 0 {
                state.resuming -= 1;
                if let Some(parked) = state.parked.pop_first() {
                    state.working += 1;
                    return Some(parked);
                }
            }
            match std::mem::replace(&mut state.baton, Baton::Held) {
                Baton::Queued(source) => source,
                other => {
                    state.baton = other;
                    return None;
                }
            }
        };
        match guarded(|| self.walk(worker, source)) {
            Ok((batch, rest)) => {
                let index = self.publish(&batch, rest)?;
                Some((index, Job { parts: batch.parts.into(), brought_in: 0 }))
            }
            Err(error) => {
                self.end_with(error);
                None
            }
        }
    }
}

impl<T: Tree> Task for Search<T> {
    fn turn(self: Arc<Self>, worker: &Worker) {
        let Some((index, job)) = self.next_job(worker) else {
            return;
        };
        match guarded(|| self.search(worker, job, index)) {
            Ok(None) => self.finish(index, None),
            Ok(Some(rest)) => self.park(index, rest),
            Err(error) => self.finish(index, Some(error)),
        }
    }
}

impl<T: Tree> Sleeper for Search<T> {
    fn wake(&self) {
        let waker = self.lock().waker.take();
        wake(waker);
    }
}

/// Collects items, so that the lock is not taken for each.
struct SlotOutlet<'a, T: Tree> {
    search: &'a Search<T>,
    worker: &'a Worker,
    index: u64,
    items: Vec<Item>,
    bytes: usize,
    room: Room,
    /// The last line of the file that was brought in; those up to it are left out.
    brought_in: u64,
    is_file_done: bool,
}

impl<'a, T: Tree> SlotOutlet<'a, T> {
    fn new(search: &'a Search<T>, worker: &'a Worker, index: u64) -> Self {
        let (items, room) = (Vec::new(), Room::Unknown);
        Self { search, worker, index, items, bytes: 0, room, brought_in: 0, is_file_done: false }
    }

    /// The items that follow are those of one file, whose lines up to `brought_in` are in the slot already.
    fn begin_file(&mut self, brought_in: u64) {
        self.brought_in = brought_in;
        self.is_file_done = false;
    }

    /// Whether more is taken. What was put before is in any case.
    fn has_room(&mut self) -> bool {
        if self.room == Room::Unknown {
            self.room = self.search.room(self.worker, self.index);
        }
        self.room == Room::Enough
    }

    fn flush(&mut self) {
        if !self.items.is_empty() {
            let bytes = std::mem::take(&mut self.bytes);
            self.room = self.search.emit(self.index, &mut self.items, bytes);
            self.worker.beat();
        }
    }
}

impl<T: Tree> Outlet for SlotOutlet<'_, T> {
    fn put(&mut self, item: Item) -> ControlFlow<()> {
        let line = item.line();
        if line.is_some_and(|line| line <= self.brought_in) {
            return ControlFlow::Continue(());
        }
        if !self.has_room() {
            return ControlFlow::Break(());
        }
        self.brought_in = line.unwrap_or(self.brought_in);
        self.is_file_done = matches!(item, Item::Done { .. });
        self.bytes += item.cost();
        self.items.push(item);
        let is_whole_file = self.is_file_done && self.items.len() > 1;
        // Only between lines and after a file: a file that is begun again leaves out the lines it had, and nothing else.
        let may_flush = self.is_file_done || line.is_some();
        if may_flush && (is_whole_file || self.items.len() >= FLUSH_ITEMS || self.bytes >= FLUSH_BYTES) {
            self.flush();
        }
        ControlFlow::Continue(())
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Runs one half of a turn; a panic in it becomes an error.
fn guarded<R>(half: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(half)).unwrap_or_else(|panic| {
        Err(Error::new(ErrorKind::Internal, "a search worker panicked")
            .with_source(std::io::Error::other(words(&*panic))))
    })
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without words").to_owned()
}
