//! The change feed of a backend: one inotify watcher while there are subscribers.

mod inotify;
mod pending_renames;
mod rename_events;
mod reported_versions;
mod watch_recursive;
mod watch_state;
mod watched_dir_tree;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt};
use rustix::event::{EventfdFlags, eventfd};
use vfs_core::change_log::ChangeLog;
use vfs_core::watch::{WatchEvent, WatchRequest};
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};

use crate::fs::errno::from_errno;
use crate::fs::protected_paths::PathAccess;
use crate::local_fs::LocalFs;
use inotify::InotifyQueue;
use watch_state::WatchState;

/// Interval of the checks whether the root still exists, since the kernel sends no event while the root is open.
const ROOT_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Delay after the first event, so that related events arrive: a file that is created and written is three events of
/// the kernel, and should be one of the feed.
const COALESCE_DELAY: Duration = Duration::from_millis(2);

/// The watcher of a backend, if one runs.
#[derive(Debug, Default)]
pub(crate) struct SharedWatcher(Mutex<Weak<InotifyWatcher>>);

/// A running watcher, which stops when the last subscriber drops it.
#[derive(Debug)]
struct InotifyWatcher {
    /// A new feed for each watcher: a cursor of an earlier one may have missed events in between.
    feed: ChangeLog,
    state: Arc<Mutex<WatchState>>,
    stop: Arc<OwnedFd>,
}

impl SharedWatcher {
    /// Subscribes to changes, as [`vfs_core::Watch::watch`].
    pub(crate) fn watch(
        &self,
        local_fs: &Arc<LocalFs>,
        cx: OpContext,
        req: WatchRequest,
    ) -> BoxStream<'static, Result<WatchEvent>> {
        let path = req.path.clone();
        match self.subscribe(local_fs, cx, req) {
            Ok(events) => events,
            Err(error) => error.with_path(&path).into_stream(),
        }
    }

    fn subscribe(
        &self,
        local_fs: &Arc<LocalFs>,
        cx: OpContext,
        req: WatchRequest,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        cx.check()?;
        check_path(local_fs, &req.path)?;
        loop {
            let watcher = self.get_or_start(local_fs)?;
            let mut state = lock(&watcher.state);
            // Events that happened before this subscription are not part of it.
            state.process_pending();
            if watcher.feed.has_ended() {
                // The old feed ended because of these events; a new watcher has not seen them, and so has no reason to
                // end.
                drop(state);
                watcher.feed.wake();
                continue;
            }
            return Self::subscribe_to(&watcher, state, cx, req);
        }
    }

    fn subscribe_to(
        watcher: &Arc<InotifyWatcher>,
        mut state: MutexGuard<'_, WatchState>,
        cx: OpContext,
        req: WatchRequest,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        let start = state.subscribe(&req.path);
        let events = start.map(|start| watcher.feed.subscribe_since(start, cx, req));
        drop(state);
        watcher.feed.wake();
        // The stream keeps the watcher alive.
        let watcher = Arc::clone(watcher);
        Ok(events?.map(move |event| (event, &watcher).0).boxed())
    }

    fn get_or_start(&self, local_fs: &Arc<LocalFs>) -> Result<Arc<InotifyWatcher>> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = running.upgrade().filter(|watcher| !watcher.feed.has_ended()) {
            return Ok(watcher);
        }
        let watcher = Arc::new(InotifyWatcher::start(local_fs)?);
        *running = Arc::downgrade(&watcher);
        Ok(watcher)
    }
}

/// Fails if `path` cannot be watched.
fn check_path(local_fs: &LocalFs, path: &VfsPath) -> Result<()> {
    if local_fs.root.is_host() && path.is_root() {
        let message = "the whole host cannot be watched; name a directory below the root";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    local_fs.root.protected_paths().check_path(PathAccess::Read, path)?;
    let real = local_fs.root.real_path(path)?.path;
    if real == *path {
        return Ok(());
    }
    let message = format!("the path leads through a link, and links are not watched; watch '{real}' instead");
    Err(Error::new(ErrorKind::Unsupported, message))
}

impl InotifyWatcher {
    fn start(local_fs: &Arc<LocalFs>) -> Result<Self> {
        let (feed, queue) = (ChangeLog::new(), Arc::new(InotifyQueue::new()?));
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(from_errno)?);
        let state = Arc::new(Mutex::new(WatchState::new(Arc::clone(local_fs), Arc::clone(&queue), feed.clone())));
        let watcher = Self { feed: feed.clone(), state: Arc::clone(&state), stop: Arc::clone(&stop) };
        let thread = std::thread::Builder::new().name("vfs-watch".into());
        thread.spawn(move || run(&queue, &state, &feed, &stop)).map_err(|source| {
            Error::new(ErrorKind::Busy, "the change feed cannot start a thread; try again").with_source(source)
        })?;
        Ok(watcher)
    }
}

