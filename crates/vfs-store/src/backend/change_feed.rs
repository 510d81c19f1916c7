//! Change feed over the change log of a store.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream};
use tokio::runtime::Handle;
use vfs_core::watch::{Change, WatchCursor, WatchEvent, WatchRequest};
use vfs_core::{Error, Result, VfsPath};

use super::coordination::feed_start_barrier::FeedStartBarrier;
use super::view::namespace_view::NamespaceView;
use crate::store::{ChangePage, ChangeRecord, Namespace, Sequence, Store, StoreChangeLog};

/// Maximum number of changes in one request.
const CHANGE_PAGE_SIZE: usize = 500;

/// Prefix of a cursor; the hash of the namespace and the number of the change follow.
const CURSOR_PREFIX: &str = "change-";

/// Number of hexadecimal digits of the hash of the namespace in a cursor.
const NAMESPACE_HASH_DIGITS: usize = 12;

/// State of one change feed.
struct ChangeFeed<S> {
    view: NamespaceView<S>,
    path: VfsPath,
    cursors: CursorCodec,
    /// Start of the feed, until it is resolved.
    start: Option<BoxFuture<'static, Result<ChangeFeedStart>>>,
    seen: Sequence,
    pending: VecDeque<WatchEvent>,
    has_ended: bool,
}

/// Start of a feed.
struct ChangeFeedStart {
    seen: Sequence,
    /// `true` if the log does not have the change of the requested cursor, so that the feed starts with an overflow.
    is_overflow: bool,
}

/// Returns the changes at and below the path of the request, from now on or from its cursor on.
pub(super) fn watch<S: Store>(
    view: NamespaceView<S>,
    req: WatchRequest,
    feed_barrier: &Arc<FeedStartBarrier>,
) -> BoxStream<'static, Result<WatchEvent>> {
    let path = req.path;
    let cursors = CursorCodec::of(&view.namespace);
    let target = match req.since.as_ref().map(|cursor| cursors.parse(cursor, &path)).transpose() {
        Ok(target) => target,
        Err(error) => return stream::iter([Err(error)]).boxed(),
    };
    let start = start_now(resolve_start(view.clone(), path.clone(), target).boxed(), feed_barrier);
    let (seen, pending) = (Sequence(0), VecDeque::new());
    let feed = ChangeFeed { view, path, cursors, start: Some(start), seen, pending, has_ended: false };
    stream::unfold(feed, |mut feed| async move {
        if feed.has_ended {
            return None;
        }
        let event = feed.next().await.map_err(|error| error.or_path(&feed.path));
        feed.has_ended = event.is_err();
        Some((event, feed))
    })
    .boxed()
}

/// Starts the feed now instead of at the first poll of the stream, so that all later changes are reported.
fn start_now(
    mut start: BoxFuture<'static, Result<ChangeFeedStart>>,
    feed_barrier: &Arc<FeedStartBarrier>,
) -> BoxFuture<'static, Result<ChangeFeedStart>> {
    if let Some(resolved) = (&mut start).now_or_never() {
        return futures::future::ready(resolved).boxed();
    }
    match Handle::try_current() {
        Ok(runtime) => {
            let pending = feed_barrier.register();
            let task = runtime.spawn(async move {
                let resolved = start.await;
                drop(pending);
                resolved
            });
            async move { task.await.unwrap_or_else(|error| Err(start_failed(error))) }.boxed()
        }
        Err(_) => start,
    }
}

fn start_failed(error: tokio::task::JoinError) -> Error {
    Error::new(vfs_core::ErrorKind::Internal, "internal: the task that starts a change feed ended without a result")
        .with_source(error)
}

async fn resolve_start<S: Store>(
    view: NamespaceView<S>,
    path: VfsPath,
    target: Option<CursorPosition>,
) -> Result<ChangeFeedStart> {
    let changes = changes_of(&view)?;
    let last = view.ask(&path, changes.last_sequence(&view.namespace)).await?;
    Ok(match target {
        None => ChangeFeedStart { seen: last, is_overflow: false },
        Some(CursorPosition::After(seen)) if seen <= last => ChangeFeedStart { seen, is_overflow: false },
        // The cursor is of another namespace or store, or of this store before it was restored.
        Some(_) => ChangeFeedStart { seen: last, is_overflow: true },
    })
}

