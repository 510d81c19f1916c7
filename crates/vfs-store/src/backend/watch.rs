//! Change feed over the change log of a store.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream};
use tokio::runtime::Handle;
use vfs_core::watch::{Change, Cursor, WatchEvent, WatchRequest};
use vfs_core::{Error, Result, VfsPath};

use super::concurrency::feed_barrier::FeedBarrier;
use super::view::namespace_view::NamespaceView;
use crate::store::{ChangePage, ChangeRecord, Changes, Namespace, Sequence, Store};

/// How many changes are asked for at once.
const CHANGES: usize = 500;

/// What a cursor begins with. Then come what tells the namespace from others, and the number of the change.
const CURSOR: &str = "change-";

/// How many hex digits of a hash tell a namespace from others.
const NAMESPACE: usize = 12;

/// One who follows the changes of a namespace.
struct Follower<S> {
    view: NamespaceView<S>,
    path: VfsPath,
    cursors: Cursors,
    /// Where it begins, until that is known.
    start: Option<BoxFuture<'static, Result<FeedStart>>>,
    seen: Sequence,
    pending: VecDeque<WatchEvent>,
    has_ended: bool,
}

/// Where a follower begins.
struct FeedStart {
    seen: Sequence,
    /// Whether what it asked for is no longer, or not yet, there.
    is_behind: bool,
}

/// The changes at and below the request's path, from now on or from its cursor.
pub(super) fn watch<S: Store>(
    view: NamespaceView<S>,
    req: WatchRequest,
    feed_barrier: &Arc<FeedBarrier>,
) -> BoxStream<'static, Result<WatchEvent>> {
    let path = req.path;
    let cursors = Cursors::of(&view.namespace);
    let asked = match req.since.as_ref().map(|cursor| cursors.parse(cursor, &path)).transpose() {
        Ok(asked) => asked,
        Err(error) => return stream::iter([Err(error)]).boxed(),
    };
    let start = begin(start(view.clone(), path.clone(), asked).boxed(), feed_barrier);
    let (seen, pending) = (Sequence(0), VecDeque::new());
    let follower = Follower { view, path, cursors, start: Some(start), seen, pending, has_ended: false };
    stream::unfold(follower, |mut follower| async move {
        if follower.has_ended {
            return None;
        }
        let event = follower.next().await.map_err(|error| error.or_path(&follower.path));
        follower.has_ended = event.is_err();
        Some((event, follower))
    })
    .boxed()
}

/// Begins at once, not when the stream is first asked: what happens from now on is told.
fn begin(
    mut start: BoxFuture<'static, Result<FeedStart>>,
    feed_barrier: &Arc<FeedBarrier>,
) -> BoxFuture<'static, Result<FeedStart>> {
    if let Some(known) = (&mut start).now_or_never() {
        return futures::future::ready(known).boxed();
    }
    match Handle::try_current() {
        Ok(runtime) => {
            let starting = feed_barrier.register();
            let begun = runtime.spawn(async move {
                let begun = start.await;
                drop(starting);
                begun
            });
            async move { begun.await.unwrap_or_else(|error| Err(ended(error))) }.boxed()
        }
        Err(_) => start,
    }
}

fn ended(error: tokio::task::JoinError) -> Error {
    Error::new(vfs_core::ErrorKind::Internal, "following the changes ended before it began").with_source(error)
}

async fn start<S: Store>(view: NamespaceView<S>, path: VfsPath, asked: Option<CursorTarget>) -> Result<FeedStart> {
    let changes = changes_of(&view)?;
    let last = view.ask(&path, changes.last_sequence(&view.namespace)).await?;
    Ok(match asked {
        None => FeedStart { seen: last, is_behind: false },
        Some(CursorTarget::After(seen)) if seen <= last => FeedStart { seen, is_behind: false },
        // Of another namespace or store, or of this one before it was put back.
        Some(_) => FeedStart { seen: last, is_behind: true },
    })
}

fn changes_of<S: Store>(view: &NamespaceView<S>) -> Result<&dyn Changes> {
    let missing = || Error::new(vfs_core::ErrorKind::Unsupported, "this store has no change feed");
    view.store().as_changes().ok_or_else(missing)
}

