//! Connection pool, and statements that are transactions of their own.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use deadpool_postgres::{ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime, Timeouts};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::Row;
use tokio_postgres_rustls::MakeRustlsConnect;
use vfs_core::{Error, ErrorKind, Result};

use super::config::PostgresConfig;
use super::error::{PostgresError, PostgresResult};
use super::pooled_connection::PooledConnection;
use super::retry::DeadlineBackoff;
use super::statement::{ParameterRef, StatementMode};
use super::tls;

/// Time beyond the server's own limit after which a connection without a response counts as lost.
pub(super) const ANSWER_GRACE_TIMEOUT: Duration = Duration::from_secs(5);

/// Server with a pool of connections.
pub(super) struct PostgresClient {
    pub(super) config: PostgresConfig,
    pub(super) tls: MakeRustlsConnect,
    pub(super) sending: StatementMode,
    pool: Pool,
    writers: Semaphore,
}

impl PostgresClient {
    /// Creates the pool without connecting.
    pub(super) fn new(config: PostgresConfig) -> Result<Self> {
        config.check()?;
        let tls = tls::connector(&config)?;
        // A lost connection is marked as closed; a check query would cost a round trip for each operation.
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = deadpool_postgres::Manager::from_config(config.session(), tls.clone(), recycling);
        let timeouts = Timeouts {
            wait: Some(config.pool_timeout),
            create: Some(config.connect_timeout),
            recycle: Some(config.connect_timeout),
        };
        let pool = Pool::builder(manager)
            .max_size(config.pool_size)
            .timeouts(timeouts)
            // The connection that was used last has its statements prepared.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::new(ErrorKind::Internal, "there is no pool of connections").with_source(error))?;
        let writers = Semaphore::new((config.pool_size * 3 / 4).max(1));
        let sending = config.sending();
        Ok(Self { config, tls, sending, pool, writers })
    }

    pub(super) async fn connection(&self) -> PostgresResult<PooledConnection> {
        Ok(PooledConnection::new(self.pool.get().await?, self.tls.clone(), self.config.connect_timeout))
    }

    /// Acquires a permit for a change. The number of permits is limited so that some connections are left for readers.
    pub(super) async fn acquire_write_permit(&self) -> PostgresResult<SemaphorePermit<'_>> {
        match tokio::time::timeout(self.config.pool_timeout, self.writers.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(PostgresError::PoolTimeout),
        }
    }

    /// Runs `work` within the time limit of a statement. After [`PostgresError::NoResponse`], the connection must not
    /// be used again.
    pub(super) async fn with_timeout<T, E: Into<PostgresError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> PostgresResult<T> {
        let limit = self.config.statement_timeout + ANSWER_GRACE_TIMEOUT;
        match tokio::time::timeout(limit, work).await {
            Ok(result) => result.map_err(Into::into),
            Err(_) => Err(PostgresError::NoResponse),
        }
    }

    /// Returns the rows of a prepared query, which is retried after transient failures.
    pub(super) async fn rows(&self, sql: &'static str, parameters: &[ParameterRef<'_>]) -> Result<Vec<Row>> {
        let mut retries = DeadlineBackoff::new(self.config.retry_for);
        loop {
            match self.rows_once(sql, parameters).await {
                Ok(rows) => return Ok(rows),
                Err(fault) if fault.is_transient() && retries.wait().await => {}
                Err(fault) => return Err(fault.describe(&self.config)),
            }
        }
    }

    /// Like [`rows`](Self::rows), for a query with at most one row.
    pub(super) async fn row(&self, sql: &'static str, parameters: &[ParameterRef<'_>]) -> Result<Option<Row>> {
        Ok(self.rows(sql, parameters).await?.pop())
    }

    /// Like [`rows`](Self::rows), with a plan for these parameters.
    pub(super) async fn rows_planned(&self, sql: &str, parameters: &[ParameterRef<'_>]) -> Result<Vec<Row>> {
        let mut retries = DeadlineBackoff::new(self.config.retry_for);
        loop {
            let attempt = async {
                let connection = self.connection().await?;
                let result = self.with_timeout(self.sending.query_planned(&connection, sql, parameters)).await;
                connection.finish(result)
            };
            match attempt.await {
                Ok(rows) => return Ok(rows),
                Err(fault) if fault.is_transient() && retries.wait().await => {}
                Err(fault) => return Err(fault.describe(&self.config)),
            }
        }
    }

    /// Like [`rows`](Self::rows), without retries.
    pub(super) async fn rows_once(
        &self,
        sql: &'static str,
        parameters: &[ParameterRef<'_>],
    ) -> PostgresResult<Vec<Row>> {
        let connection = self.connection().await?;
        let result = self.with_timeout(self.sending.query_autocommit(&connection, sql, parameters)).await;
        connection.finish(result)
    }
}

impl fmt::Debug for PostgresClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresClient").field("config", &self.config).finish_non_exhaustive()
    }
}
