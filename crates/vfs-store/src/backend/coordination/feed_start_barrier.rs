//! Barrier that delays changes until change feeds requested earlier have started.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// Time that a change waits for feeds to start. With a store that takes longer, a feed may start after the change.
const FEED_START_TIMEOUT: Duration = Duration::from_secs(1);

/// Makes changes of this backend wait for feeds that were requested before them, so that the feeds report these changes.
#[derive(Debug, Default)]
pub(crate) struct FeedStartBarrier {
    pending: AtomicUsize,
    started: Notify,
}

/// A feed that is starting. Dropping it releases the changes that wait for it.
#[derive(Debug)]
pub(crate) struct PendingFeed(Arc<FeedStartBarrier>);

impl FeedStartBarrier {
    /// Registers a feed that is about to start.
    pub(crate) fn register(self: &Arc<Self>) -> PendingFeed {
        self.pending.fetch_add(1, Ordering::SeqCst);
        PendingFeed(Arc::clone(self))
    }

    /// Waits until all registered feeds have started.
    pub(crate) async fn wait(&self) {
        if self.pending.load(Ordering::SeqCst) > 0 {
            drop(timeout(FEED_START_TIMEOUT, self.all_started()).await);
        }
    }

    async fn all_started(&self) {
        loop {
            let started = self.started.notified();
            if self.pending.load(Ordering::SeqCst) == 0 {
                return;
            }
            started.await;
        }
    }
}

impl Drop for PendingFeed {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::SeqCst);
        self.0.started.notify_waiters();
    }
}
