//! The worker threads that all searches of a process share.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use vfs_core::{Error, ErrorKind, Result};

/// Most turns that wait for a worker before new searches are turned away.
const MAX_WAITING: usize = 4096;

/// Most threads that stand in for workers which wait for a slow consumer.
const MAX_SUBSTITUTES: usize = 64;

/// Something that workers do, one turn at a time.
pub(crate) trait Task: Send + Sync + 'static {
    /// Does one turn. To have another, it queues itself again, behind all others: so every search gets its share.
    fn turn(self: Arc<Self>);
}

/// Worker threads that searches take turns on.
///
/// # Behaviour
///
/// * Threads are started when there is work, up to the number of workers, and end when the last handle is dropped.
/// * A worker that has to wait until a consumer takes results is stood in for, by at most 64 threads in all.
/// * When 4,096 turns wait, a new search gets [`ErrorKind::Busy`].
///
/// Cloning gives another handle to the same workers.
#[derive(Clone)]
pub struct Pool(Arc<Owner>);

/// Ends the workers when the last handle goes.
struct Owner(Arc<Shared>);

struct Shared {
    workers: usize,
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<dyn Task>>,
    threads: usize,
    idle: usize,
    waiting_for_consumers: usize,
    started: usize,
    closed: bool,
}

impl Pool {
    /// A pool of `workers` threads, at least one.
    pub fn new(workers: usize) -> Self {
        let shared = Shared { workers: workers.max(1), state: Mutex::default(), ready: Condvar::new() };
        Self(Arc::new(Owner(Arc::new(shared))))
    }

    /// The pool of this process: as many workers as there are processors, at least two.
    pub fn global() -> &'static Self {
        static GLOBAL: OnceLock<Pool> = OnceLock::new();
        GLOBAL.get_or_init(|| Self::new(thread::available_parallelism().map_or(2, |n| n.get().max(2))))
    }

    /// How many workers it has.
    pub fn workers(&self) -> usize {
        self.0.0.workers
    }

    /// Queues the first turn of a task.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] where too many wait, [`ErrorKind::Unavailable`] where no thread can be started.
    pub(crate) fn submit(&self, task: Arc<dyn Task>) -> Result<()> {
        if self.0.0.lock().queue.len() >= MAX_WAITING {
            return Err(Error::new(ErrorKind::Busy, "too many searches are waiting; try again"));
        }
        self.resubmit(task)
    }

    /// Queues a further turn of a task.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] where there is no thread and none can be started.
    pub(crate) fn resubmit(&self, task: Arc<dyn Task>) -> Result<()> {
        let mut state = self.0.0.lock();
        state.queue.push_back(task);
        self.0.0.ready.notify_one();
        self.0.0.staff(&mut state)
    }

    /// Runs `wait`, which may take long without using this worker's processor fairly, while another stands in.
    pub(crate) fn stand_in<R>(&self, wait: impl FnOnce() -> R) -> R {
        struct Waiting<'a>(&'a Shared);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.lock().waiting_for_consumers -= 1;
                // An idle substitute looks whether it is still needed.
                self.0.ready.notify_one();
            }
        }
        let shared = &self.0.0;
        let mut state = shared.lock();
        state.waiting_for_consumers += 1;
        let waiting = Waiting(shared);
        // Without a substitute the others wait too; nothing is lost.
        let _ = shared.staff(&mut state);
        drop(state);
        let result = wait();
        drop(waiting);
        result
    }
}

impl Shared {
    /// The state; a panic elsewhere leaves it whole, since nothing that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many threads there may be now.
    fn most_threads(&self, state: &State) -> usize {
        self.workers + state.waiting_for_consumers.min(MAX_SUBSTITUTES)
    }

    /// Starts a thread where there is a turn that no idle thread will take.
    fn staff(self: &Arc<Self>, state: &mut State) -> Result<()> {
        if state.queue.len() <= state.idle || state.threads >= self.most_threads(state) {
            return Ok(());
        }
        state.started += 1;
        let name = format!("vfs-search-{}", state.started);
        let shared = Arc::clone(self);
        match thread::Builder::new().name(name).spawn(move || shared.work()) {
            Ok(_) => {
                state.threads += 1;
                Ok(())
            }
            Err(_) if state.threads > 0 => Ok(()),
            Err(error) => {
                state.queue.pop_back();
                Err(Error::new(ErrorKind::Unavailable, "no thread could be started to search").with_source(error))
            }
        }
    }

    /// What a thread does from its start to its end.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if state.threads > self.most_threads(&state) || (state.closed && state.queue.is_empty()) {
                state.threads -= 1;
                // It may have been woken for a turn that it now leaves to another.
                self.ready.notify_one();
                return;
            }
            let Some(task) = state.queue.pop_front() else {
                state.idle += 1;
                state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            drop(state);
            // A task reports its own panics; this keeps the thread if even that fails.
            let _ = catch_unwind(AssertUnwindSafe(|| task.turn()));
            state = self.lock();
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.ready.notify_all();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.0.lock();
        f.debug_struct("Pool")
            .field("workers", &self.0.0.workers)
            .field("threads", &state.threads)
            .field("queued", &state.queue.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Call(Box<dyn Fn() + Send + Sync>);

    impl Task for Call {
        fn turn(self: Arc<Self>) {
            (self.0)();
        }
    }

    fn call(f: impl Fn() + Send + Sync + 'static) -> Arc<dyn Task> {
        Arc::new(Call(Box::new(f)))
    }

    #[test]
    fn turns_are_taken_in_order_and_a_panic_leaves_the_worker() {
        let pool = Pool::new(1);
        let (sender, receiver) = mpsc::channel();
        for n in 0..10 {
            let sender = sender.clone();
            pool.submit(call(move || {
                assert_ne!(n, 3, "the third turn panics");
                sender.send(n).expect("the test listens");
            }))
            .expect("there is room");
        }
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_waiting_worker_is_stood_in_for() {
        let pool = Pool::new(1);
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let inner = pool.clone();
        pool.submit(call(move || {
            inner.stand_in(|| released.lock().expect("not poisoned").recv().expect("the second turn releases"));
        }))
        .expect("there is room");
        let (done, finished) = mpsc::channel();
        pool.submit(call(move || {
            release.send(()).expect("the first turn waits");
            done.send(()).expect("the test listens");
        }))
        .expect("there is room");
        finished.recv().expect("the second turn ran while the first waited");
    }

    #[test]
    fn a_full_queue_turns_new_searches_away() {
        let pool = Pool::new(1);
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let (started, running) = mpsc::channel();
        pool.submit(call(move || {
            started.send(()).expect("the test listens");
            let _ = released.lock().expect("not poisoned").recv();
        }))
        .expect("there is room");
        running.recv().expect("the first turn runs");
        for _ in 0..MAX_WAITING {
            pool.submit(call(|| {})).expect("there is room");
        }
        assert_eq!(pool.submit(call(|| {})).expect_err("full").kind(), ErrorKind::Busy);
        drop(release);
    }
}