fn changes_of<S: Store>(view: &NamespaceView<S>) -> Result<&dyn StoreChangeLog> {
    let missing = || Error::new(vfs_core::ErrorKind::Unsupported, "this store has no change feed");
    view.store().as_changes().ok_or_else(missing)
}

impl<S: Store> ChangeFeed<S> {
    async fn next(&mut self) -> Result<WatchEvent> {
        self.view.cx.check()?;
        if let Some(start) = self.start.take() {
            let ChangeFeedStart { seen, is_overflow } = start.await?;
            self.seen = seen;
            if is_overflow {
                return Ok(self.cursors.event(seen, Change::Overflow));
            }
        }
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            let changes = changes_of(&self.view)?;
            let page =
                self.view.ask(&self.path, changes.since(&self.view.namespace, self.seen, CHANGE_PAGE_SIZE)).await?;
            match page {
                ChangePage::Changes { changes: records, next, has_more } => {
                    let (path, cursors) = (&self.path, &self.cursors);
                    let events = records
                        .into_iter()
                        .filter_map(|(at, record)| Some(cursors.event(at, to_change(path, record)?)));
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

/// Encoder and parser of the cursors of one namespace.
struct CursorCodec {
    /// First digits of the hash of the namespace.
    namespace: String,
}

/// Position to which a cursor refers.
#[derive(Debug, PartialEq, Eq)]
enum CursorPosition {
    /// The changes after this one.
    After(Sequence),
    /// Changes of another namespace.
    Elsewhere,
}

impl CursorCodec {
    fn of(namespace: &Namespace) -> Self {
        let hash = blake3::hash(namespace.as_str().as_bytes()).to_hex();
        Self { namespace: hash[..NAMESPACE_HASH_DIGITS].to_owned() }
    }

    fn event(&self, at: Sequence, change: Change) -> WatchEvent {
        WatchEvent::new(WatchCursor::new(format!("{CURSOR_PREFIX}{}-{}", self.namespace, at.0)), change)
    }

    fn parse(&self, cursor: &WatchCursor, path: &VfsPath) -> Result<CursorPosition> {
        let parts = cursor.as_str().strip_prefix(CURSOR_PREFIX).and_then(|parts| parts.split_once('-'));
        let parts = parts.filter(|(namespace, _)| is_hash(namespace));
        let target = parts.and_then(|(namespace, text)| {
            let number: u64 = text.parse().ok().filter(|number: &u64| number.to_string() == text)?;
            let is_here = namespace == self.namespace;
            Some(if is_here { CursorPosition::After(Sequence(number)) } else { CursorPosition::Elsewhere })
        });
        target.ok_or_else(|| {
            let message = "the cursor was not issued by a change feed; omit the cursor to start from now";
            Error::invalid_argument(message).with_path(path)
        })
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == NAMESPACE_HASH_DIGITS && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns `record` as an event for a feed of `watched`, or `None` if the change is elsewhere.
fn to_change(watched: &VfsPath, record: ChangeRecord) -> Option<Change> {
    let change = match record {
        ChangeRecord::Created(path, stored) => Change::Created { path, version: Some(stored.version) },
        ChangeRecord::Changed(path, stored) => Change::Changed { path, version: Some(stored.version) },
        ChangeRecord::Removed(path) => Change::Removed { path },
        ChangeRecord::Unreadable(record, _) => return to_change(watched, *record),
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
    fn a_cursor_is_parsed_back_and_no_other_text_is() {
        let root = VfsPath::root();
        let cursors = CursorCodec::of(&Namespace::default());
        let cursor = cursors.event(Sequence(17), Change::Overflow).cursor;
        assert_eq!(cursors.parse(&cursor, &root), Ok(CursorPosition::After(Sequence(17))));
        let other = CursorCodec::of(&Namespace::parse("org").expect("a namespace"));
        assert_eq!(other.parse(&cursor, &root), Ok(CursorPosition::Elsewhere));
        let here = cursor.as_str().strip_suffix("-17").expect("it ends with the number");
        let numbers = ["", "-", "-017", "-+17", "--1", "-17 ", "-1e1", "-99999999999999999999"];
        let others = ["", "17", "change-", "change-17", "change-x-17", "change--17", "change-0123456789AB-17"];
        for text in numbers.map(|number| format!("{here}{number}")).into_iter().chain(others.map(str::to_owned)) {
            assert!(cursors.parse(&WatchCursor::new(text.clone()), &root).is_err(), "{text}");
        }
    }
}
