//! Batches of writes, each in one transaction that is applied at most once.

use deadpool_postgres::Object;
use futures::future::join;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::change_parameters::{ConditionParameters, LargeContent, WriteParameters};
use super::error::{PostgresError, PostgresResult};
use super::postgres_client::PostgresClient;
use super::read::CHUNK_BYTES;
use super::retry::DeadlineBackoff;
use super::row_conversion;
use super::staging;
use super::statement::{ParameterRef, single_row};
use crate::store::{BatchOutcome, Condition, Namespace, OperationRecord, StoredMeta, Write, WriteId};

const MODE: &str = "ISOLATION LEVEL READ COMMITTED READ WRITE";

const CHANGE: &str = "SELECT is_done, at_size, at_version, at_created, at_modified, at_path, transaction \
                      FROM change($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

// A separate statement, because an uncommitted row of a new namespace would block all other changes of that namespace.
pub(super) const MAKE_NAMESPACE: &str = "INSERT INTO namespaces (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";

const FIND_NAMESPACE: &str = "SELECT id FROM namespaces WHERE name = $1";

const FAILED_CONDITION: &str = "SELECT at_size, at_version, at_created, at_modified, at_path \
                       FROM refusal((SELECT id FROM namespaces WHERE name = $1), $2, $3, $4)";

const NEW_CONTENTS: &str = "SELECT nextval('contents') FROM generate_series(1, $1)";

const STAGE: &str = "INSERT INTO chunks (namespace, content, part, is_text, data) VALUES ($1, $2, $3, $4, $5)";

const TRANSACTION_STATUS: &str = "SELECT pg_xact_status($1::text::xid8)";

// The second column shows whether old changes were removed from the log, which may include the requested one.
const EVIDENCE: &str = "SELECT EXISTS (SELECT FROM changes WHERE namespace = namespaces.id AND write_id = $2), \
                            coalesce((SELECT min(sequence) FROM changes WHERE namespace = namespaces.id), 1) > 1 \
                        FROM namespaces WHERE name = $1";

// Waits for another transaction that records the same operation. Each new record removes some expired ones.
const RECORD: &str = "WITH old AS ( \
                          DELETE FROM operations WHERE (namespace, key) IN ( \
                              SELECT namespace, key FROM operations WHERE made_at < now() - interval '1 day' \
                              ORDER BY made_at LIMIT 8 FOR UPDATE SKIP LOCKED) \
                      ) \
                      INSERT INTO operations (namespace, key, request, result) VALUES ($1, $2, $3, $4) \
                      ON CONFLICT (namespace, key) DO NOTHING RETURNING true";

/// Maximum number of chunks that are in flight at the same time.
const MAX_CONCURRENT_CHUNKS: usize = 4;

/// Reason why an attempt has no result.
enum AttemptError {
    /// Nothing was applied.
    NotApplied(PostgresError),
    /// Nothing was applied, because the operation is already recorded.
    Recorded,
    /// The commit was requested, but the response was lost. `outcome` is the result if the transaction was committed.
    Unknown { transaction: String, outcome: BatchOutcome },
}

impl From<PostgresError> for AttemptError {
    fn from(fault: PostgresError) -> Self {
        Self::NotApplied(fault)
    }
}

/// Outcome of a transaction whose commit was requested.
enum TransactionOutcome {
    Applied,
    NotApplied,
}

/// Applies all the `writes` if all the `conditions` hold. Returns `None` if the operation of `record` was applied
/// before.
pub(super) async fn change(
    server: &PostgresClient,
    channel: &str,
    namespace: &Namespace,
    conditions: &[Condition],
    writes: &[Write],
    record: Option<&OperationRecord>,
) -> Result<Option<BatchOutcome>> {
    let (name, conditions, steps) =
        (namespace.as_str(), ConditionParameters::new(conditions), WriteParameters::new(writes)?);
    let id = WriteId::random().get().to_be_bytes().to_vec();
    let change = PostgresChange { server, channel, name, id, conditions, steps, record };
    let mut retries = DeadlineBackoff::new(server.config.retry_for);
    let _permit = server.acquire_write_permit().await.map_err(|fault| fault.describe(&server.config))?;
    loop {
        let fault = match change.attempt().await {
            Ok(outcome) => return Ok(Some(outcome)),
            Err(AttemptError::Recorded) => return Ok(None),
            Err(AttemptError::NotApplied(fault)) => fault,
            Err(AttemptError::Unknown { transaction, outcome }) => match change.resolve_outcome(&transaction).await? {
                TransactionOutcome::Applied => return Ok(Some(outcome)),
                TransactionOutcome::NotApplied => PostgresError::NoResponse,
            },
        };
        if !(fault.is_transient() && retries.wait().await) {
            return Err(fault.describe(&server.config));
        }
    }
}

/// Change as it is sent to the server at each attempt.
struct PostgresChange<'a> {
    server: &'a PostgresClient,
    channel: &'a str,
    name: &'a str,
    /// Bytes of the [`WriteId`] that all attempts share.
    id: Vec<u8>,
    conditions: ConditionParameters<'a>,
    steps: WriteParameters<'a>,
    record: Option<&'a OperationRecord>,
}

