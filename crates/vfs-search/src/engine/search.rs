//! Parallel search: workers claim tasks and fill slots, and the consumer empties the slots in order.
//!
//! A search has at most as many time slices as its pool has workers. In a time slice a worker claims one task after
//! another. The slice ends when there is nothing to claim or no room for results, and after each task if other
//! searches wait for a worker. A worker that adds work, or the consumer when it makes room, queues the further slices
//! that are needed.
//!
//! A worker whose task has produced more than there is room for does not wait. It parks the rest of the task. Once the
//! consumer has made room, the task resumes at the beginning of the file in which it stopped, and skips the lines that
//! it has delivered. Only for the slot that the consumer reads a worker waits, since that slot is about to be emptied;
//! if this takes long and other work needs the thread, the worker parks the task too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use vfs_core::timer::Timer;
use vfs_core::tree::{Located, Tree};
use vfs_core::{Error, ErrorKind, LinkMode, OpContext, Result};

use super::task_output::{TaskOutput, TaskResult, catch_panic};
use crate::engine::batch_pool::BatchPool;
use crate::engine::ordered_queue::{HeadState, OrderedQueue, PathKey, Resumable, Task, TaskKind, Tuning};
use crate::engine::pool::{Pool, Runnable, Worker};
use crate::engine::visitor::{NamedFile, SearchVisitor};
use crate::glob::DotVisibility;
use crate::item::Item;
use crate::walk::dir_entries::WalkFindings;
use crate::walk::dir_reader::{DirReader, WalkState};
use crate::walk::options::WalkControl;
use crate::walk::sequential::LinkFollower;
use crate::walk::subtree::Subtree;

/// Minimum interval between two wake-ups of the consumer, except for the end.
const MIN_WAKE_INTERVAL: Duration = Duration::from_millis(1);

/// One search, shared by its workers and its consumer.
pub(crate) struct Search<T: Tree, V: SearchVisitor> {
    pub(super) tree: Arc<T>,
    pub(super) cx: OpContext,
    req: V::Request,
    pub(super) pool: Pool,
    visitor: OnceLock<V>,
    walk_state: OnceLock<WalkState<T::Dir>>,
    max_entries: u64,
    state: Mutex<SearchState<T::Dir>>,
    /// Notified when there is room for more items, or the search is closed.
    pub(super) capacity_available: Condvar,
    closed: AtomicBool,
    /// Whether a worker had nothing to claim; a worker with steps to spare then shares them.
    pub(super) is_starved: AtomicBool,
    /// Worker states that are not in use, each with the thread that used it last: that thread is fastest with it.
    idle_worker_states: Mutex<Vec<(ThreadId, V::WorkerState)>>,
}

pub(super) struct SearchState<D> {
    pub(super) queue: OrderedQueue<D>,
    /// Number of time slices that are queued or running.
    active_slices: usize,
    /// Number of workers that wait for room.
    pub(super) waiting: usize,
    waker: Option<Waker>,
    /// When the consumer was last woken, if it was.
    last_wake: Option<Instant>,
    /// Wakes the consumer later, for items that arrive soon after a wake-up.
    wake_alarm: Option<Timer>,
    failure: Option<Error>,
}

/// Urgency of a wake-up of the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WakePriority {
    /// Within a millisecond.
    Throttled,
    Immediate,
}

/// The answer to a consumer that asks for items.
pub(crate) enum ReceiveStatus {
    /// Some items were received.
    Items,
    /// There is nothing yet; the consumer will be woken.
    Pending,
    /// There is nothing, and nothing will come.
    Finished,
}

impl<D> SearchState<D> {
    /// Reserves one more time slice on the workers of `pool` and returns whether the caller has to queue it.
    ///
    /// A search has more than one slice only if no other search waits, so that each gets its share and the queue stays
    /// short.
    pub(super) fn reserve_slice(&mut self, pool: &Pool) -> bool {
        let max_slices = if pool.has_queued_slices() { 1 } else { pool.workers() };
        let wants = self.active_slices < max_slices && self.failure.is_none() && self.queue.has_next();
        self.active_slices += usize::from(wants);
        wants
    }
}

