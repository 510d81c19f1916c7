//! Parallel search: workers claim tasks and fill slots, and the consumer empties the slots in order.
//!
//! A search has at most as many time slices as its pool has workers. In a time slice a worker claims one task after
//! another. The slice ends when there is nothing to claim or no room for results, and after each task if another
//! slice waits for a thread. A worker that adds work, or the consumer when it makes room, queues the further slices
//! that are needed.
//!
//! A worker whose task has produced more than there is room for does not wait. It parks the rest of the task. Once the
//! consumer has made room, the task resumes at the beginning of the file in which it stopped, and skips the lines that
//! it has delivered. A worker waits only for the slot that the consumer reads, since that slot is about to be emptied;
//! if this takes long and other work needs the thread, the worker parks that task too.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::{self, ThreadId};
use std::time::Instant;

use vfs_core::timer::Timer;
use vfs_core::tree::Tree;
use vfs_core::{Error, ErrorKind, OpContext, Result};

use crate::engine::ordered_task_queue::{OrderedTaskQueue, PathKey, QueueHeadState, RunAheadLimits, Task, TaskKind};
use crate::engine::pool::{Pool, Runnable, SliceProgressRecorder};
use crate::engine::received_item_queue::ReceivedItemQueue;
use crate::engine::search_visitor::SearchVisitor;
use crate::search_item::SearchItem;
use crate::walk::dir_reader::SharedWalkState;
use crate::walk::pending_steps::PendingSteps;

/// One search, shared by its workers and its consumer.
pub(crate) struct Search<V: SearchVisitor> {
    pub(super) tree: Arc<dyn Tree>,
    pub(super) cx: OpContext,
    pub(super) req: V::Request,
    pub(super) pool: Pool,
    pub(super) visitor: OnceLock<V>,
    pub(super) walk_state: OnceLock<SharedWalkState>,
    pub(super) max_entries: u64,
    state: Mutex<SearchState>,
    /// Notified when there is room for more items, or the search is closed.
    pub(super) capacity_available: Condvar,
    closed: AtomicBool,
    /// Whether a worker had nothing to claim; a worker with steps to spare then shares them.
    pub(super) is_starved: AtomicBool,
    /// Worker states that are not in use, each with the thread that used it last: that thread is fastest with it.
    idle_worker_states: Mutex<Vec<(ThreadId, V::WorkerState)>>,
}

/// The part of a search that its lock protects.
pub(super) struct SearchState {
    pub(super) queue: OrderedTaskQueue,
    /// Number of time slices that are queued or running.
    active_slices: usize,
    /// Number of workers that wait for room.
    pub(super) waiting: usize,
    waker: Option<Waker>,
    failure: Option<Error>,
}

/// The output of a task.
pub(super) struct TaskOutput {
    /// Steps that any worker may take.
    pub(super) work: Option<PendingSteps>,
    /// The items, and their cost.
    pub(super) items: (Vec<SearchItem>, usize),
    /// The rest of the task, which stopped for lack of room.
    pub(super) rest: Option<TaskKind>,
}

/// The output of a task, or the error that ends the search.
pub(super) type TaskResult = Result<TaskOutput>;

/// The result of an attempt of the consumer to receive items.
pub(crate) enum ReceiveStatus {
    /// Some items were received.
    Items,
    /// There are no items yet; the consumer will be woken.
    Pending,
    /// There are no items, and none will follow.
    Finished,
}

impl SearchState {
    /// Takes the consumer's waker if there is something to receive.
    pub(super) fn take_waker(&mut self) -> Option<Waker> {
        self.waker.take_if(|_| self.queue.is_ready() || self.failure.is_some())
    }

    /// Reserves one more time slice on the workers of `pool` and returns whether the caller has to queue it.
    ///
    /// A search has more than one slice only if no slice waits for a thread, so that each gets its share and the queue stays
    /// short.
    pub(super) fn reserve_slice(&mut self, pool: &Pool) -> bool {
        let max_slices = if pool.has_queued_slices() { 1 } else { pool.workers() };
        let is_needed = self.active_slices < max_slices && self.failure.is_none() && self.queue.has_next();
        self.active_slices += usize::from(is_needed);
        is_needed
    }
}

