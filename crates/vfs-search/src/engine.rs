//! The parallel search: workers take batches of haystacks and fill slots, the consumer empties the slots in order.
//!
//! The source of haystacks is a baton. It is queued for a worker, which takes a batch from it and passes it on before it
//! searches the batch. So there is one walker at a time without a lock, and a search has one place in the queue of the pool
//! however much there is to do. Where the window is full the baton is put down, and the consumer picks it up again.

use std::any::Any;
use std::collections::VecDeque;
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
use crate::pool::{Pool, Task};
use crate::sink::{Item, Outlet};
use crate::source::{Batch, BatchPart, Haystack, Source};
use crate::tree::{Opened, Tree};

/// Items that a worker collects before it puts them into its slot.
const FLUSH_ITEMS: usize = 128;

/// Bytes that a worker collects before it puts them into its slot.
const FLUSH_BYTES: usize = 32 << 10;

/// How often a worker that waits for the consumer looks at the context.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A multiline search of more than this is not interrupted; another worker stands in for it.
const LONG_SEARCH: u64 = 1 << 20;

/// How far a search may be ahead of its consumer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Most batches under way.
    pub(crate) window: usize,
    /// Most bytes of items, apart from those of the first batch.
    pub(crate) budget: usize,
    /// Most bytes of items of the first batch.
    pub(crate) head_budget: usize,
}

impl Tuning {
    pub(crate) fn for_pool(pool: &Pool) -> Self {
        Self { window: pool.workers() * 4, budget: 4 << 20, head_budget: 512 << 10 }
    }
}

/// One search, shared by its workers and its consumer.
pub(crate) struct Search<T: Tree> {
    tree: Arc<T>,
    cx: OpContext,
    req: GrepRequest,
    pool: Pool,
    tuning: Tuning,
    plan: OnceLock<Plan>,
    state: Mutex<State<T::Dir>>,
    /// Told when there is room for more items, or no more are wanted.
    room: Condvar,
    closed: AtomicBool,
    searchers: Mutex<Vec<FileSearcher>>,
}

