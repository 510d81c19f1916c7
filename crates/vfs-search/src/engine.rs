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
use crate::slots::{Head, Slots, Tuning};
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
        let state = State { baton: Baton::New, slots: Slots::new(tuning), waker: None };
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
        let resumed = pick_up(&mut state);
        drop(state);
        self.room.notify_all();
        self.requeue(resumed);
        taken
    }

    /// Ends the work: nobody wants any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mut state = self.lock();
        let baton = std::mem::replace(&mut state.baton, Baton::Done);
        let slots = std::mem::replace(&mut state.slots, Slots::new(Tuning { window: 0, budget: 0, head_budget: 0 }));
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
    fn walk(&self, source: Option<Source<T::Dir>>) -> Result<Walked<T::Dir>> {
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
        let walked = Item::Walked { skipped: batch.report.skipped, too_deep: batch.report.too_deep };
        let index = state.slots.open(walked);
        state.baton = match rest {
            Some(source) => Baton::Down(Some(source)),
            None => Baton::Done,
        };
        let resumed = pick_up(&mut state);
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
        state.slots.finish(index, error.map(Item::Failed));
        let waker = state.waker_of(index);
        drop(state);
        wake(waker);
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

    /// Puts items into a slot, waiting until there is room; `Break` where nobody wants them.
    fn emit(&self, index: u64, items: &mut Vec<Item>, bytes: usize) -> ControlFlow<()> {
        let mut state = self.lock();
        if !self.admits(&state, index) {
            drop(state);
            self.pool.stand_in(|| self.wait_for_room(index))?;
            state = self.lock();
        }
        if !state.slots.add(index, items, bytes) {
            return ControlFlow::Break(());
        }
        let waker = state.waker_of(index);
        drop(state);
        wake(waker);
        ControlFlow::Continue(())
    }

    /// Whether a worker has not to wait with what it has for slot `index`.
    fn admits(&self, state: &State<T::Dir>, index: u64) -> bool {
        self.closed.load(Ordering::Acquire) || state.slots.admits(index)
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

impl<D> State<D> {
    /// The consumer's waker, where it waits for slot `index`.
    fn waker_of(&mut self, index: u64) -> Option<Waker> {
        if self.slots.is_head(index) { self.waker.take() } else { None }
    }
}

/// Takes the baton up again where it was put down and there is room; the caller queues the search.
fn pick_up<D>(state: &mut State<D>) -> bool {
    if !state.slots.has_room() {
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