impl PostgresChange<'_> {
    /// Returns the outcome of a transaction whose commit was requested.
    async fn resolve_outcome(&self, transaction: &str) -> Result<TransactionOutcome> {
        let config = &self.server.config;
        // The server may notice only at the timeout of the session that its client disconnected.
        let mut retries = DeadlineBackoff::new(config.retry_for.max(MIN_OUTCOME_TIMEOUT));
        loop {
            match self.query_outcome(transaction).await {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => {}
                Err(fault) if fault.is_transient() || matches!(fault, PostgresError::PoolTimeout) => {}
                Err(fault) => return Err(unknown_outcome().with_source(fault.describe(config))),
            }
            if !retries.wait().await {
                return Err(unknown_outcome());
            }
        }
    }

    /// Returns the outcome of a transaction, or `None` while it is in progress.
    async fn query_outcome(&self, transaction: &str) -> PostgresResult<Option<TransactionOutcome>> {
        let connection = self.server.connection().await?;
        let work = async {
            let status: Option<String> =
                match self.server.sending.query_autocommit(&connection, TRANSACTION_STATUS, &[&transaction]).await {
                    // The id is in the future: the server crashed before the transaction was durable, and will assign
                    // the id again.
                    Err(error) if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => {
                        return Ok(Some(TransactionOutcome::NotApplied));
                    }
                    rows => single_row(rows?)?.try_get(0)?,
                };
            match status.as_deref() {
                Some("committed") => self.find_evidence(&connection).await.map(Some),
                Some("aborted") => Ok(Some(TransactionOutcome::NotApplied)),
                Some(_) => Ok(None),
                None => Err(unknown_outcome().into()),
            }
        };
        let result = self.server.with_timeout(work).await;
        connection.finish(result)
    }

    /// Checks whether the committed transaction is this change: after a crash the server reuses the ids of lost
    /// transactions.
    async fn find_evidence(&self, connection: &Object) -> PostgresResult<TransactionOutcome> {
        let rows = self.server.sending.query_autocommit(connection, EVIDENCE, &[&self.name, &self.id]).await?;
        let Some(row) = rows.first() else { return Ok(TransactionOutcome::NotApplied) };
        match (row.try_get(0)?, row.try_get(1)?) {
            (true, _) => Ok(TransactionOutcome::Applied),
            (false, false) => Ok(TransactionOutcome::NotApplied),
            (false, true) => Err(unknown_outcome().into()),
        }
    }

    async fn attempt(&self) -> Result<BatchOutcome, AttemptError> {
        let connection = self.server.connection().await?;
        let result = self.run(&connection).await;
        match &result {
            Ok(_) => connection.release(),
            Err(AttemptError::NotApplied(PostgresError::NoResponse) | AttemptError::Unknown { .. }) => {
                connection.close()
            }
            // The transaction is still open; dropping the connection rolls it back.
            Err(AttemptError::NotApplied(_) | AttemptError::Recorded) => drop(connection),
        }
        result
    }

    async fn run(&self, connection: &Object) -> Result<BatchOutcome, AttemptError> {
        let is_staged = !(self.steps.large.is_empty() && self.steps.staged.is_empty());
        if is_staged && let Some(failure) = self.prepare_to_stage(connection).await? {
            return Ok(failure);
        }
        let (sending, begin) = (&self.server.sending, self.server.sending.begin(MODE));
        let rows = if !is_staged && self.record.is_none() {
            let contents = vec![None; self.steps.kinds.len()];
            let parameters = self.parameters(&contents);
            // Both statements are sent before the first response. If only the first fails, the second is a transaction
            // of its own, and the following commit does nothing.
            let work = join(connection.batch_execute(&begin), sending.query(connection, CHANGE, &parameters));
            let (_, rows) = self.server.with_timeout(work.map(Ok::<_, PostgresError>)).await?;
            rows.map_err(PostgresError::from)?
        } else {
            self.server.with_timeout(connection.batch_execute(&begin)).await?;
            self.record(connection).await?;
            let contents = if is_staged { self.stage(connection).await? } else { vec![None; self.steps.kinds.len()] };
            self.server.with_timeout(sending.query(connection, CHANGE, &self.parameters(&contents))).await?
        };
        let (outcome, id) = read_outcome(&rows)?;
        let Some(id) = id else {
            self.server.with_timeout(connection.batch_execute("ROLLBACK")).await?;
            return Ok(outcome);
        };
        match self.server.with_timeout(connection.batch_execute("COMMIT")).await {
            Ok(()) => Ok(outcome),
            // The server may have committed the transaction even if it reports an error.
            Err(_) => Err(AttemptError::Unknown { transaction: id, outcome }),
        }
    }

    fn parameters<'b>(&'b self, contents: &'b Vec<Option<i64>>) -> [ParameterRef<'b>; 17] {
        let (conditions, steps) = (&self.conditions, &self.steps);
        [
            &self.name,
            &conditions.kinds,
            &conditions.paths,
            &conditions.versions,
            &steps.kinds,
            &steps.parents,
            &steps.names,
            &steps.sources,
            contents,
            &steps.datas,
            &steps.are_texts,
            &steps.sizes,
            &steps.versions,
            &steps.created,
            &steps.modified,
            &self.channel,
            &self.id,
        ]
    }

    /// Records the operation, if there is one.
    async fn record(&self, connection: &Object) -> Result<(), AttemptError> {
        let Some(OperationRecord { key, request, result }) = self.record else { return Ok(()) };
        let parameters: [ParameterRef<'_>; 4] = [&self.name, key, request, result];
        let rows = self.server.with_timeout(self.server.sending.query(connection, RECORD, &parameters)).await?;
        if rows.is_empty() { Err(AttemptError::Recorded) } else { Ok(()) }
    }

    /// Creates a missing namespace, and checks the conditions before any content is sent. Returns the outcome of the
    /// change if a condition fails.
    async fn prepare_to_stage(&self, connection: &Object) -> PostgresResult<Option<BatchOutcome>> {
        let work = async {
            let sending = &self.server.sending;
            sending.query_autocommit(connection, MAKE_NAMESPACE, &[&self.name]).await?;
            let ConditionParameters { kinds, paths, versions } = &self.conditions;
            let rows =
                sending.query_autocommit(connection, FAILED_CONDITION, &[&self.name, kinds, paths, versions]).await?;
            let Some(row) = rows.first() else { return Ok::<_, PostgresError>(None) };
            Ok(Some(BatchOutcome::PreconditionFailed(read_path(row, 4)?, row_conversion::read_meta(row, 0)?)))
        };
        self.server.with_timeout(work).await
    }

    /// Sends large contents before the change locks the namespace. Returns the number of the content of each write.
    async fn stage(&self, connection: &Object) -> PostgresResult<Vec<Option<i64>>> {
        let prepare = async {
            let sending = &self.server.sending;
            let namespace: i64 =
                single_row(sending.query(connection, FIND_NAMESPACE, &[&self.name]).await?)?.try_get(0)?;
            let count = self.steps.large.len() as i32;
            Ok::<_, PostgresError>((namespace, sending.query(connection, NEW_CONTENTS, &[&count]).await?))
        };
        let (namespace, numbers) = self.server.with_timeout(prepare).await?;
        let mut contents = vec![None; self.steps.kinds.len()];
        for (step, staged) in &self.steps.staged {
            contents[*step] =
                Some(self.server.with_timeout(staging::claim(self.server, connection, namespace, staged)).await?);
        }
        let mut in_flight = FuturesUnordered::new();
        for (LargeContent { step, content, is_text }, number) in self.steps.large.iter().zip(&numbers) {
            let number: i64 = number.try_get(0)?;
            contents[*step] = Some(number);
            for (part, data) in (0_i32..).zip(content.chunks(CHUNK_BYTES)) {
                if in_flight.len() == MAX_CONCURRENT_CHUNKS {
                    in_flight.next().await.transpose()?;
                }
                in_flight
                    .push(self.send(connection, ContentChunk { namespace, number, part, is_text: *is_text, data }));
            }
        }
        while in_flight.next().await.transpose()?.is_some() {}
        Ok(contents)
    }

    async fn send(&self, connection: &Object, chunk: ContentChunk<'_>) -> PostgresResult<()> {
        let ContentChunk { namespace, number, part, is_text, data } = chunk;
        let parameters: [ParameterRef<'_>; 5] = [&namespace, &number, &part, &is_text, &data];
        self.server.with_timeout(self.server.sending.query(connection, STAGE, &parameters)).await?;
        Ok(())
    }
}

/// Part of a content that is sent to the server.
struct ContentChunk<'a> {
    namespace: i64,
    number: i64,
    part: i32,
    is_text: bool,
    data: &'a [u8],
}