struct State<D> {
    baton: Baton<D>,
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    first: u64,
    /// Bytes in all slots.
    buffered: usize,
    waker: Option<Waker>,
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

/// The items of one batch.
#[derive(Default)]
struct Slot {
    items: Vec<Item>,
    bytes: usize,
    done: bool,
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

impl<T: Tree> Search<T> {
    pub(crate) fn new(tree: Arc<T>, cx: OpContext, req: GrepRequest, pool: Pool, tuning: Tuning) -> Self {
        let state = State { baton: Baton::New, slots: VecDeque::new(), first: 0, buffered: 0, waker: None };
        Self {
            tree,
            cx,
            req,
            pool,
            tuning,
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
        loop {
            let Some(head) = state.slots.front_mut() else {
                if matches!(state.baton, Baton::Done) {
                    return Taken::Finished;
                }
                break;
            };
            let (items, bytes, done) = (std::mem::take(&mut head.items), std::mem::take(&mut head.bytes), head.done);
            state.buffered -= bytes;
            if done {
                state.slots.pop_front();
                state.first += 1;
            }
            if !items.is_empty() {
                let resumed = self.pick_up(&mut state);
                drop(state);
                ready.extend(items);
                self.room.notify_all();
                self.requeue(resumed);
                return Taken::Items;
            }
            if !done {
                break;
            }
        }
        state.waker = Some(waker.clone());
        let resumed = self.pick_up(&mut state);
        drop(state);
        self.room.notify_all();
        self.requeue(resumed);
        Taken::Pending
    }

    /// Ends the work: nobody wants any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mut state = self.lock();
        let baton = std::mem::replace(&mut state.baton, Baton::Done);
        let slots = std::mem::take(&mut state.slots);
        state.buffered = 0;
        let waker = state.waker.take();
        drop(state);
        self.room.notify_all();
        // Dropped without the lock: they hold directories, and wakers may run anything.
        drop((baton, slots, waker));
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

    fn has_room(&self, state: &State<T::Dir>) -> bool {
        state.slots.len() < self.tuning.window && state.buffered < self.tuning.budget
    }

    /// Takes the baton up again where it was put down and there is room; the caller queues the search.
    fn pick_up(&self, state: &mut State<T::Dir>) -> bool {
        if !self.has_room(state) {
            return false;
        }
        match std::mem::replace(&mut state.baton, Baton::Done) {
            Baton::Down(source) => {
                state.baton = Baton::Queued(source);
                true
            }
            other => {
                state.baton = other;
                false
            }
        }
    }

    fn requeue(self: &Arc<Self>, resumed: bool) {
        if !resumed {
            return;
        }
        let task: Arc<dyn Task> = Arc::clone(self) as _;
        if let Err(error) = self.pool.resubmit(task) {
            self.end_with(error);
        }
    }

    /// The first half of a turn: takes a batch from the source.
    fn walk(&self, source: Option<Source<T::Dir>>) -> Result<(Batch<T::Dir>, Option<Source<T::Dir>>)> {
        let check = || self.check();
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
        let index = state.first + state.slots.len() as u64;
        let walked = Item::Walked { skipped: batch.report.skipped, too_deep: batch.report.too_deep };
        state.slots.push_back(Slot { items: vec![walked], ..Slot::default() });
        state.baton = match rest {
            Some(source) => Baton::Down(Some(source)),
            None => Baton::Done,
        };
        let resumed = self.pick_up(&mut state);
        drop(state);
        self.requeue(resumed);
        Some(index)
    }

    /// The second half of a turn: searches the batch.
    fn search(&self, batch: Batch<T::Dir>, index: u64) -> Result<()> {
        let Some(plan) = self.plan.get() else {
            return Err(Error::new(ErrorKind::Internal, "a batch without a plan"));
        };
        let pooled = self.searchers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut searcher = pooled.unwrap_or_else(|| FileSearcher::new(plan));
        let mut outlet = SlotOutlet { search: self, index, items: Vec::new(), bytes: 0, broken: false };
        for part in batch.parts {
            if outlet.broken {
                return Ok(());
            }
            self.check()?;
            match part {
                BatchPart::Problem(problem) => {
                    let _ = outlet.put(Item::Problem(problem));
                }
                BatchPart::Haystack(haystack) => self.search_file(plan, &mut searcher, &haystack, &mut outlet),
            }
        }
        outlet.flush();
        self.searchers.lock().unwrap_or_else(PoisonError::into_inner).push(searcher);
        Ok(())
    }

    fn search_file(
        &self,
        plan: &Plan,
        searcher: &mut FileSearcher,
        haystack: &Haystack<T::Dir>,
        outlet: &mut SlotOutlet<'_, T>,
    ) {
        let opened = haystack.open(&*self.tree);
        let is_long = plan.multiline && opened.as_ref().is_ok_and(|opened| opened.size_hint() > LONG_SEARCH);
        let search = || searcher.search(plan, opened, &|| haystack.path(), outlet, &|| self.is_interrupted());
        if is_long { self.pool.stand_in(search) } else { search() }
    }

    /// Marks a slot as complete.
    fn finish(&self, index: u64, error: Option<Error>) {
        let mut state = self.lock();
        let is_head = index == state.first;
        let slot = index.checked_sub(state.first).and_then(|at| state.slots.get_mut(usize::try_from(at).ok()?));
        if let Some(slot) = slot {
            slot.items.extend(error.map(Item::Failed));
            slot.done = true;
        }
        let waker = if is_head { state.waker.take() } else { None };
        drop(state);
        wake(waker);
    }

    /// Ends the search with `error`, after what was found before.
    fn end_with(&self, error: Error) {
        let mut state = self.lock();
        state.slots.push_back(Slot { items: vec![Item::Failed(error)], bytes: 0, done: true });
        let baton = std::mem::replace(&mut state.baton, Baton::Done);
        let waker = state.waker.take();
        drop(state);
        drop(baton);
        wake(waker);
    }

    /// Puts items into a slot, waiting until there is room; `Break` where nobody wants them.
    fn emit(&self, index: u64, items: &mut Vec<Item>, bytes: usize) -> ControlFlow<()> {
        let mut state = self.lock();
        if !self.admits(&state, index) {
            drop(state);
            self.pool.stand_in(|| self.wait_for_room(index))?;
            state = self.lock();
        }
        let at = index.checked_sub(state.first).and_then(|at| usize::try_from(at).ok());
        let Some(slot) = at.and_then(|at| state.slots.get_mut(at)) else {
            return ControlFlow::Break(());
        };
        slot.items.append(items);
        slot.bytes += bytes;
        state.buffered += bytes;
        let waker = if index == state.first { state.waker.take() } else { None };
        drop(state);
        wake(waker);
        ControlFlow::Continue(())
    }

    /// Whether a worker may add to slot `index`. The first may while the rest may not: the consumer waits for it alone.
    fn admits(&self, state: &State<T::Dir>, index: u64) -> bool {
        if self.closed.load(Ordering::Acquire) {
            return true;
        }
        match state.slots.front() {
            Some(head) if index == state.first => head.bytes < self.tuning.head_budget,
            _ => state.buffered < self.tuning.budget,
        }
    }

    fn wait_for_room(&self, index: u64) -> ControlFlow<()> {
        let mut state = self.lock();
        while !self.admits(&state, index) {
            // Nobody polls a search whose consumer is elsewhere, so the context is looked at here.
            let waited = self.room.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if self.cx.check().is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

impl<T: Tree> Task for Search<T> {
    fn turn(self: Arc<Self>) {
        let source = {
            let mut state = self.lock();
            match std::mem::replace(&mut state.baton, Baton::Held) {
                Baton::Queued(source) => source,
                other => {
                    state.baton = other;
                    return;
                }
            }
        };
        let (batch, rest) = match guarded(|| self.walk(source)) {
            Ok(walked) => walked,
            Err(error) => return self.end_with(error),
        };
        let Some(index) = self.publish(&batch, rest) else {
            return;
        };
        let result = guarded(|| self.search(batch, index));
        self.finish(index, result.err());
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
    index: u64,
    items: Vec<Item>,
    bytes: usize,
    broken: bool,
}

impl<T: Tree> SlotOutlet<'_, T> {
    fn flush(&mut self) {
        if self.items.is_empty() || self.broken {
            return;
        }
        let bytes = std::mem::take(&mut self.bytes);
        self.broken = self.search.emit(self.index, &mut self.items, bytes).is_break();
    }
}

impl<T: Tree> Outlet for SlotOutlet<'_, T> {
    fn put(&mut self, item: Item) -> ControlFlow<()> {
        self.bytes += item.cost();
        let is_whole_file = matches!(item, Item::Done { .. }) && self.items.len() > 1;
        self.items.push(item);
        if is_whole_file || self.items.len() >= FLUSH_ITEMS || self.bytes >= FLUSH_BYTES {
            self.flush();
        }
        if self.broken { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Opened {
    fn size_hint(&self) -> u64 {
        match self {
            Opened::Bytes(bytes) => bytes.len() as u64,
            Opened::Reader { size, .. } => *size,
        }
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