impl<T: Tree, V: SearchVisitor> Search<T, V> {
    pub(crate) fn new(tree: Arc<T>, cx: OpContext, req: V::Request, pool: Pool, tuning: Tuning) -> Self {
        let (max_entries, queue) = (tuning.max_entries, OrderedQueue::new(tuning));
        Self {
            tree,
            cx,
            req,
            pool,
            visitor: OnceLock::new(),
            walk_state: OnceLock::new(),
            max_entries,
            state: Mutex::new(SearchState {
                queue,
                active_slices: 0,
                waiting: 0,
                waker: None,
                last_wake: None,
                wake_alarm: None,
                failure: None,
            }),
            capacity_available: Condvar::new(),
            closed: AtomicBool::new(false),
            is_starved: AtomicBool::new(true),
            idle_worker_states: Mutex::default(),
        }
    }

    pub(crate) fn context(&self) -> &OpContext {
        &self.cx
    }

    pub(crate) fn request(&self) -> &V::Request {
        &self.req
    }

    /// Takes the consumer's waker if there is something to receive.
    ///
    /// The consumer is not woken again at once: if there are many results, it would do nothing but wake up and fall
    /// asleep. The first results and the end wake it immediately.
    pub(super) fn take_waker(
        self: &Arc<Self>,
        state: &mut SearchState<T::Dir>,
        priority: WakePriority,
    ) -> Option<Waker> {
        if !state.queue.is_ready() && state.failure.is_none() {
            return None;
        }
        state.waker.as_ref()?;
        let now = Instant::now();
        let next = state.last_wake.map_or(now, |last_wake| last_wake + MIN_WAKE_INTERVAL);
        let is_over = state.queue.is_finished() || state.failure.is_some();
        if priority == WakePriority::Throttled && !is_over && now < next && !self.is_closed() {
            state.wake_alarm.get_or_insert_with(|| self.set_wake_alarm(next));
            return None;
        }
        state.last_wake = Some(now);
        state.wake_alarm = None;
        state.waker.take()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Starts the search.
    pub(crate) fn start(self: &Arc<Self>) -> Result<()> {
        self.lock().active_slices += 1;
        let runnable: Arc<dyn Runnable> = Arc::clone(self) as _;
        self.pool.submit(runnable)
    }

    /// Moves the next items to `ready`, or keeps `waker` until there are some.
    pub(crate) fn take(self: &Arc<Self>, ready: &mut BatchPool, waker: &Waker) -> ReceiveStatus {
        let mut state = self.lock();
        if let Some(error) = state.failure.take() {
            ready.push(vec![Item::Failed(error)]);
            return ReceiveStatus::Items;
        }
        let head = state.queue.take(ready);
        let taken = match head {
            HeadState::Items => ReceiveStatus::Items,
            HeadState::Finished => ReceiveStatus::Finished,
            HeadState::Waiting => {
                state.waker = Some(waker.clone());
                ReceiveStatus::Pending
            }
        };
        let has_slice = state.reserve_slice(&self.pool);
        let is_waited_for = state.waiting > 0;
        drop(state);
        if is_waited_for {
            self.capacity_available.notify_all();
        }
        self.submit_slice(has_slice);
        taken
    }

    /// Ends the search: no more results are needed.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mut state = self.lock();
        let queue = std::mem::replace(&mut state.queue, OrderedQueue::closed());
        let (waker, wake_alarm) = (state.waker.take(), state.wake_alarm.take());
        drop(state);
        self.capacity_available.notify_all();
        // Drop these without the lock: they hold directories, and wakers may run arbitrary code.
        drop((queue, waker, wake_alarm));
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SearchState<T::Dir>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.is_closed() || self.cx.check().is_err()
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.is_closed() {
            return Err(Error::new(ErrorKind::Cancelled, "the search was closed"));
        }
        self.cx.check()
    }

    /// Queues a further time slice if one was reserved.
    pub(super) fn submit_slice(self: &Arc<Self>, has_slice: bool) {
        if !has_slice {
            return;
        }
        let runnable: Arc<dyn Runnable> = Arc::clone(self) as _;
        if let Err(error) = self.pool.resubmit(runnable) {
            // No other slice may be left that would continue the search.
            let mut state = self.lock();
            state.active_slices -= 1;
            state.failure = Some(error);
            let waker = self.take_waker(&mut state, WakePriority::Throttled);
            drop(state);
            wake(waker);
        }
    }

