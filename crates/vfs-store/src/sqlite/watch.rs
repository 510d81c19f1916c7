//! Notification of changes, also by other processes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use event_listener::{Event, EventListener};
use rusqlite::Connection;
use tokio::time::Instant;
use vfs_core::Result;

use super::pool::Pool;

/// How often the file is asked whether another process changed it, while anyone waits.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Tells all who wait that there may be a change.
#[derive(Debug)]
pub(super) struct ChangeNotifier {
    event: Event,
    /// One connection of its own, as SQLite tells each what others changed. None where there are no other processes.
    pool: Option<Arc<Pool>>,
    asked: Mutex<LastPoll>,
}

/// When the file was asked the last time, and what it said.
#[derive(Debug, Default)]
struct LastPoll {
    at: Option<Instant>,
    version: Option<i64>,
}

impl ChangeNotifier {
    pub(super) fn new(pool: Option<Pool>) -> Self {
        Self { event: Event::new(), pool: pool.map(Arc::new), asked: Mutex::default() }
    }

    /// Tells of a change of this process.
    pub(super) fn notify(&self) {
        self.event.notify(usize::MAX);
    }

    /// Listens from now on.
    pub(super) fn listen(&self) -> EventListener {
        self.event.listen()
    }

    /// Waits for `news`, and asks the file now and then, once for all who wait.
    pub(super) async fn wait(&self, news: EventListener) -> Result<()> {
        let Some(pool) = &self.pool else {
            news.await;
            return Ok(());
        };
        tokio::pin!(news);
        loop {
            if tokio::time::timeout(POLL_INTERVAL, &mut news).await.is_ok() {
                return Ok(());
            }
            if self.is_due() {
                let version = pool.run(|connection| Ok(data_version(connection)?)).await?;
                if self.is_news(version) {
                    self.notify();
                }
            }
        }
    }

    /// Whether nobody asked lately. Who is told so is the one to ask.
    fn is_due(&self) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = asked.at.is_none_or(|at| at.elapsed() >= POLL_INTERVAL / 2);
        if is_due {
            asked.at = Some(Instant::now());
        }
        is_due
    }

    fn is_news(&self, version: i64) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        // What was changed before the first question, nobody knows.
        asked.version.replace(version) != Some(version)
    }
}

/// A number that is another one whenever another connection changed the file in between.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0))
}
