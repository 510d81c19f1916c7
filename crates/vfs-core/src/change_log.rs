//! A change feed that needs no runtime: a ring of the last changes, and streams that read it at their own pace.

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
use crate::types::{Change, Cursor, WatchEvent, WatchRequest};
use subscription::Subscription;

/// The changes of one backend, for all who watch it.
///
/// # Behaviour
///
/// * A backend says what it did with [`publish`](Self::publish), in the order in which it did it; every subscriber is told
///   in that order. The last [`DEFAULT_CAPACITY`](Self::DEFAULT_CAPACITY) changes are remembered.
/// * Until somebody subscribes for the first time nothing is remembered, as there is no cursor to ask by. A change then
///   costs the backend an uncontended lock.
/// * A clone is a handle on the same feed. A feed has a name of its own that is in every cursor, so that a cursor of
///   another feed, of this process or an earlier one, is told from its own.
///
/// ```
/// use futures::StreamExt;
/// use vfs_core::feed::Feed;
/// use vfs_core::{Change, OpContext, VfsPath, WatchRequest};
///
/// # futures::executor::block_on(async {
/// let feed = Feed::new();
/// let mut events = feed.subscribe(OpContext::new(), WatchRequest::new(VfsPath::parse("/src")?));
/// feed.publish(Change::Removed { path: VfsPath::parse("/doc/a.md")? });
/// feed.publish(Change::Removed { path: VfsPath::parse("/src/b.rs")? });
/// let event = events.next().await.expect("a feed never ends by itself")?;
/// assert_eq!(event.change, Change::Removed { path: VfsPath::parse("/src/b.rs")? });
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

/// A moment of a feed, which parts the cursors that were given before it from those after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

struct Inner {
    name: u64,
    capacity: usize,
    ring: Mutex<Ring>,
    published: Event,
}

/// What is remembered, numbered from 1.
#[derive(Default)]
struct Ring {
    /// `None` stands for a [`Moment`].
    changes: VecDeque<Option<Change>>,
    /// The number of the newest, remembered or not.
    last: u64,
    /// Whether anybody ever subscribed.
    is_used: bool,
    /// Why nothing comes any more.
    end: Option<Error>,
}

impl Ring {
    /// The number of the newest that is no longer remembered; 0 where all are.
    fn forgotten(&self) -> u64 {
        self.last - self.changes.len() as u64
    }

    /// What comes after number `seen`.
    fn after(&self, seen: u64) -> Option<&Option<Change>> {
        let index = usize::try_from(seen.checked_sub(self.forgotten())?).ok()?;
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

impl Feed {
    /// How many changes are remembered: 4,096.
    pub const DEFAULT_CAPACITY: usize = 4096;

    /// A feed that remembers the last [`DEFAULT_CAPACITY`](Self::DEFAULT_CAPACITY) changes.
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_CAPACITY)
    }

