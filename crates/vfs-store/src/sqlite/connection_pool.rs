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
use super::disk_reserve_file::DiskReserveFile;
use super::error::{SqliteError, SqliteResult};
use super::schema;

/// Pool of connections to one file, each of which is opened when it is first needed.
#[derive(Debug)]
pub(super) struct ConnectionPool {
    config: Arc<SqliteConfig>,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

/// Whether a transaction is committed or rolled back, with the result of its work.
#[derive(Debug)]
pub(super) enum TransactionEnd<T> {
    Commit(T),
    RollBack(T),
}

impl ConnectionPool {
    /// Creates a pool of at most `size` connections, with those in `open`.
    pub(super) fn new(config: Arc<SqliteConfig>, size: usize, open: Vec<Connection>) -> Self {
        Self { config, idle: Mutex::new(open), permits: Arc::new(Semaphore::new(size)) }
    }

    /// Runs `work` with a connection on a blocking thread.
    ///
    /// Once started, the work runs to its end and returns its connection to the pool, even if the future is dropped. If
    /// the future is dropped earlier, the work does not run.
    pub(super) async fn run<T, F>(self: &Arc<Self>, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> SqliteResult<T> + Send + 'static,
    {
        let result = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => self.run_with_permit(permit, work).await,
            // Wait for the permit in a separate task: a caller that does not poll its future would otherwise block all
            // callers behind it in the queue. Dropping the set aborts the task if the caller drops its future.
            Err(_) => {
                let pool = Arc::clone(self);
                let mut waiting = JoinSet::new();
                waiting.spawn(async move {
                    let permit = Arc::clone(&pool.permits).acquire_owned().await.map_err(|_| closed_error())?;
                    pool.run_with_permit(permit, work).await
                });
                match waiting.join_next().await {
                    Some(Ok(result)) => result,
                    Some(Err(error)) => Err(closed_error().with_source(error).into()),
                    None => Err(closed_error().into()),
                }
            }
        };
        result.map_err(Error::from)
    }

    async fn run_with_permit<T, F>(self: &Arc<Self>, permit: OwnedSemaphorePermit, work: F) -> SqliteResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> SqliteResult<T> + Send + 'static,
    {
        let pool = Arc::clone(self);
        let run = move || {
            let mut connection = pool.take()?;
            let result = catch_unwind(AssertUnwindSafe(|| work(&mut connection)));
            pool.idle().push(connection);
            drop(permit);
            result.map_err(|_| {
                SqliteError::from(Error::new(ErrorKind::Internal, "an operation of the SQLite store panicked"))
            })?
        };
        match run_blocking(&Handle::current(), run).await {
            Ok(result) => result,
            // `run` does not panic, so the runtime is shutting down.
            Err(error) if error.kind() == ErrorKind::Internal => Err(closed_error().with_source(error).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs `work` that only reads, in a transaction, so that it sees one snapshot.
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

    /// Runs `work` that changes the file in a write transaction, and calls `committed` after the commit. If the disk is
    /// full, the work is repeated with the space of the `reserve`.
    pub(super) async fn change<T, F>(
        self: &Arc<Self>,
        work: F,
        reserve: Option<Arc<DiskReserveFile>>,
        committed: impl Fn() + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> SqliteResult<TransactionEnd<T>> + Send + 'static,
    {
        let config = Arc::clone(&self.config);
        self.run(move |connection| {
            within_size_limit(|| match (change(connection, &config, &work, &committed), reserve) {
                (Err(error), Some(reserve)) if error.is_full() => {
                    reserve.release();
                    // With some free space, the log can be written to the file and truncated.
                    truncate_log(connection);
                    let changed = change(connection, &config, &work, &committed);
                    truncate_log(connection);
                    reserve.allocate();
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

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        // The last connection to a file writes the log into the file. Entries that cannot be written stay in the log.
        let ((), _hit_limit) = without_size_signal(|| self.idle().clear());
    }
}

/// Runs `work`, which writes. If it fails because the file would exceed the file size limit of the process, the error
/// is `too_large`.
pub(super) fn within_size_limit<T>(work: impl FnOnce() -> SqliteResult<T>) -> SqliteResult<T> {
    let (result, hit_limit) = without_size_signal(work);
    result.map_err(|error| {
        if !hit_limit {
            return error;
        }
        let message = "the SQLite file of the store would be larger than this process may write (ulimit -f); raise the limit, or \
                       write less";
        Error::new(ErrorKind::TooLarge, message).with_generic_model_message().with_source(Error::from(error)).into()
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

/// Writes the log to the file and truncates it, as far as there is space and no reader needs an older snapshot.
fn truncate_log(connection: &Connection) {
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        tracing::debug!(%error, "the log of a SQLite file on a full disk was not truncated");
    }
}

fn closed_error() -> Error {
    Error::new(ErrorKind::Unavailable, "the SQLite store is being closed")
}

/// Begins a write transaction. The busy handler of SQLite sleeps up to 100 ms at a time, during which other writers
/// would overtake this one again and again.
fn begin<'a>(connection: &'a Connection, config: &SqliteConfig) -> SqliteResult<Transaction<'a>> {
    let start = Instant::now();
    connection.busy_timeout(std::time::Duration::ZERO)?;
    let transaction = loop {
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
    Ok(transaction?)
}