    /// Claims a task, or ends the time slice.
    fn claim(self: &Arc<Self>, mut state: MutexGuard<'_, SearchState<T::Dir>>) -> Option<Task<T::Dir>> {
        let task = if state.failure.is_none() { state.queue.claim() } else { None };
        if task.is_none() {
            state.active_slices -= 1;
            self.is_starved.store(state.queue.is_out_of_work(), Ordering::Relaxed);
        }
        // A worker with nothing to claim may depend on the consumer to make room.
        let priority = if task.is_some() { WakePriority::Throttled } else { WakePriority::Immediate };
        let waker = self.take_waker(&mut state, priority);
        let has_slice = task.is_some() && state.reserve_slice(&self.pool);
        drop(state);
        wake(waker);
        self.submit_slice(has_slice);
        task
    }

    /// Runs a claimed task.
    fn run_task(
        self: &Arc<Self>,
        worker: &Worker,
        worker_state: &mut Option<V::WorkerState>,
        task: Task<T::Dir>,
    ) -> TaskResult<T::Dir> {
        worker.beat();
        self.check()?;
        let key = &task.key;
        match task.kind {
            TaskKind::Start => self.run_start(worker, worker_state, key),
            TaskKind::NamedFile(file) => self.visit_named(worker, worker_state, file, key),
            TaskKind::Walk(subtree) => self.walk(worker, worker_state, subtree, WalkFindings::default(), key),
        }
    }

    pub(super) fn visitor(&self) -> Result<&V> {
        self.visitor.get().ok_or_else(|| {
            Error::new(ErrorKind::Internal, "internal: a search task ran before the request was compiled")
        })
    }

    pub(super) fn walk_state(&self) -> Result<&WalkState<T::Dir>> {
        self.walk_state.get().ok_or_else(|| {
            Error::new(ErrorKind::Internal, "internal: a search task ran before the request was compiled")
        })
    }

    /// Compiles the request, locates the start of the walk, and continues from there.
    fn run_start(
        self: &Arc<Self>,
        worker: &Worker,
        worker_state: &mut Option<V::WorkerState>,
        key: &PathKey,
    ) -> TaskResult<T::Dir> {
        let visitor = V::new(&self.req)?;
        let visitor = self.visitor.get_or_init(|| visitor);
        let path = V::path(&self.req);
        let mut findings = WalkFindings::default();
        let subtree = match self.tree.locate(path).map_err(|error| error.or_path(path))? {
            _ if visitor.wants_nothing() => Subtree::default(),
            Located::File { dir, name } => {
                let file = NamedFile { dir, name, path: path.clone() };
                return self.visit_named(worker, worker_state, Resumable::new(file), key);
            }
            Located::Directory(dir) => {
                let (control, options) = (SearchWalkControl { search: self, visitor, worker }, visitor.options());
                let follow = (options.links == LinkMode::Follow)
                    .then(|| LinkFollower::for_parallel_walk(&*self.tree, path, self.max_entries));
                let state = self.walk_state.get_or_init(|| WalkState::new(follow, self.max_entries));
                let reader = DirReader { tree: &*self.tree, control: &control, options, state };
                let entries = reader.start(dir, path, &mut findings)?;
                match entries {
                    Some(entries) => Subtree::new(self.filter_entries(visitor, worker, entries)?),
                    None => Subtree::default(),
                }
            }
        };
        self.walk(worker, worker_state, Resumable::new(subtree), findings, key)
    }

    /// Stores the result of a task and returns the state, still locked.
    fn complete_task(&self, key: &PathKey, outcome: TaskResult<T::Dir>) -> MutexGuard<'_, SearchState<T::Dir>> {
        let output = outcome.unwrap_or_else(|error| {
            let item = Item::Failed(error);
            TaskOutput { work: None, items: (vec![item], 0), rest: None }
        });
        let mut state = self.lock();
        if self.is_closed() {
            drop(state);
            // Drop this without the lock.
            drop(output);
            return self.lock();
        }
        let (mut items, bytes) = output.items;
        state.queue.add(key, &mut items, bytes);
        state.queue.recycle(items);
        if let Some(work) = output.work {
            state.queue.push_subtree(work);
        }
        match output.rest {
            None => state.queue.finish(key),
            Some(rest) => {
                if state.queue.park(key, rest).is_some() {
                    state.failure = Some(Error::new(
                        ErrorKind::Internal,
                        "internal: a result slot was removed before its task was complete",
                    ));
                }
            }
        }
        state
    }
}

