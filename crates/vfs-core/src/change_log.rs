//! Ring buffer of recent changes with subscriptions, for implementers of [`Watch`](crate::Watch).

mod subscription;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event_listener::Event;
use futures::stream::{BoxStream, StreamExt};

use crate::context::OpContext;
use crate::error::{Error, Result};
use crate::requests::{Change, WatchCursor, WatchEvent, WatchRequest};
use subscription::Subscription;

/// A log of the last changes of one backend, from which subscribers read at their own pace.
///
/// # Behaviour
///
/// * A backend adds its changes with [`publish`](Self::publish), in the order in which it makes them; every subscriber receives
///   them in that order. The log stores the last [`DEFAULT_CAPACITY`](Self::DEFAULT_CAPACITY) changes.
/// * The log stores nothing before the first subscription, as no cursor exists. A change then costs one uncontended lock.
/// * A clone is a handle on the same log. Each log has a random id, which is part of its cursors, so that a cursor of another
///   log, of this process or an earlier one, is recognised.
///
/// ```
/// use futures::StreamExt;
/// use vfs_core::change_log::ChangeLog;
/// use vfs_core::watch::{Change, WatchRequest};
/// use vfs_core::{OpContext, VfsPath};
///
/// # futures::executor::block_on(async {
/// let log = ChangeLog::new();
/// let mut events = log.subscribe(OpContext::new(), WatchRequest::new(VfsPath::parse("/src")?));
/// log.publish(Change::Removed { path: VfsPath::parse("/doc/a.md")? });
/// log.publish(Change::Removed { path: VfsPath::parse("/src/b.rs")? });
/// let event = events.next().await.expect("a log never ends by itself")?;
/// assert_eq!(event.change, Change::Removed { path: VfsPath::parse("/src/b.rs")? });
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Clone)]
pub struct ChangeLog(Arc<ChangeLogState>);

/// A position in a [`ChangeLog`], which separates the cursors issued before it from those issued after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition(u64);

/// The state that a log shares with its subscriptions.
struct ChangeLogState {
    id: u64,
    capacity: usize,
    ring: Mutex<ChangeRing>,
    published: Event,
}

/// The stored changes, numbered from 1.
#[derive(Default)]
struct ChangeRing {
    /// `None` is a [mark](ChangeLog::mark).
    changes: VecDeque<Option<Change>>,
    /// The number of the newest change.
    last: u64,
    /// Whether a subscription was ever made.
    is_used: bool,
    /// The error with which the log ended.
    end: Option<Error>,
}

impl ChangeRing {
    /// Returns the number of the newest change that was dropped; 0 if none was.
    fn last_dropped(&self) -> u64 {
        self.last - self.changes.len() as u64
    }

    /// Returns the entry after number `seen`, if it is stored.
    fn after(&self, seen: u64) -> Option<&Option<Change>> {
        let index = usize::try_from(seen.checked_sub(self.last_dropped())?).ok()?;
        self.changes.get(index)
    }

    fn push(&mut self, change: Option<Change>, capacity: usize) {
        if self.changes.len() == capacity {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
        self.last += 1;
    }
}

impl ChangeLog {
    /// The default number of changes that a log stores: 4,096.
    pub const DEFAULT_CAPACITY: usize = 4096;