    /// A feed that remembers the last `capacity` changes, and at least one.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Arc::new(Inner {
            // The keys of the hasher are random, and differ from one process to the next.
            name: RandomState::new().build_hasher().finish(),
            capacity: capacity.max(1),
            ring: Mutex::default(),
            published: Event::new(),
        }))
    }

    /// Tells of one change.
    pub fn publish(&self, change: Change) {
        self.push(|| [change]);
        self.wake();
    }

    /// Remembers changes that were made in one step, without waking anybody: for a backend that orders its changes by a
    /// lock, which it lets go of before it calls [`wake`](Self::wake), as a waker may run anything.
    ///
    /// # Behaviour
    ///
    /// * `changes` is only asked where somebody subscribed at some time.
    /// * More changes than a feed remembers are one [`Change::Overflow`].
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

    /// Ends the feed, for a backend that can no longer tell what happens: silence would be taken for peace.
    ///
    /// # Behaviour
    ///
    /// Each subscriber is told what was published until now, then `why`, at the path that it asked for, and its stream ends;
    /// so is each who subscribes later. What is published after that goes nowhere. The first end is the one that counts.
    /// As with [`push`](Self::push), those who wait hear of it when they are [woken](Self::wake).
    pub fn end(&self, why: Error) {
        self.0.lock().end.get_or_insert(why);
    }

    /// Whether the feed was [ended](Self::end).
    pub fn has_ended(&self) -> bool {
        self.0.lock().end.is_some()
    }

    /// Wakes those who wait for what was [pushed](Self::push), or for the [end](Self::end).
    pub fn wake(&self) {
        self.0.published.notify(usize::MAX);
    }

    /// Whether anybody ever subscribed. Where a backend asks after a change was made, and is told no, whoever subscribes
    /// later finds the change made.
    pub fn is_used(&self) -> bool {
        self.0.lock().is_used
    }

    /// This moment. Nobody is told of it, but it is remembered among the changes.
    pub fn mark(&self) -> Moment {
        let mut ring = self.0.lock();
        ring.push(None, self.0.capacity);
        Moment(ring.last)
    }

    /// Changes at and below the request's path, from this call on or from its cursor.
    ///
    /// # Behaviour
    ///
    /// * A subscriber that asks for changes which are no longer remembered, by an old cursor, by one of another feed or by
    ///   being slow, gets one [`Change::Overflow`] for all that was published until then, and goes on from there.
    /// * Of a rename across the border of the path the subscriber sees its side, as [`Change::Created`] or
    ///   [`Change::Removed`]. A directory that comes or goes in one event does so with all that lies below it.
    /// * What becomes of a directory above the path becomes of the path: where that is removed or moved away, so is it.
    ///   Where a directory is moved there it is an overflow, as nobody can tell from this what the path names by now.
    /// * The stream ends after an error, when the context's token is cancelled, its deadline passes, or the feed is
    ///   [ended](Self::end); never by itself. Dropping it frees all that it holds.
    ///
    /// # Errors
    ///
    /// In the stream: `invalid_argument` for a cursor that no feed gave, `cancelled`, `timeout`, and why the feed was ended;
    /// at the request's path.
    pub fn subscribe(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        self.subscribe_since(Moment(0), cx, req)
    }

    /// As [`subscribe`](Self::subscribe), for a path of which nothing was published before `start`: an older cursor may
    /// have missed something.
    pub fn subscribe_since(
        &self,
        start: Moment,
        cx: OpContext,
        req: WatchRequest,
    ) -> BoxStream<'static, Result<WatchEvent>> {
        let asked = match req.since.as_ref().map(parse).transpose() {
            Ok(asked) => asked,
            Err(error) => return error.with_path(&req.path).into_stream(),
        };
        let (seen, is_behind) = {
            let mut ring = self.0.lock();
            ring.is_used = true;
            match asked {
                None => (ring.last, false),
                Some((name, seen)) if name == self.0.name && (start.0..=ring.last).contains(&seen) => (seen, false),
                Some(_) => (ring.last, true),
            }
        };
        Subscription::new(Arc::clone(&self.0), cx, req.path, seen, is_behind).boxed()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Ring> {
        // Nothing that can panic runs while it is held.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, seen: u64, change: Change) -> WatchEvent {
        WatchEvent::new(Cursor::new(spell(self.name, seen)), change)
    }
}

fn spell(name: u64, seen: u64) -> String {
    format!("{name:016x}.{seen}")
}

/// The name of the feed that gave `cursor`, and the number of the change that it was given with.
fn parse(cursor: &Cursor) -> Result<(u64, u64)> {
    let text = cursor.as_str();
    let parts = text.split_once('.').and_then(|(name, seen)| {
        Some((u64::from_str_radix(name, 16).ok()?, seen.parse::<u64>().ok()?)).filter(|(n, s)| spell(*n, *s) == text)
    });
    parts.ok_or_else(|| Error::invalid_argument("the cursor is none of a change feed; leave it out to start from now"))
}

impl Default for Feed {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ring = self.0.lock();
        f.debug_struct("Feed").field("last", &ring.last).field("remembered", &ring.changes.len()).finish()
    }
}
