//! Receiving end of a search: its items in order.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use vfs_core::timer::Timer;
use vfs_core::tree::Tree;
use vfs_core::{Error, ErrorKind, GrepMatch, OpContext, Result};

use crate::engine::ordered_task_queue::RunAheadLimits;
use crate::engine::pool::Pool;
use crate::engine::received_item_queue::ReceivedItemQueue;
use crate::engine::search::{ReceiveStatus, Search};
use crate::engine::search_visitor::SearchVisitor;
use crate::search_item::SearchItem;

/// Receives the items of a search in order. Dropping the receiver ends the search.
pub(crate) struct OrderedReceiver<V: SearchVisitor> {
    search: Arc<Search<V>>,
    ready: ReceivedItemQueue,
    has_started: bool,
    cancelled: Option<BoxFuture<'static, ()>>,
    /// Wakes the consumer at the deadline.
    timer: Option<Timer>,
}

impl<V: SearchVisitor> OrderedReceiver<V> {
    pub(crate) fn new(tree: Arc<dyn Tree>, cx: OpContext, req: V::Request, pool: Pool, limits: RunAheadLimits) -> Self {
        Self {
            search: Arc::new(Search::new(tree, cx, req, pool, limits)),
            ready: ReceivedItemQueue::default(),
            has_started: false,
            cancelled: None,
            timer: None,
        }
    }

    pub(crate) fn request(&self) -> &V::Request {
        self.search.request()
    }

    /// Returns the next item, or `None` at the end. The first call starts the search.
    ///
    /// # Errors
    ///
    /// The error that ended the search: a worker's, or the context's.
    #[inline]
    pub(crate) fn poll_item(&mut self, task: &mut Context<'_>) -> Poll<Result<Option<SearchItem>>> {
        self.search.context().check()?;
        if !self.has_started {
            self.has_started = true;
            self.timer = self.search.context().deadline().map(|deadline| self.search.set_wake_timer(deadline));
            self.search.start()?;
        }
        loop {
            match self.ready.pop() {
                Some(SearchItem::Failed(error)) => {
                    return Poll::Ready(Err(map_cancellation(error, self.search.context())));
                }
                Some(item) => return Poll::Ready(Ok(Some(item))),
                None => {}
            }
            match self.search.take(&mut self.ready, task.waker()) {
                ReceiveStatus::Items => {}
                ReceiveStatus::Finished => return Poll::Ready(Ok(None)),
                ReceiveStatus::Pending => break,
            }
        }
        let token = self.search.context().cancel_token();
        let cancelled = self.cancelled.get_or_insert_with(|| {
            let token = token.clone();
            Box::pin(async move { token.cancelled().await })
        });
        let _ = cancelled.as_mut().poll(task);
        // Check once more, now that every event that can follow wakes this task.
        self.search.context().check()?;
        Poll::Pending
    }

    /// Returns the next item if it is a match that has arrived already and `predicate` accepts it. Does not check the
    /// context.
    #[inline]
    pub(crate) fn next_match_if(&mut self, predicate: impl FnOnce(&GrepMatch) -> bool) -> Option<GrepMatch> {
        self.ready.pop_match_if(predicate)
    }

    /// Ends the search.
    pub(crate) fn close(&mut self) {
        self.timer = None;
        self.cancelled = None;
        self.search.close();
        self.ready = ReceivedItemQueue::default();
    }
}

/// Replaces a worker's `cancelled` by the error of the context: a worker that was stopped does not know why.
fn map_cancellation(error: Error, cx: &OpContext) -> Error {
    if error.kind() == ErrorKind::Cancelled { cx.check().err().unwrap_or(error) } else { error }
}

impl<V: SearchVisitor> Drop for OrderedReceiver<V> {
    fn drop(&mut self) {
        self.close();
    }
}