/// Reads the outcome of a change, and the id of the transaction if there is something to commit.
fn read_outcome(rows: &[Row]) -> PostgresResult<(BatchOutcome, Option<String>)> {
    let Some(last) = rows.last() else { return Ok((BatchOutcome::Applied(Vec::new()), None)) };
    if !last.try_get::<_, bool>(0)? {
        return Ok((BatchOutcome::PreconditionFailed(read_path(last, 5)?, row_conversion::read_meta(last, 1)?), None));
    }
    let stored = |row: &Row| -> PostgresResult<StoredMeta> {
        row_conversion::read_meta(row, 1)?
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a change has no result; report it").into())
    };
    let applied = rows.iter().map(stored).collect::<PostgresResult<_>>()?;
    Ok((BatchOutcome::Applied(applied), Some(last.try_get(6)?)))
}

fn read_path(row: &Row, column: usize) -> PostgresResult<VfsPath> {
    Ok(VfsPath::parse(row.try_get(column)?)?)
}

fn unknown_outcome() -> Error {
    let message = "the connection to the Postgres server was lost during a change, and the store cannot find out whether \
                   the change was applied; read the file again";
    Error::new(ErrorKind::Unavailable, message)
}

/// Minimum time for which the outcome of a transaction is queried.
const MIN_OUTCOME_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(45);