/// Controls the walk of a search.
pub(super) struct SearchWalkControl<'a, T: Tree, V: SearchVisitor> {
    pub(super) search: &'a Search<T, V>,
    pub(super) visitor: &'a V,
    pub(super) worker: &'a Worker,
}

impl<T: Tree, V: SearchVisitor> WalkControl for SearchWalkControl<'_, T, V> {
    fn should_enter(&self, relative: &str, name: &str) -> bool {
        self.visitor.should_enter(relative, name)
    }

    fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        self.visitor.names_in(relative)
    }

    fn hidden_override(&self, relative: &str, name: &str) -> DotVisibility {
        self.visitor.hidden_override(relative, name)
    }

    fn check(&self) -> Result<()> {
        self.worker.beat();
        self.search.check()
    }

    fn check_without_heartbeat(&self) -> Result<()> {
        self.search.check()
    }
}

impl<T: Tree, V: SearchVisitor> Runnable for Search<T, V> {
    fn run_slice(self: Arc<Self>, worker: &Worker) {
        let slice = TimeSlice(&self);
        let mut worker_state = self.take_worker_state();
        let mut task = self.claim(self.lock());
        while let Some(next) = task {
            let key = Arc::clone(&next.key);
            let outcome = catch_panic(|| self.run_task(worker, &mut worker_state, next));
            if outcome.is_err() {
                // A panic, or a line that was too long, may have left the worker state inconsistent or large.
                worker_state = None;
            }
            let state = self.complete_task(&key, outcome);
            if worker.has_queued_slices() {
                self.yield_slot(state);
                break;
            }
            task = self.claim(state);
        }
        self.put_worker_state(worker_state);
        drop(slice);
    }
}

/// A running time slice. If it ends in a panic outside of a task, the search fails instead of waiting for ever.
struct TimeSlice<'a, T: Tree, V: SearchVisitor>(&'a Arc<Search<T, V>>);

impl<T: Tree, V: SearchVisitor> Drop for TimeSlice<'_, T, V> {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let mut state = self.0.lock();
        // The slice may have been counted as ended already. A failed search queues no further slice in either case.
        state.active_slices = state.active_slices.saturating_sub(1);
        state.failure = Some(Error::new(ErrorKind::Internal, "a search worker panicked between two tasks"));
        let waker = state.waker.take();
        drop(state);
        // A waker may run arbitrary code, and a second panic here would abort the process.
        let _ = catch_panic(|| {
            wake(waker);
            Ok(())
        });
    }
}

impl<T: Tree, V: SearchVisitor> Search<T, V> {
    /// Ends a time slice for the sake of other searches that wait for the worker. If another slice is needed, it is
    /// queued behind them.
    fn yield_slot(self: &Arc<Self>, mut state: MutexGuard<'_, SearchState<T::Dir>>) {
        state.active_slices -= 1;
        let waker = self.take_waker(&mut state, WakePriority::Throttled);
        let has_slice = state.reserve_slice(&self.pool);
        drop(state);
        wake(waker);
        self.submit_slice(has_slice);
    }

    fn take_worker_state(&self) -> Option<V::WorkerState> {
        let mut all = self.idle_worker_states.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = thread::current().id();
        let mine = all.iter().position(|(owner, _)| *owner == thread);
        mine.map(|at| all.swap_remove(at)).or_else(|| all.pop()).map(|(_, worker_state)| worker_state)
    }

    fn put_worker_state(&self, worker_state: Option<V::WorkerState>) {
        if let Some(worker_state) = worker_state {
            self.idle_worker_states
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((thread::current().id(), worker_state));
        }
    }
}

impl<T: Tree, V: SearchVisitor> Search<T, V> {
    /// Sets an alarm that wakes the consumer at `moment`, whatever the workers do, unless it is dropped before.
    pub(crate) fn set_wake_alarm(self: &Arc<Self>, moment: Instant) -> Timer {
        let search = Arc::downgrade(self);
        Timer::set(moment, move || {
            if let Some(search) = search.upgrade() {
                search.wake();
            }
        })
    }

    fn wake(&self) {
        let mut state = self.lock();
        state.last_wake = Some(Instant::now());
        let (waker, wake_alarm) = (state.waker.take(), state.wake_alarm.take());
        drop(state);
        drop(wake_alarm);
        wake(waker);
    }
}

pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
