//! One who reads a feed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use event_listener::EventListener;
use futures::future::BoxFuture;
use futures::stream::Stream;

use super::Inner;
use crate::alarm::Alarm;
use crate::context::OpContext;
use crate::error::Result;
use crate::path::VfsPath;
use crate::types::{Change, WatchEvent};

pub(super) struct Subscription {
    feed: Arc<Inner>,
    cx: OpContext,
    path: VfsPath,
    /// The number of the last change that was looked at.
    seen: u64,
    /// Whether changes were missed that the subscriber has not been told of.
    is_behind: bool,
    has_ended: bool,
    published: Option<EventListener>,
    stopped: BoxFuture<'static, ()>,
    _deadline: Option<Alarm>,
}

impl Subscription {
    pub(super) fn new(feed: Arc<Inner>, cx: OpContext, path: VfsPath, seen: u64, is_behind: bool) -> Self {
        // A token of its own, as it is cancelled by the deadline too.
        let stop = cx.cancel_token().child();
        let deadline = cx.deadline().map(|moment| {
            let stop = stop.clone();
            Alarm::set(moment, move || stop.cancel())
        });
        let stopped = Box::pin(async move { stop.cancelled().await });
        Self { feed, cx, path, seen, is_behind, has_ended: false, published: None, stopped, _deadline: deadline }
    }

    /// The next event that has happened already, or why there is none any more.
    fn take(&mut self) -> Option<Result<WatchEvent>> {
        let ring = self.feed.lock();
        if self.seen < ring.forgotten() {
            // All that is missed until now is told in one: what lists again after it sees the newest changes as well.
            (self.seen, self.is_behind) = (ring.last, true);
        }
        if std::mem::take(&mut self.is_behind) {
            return Some(Ok(self.feed.event(self.seen, Change::Overflow)));
        }
        while let Some(change) = ring.after(self.seen) {
            self.seen += 1;
            if let Some(change) = change.as_ref().and_then(|change| as_seen_from(&self.path, change)) {
                return Some(Ok(self.feed.event(self.seen, change)));
            }
        }
        ring.end.clone().map(|why| Err(why.with_path(&self.path)))
    }
}

impl Stream for Subscription {
    type Item = Result<WatchEvent>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.has_ended {
                return Poll::Ready(None);
            }
            if let Err(error) = self.cx.check() {
                self.has_ended = true;
                return Poll::Ready(Some(Err(error.or_path(&self.path))));
            }
            if let Some(event) = self.take() {
                return Poll::Ready(Some(event.inspect_err(|_| self.has_ended = true)));
            }
            let Some(published) = &mut self.published else {
                // What is published between the look and the listening is found by another look.
                self.published = Some(self.feed.published.listen());
                continue;
            };
            if Pin::new(published).poll(task).is_ready() {
                self.published = None;
                continue;
            }
            if self.stopped.as_mut().poll(task).is_pending() {
                return Poll::Pending;
            }
            // Polled no more, and the next look at the context ends the stream.
            self.stopped = Box::pin(std::future::pending());
        }
    }
}

/// Where a path lies for one who watches another.
enum Place {
    Inside,
    Above,
    Elsewhere,
}

fn place(watched: &VfsPath, path: &VfsPath) -> Place {
    if path.starts_with(watched) {
        Place::Inside
    } else if watched.starts_with(path) {
        Place::Above
    } else {
        Place::Elsewhere
    }
}

/// What `change` is for one who watches `watched`; `None` where it is nothing.
fn as_seen_from(watched: &VfsPath, change: &Change) -> Option<Change> {
    match change {
        Change::Overflow => Some(Change::Overflow),
        Change::Created { path, .. } | Change::Changed { path, .. } => {
            path.starts_with(watched).then(|| change.clone())
        }
        Change::Removed { path } => match place(watched, path) {
            Place::Inside => Some(change.clone()),
            Place::Above => Some(Change::Removed { path: watched.clone() }),
            Place::Elsewhere => None,
        },
        Change::Renamed { from, to, version } => match (place(watched, from), place(watched, to)) {
            (Place::Inside, Place::Inside) => Some(change.clone()),
            (Place::Inside, _) => Some(Change::Removed { path: from.clone() }),
            (_, Place::Inside) => Some(Change::Created { path: to.clone(), version: version.clone() }),
            (Place::Above, _) => Some(Change::Removed { path: watched.clone() }),
            // Below a file there is nothing.
            (Place::Elsewhere, Place::Above) => version.is_none().then_some(Change::Overflow),
            (Place::Elsewhere, Place::Elsewhere) => None,
        },
    }
}
