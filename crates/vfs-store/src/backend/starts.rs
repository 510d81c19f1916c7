//! Feeds that have been asked for and do not know yet where they begin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// How long a change waits for feeds to begin. A store that takes longer has more trouble than a feed that begins late.
const PATIENCE: Duration = Duration::from_secs(1);

/// Lets changes of this backend wait for feeds that were asked for before them, so that the feeds tell of them.
#[derive(Debug, Default)]
pub(super) struct Starts {
    pending: AtomicUsize,
    ended: Notify,
}

/// A feed that begins; its drop says that it has begun, or will not.
#[derive(Debug)]
pub(super) struct Starting(Arc<Starts>);

impl Starts {
    /// A feed is about to begin.
    pub(super) fn begin(self: &Arc<Self>) -> Starting {
        self.pending.fetch_add(1, Ordering::SeqCst);
        Starting(Arc::clone(self))
    }

    /// Waits until those that were asked for have begun.
    pub(super) async fn settled(&self) {
        if self.pending.load(Ordering::SeqCst) > 0 {
            // A feed that is late begins with what happens then.
            drop(timeout(PATIENCE, self.all_begun()).await);
        }
    }

    async fn all_begun(&self) {
        loop {
            let ended = self.ended.notified();
            if self.pending.load(Ordering::SeqCst) == 0 {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::SeqCst);
        self.0.ended.notify_waiters();
    }
}