impl<V: SearchVisitor> Search<V> {
    pub(crate) fn new(tree: Arc<dyn Tree>, cx: OpContext, req: V::Request, pool: Pool, limits: RunAheadLimits) -> Self {
        let (max_entries, queue) = (limits.max_entries, OrderedTaskQueue::new(limits));
        Self {
            tree,
            cx,
            req,
            pool,
            visitor: OnceLock::new(),
            walk_state: OnceLock::new(),
            max_entries,
            state: Mutex::new(SearchState { queue, active_slices: 0, waiting: 0, waker: None, failure: None }),
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

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Starts the search.
    pub(crate) fn start(self: &Arc<Self>) -> Result<()> {
        self.lock().active_slices += 1;
        let runnable: Arc<dyn Runnable> = Arc::clone(self) as _;
        self.pool.submit(runnable)
    }

    /// Moves the next items to `ready`, or stores `waker` until there are some.
    pub(crate) fn take(self: &Arc<Self>, ready: &mut ReceivedItemQueue, waker: &Waker) -> ReceiveStatus {
        let mut state = self.lock();
        if let Some(error) = state.failure.take() {
            ready.push(vec![SearchItem::Failed(error)]);
            return ReceiveStatus::Items;
        }
        let head = state.queue.take(ready);
        let taken = match head {
            QueueHeadState::Items => ReceiveStatus::Items,
            QueueHeadState::Finished => ReceiveStatus::Finished,
            QueueHeadState::Waiting => {
                state.waker = Some(waker.clone());
                ReceiveStatus::Pending
            }
        };
        let has_slice = state.reserve_slice(&self.pool);
        let has_waiting_workers = state.waiting > 0;
        drop(state);
        if has_waiting_workers {
            self.capacity_available.notify_all();
        }
        self.submit_slice(has_slice);
        taken
    }

    /// Ends the search: no more results are needed.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mut state = self.lock();
        let queue = std::mem::replace(&mut state.queue, OrderedTaskQueue::closed());
        let waker = state.waker.take();
        drop(state);
        self.capacity_available.notify_all();
        // Drop these without the lock: they hold directories, and wakers may run arbitrary code.
        drop((queue, waker));
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SearchState> {
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
            let waker = state.take_waker();
            drop(state);
            wake(waker);
        }
    }

    /// Claims a task, or ends the time slice.
    fn claim(self: &Arc<Self>, mut state: MutexGuard<'_, SearchState>) -> Option<Task> {
        let task = if state.failure.is_none() { state.queue.claim() } else { None };
        if task.is_none() {
            state.active_slices -= 1;
            self.is_starved.store(state.queue.is_out_of_work(), Ordering::Relaxed);
        }
        let waker = state.take_waker();
        let has_slice = task.is_some() && state.reserve_slice(&self.pool);
        drop(state);
        wake(waker);
        self.submit_slice(has_slice);
        task
    }

    pub(super) fn visitor(&self) -> Result<&V> {
        self.visitor.get().ok_or_else(|| {
            Error::new(ErrorKind::Internal, "internal: a search task ran before the request was compiled")
        })
    }

    pub(super) fn walk_state(&self) -> Result<&SharedWalkState> {
        self.walk_state.get().ok_or_else(|| {
            Error::new(ErrorKind::Internal, "internal: a search task ran before the request was compiled")
        })
    }

    /// Stores the result of a task and returns the state, still locked.
    fn complete_task(&self, key: &PathKey, outcome: TaskResult) -> MutexGuard<'_, SearchState> {
        let output = outcome.unwrap_or_else(|error| {
            let item = SearchItem::Failed(error);
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

impl<V: SearchVisitor> Runnable for Search<V> {
    fn run_slice(self: Arc<Self>, clock: &SliceProgressRecorder<'_>) {
        let slice = SlicePanicGuard(&self);
        let mut worker_state = self.take_worker_state();
        let mut task = self.claim(self.lock());
        while let Some(next) = task {
            let key = Arc::clone(&next.key);
            let outcome = catch_panic(|| self.run_task(&mut worker_state, next));
            if outcome.is_err() {
                // A panic, or a line that was too long, may have left the worker state inconsistent or large.
                worker_state = None;
            }
            clock.record_progress();
            let state = self.complete_task(&key, outcome);
            if self.pool.has_queued_slices() {
                self.yield_slot(state);
                break;
            }
            task = self.claim(state);
        }
        self.put_worker_state(worker_state);
        drop(slice);
    }
}

/// A running time slice. If it ends in a panic outside of a task, the search fails instead of waiting indefinitely.
struct SlicePanicGuard<'a, V: SearchVisitor>(&'a Arc<Search<V>>);

impl<V: SearchVisitor> Drop for SlicePanicGuard<'_, V> {
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

impl<V: SearchVisitor> Search<V> {
    /// Ends a time slice because another slice waits for the worker. If this search needs another slice, it is queued
    /// behind theirs.
    fn yield_slot(self: &Arc<Self>, mut state: MutexGuard<'_, SearchState>) {
        state.active_slices -= 1;
        let waker = state.take_waker();
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

impl<V: SearchVisitor> Search<V> {
    /// Sets a timer that wakes the consumer at `moment`, even if the workers are stuck. Dropping the timer cancels it.
    pub(crate) fn set_wake_timer(self: &Arc<Self>, moment: Instant) -> Timer {
        let search = Arc::downgrade(self);
        Timer::set(moment, move || {
            if let Some(search) = search.upgrade() {
                let waker = search.lock().waker.take();
                wake(waker);
            }
        })
    }
}

pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Runs `work` and converts a panic to an error.
fn catch_panic<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(Error::new(ErrorKind::Internal, "a search worker panicked")
            .with_source(std::io::Error::other(panic_message(&*panic))))
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("panic without a message").to_owned()
}