impl Drop for InotifyWatcher {
    fn drop(&mut self) {
        // The write cannot fail: the counter is at zero.
        let _written = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }
}

fn run(queue: &InotifyQueue, state: &Mutex<WatchState>, feed: &ChangeLog, stop: &OwnedFd) {
    while !queue.wait(Some(stop.as_fd()), ROOT_CHECK_INTERVAL) {
        std::thread::park_timeout(COALESCE_DELAY);
        lock(state).process_pending();
        feed.wake();
        if feed.has_ended() {
            return;
        }
    }
}

fn lock(state: &Mutex<WatchState>) -> MutexGuard<'_, WatchState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::runtime::Builder;
    use tokio::time::timeout;
    use vfs_core::watch::Change;

    use super::*;
    use crate::config::LocalConfig;

    /// Maximum time that a test waits for an event. It bounds a hang, and is no expectation of speed.
    const HANG_TIMEOUT: Duration = Duration::from_secs(60);

    #[track_caller]
    fn next(events: &mut BoxStream<'static, Result<WatchEvent>>) -> WatchEvent {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime can be built");
        let event = runtime.block_on(async { timeout(HANG_TIMEOUT, events.next()).await });
        event.expect("an event comes before the bound for a hang").expect("the feed continues").expect("no error")
    }

    #[test]
    fn subscribers_share_a_watcher_and_its_cursors_end_with_it() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let local_fs = Arc::new(LocalFs::open(&LocalConfig::new(tree.path())).expect("the root opens"));
        let shared = SharedWatcher::default();
        let watch = |request| shared.watch(&local_fs, OpContext::new(), request);
        let (mut first, second) = (watch(WatchRequest::default()), watch(WatchRequest::default()));
        let watcher = shared.0.lock().expect("not poisoned").upgrade().expect("it runs");
        assert_eq!(Arc::strong_count(&watcher), 3, "both subscribers share it");
        let state = Arc::downgrade(&watcher.state);
        drop((watcher, second));
        std::fs::write(tree.path().join("f"), "x").expect("it writes");
        let event = next(&mut first);
        assert!(matches!(event.change, Change::Created { .. }), "{event:?}");

        drop(first);
        assert!(shared.0.lock().expect("not poisoned").upgrade().is_none());
        let deadline = Instant::now() + HANG_TIMEOUT;
        while state.strong_count() > 0 {
            assert!(Instant::now() < deadline, "the thread does not stop");
            std::thread::yield_now();
        }
        let mut later = watch(WatchRequest::default().since(event.cursor));
        assert_eq!(next(&mut later).change, Change::Overflow);
    }

    #[test]
    fn queue_overflow_is_reported_and_new_directories_are_watched() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let local_fs = Arc::new(LocalFs::open(&LocalConfig::new(tree.path())).expect("the root opens"));
        let shared = SharedWatcher::default();
        let mut events = shared.watch(&local_fs, OpContext::new(), WatchRequest::default());
        let watcher = shared.0.lock().expect("not poisoned").upgrade().expect("it runs");

        let capacity = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("it reads");
        let mut state = lock(&watcher.state);
        for file in 0..=capacity.trim().parse().expect("a number") {
            std::fs::write(tree.path().join("f"), "").expect("it writes");
            std::fs::rename(tree.path().join("f"), tree.path().join(format!("{}", file % 100))).expect("it renames");
        }
        std::fs::create_dir_all(tree.path().join("late/later")).expect("directories are made");
        // The queue is read in parts, and the overflow comes last.
        (0..3).for_each(|_| state.process_pending());
        drop(state);
        std::fs::create_dir(tree.path().join("late/later/d")).expect("directories are made");

        let mut changes = Vec::new();
        let last = VfsPath::parse("/late/later/d").expect("a valid path");
        while changes.last() != Some(&Change::Created { path: last.clone(), version: None }) {
            changes.push(next(&mut events).change);
        }
        assert_eq!(changes.first(), Some(&Change::Overflow));
        assert!(changes.len() < 10, "{changes:?}");
    }
}
