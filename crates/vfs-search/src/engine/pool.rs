//! Worker pool that all searches of a process share.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use vfs_core::{Error, ErrorKind, Result};

use crate::engine::pool_stats::PoolStats;

/// Maximum number of queued time slices before new searches are rejected.
const MAX_QUEUED_SLICES: usize = 4096;

/// Maximum number of compensation threads, which stand in for workers that wait or are stuck.
const MAX_COMPENSATION_THREADS: usize = 64;

/// Time after which a thread counts as stuck in its time slice, and interval of the checks for that.
const STALL_TIMEOUT: Duration = Duration::from_millis(50);

/// Interval at which a time slice that continues records its progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(10);

/// Work that workers run one time slice at a time.
pub(crate) trait Runnable: Send + Sync + 'static {
    /// Runs one time slice, which is short if [`Pool::has_queued_slices`] returns `true`. To get another slice, the
    /// work queues itself again behind all others, so that every search gets its share. A slice that continues records
    /// its progress with `clock`.
    fn run_slice(self: Arc<Self>, clock: &SliceProgressRecorder<'_>);
}

/// Clock of a running time slice, by which the pool notices that its thread is stuck.
pub(crate) struct SliceProgressRecorder<'a> {
    pool: &'a PoolInner,
    number: u64,
    started: Cell<Instant>,
}

impl SliceProgressRecorder<'_> {
    /// Restarts the clock, as the slice has completed a part of its work.
    pub(crate) fn record_progress(&self) {
        let now = Instant::now();
        if now.duration_since(self.started.get()) < PROGRESS_INTERVAL {
            return;
        }
        self.started.set(now);
        let mut state = self.pool.lock();
        if let Some((_, started)) = state.running.iter_mut().find(|(number, _)| *number == self.number) {
            *started = now;
        }
    }
}

/// Worker threads that run the time slices of searches.
///
/// # Behaviour
///
/// * Threads start when there is work, up to the number of workers, and end when the last handle is dropped.
/// * While a time slice waits for a thread, a compensation thread stands in for each worker that waits for a consumer, or
///   has spent 50 ms in one uninterruptible call or one file. There are at most 64 such threads. If these are not
///   enough, workers that wait for a consumer give up their place.
/// * While about 4,096 time slices are queued, a new search fails with [`ErrorKind::Busy`].
///
/// Cloning gives another handle to the same workers.
#[derive(Clone)]
pub struct Pool(Arc<PoolShutdownGuard>);

/// Ends the workers when the last handle is dropped.
struct PoolShutdownGuard(Arc<PoolInner>);

/// The queue and the threads of a pool, shared by its handles and workers.
struct PoolInner {
    workers: usize,
    max_compensation_threads: usize,
    state: Mutex<PoolState>,
    /// Number of queued time slices, readable without the lock.
    queued: AtomicUsize,
    ready: Condvar,
    /// Notified when time slices wait for a thread and the watcher sleeps.
    stalled: Condvar,
}

/// The part of a pool that its lock protects.
#[derive(Default)]
struct PoolState {
    queue: VecDeque<Arc<dyn Runnable>>,
    threads: usize,
    idle: usize,
    /// Number of threads that wait for consumers.
    waiting: usize,
    /// The time slices that run now: the number of each, and when it started or last recorded its progress.
    running: Vec<(u64, Instant)>,
    slices: u64,
    started: usize,
    is_watched: bool,
    is_watcher_asleep: bool,
    closed: bool,
}

impl Pool {
    /// Creates a pool of `workers` threads, at least one.
    pub fn new(workers: usize) -> Self {
        Self::with_compensation_threads(workers, MAX_COMPENSATION_THREADS)
    }

    /// Creates a pool of `workers` threads, at least one, and at most `max_compensation_threads` more to replace those
    /// that make no progress.
    pub(crate) fn with_compensation_threads(workers: usize, max_compensation_threads: usize) -> Self {
        let shared = PoolInner {
            workers: workers.max(1),
            max_compensation_threads,
            state: Mutex::default(),
            queued: AtomicUsize::new(0),
            ready: Condvar::new(),
            stalled: Condvar::new(),
        };
        Self(Arc::new(PoolShutdownGuard(Arc::new(shared))))
    }

