//! One subscription to a change log, as a stream.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use event_listener::EventListener;
use futures::future::BoxFuture;
use futures::stream::Stream;

use super::ChangeLogState;
use crate::context::OpContext;
use crate::error::Result;
use crate::path::VfsPath;
use crate::requests::{Change, WatchEvent};
use crate::timer::Timer;

/// The events of one subscriber, from its cursor on.
pub(super) struct Subscription {
    log: Arc<ChangeLogState>,
    cx: OpContext,
    path: VfsPath,
    /// The number of the last change that was read.
    seen: u64,
    /// Whether the next event is an overflow.
    is_behind: bool,
    has_ended: bool,
    published: Option<EventListener>,
    stopped: BoxFuture<'static, ()>,
    _deadline: Option<Timer>,
}

impl Subscription {
    pub(super) fn new(log: Arc<ChangeLogState>, cx: OpContext, path: VfsPath, seen: u64, is_behind: bool) -> Self {
        // A child token, as the deadline cancels it too.
        let stop = cx.cancel_token().child();
        let deadline = cx.deadline().map(|moment| {
            let stop = stop.clone();
            Timer::set(moment, move || stop.cancel())
        });
        let stopped = Box::pin(async move { stop.cancelled().await });
        Self { log, cx, path, seen, is_behind, has_ended: false, published: None, stopped, _deadline: deadline }
    }

    /// Returns the next stored event, or the error with which the log ended.
    fn take(&mut self) -> Option<Result<WatchEvent>> {
        let ring = self.log.lock();
        if self.seen < ring.last_dropped() {
            // One overflow covers all stored changes too: the caller lists the files again after it, and sees them.
            (self.seen, self.is_behind) = (ring.last, true);
        }
        if std::mem::take(&mut self.is_behind) {
            return Some(Ok(self.log.event(self.seen, Change::Overflow)));
        }
        while let Some(change) = ring.after(self.seen) {
            self.seen += 1;
            if let Some(change) = change.as_ref().and_then(|change| as_seen_from(&self.path, change)) {
                return Some(Ok(self.log.event(self.seen, change)));
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
                // Look again: a change may have been published between the last look and `listen`.
                self.published = Some(self.log.published.listen());
                continue;
            };
            if Pin::new(published).poll(task).is_ready() {
                self.published = None;
                continue;
            }
            if self.stopped.as_mut().poll(task).is_pending() {
                return Poll::Pending;
            }
            // Do not poll a completed future again; the next check of the context ends the stream.
            self.stopped = Box::pin(std::future::pending());
        }
    }
}

/// Where a path lies relative to the watched one.
enum PathRelation {
    Inside,
    Above,
    Elsewhere,
}

fn path_relation(watched: &VfsPath, path: &VfsPath) -> PathRelation {
    if path.starts_with(watched) {
        PathRelation::Inside
    } else if watched.starts_with(path) {
        PathRelation::Above
    } else {
        PathRelation::Elsewhere
    }
}

/// Returns `change` as a subscriber to `watched` sees it; `None` if it does not affect that path.
fn as_seen_from(watched: &VfsPath, change: &Change) -> Option<Change> {
    match change {
        Change::Overflow => Some(Change::Overflow),
        Change::Created { path, .. } | Change::Changed { path, .. } => {
            path.starts_with(watched).then(|| change.clone())
        }
        Change::Removed { path } => match path_relation(watched, path) {
            PathRelation::Inside => Some(change.clone()),
            PathRelation::Above => Some(Change::Removed { path: watched.clone() }),
            PathRelation::Elsewhere => None,
        },
        Change::Renamed { from, to, version } => match (path_relation(watched, from), path_relation(watched, to)) {
            (PathRelation::Inside, PathRelation::Inside) => Some(change.clone()),
            (PathRelation::Inside, _) => Some(Change::Removed { path: from.clone() }),
            (_, PathRelation::Inside) => Some(Change::Created { path: to.clone(), version: version.clone() }),
            (PathRelation::Above, _) => Some(Change::Removed { path: watched.clone() }),
            // No path below a file exists, so a file moved here does not affect the watched path.
            (PathRelation::Elsewhere, PathRelation::Above) => version.is_none().then_some(Change::Overflow),
            (PathRelation::Elsewhere, PathRelation::Elsewhere) => None,
        },
    }
}