impl<S: Store> Follower<S> {
    async fn next(&mut self) -> Result<WatchEvent> {
        self.view.cx.check()?;
        if let Some(start) = self.start.take() {
            let FeedStart { seen, is_behind } = start.await?;
            self.seen = seen;
            if is_behind {
                return Ok(self.cursors.event(seen, Change::Overflow));
            }
        }
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            let changes = changes_of(&self.view)?;
            let page = self.view.ask(&self.path, changes.since(&self.view.namespace, self.seen, CHANGES)).await?;
            match page {
                ChangePage::Changes { changes: told, next, has_more } => {
                    let (path, cursors) = (&self.path, &self.cursors);
                    let events = told
                        .into_iter()
                        .filter_map(|(at, record)| Some(cursors.event(at, as_seen_from(path, record)?)));
                    self.pending.extend(events);
                    self.seen = next;
                    if self.pending.is_empty() && !has_more {
                        self.view.ask(&self.path, changes.changed(&self.view.namespace, next)).await?;
                    }
                }
                ChangePage::Expired(next) => {
                    self.seen = next;
                    return Ok(self.cursors.event(next, Change::Overflow));
                }
            }
        }
    }
}

/// The cursors of a namespace.
struct Cursors {
    /// What tells it from others.
    namespace: String,
}

/// What a cursor asks for.
#[derive(Debug, PartialEq, Eq)]
enum CursorTarget {
    /// What happened after this place.
    After(Sequence),
    /// What happened in another namespace.
    Elsewhere,
}

impl Cursors {
    fn of(namespace: &Namespace) -> Self {
        let hash = blake3::hash(namespace.as_str().as_bytes()).to_hex();
        Self { namespace: hash[..NAMESPACE].to_owned() }
    }

    fn event(&self, at: Sequence, change: Change) -> WatchEvent {
        WatchEvent::new(Cursor::new(format!("{CURSOR}{}-{}", self.namespace, at.0)), change)
    }

    fn parse(&self, cursor: &Cursor, path: &VfsPath) -> Result<CursorTarget> {
        let parts = cursor.as_str().strip_prefix(CURSOR).and_then(|parts| parts.split_once('-'));
        let parts = parts.filter(|(namespace, _)| is_hash(namespace));
        let asked = parts.and_then(|(namespace, text)| {
            let number: u64 = text.parse().ok().filter(|number: &u64| number.to_string() == text)?;
            let is_here = namespace == self.namespace;
            Some(if is_here { CursorTarget::After(Sequence(number)) } else { CursorTarget::Elsewhere })
        });
        asked.ok_or_else(|| {
            let message = "the cursor was not issued by a change feed; omit the cursor to start from now";
            Error::invalid_argument(message).with_path(path)
        })
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == NAMESPACE && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// What `tell` is for one who watches `watched`; `None` where it is nothing.
fn as_seen_from(watched: &VfsPath, record: ChangeRecord) -> Option<Change> {
    let change = match record {
        ChangeRecord::Created(path, stored) => Change::Created { path, version: Some(stored.version) },
        ChangeRecord::Changed(path, stored) => Change::Changed { path, version: Some(stored.version) },
        ChangeRecord::Removed(path) => Change::Removed { path },
        ChangeRecord::Unreadable(record, _) => return as_seen_from(watched, *record),
        ChangeRecord::Moved { from, to, stored } => {
            let version = Some(stored.version);
            return match (from.starts_with(watched), to.starts_with(watched)) {
                (true, true) => Some(Change::Renamed { from, to, version }),
                (true, false) => Some(Change::Removed { path: from }),
                (false, true) => Some(Change::Created { path: to, version }),
                (false, false) => None,
            };
        }
    };
    let (Change::Created { path, .. } | Change::Changed { path, .. } | Change::Removed { path }) = &change else {
        return Some(change);
    };
    path.starts_with(watched).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_no_other_text_is() {
        let root = VfsPath::root();
        let cursors = Cursors::of(&Namespace::default());
        let cursor = cursors.event(Sequence(17), Change::Overflow).cursor;
        assert_eq!(cursors.parse(&cursor, &root), Ok(CursorTarget::After(Sequence(17))));
        let other = Cursors::of(&Namespace::parse("org").expect("a namespace"));
        assert_eq!(other.parse(&cursor, &root), Ok(CursorTarget::Elsewhere));
        let here = cursor.as_str().strip_suffix("-17").expect("it ends with the number");
        let numbers = ["", "-", "-017", "-+17", "--1", "-17 ", "-1e1", "-99999999999999999999"];
        let others = ["", "17", "change-", "change-17", "change-x-17", "change--17", "change-0123456789AB-17"];
        for text in numbers.map(|number| format!("{here}{number}")).into_iter().chain(others.map(str::to_owned)) {
            assert!(cursors.parse(&Cursor::new(text.clone()), &root).is_err(), "{text}");
        }
    }
}