    /// Returns the pool of this process, with as many workers as there are processors and at least two.
    pub fn global() -> &'static Self {
        static GLOBAL: OnceLock<Pool> = OnceLock::new();
        GLOBAL.get_or_init(|| Self::new(thread::available_parallelism().map_or(2, |n| n.get().max(2))))
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.0.0.workers
    }

    /// Returns the present numbers of threads and queued time slices.
    ///
    /// # Behaviour
    ///
    /// A search that is over, was dropped or was cancelled leaves its workers at their next check, and is not counted
    /// from then on. A search whose consumer neither polls nor drops it keeps its results, and before its
    /// deadline may keep a worker waiting.
    pub fn stats(&self) -> PoolStats {
        let state = self.0.0.lock();
        PoolStats { threads: state.threads, busy: state.threads - state.idle, queued: state.queue.len() }
    }

    /// Returns whether time slices wait for a worker.
    pub(crate) fn has_queued_slices(&self) -> bool {
        self.0.0.queued.load(Ordering::Relaxed) > 0
    }

    /// Queues the first time slice of `runnable`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] if too many time slices wait, or if there is no thread and none can be started.
    pub(crate) fn submit(&self, runnable: Arc<dyn Runnable>) -> Result<()> {
        if self.0.0.lock().queue.len() >= MAX_QUEUED_SLICES {
            return Err(Error::new(ErrorKind::Busy, "too many searches are waiting; try again"));
        }
        self.resubmit(runnable)
    }

    /// Queues a further time slice of `runnable`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] if there is no thread and none can be started.
    pub(crate) fn resubmit(&self, runnable: Arc<dyn Runnable>) -> Result<()> {
        let shared = &self.0.0;
        let mut state = shared.lock();
        state.queue.push_back(runnable);
        if let Err(error) = shared.spawn_if_needed(&mut state) {
            let runnable = state.queue.pop_back();
            drop(state);
            drop(runnable);
            return Err(error);
        }
        shared.queued.store(state.queue.len(), Ordering::Relaxed);
        let is_idle = state.idle > 0;
        drop(state);
        // Notify without the lock: the woken thread takes it first.
        if is_idle {
            shared.ready.notify_one();
        }
        Ok(())
    }

    /// Runs `wait`, which takes long without using the processor. Meanwhile a compensation thread may take the place of the
    /// worker that calls this, if a time slice needs a thread.
    pub(crate) fn run_with_compensation<R>(&self, wait: impl FnOnce() -> R) -> R {
        /// Ends the wait when it is dropped.
        struct CompensatedWaitGuard<'a>(&'a PoolInner);
        impl Drop for CompensatedWaitGuard<'_> {
            fn drop(&mut self) {
                self.0.lock().waiting -= 1;
            }
        }
        let shared = &self.0.0;
        let mut state = shared.lock();
        state.waiting += 1;
        let waiting = CompensatedWaitGuard(shared);
        // Ignoring the error is fine: a waiting worker calls `should_yield` and gives up its place if other work needs
        // the thread.
        let _ = shared.spawn_if_needed(&mut state);
        drop(state);
        let result = wait();
        drop(waiting);
        result
    }

    /// Returns whether a time slice waits for a thread and no thread can be added, so that a worker that only waits
    /// should give up its place.
    pub(crate) fn should_yield(&self) -> bool {
        let shared = &self.0.0;
        let mut state = shared.lock();
        let _ = shared.spawn_if_needed(&mut state);
        let lacks_thread = state.threads < shared.workers + state.waiting || state.threads >= shared.max_threads();
        state.queue.len() > state.idle && lacks_thread
    }
}

impl PoolInner {
    /// Locks the state. A panic elsewhere leaves the state consistent, since nothing that can panic runs under the
    /// lock.
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of threads that are needed at this moment: one for each worker, and one for each thread that
    /// makes no progress. Threads that wait for a consumer count as stuck, too, once they have waited for long.
    fn thread_limit(&self, state: &PoolState) -> usize {
        let is_stuck = |(_, started): &&(u64, Instant)| started.elapsed() >= STALL_TIMEOUT;
        let blocked = state.running.iter().filter(is_stuck).count().max(state.waiting);
        self.workers + blocked.min(self.max_compensation_threads)
    }

    fn max_threads(&self) -> usize {
        self.workers + self.max_compensation_threads
    }

    /// Starts a thread if a time slice is queued that no idle thread will take.
    fn spawn_if_needed(self: &Arc<Self>, state: &mut PoolState) -> Result<()> {
        if state.queue.len() <= state.idle {
            Ok(())
        } else if state.threads < self.thread_limit(state) {
            self.spawn(state)
        } else {
            self.wake_watcher(state);
            Ok(())
        }
    }

