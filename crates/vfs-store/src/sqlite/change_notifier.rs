//! Notification of changes by this and by other processes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use event_listener::{Event, EventListener};
use rusqlite::Connection;
use tokio::time::Instant;
use vfs_core::Result;

use super::connection_pool::ConnectionPool;

/// Interval at which the file is polled for changes of other processes while a caller waits.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Wakes all waiting callers when there may be a change.
#[derive(Debug)]
pub(super) struct ChangeNotifier {
    event: Event,
    /// Pool of one separate connection, as `data_version` is relative to a connection. `None` for a database in memory.
    pool: Option<Arc<ConnectionPool>>,
    last_poll: Mutex<LastPoll>,
}

/// Time and result of the last poll of the file.
#[derive(Debug, Default)]
struct LastPoll {
    at: Option<Instant>,
    version: Option<i64>,
}

impl ChangeNotifier {
    pub(super) fn new(pool: Option<ConnectionPool>) -> Self {
        Self { event: Event::new(), pool: pool.map(Arc::new), last_poll: Mutex::default() }
    }

    /// Wakes all waiting callers.
    pub(super) fn notify(&self) {
        self.event.notify(usize::MAX);
    }

    /// Returns a listener for the changes from now on.
    pub(super) fn listen(&self) -> EventListener {
        self.event.listen()
    }

    /// Waits for an event of `listener`, and polls the file meanwhile, once for all waiting callers.
    pub(super) async fn wait(&self, listener: EventListener) -> Result<()> {
        let Some(pool) = &self.pool else {
            listener.await;
            return Ok(());
        };
        tokio::pin!(listener);
        loop {
            if tokio::time::timeout(POLL_INTERVAL, &mut listener).await.is_ok() {
                return Ok(());
            }
            if self.is_due() {
                let version = pool.run(|connection| Ok(data_version(connection)?)).await?;
                if self.is_new_version(version) {
                    self.notify();
                }
            }
        }
    }

    /// Returns whether the last poll is long enough ago. If so, the caller polls next.
    fn is_due(&self) -> bool {
        let mut last_poll = self.last_poll.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last_poll.at.is_none_or(|at| at.elapsed() >= POLL_INTERVAL / 2);
        if is_due {
            last_poll.at = Some(Instant::now());
        }
        is_due
    }

    fn is_new_version(&self, version: i64) -> bool {
        let mut last_poll = self.last_poll.lock().unwrap_or_else(PoisonError::into_inner);
        // The first poll has no earlier version to compare with, so it counts as a change.
        last_poll.version.replace(version) != Some(version)
    }
}

/// Returns a number that changes whenever another connection commits a change to the file.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0))
}
