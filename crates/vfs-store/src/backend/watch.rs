//! What happens to the files, as the store tells it.

use std::collections::VecDeque;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream};
use tokio::runtime::Handle;
use vfs_core::{Change, Cursor, Error, Result, VfsPath, WatchEvent, WatchRequest};

use super::space::Space;
use crate::store::{ChangePage, Changes, Position, Store, Tell};

/// How many changes are asked for at once.
const CHANGES: usize = 500;

/// What comes before the number in a cursor.
const CURSOR: &str = "change-";

/// One who follows the changes of a namespace.
struct Follower<S> {
    space: Space<S>,
    path: VfsPath,
    /// Where it begins, until that is known.
    start: Option<BoxFuture<'static, Result<Start>>>,
    seen: Position,
    pending: VecDeque<WatchEvent>,
    has_ended: bool,
}

/// Where a follower begins.
struct Start {
    seen: Position,
    /// Whether what it asked for is no longer, or not yet, there.
    is_behind: bool,
}

/// The changes at and below the request's path, from now on or from its cursor.
pub(super) fn watch<S: Store>(space: Space<S>, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
    let path = req.path;
    let asked = match req.since.as_ref().map(|cursor| parse(cursor, &path)).transpose() {
        Ok(asked) => asked,
        Err(error) => return stream::iter([Err(error)]).boxed(),
    };
    let start = begin(start(space.clone(), path.clone(), asked).boxed());
    let follower =
        Follower { space, path, start: Some(start), seen: Position(0), pending: VecDeque::new(), has_ended: false };
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
fn begin(mut start: BoxFuture<'static, Result<Start>>) -> BoxFuture<'static, Result<Start>> {
    if let Some(known) = (&mut start).now_or_never() {
        return futures::future::ready(known).boxed();
    }
    match Handle::try_current() {
        Ok(runtime) => {
            let begun = runtime.spawn(start);
            async move { begun.await.unwrap_or_else(|error| Err(ended(error))) }.boxed()
        }
        Err(_) => start,
    }
}

fn ended(error: tokio::task::JoinError) -> Error {
    Error::new(vfs_core::ErrorKind::Internal, "following the changes ended before it began").with_source(error)
}

async fn start<S: Store>(space: Space<S>, path: VfsPath, asked: Option<Position>) -> Result<Start> {
    let changes = changes_of(&space)?;
    let last = space.ask(&path, changes.position(&space.namespace)).await?;
    Ok(match asked {
        None => Start { seen: last, is_behind: false },
        Some(seen) if seen <= last => Start { seen, is_behind: false },
        // Of another store, or of this one before it was put back.
        Some(_) => Start { seen: last, is_behind: true },
    })
}

fn changes_of<S: Store>(space: &Space<S>) -> Result<&dyn Changes> {
    let missing = || Error::new(vfs_core::ErrorKind::Unsupported, "this store does not tell of changes");
    space.store().as_changes().ok_or_else(missing)
}

impl<S: Store> Follower<S> {
    async fn next(&mut self) -> Result<WatchEvent> {
        self.space.cx.check()?;
        if let Some(start) = self.start.take() {
            let Start { seen, is_behind } = start.await?;
            self.seen = seen;
            if is_behind {
                return Ok(event(seen, Change::Overflow));
            }
        }
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            let changes = changes_of(&self.space)?;
            let page = self.space.ask(&self.path, changes.since(&self.space.namespace, self.seen, CHANGES)).await?;
            match page {
                ChangePage::Changes { changes: told, next, has_more } => {
                    let path = &self.path;
                    let events = told.into_iter().filter_map(|(at, tell)| Some(event(at, as_seen_from(path, tell)?)));
                    self.pending.extend(events);
                    self.seen = next;
                    if self.pending.is_empty() && !has_more {
                        self.space.ask(&self.path, changes.changed(&self.space.namespace, next)).await?;
                    }
                }
                ChangePage::Forgotten(next) => {
                    self.seen = next;
                    return Ok(event(next, Change::Overflow));
                }
            }
        }
    }
}

fn event(at: Position, change: Change) -> WatchEvent {
    WatchEvent::new(Cursor::new(format!("{CURSOR}{}", at.0)), change)
}

fn parse(cursor: &Cursor, path: &VfsPath) -> Result<Position> {
    let text = cursor.as_str();
    let number = text.strip_prefix(CURSOR).and_then(|number| number.parse().ok());
    number.filter(|number: &u64| format!("{CURSOR}{number}") == text).map(Position).ok_or_else(|| {
        Error::invalid_argument("the cursor is none of a change feed; leave it out to start from now").with_path(path)
    })
}

/// What `tell` is for one who watches `watched`; `None` where it is nothing.
fn as_seen_from(watched: &VfsPath, tell: Tell) -> Option<Change> {
    let change = match tell {
        Tell::Created(path, stored) => Change::Created { path, version: Some(stored.version) },
        Tell::Changed(path, stored) => Change::Changed { path, version: Some(stored.version) },
        Tell::Removed(path) => Change::Removed { path },
        Tell::Moved { from, to, stored } => {
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
        let cursor = event(Position(17), Change::Overflow).cursor;
        assert_eq!(parse(&cursor, &root), Ok(Position(17)));
        for text in ["", "17", "change-", "change-017", "change-+17", "change--1", "change-17 ", "change-1e1"] {
            assert!(parse(&Cursor::new(text), &root).is_err(), "{text}");
        }
    }
}