    /// Starts a thread. Failing to start another one is no error.
    fn spawn(self: &Arc<Self>, state: &mut PoolState) -> Result<()> {
        state.started += 1;
        let name = format!("vfs-search-{}", state.started);
        let shared = Arc::clone(self);
        match thread::Builder::new().name(name).spawn(move || shared.run()) {
            Ok(_) => {
                state.threads += 1;
                Ok(())
            }
            Err(_) if state.threads > 0 => Ok(()),
            Err(error) => {
                Err(Error::new(ErrorKind::Busy, "no thread can be started to search: the limit of processes is reached, or a filter of system calls refuses clone3; try again").with_source(error))
            }
        }
    }

    /// Wakes the watcher, or starts it. Without a watcher no thread stands in for stuck workers, but no work is lost.
    fn wake_watcher(self: &Arc<Self>, state: &mut PoolState) {
        if std::mem::take(&mut state.is_watcher_asleep) {
            self.stalled.notify_one();
        } else if !state.is_watched {
            let shared = Arc::clone(self);
            let watcher = thread::Builder::new().name("vfs-search-watch".into()).spawn(move || shared.watch());
            state.is_watched = watcher.is_ok();
        }
    }

    /// Runs the watcher: while time slices wait, checks whether stuck threads need compensation.
    fn watch(self: &Arc<Self>) {
        let mut state = self.lock();
        loop {
            if state.queue.is_empty() {
                if state.closed {
                    return;
                }
                state.is_watcher_asleep = true;
                state = self.stalled.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.is_watcher_asleep = false;
                continue;
            }
            let waited = self.stalled.wait_timeout_while(state, STALL_TIMEOUT, |_| true);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            // Ignoring the error is fine: the slices run when a thread becomes free.
            let _ = self.spawn_if_needed(&mut state);
        }
    }

    /// Runs a thread from its start to its end.
    fn run(&self) {
        let mut state = self.lock();
        while !(state.closed && state.queue.is_empty()) {
            let Some(runnable) = state.queue.pop_front() else {
                state.idle += 1;
                state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            state.slices += 1;
            let (number, started) = (state.slices, Instant::now());
            state.running.push((number, started));
            self.queued.store(state.queue.len(), Ordering::Relaxed);
            drop(state);
            // A search reports its own panics; this keeps the thread alive if even that fails.
            let clock = SliceProgressRecorder { pool: self, number, started: Cell::new(started) };
            let _ = catch_unwind(AssertUnwindSafe(|| runnable.run_slice(&clock)));
            state = self.lock();
            state.running.retain(|(other, _)| *other != number);
            // A thread beyond the limit is needed only as long as others are stuck.
            if state.threads > self.thread_limit(&state) {
                break;
            }
        }
        state.threads -= 1;
    }
}

impl Drop for PoolShutdownGuard {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.ready.notify_all();
        self.0.stalled.notify_all();
    }
}

/// Two handles are equal if they belong to the same workers.
impl PartialEq for Pool {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Pool {}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("workers", &self.workers()).field("stats", &self.stats()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct FnRunnable<F>(F);

    impl<F: Fn() + Send + Sync + 'static> Runnable for FnRunnable<F> {
        fn run_slice(self: Arc<Self>, _clock: &SliceProgressRecorder<'_>) {
            (self.0)();
        }
    }

    fn call(f: impl Fn() + Send + Sync + 'static) -> Arc<dyn Runnable> {
        Arc::new(FnRunnable(f))
    }

    #[test]
    fn slices_run_in_order_and_a_panic_does_not_end_the_worker() {
        let pool = Pool::new(1);
        let (sender, receiver) = mpsc::channel();
        for n in 0..10 {
            let sender = sender.clone();
            pool.submit(call(move || {
                assert_ne!(n, 3, "the third slice panics");
                sender.send(n).expect("the test listens");
            }))
            .expect("there is room");
        }
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    }

    /// Queues a time slice that ends when the other end of its receiver is used or dropped, and waits for that by way
    /// of `block`.
    fn stuck(
        pool: &Pool,
        block: impl Fn(&Pool, &dyn Fn()) + Send + Sync + 'static,
    ) -> (mpsc::Sender<()>, mpsc::Receiver<()>) {
        let (release, released) = mpsc::channel::<()>();
        let (done, finished) = mpsc::channel();
        let (released, done) = (Mutex::new(released), Mutex::new(done));
        let own = pool.clone();
        let runnable = FnRunnable(move || {
            block(&own, &|| {
                let _ = released.lock().expect("not poisoned").recv();
            });
            let _ = done.lock().expect("not poisoned").send(());
        });
        pool.submit(Arc::new(runnable)).expect("there is room");
        (release, finished)
    }

    #[test]
    fn a_compensation_thread_replaces_a_waiting_worker() {
        let pool = Pool::new(1);
        let (release, finished) = stuck(&pool, |pool, wait| pool.run_with_compensation(wait));
        pool.submit(call(move || release.send(()).expect("the first slice waits"))).expect("there is room");
        finished.recv().expect("the second slice ran while the first waited");
    }