    /// Creates a log of the last [`DEFAULT_CAPACITY`](Self::DEFAULT_CAPACITY) changes.
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_CAPACITY)
    }

    /// Creates a log of the last `capacity` changes, and at least one.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Arc::new(ChangeLogState {
            // The keys of the hasher are random, and differ between processes.
            id: RandomState::new().build_hasher().finish(),
            capacity: capacity.max(1),
            ring: Mutex::default(),
            published: Event::new(),
        }))
    }

    /// Adds one change and wakes the subscribers.
    pub fn publish(&self, change: Change) {
        self.push(|| [change]);
        self.wake();
    }

    /// Adds the changes of one step without waking the subscribers.
    ///
    /// A backend that orders its changes by a lock releases the lock before it calls [`wake`](Self::wake), as a waker may run any
    /// code.
    ///
    /// # Behaviour
    ///
    /// * `changes` is called only if a subscription was ever made.
    /// * More changes than the log can store are added as one [`Change::Overflow`].
    pub fn push<I: IntoIterator<Item = Change>>(&self, changes: impl FnOnce() -> I) {
        if !self.is_used() {
            return;
        }
        let mut changes: Vec<_> = changes().into_iter().take(self.0.capacity + 1).collect();
        if changes.len() > self.0.capacity {
            changes = vec![Change::Overflow];
        }
        let mut ring = self.0.lock();
        if ring.end.is_some() {
            return;
        }
        for change in changes {
            ring.push(Some(change), self.0.capacity);
        }
    }

    /// Ends the log with an error, for a backend that can no longer observe changes.
    ///
    /// # Behaviour
    ///
    /// Each subscriber, present or future, receives the changes published so far, then `why` at its own path, and its stream
    /// ends. Later changes are dropped, and later calls have no effect. As with [`push`](Self::push), subscribers that wait
    /// receive the error after [`wake`](Self::wake).
    pub fn end(&self, why: Error) {
        self.0.lock().end.get_or_insert(why);
    }

    /// Returns whether the log was [ended](Self::end).
    pub fn has_ended(&self) -> bool {
        self.0.lock().end.is_some()
    }

    /// Wakes the subscribers after a [`push`](Self::push) or [`end`](Self::end).
    pub fn wake(&self) {
        self.0.published.notify(usize::MAX);
    }

    /// Returns whether a subscription was ever made.
    ///
    /// If this returns `false` after a change, the change need not be published: each later subscriber finds it made.
    pub fn is_used(&self) -> bool {
        self.0.lock().is_used
    }

    /// Adds a mark to the log and returns its position. Subscribers do not receive marks.
    pub fn mark(&self) -> LogPosition {
        let mut ring = self.0.lock();
        ring.push(None, self.0.capacity);
        LogPosition(ring.last)
    }

    /// Returns the changes at and below the request's path, from this call on or from the request's cursor.
    ///
    /// # Behaviour
    ///
    /// * If changes that the subscriber has not received are no longer stored, because its cursor is old or of another log, or
    ///   because the subscriber is slow, it receives one [`Change::Overflow`] for all changes so far, then later ones.
    /// * A rename into or out of the path is [`Change::Created`] or [`Change::Removed`]. One event for a directory covers
    ///   everything below it.
    /// * A directory that is created above the path is no event, so the files in it are to be published too. If a directory above the
    ///   path is removed or moved away, the path is removed. If a directory is moved to a path above it,
    ///   the event is an overflow, as the log does not know what the path then names.
    /// * A backend subscribes while no change can become visible, for example under the lock under which it pushes its changes:
    ///   otherwise the subscriber may receive a change that it could read before.
    /// * The stream ends with an error: when the context's token is cancelled, its deadline passes, or the log is
    ///   [ended](Self::end). Dropping the stream ends the subscription.
    ///
    /// # Errors
    ///
    /// In the stream, at the request's path: `invalid_argument` for text that no log issued as a cursor, `cancelled`, `timeout`,
    /// and the error with which the log was ended.
    pub fn subscribe(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        self.subscribe_since(LogPosition(0), cx, req)
    }

    /// Subscribes as [`subscribe`](Self::subscribe) does, but a cursor older than `start` is an overflow.
    ///
    /// Use it for a path whose changes are published only since `start`.
    pub fn subscribe_since(
        &self,
        start: LogPosition,
        cx: OpContext,
        req: WatchRequest,
    ) -> BoxStream<'static, Result<WatchEvent>> {
        let cursor = match req.since.as_ref().map(parse_cursor).transpose() {
            Ok(cursor) => cursor,
            Err(error) => return error.with_path(&req.path).into_stream(),
        };
        let (seen, is_behind) = {
            let mut ring = self.0.lock();
            ring.is_used = true;
            match cursor {
                None => (ring.last, false),
                Some((id, seen)) if id == self.0.id && (start.0..=ring.last).contains(&seen) => (seen, false),
                Some(_) => (ring.last, true),
            }
        };
        Subscription::new(Arc::clone(&self.0), cx, req.path, seen, is_behind).boxed()
    }
}

impl ChangeLogState {
    fn lock(&self) -> MutexGuard<'_, ChangeRing> {
        // No code that can panic runs under the lock.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, seen: u64, change: Change) -> WatchEvent {
        WatchEvent::new(WatchCursor::new(format_cursor(self.id, seen)), change)
    }
}

fn format_cursor(id: u64, seen: u64) -> String {
    format!("{id:016x}.{seen}")
}

/// Returns the id of the log that issued `cursor`, and the number of the last change before it.
fn parse_cursor(cursor: &WatchCursor) -> Result<(u64, u64)> {
    let text = cursor.as_str();
    let parts = text.split_once('.').and_then(|(id, seen)| {
        let parts = (u64::from_str_radix(id, 16).ok()?, seen.parse::<u64>().ok()?);
        Some(parts).filter(|(id, seen)| format_cursor(*id, *seen) == text)
    });
    parts.ok_or_else(|| {
        Error::invalid_argument("the cursor was not issued by a change feed; omit the cursor to start from now")
    })
}

impl Default for ChangeLog {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ChangeLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ring = self.0.lock();
        f.debug_struct("ChangeLog").field("last", &ring.last).field("stored", &ring.changes.len()).finish()
    }
}
