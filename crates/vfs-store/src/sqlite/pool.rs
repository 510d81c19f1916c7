//! Connection pool for blocking work outside of async threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use vfs_core::{Error, ErrorKind, Result};
use vfs_search::{run_blocking, without_size_signal};

use super::config::SqliteConfig;
use super::connect;
use super::error::{SqliteError, SqliteResult};
use super::reserve::DiskReserve;
use super::schema;

/// Some connections to one file, opened when they are first needed.
#[derive(Debug)]
pub(super) struct Pool {
    config: Arc<SqliteConfig>,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

/// Whether a transaction is kept.
#[derive(Debug)]
pub(super) enum TransactionEnd<T> {
    Commit(T),
    RollBack(T),
}

impl Pool {
    /// At most `size` connections; `open` are there already.
    pub(super) fn new(config: Arc<SqliteConfig>, size: usize, open: Vec<Connection>) -> Self {
        Self { config, idle: Mutex::new(open), permits: Arc::new(Semaphore::new(size)) }
    }

    /// Lends a connection to `work`, on a thread that may wait for the disk.
    ///
    /// Work that has begun is finished and its connection given back, whether or not anyone still waits for it. Work that has
    /// not begun when nobody waits for it any more is not done.
    pub(super) async fn run<T, F>(self: &Arc<Self>, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> SqliteResult<T> + Send + 'static,
    {
        let ended = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => self.run_with_permit(permit, work).await,
            // A task of its own takes its turn and goes on: a caller who does not look at its future for a while would keep
            // all who come after it waiting. The set ends the task where the caller gives up.
            Err(_) => {
                let pool = Arc::clone(self);
                let mut waiting = JoinSet::new();
                waiting.spawn(async move {
                    let permit = Arc::clone(&pool.permits).acquire_owned().await.map_err(|_| closed_error())?;
                    pool.run_with_permit(permit, work).await
                });
                match waiting.join_next().await {
                    Some(Ok(tried)) => tried,
                    Some(Err(ended)) => Err(closed_error().with_source(ended).into()),
                    None => Err(closed_error().into()),
                }
            }
        };
        ended.map_err(Error::from)
    }

    async fn run_with_permit<T, F>(self: &Arc<Self>, permit: OwnedSemaphorePermit, work: F) -> SqliteResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> SqliteResult<T> + Send + 'static,
    {
        let pool = Arc::clone(self);
        let lent = move || {
            let mut connection = pool.take()?;
            let result = catch_unwind(AssertUnwindSafe(|| work(&mut connection)));
            pool.idle().push(connection);
            drop(permit);
            result.map_err(|_| {
                SqliteError::from(Error::new(ErrorKind::Internal, "an operation of the SQLite store panicked"))
            })?
        };
        match run_blocking(&Handle::current(), lent).await {
            Ok(tried) => tried,
            // It does not panic, so the runtime is shutting down.
            Err(failure) if failure.kind() == ErrorKind::Internal => Err(closed_error().with_source(failure).into()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Lends a connection to `work` that only reads, all of it at one moment.
    pub(super) async fn read<T, F>(self: &Arc<Self>, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> SqliteResult<T> + Send + 'static,
    {
        self.run(|connection| {
            let transaction = connection.transaction()?;
            let found = work(&transaction)?;
            transaction.finish()?;
            Ok(found)
        })
        .await
    }

    /// Lends a connection to `work` that changes the file, with nobody else changing it in between, and tells by
    /// `committed` when it is done. On a full disk it is made again with the space of the `reserve`.
    pub(super) async fn change<T, F>(
        self: &Arc<Self>,
        work: F,
        reserve: Option<Arc<DiskReserve>>,
        committed: impl Fn() + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> SqliteResult<TransactionEnd<T>> + Send + 'static,
    {
        let config = Arc::clone(&self.config);
        self.run(move |connection| {
            within_size_limit(|| match (change(connection, &config, &work, &committed), reserve) {
                (Err(fault), Some(reserve)) if fault.is_full() => {
                    reserve.give_back();
                    // With some room for the file, what is in the log goes there and leaves the log empty.
                    shorten_log(connection);
                    let changed = change(connection, &config, &work, &committed);
                    shorten_log(connection);
                    reserve.set_aside();
                    changed
                }
                (changed, _) => changed,
            })
        })
        .await
    }

    fn take(&self) -> SqliteResult<Connection> {
        let idle = self.idle().pop();
        idle.map_or_else(|| within_size_limit(|| connect::connect(&self.config)), Ok)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The last connection to a file writes what is in the log beside it into the file. What cannot be written stays there.
        let ((), _met_limit) = without_size_signal(|| self.idle().clear());
    }
}

/// Runs `work`, which writes. If it fails where the file would grow beyond the process's limit, it is `too_large`.
pub(super) fn within_size_limit<T>(work: impl FnOnce() -> SqliteResult<T>) -> SqliteResult<T> {
    let (tried, met_limit) = without_size_signal(work);
    tried.map_err(|fault| {
        if !met_limit {
            return fault;
        }
        let message = "the SQLite file of the store would be larger than this process may write (ulimit -f); raise the limit, or \
                       write less";
        Error::new(ErrorKind::TooLarge, message).with_generic_model_message().with_source(Error::from(fault)).into()
    })
}

fn change<T>(
    connection: &Connection,
    config: &SqliteConfig,
    work: &impl Fn(&Connection) -> SqliteResult<TransactionEnd<T>>,
    committed: &impl Fn(),
) -> SqliteResult<T> {
    let transaction = begin(connection, config)?;
    schema::require_current(&transaction)?;
    match work(&transaction)? {
        TransactionEnd::Commit(done) => {
            transaction.commit()?;
            committed();
            Ok(done)
        }
        TransactionEnd::RollBack(found) => {
            transaction.rollback()?;
            Ok(found)
        }
    }
}

/// Writes the log to the file as far as there is room and nobody reads what was before.
fn shorten_log(connection: &Connection) {
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        tracing::debug!(%error, "the log of a SQLite file on a full disk was not shortened");
    }
}

fn closed_error() -> Error {
    Error::new(ErrorKind::Unavailable, "the SQLite store is being closed")
}

/// Begins a change. SQLite's own way of waiting grows to steps of 100 ms, in which others pass by again and again.
fn begin<'a>(connection: &'a Connection, config: &SqliteConfig) -> SqliteResult<Transaction<'a>> {
    let start = Instant::now();
    connection.busy_timeout(std::time::Duration::ZERO)?;
    let begun = loop {
        match Transaction::new_unchecked(connection, TransactionBehavior::Immediate) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && start.elapsed() < config.busy_timeout =>
            {
                connect::pause();
            }
            result => break result,
        }
    };
    connection.busy_timeout(config.busy_timeout)?;
    Ok(begun?)
}