    #[test]
    fn stats_count_running_and_queued_slices() {
        let pool = Pool::new(1);
        assert!(pool.stats().is_idle());
        let (started, running) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        pool.submit(call(move || {
            started.send(()).expect("the test listens");
            let _ = released.lock().expect("not poisoned").recv();
        }))
        .expect("there is room");
        running.recv().expect("the slice begins");
        assert_eq!(pool.stats(), PoolStats { threads: 1, busy: 1, queued: 0 });
        drop(release);
        while !pool.stats().is_idle() {
            thread::yield_now();
        }
    }

    #[test]
    fn compensation_threads_replace_stuck_workers_within_bounds() {
        let pool = Pool::with_compensation_threads(1, 2);
        let all: Vec<_> = (0..2).map(|_| stuck(&pool, |_, wait| wait())).collect();
        let (done, finished) = mpsc::channel();
        pool.submit(call(move || done.send(()).expect("the test listens"))).expect("there is room");
        finished.recv().expect("it ran while two workers were stuck");
        assert!(pool.stats().threads <= 3);
        for (release, finished) in all {
            drop(release);
            finished.recv().expect("it ends");
        }
    }

    #[test]
    fn a_worker_that_was_replaced_ends_when_its_call_returns() {
        let pool = Pool::with_compensation_threads(1, 1);
        let (release, finished) = stuck(&pool, |_, wait| wait());
        let (done, second) = mpsc::channel();
        pool.submit(call(move || done.send(()).expect("the test listens"))).expect("there is room");
        second.recv().expect("it ran while the worker was stuck");
        assert_eq!(pool.stats().threads, 2);
        drop(release);
        finished.recv().expect("it ends");
        while pool.stats().threads > 1 {
            thread::yield_now();
        }
    }

    #[test]
    fn a_slice_that_makes_progress_is_not_stuck() {
        let pool = Pool::with_compensation_threads(1, 8);
        let inner = &*pool.0.0;
        let started = Instant::now().checked_sub(10 * STALL_TIMEOUT).expect("the clock has run for a while");
        inner.lock().running.extend([(7, started), (8, started)]);
        assert_eq!(inner.thread_limit(&inner.lock()), 3);
        SliceProgressRecorder { pool: inner, number: 8, started: Cell::new(started) }.record_progress();
        let running = inner.lock().running.clone();
        assert_eq!(running[0], (7, started));
        assert!(running[1].1 > started);
    }

    #[test]
    fn as_many_threads_as_workers_make_progress_while_others_are_stuck() {
        let pool = Pool::with_compensation_threads(2, 8);
        let _stuck: Vec<_> = (0..2).map(|_| stuck(&pool, |_, wait| wait())).collect();
        // Each of the two slices waits for the other, so that both need a thread at the same time.
        let meeting = Arc::new(std::sync::Barrier::new(2));
        for _ in 0..2 {
            let meeting = Arc::clone(&meeting);
            pool.submit(call(move || _ = meeting.wait())).expect("there is room");
        }
        loop {
            // One look at all numbers: they change meanwhile.
            let stats = pool.stats();
            if stats == (PoolStats { threads: 4, busy: 2, queued: 0 }) {
                break;
            }
            assert!(stats.threads != 3 || stats.queued > 0 || stats.busy > 2, "a thread ended early: {stats:?}");
            thread::yield_now();
        }
    }

    #[test]
    fn a_waiting_worker_yields_when_no_thread_can_be_added() {
        let pool = Pool::with_compensation_threads(1, 0);
        let (_release, finished) = stuck(&pool, |pool, _| {
            pool.run_with_compensation(|| {
                while !pool.should_yield() {
                    thread::yield_now();
                }
            });
        });
        let (done, second) = mpsc::channel();
        pool.submit(call(move || done.send(()).expect("the test listens"))).expect("there is room");
        finished.recv().expect("the first slice yielded");
        second.recv().expect("the second slice ran");
    }

    #[test]
    fn a_full_queue_rejects_new_searches() {
        let pool = Pool::new(1);
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let (started, running) = mpsc::channel();
        pool.submit(call(move || {
            started.send(()).expect("the test listens");
            let _ = released.lock().expect("not poisoned").recv();
        }))
        .expect("there is room");
        running.recv().expect("the first slice runs");
        for _ in 0..MAX_QUEUED_SLICES {
            pool.submit(call(|| {})).expect("there is room");
        }
        assert_eq!(pool.submit(call(|| {})).expect_err("full").kind(), ErrorKind::Busy);
        drop(release);
    }
}
