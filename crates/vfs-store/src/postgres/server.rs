//! Connection pool and read-only queries.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use deadpool_postgres::{ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime, Timeouts};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::Row;
use tokio_postgres_rustls::MakeRustlsConnect;
use vfs_core::{Error, ErrorKind, Result};

use super::config::PostgresConfig;
use super::connection::Connection;
use super::error::{PostgresError, PostgresResult};
use super::retry::RetryPolicy;
use super::statement::{Parameter, StatementMode};
use super::tls;

/// How much longer than the server's own limit a connection is waited for before it counts as lost.
pub(super) const ANSWER_GRACE_TIMEOUT: Duration = Duration::from_secs(5);

/// A server and the connections to it.
pub(super) struct Server {
    pub(super) config: PostgresConfig,
    pub(super) tls: MakeRustlsConnect,
    pub(super) sending: StatementMode,
    pool: Pool,
    writers: Semaphore,
}

impl Server {
    /// Not connected yet.
    pub(super) fn new(config: PostgresConfig) -> Result<Self> {
        config.check()?;
        let tls = tls::connector(&config)?;
        // A connection that is lost shows as closed; asking it would cost a round trip for each operation.
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
            // The one that was used last has its statements planned.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::new(ErrorKind::Internal, "there is no pool of connections").with_source(error))?;
        let writers = Semaphore::new((config.pool_size * 3 / 4).max(1));
        let sending = config.sending();
        Ok(Self { config, tls, sending, pool, writers })
    }

    pub(super) async fn connection(&self) -> PostgresResult<Connection> {
        Ok(Connection::new(self.pool.get().await?, self.tls.clone(), self.config.connect_timeout))
    }

    /// The right to use a connection for a change, so that readers always find one.
    pub(super) async fn writer(&self) -> PostgresResult<SemaphorePermit<'_>> {
        match tokio::time::timeout(self.config.pool_timeout, self.writers.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(PostgresError::PoolTimeout),
        }
    }

    /// What `work` answers, or that the server is silent. Then the connection is not to be used again.
    pub(super) async fn within<T, E: Into<PostgresError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> PostgresResult<T> {
        let limit = self.config.statement_timeout + ANSWER_GRACE_TIMEOUT;
        match tokio::time::timeout(limit, work).await {
            Ok(answer) => answer.map_err(Into::into),
            Err(_) => Err(PostgresError::Silence),
        }
    }

    /// The rows that a prepared question is answered with; asked again where that may help.
    pub(super) async fn rows(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        let mut patience = RetryPolicy::new(self.config.retry_for);
        loop {
            match self.rows_once(sql, parameters).await {
                Ok(rows) => return Ok(rows),
                Err(fault) if fault.may_pass() && patience.again().await => {}
                Err(fault) => return Err(fault.describe(&self.config)),
            }
        }
    }

    /// As [`rows`](Self::rows), and at most one.
    pub(super) async fn row(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Option<Row>> {
        Ok(self.rows(sql, parameters).await?.pop())
    }

    /// As [`rows`](Self::rows), and planned for these very parameters.
    pub(super) async fn rows_planned(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        let mut patience = RetryPolicy::new(self.config.retry_for);
        loop {
            let tried = async {
                let connection = self.connection().await?;
                let answer = self.within(self.sending.query_planned(&connection, sql, parameters)).await;
                connection.finish(answer)
            };
            match tried.await {
                Ok(rows) => return Ok(rows),
                Err(fault) if fault.may_pass() && patience.again().await => {}
                Err(fault) => return Err(fault.describe(&self.config)),
            }
        }
    }

    async fn rows_once(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> PostgresResult<Vec<Row>> {
        let connection = self.connection().await?;
        let answer = self.within(self.sending.query_alone(&connection, sql, parameters)).await;
        connection.finish(answer)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("config", &self.config).finish_non_exhaustive()
    }
}
