//! Changes, each in one transaction that is applied at most once.

use deadpool_postgres::Object;
use futures::future::join;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::error::{PostgresError, PostgresResult};
use super::plan::{ConditionParameters, LargeContent, WriteParameters};
use super::read::CHUNK_BYTES;
use super::retry::RetryPolicy;
use super::row;
use super::server::Server;
use super::staging;
use super::statement::{Parameter, only};
use crate::store::{BatchOutcome, Condition, Namespace, OperationRecord, StoredMeta, Write, WriteId};

const MODE: &str = "ISOLATION LEVEL READ COMMITTED READ WRITE";

const CHANGE: &str = "SELECT is_done, at_size, at_version, at_created, at_modified, at_path, transaction \
                      FROM change($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

// In a statement of its own: the row of a namespace that is not committed yet would hold up everyone else in it.
pub(super) const MAKE_NAMESPACE: &str = "INSERT INTO namespaces (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";

const FIND_NAMESPACE: &str = "SELECT id FROM namespaces WHERE name = $1";

const REFUSAL: &str = "SELECT at_size, at_version, at_created, at_modified, at_path \
                       FROM refusal((SELECT id FROM namespaces WHERE name = $1), $2, $3, $4)";

const NEW_CONTENTS: &str = "SELECT nextval('contents') FROM generate_series(1, $1)";

const STAGE: &str = "INSERT INTO chunks (namespace, content, part, is_text, data) VALUES ($1, $2, $3, $4, $5)";

const FATE: &str = "SELECT pg_xact_status($1::text::xid8)";

// The second says whether changes may have been forgotten, the one that is looked for among them.
const EVIDENCE: &str = "SELECT EXISTS (SELECT FROM changes WHERE namespace = namespaces.id AND write_id = $2), \
                            coalesce((SELECT min(sequence) FROM changes WHERE namespace = namespaces.id), 1) > 1 \
                        FROM namespaces WHERE name = $1";

// Waits for another transaction that records the same operation. Some records that are too old go with each new one.
const RECORD: &str = "WITH old AS ( \
                          DELETE FROM operations WHERE (namespace, key) IN ( \
                              SELECT namespace, key FROM operations WHERE made_at < now() - interval '1 day' \
                              ORDER BY made_at LIMIT 8 FOR UPDATE SKIP LOCKED) \
                      ) \
                      INSERT INTO operations (namespace, key, request, result) VALUES ($1, $2, $3, $4) \
                      ON CONFLICT (namespace, key) DO NOTHING RETURNING true";

/// How many chunks are on their way at the same time.
const MAX_CONCURRENT_CHUNKS: usize = 4;

/// How a try ended that did not end with an answer.
enum AttemptError {
    /// Nothing was made.
    NotMade(PostgresError),
    /// Nothing was made, as the operation is recorded already.
    Recorded,
    /// The commit was asked for and the answer lost. What the answer is if it was made.
    Unknown { transaction: String, outcome: BatchOutcome },
}

impl From<PostgresError> for AttemptError {
    fn from(fault: PostgresError) -> Self {
        Self::NotMade(fault)
    }
}

/// What became of a transaction.
enum TransactionOutcome {
    Made,
    NotMade,
}

/// Makes all the `writes` if all the `conditions` hold; `None` if the operation of `record` was made before.
pub(super) async fn change(
    server: &Server,
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
    let mut patience = RetryPolicy::new(server.config.retry_for);
    let _permit = server.writer().await.map_err(|fault| fault.describe(&server.config))?;
    loop {
        let fault = match change.attempt().await {
            Ok(outcome) => return Ok(Some(outcome)),
            Err(AttemptError::Recorded) => return Ok(None),
            Err(AttemptError::NotMade(fault)) => fault,
            Err(AttemptError::Unknown { transaction, outcome }) => match change.fate(&transaction).await? {
                TransactionOutcome::Made => return Ok(Some(outcome)),
                TransactionOutcome::NotMade => PostgresError::Silence,
            },
        };
        if !(fault.may_pass() && patience.again().await) {
            return Err(fault.describe(&server.config));
        }
    }
}

struct PostgresChange<'a> {
    server: &'a Server,
    channel: &'a str,
    name: &'a str,
    /// Of the [`WriteId`] of all attempts.
    id: Vec<u8>,
    conditions: ConditionParameters<'a>,
    steps: WriteParameters<'a>,
    record: Option<&'a OperationRecord>,
}

impl PostgresChange<'_> {
    /// What became of a transaction whose commit was asked for.
    async fn fate(&self, transaction: &str) -> Result<TransactionOutcome> {
        let config = &self.server.config;
        // The server may not have noticed yet that its client is gone: it does when its session times out.
        let mut patience = RetryPolicy::new(config.retry_for.max(MIN_OUTCOME_TIMEOUT));
        loop {
            match self.look_up(transaction).await {
                Ok(Some(fate)) => return Ok(fate),
                Ok(None) => {}
                Err(fault) if fault.may_pass() || matches!(fault, PostgresError::PoolTimeout) => {}
                Err(fault) => return Err(unknown().with_source(fault.describe(config))),
            }
            if !patience.again().await {
                return Err(unknown());
            }
        }
    }

    /// What became of a transaction; `None` while it is under way.
    async fn look_up(&self, transaction: &str) -> PostgresResult<Option<TransactionOutcome>> {
        let connection = self.server.connection().await?;
        let work = async {
            let status: Option<String> = match self.server.sending.query_alone(&connection, FATE, &[&transaction]).await
            {
                // The id is in the future: the server crashed before the transaction was durable, and will assign the id again.
                Err(error) if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => {
                    return Ok(Some(TransactionOutcome::NotMade));
                }
                rows => only(rows?)?.try_get(0)?,
            };
            match status.as_deref() {
                Some("committed") => self.find_evidence(&connection).await.map(Some),
                Some("aborted") => Ok(Some(TransactionOutcome::NotMade)),
                Some(_) => Ok(None),
                None => Err(unknown().into()),
            }
        };
        let answer = self.server.within(work).await;
        connection.finish(answer)
    }

    /// Whether the committed transaction is this change: after a crash the server gives the numbers again of those that it lost.
    async fn find_evidence(&self, connection: &Object) -> PostgresResult<TransactionOutcome> {
        let rows = self.server.sending.query_alone(connection, EVIDENCE, &[&self.name, &self.id]).await?;
        let Some(row) = rows.first() else { return Ok(TransactionOutcome::NotMade) };
        match (row.try_get(0)?, row.try_get(1)?) {
            (true, _) => Ok(TransactionOutcome::Made),
            (false, false) => Ok(TransactionOutcome::NotMade),
            (false, true) => Err(unknown().into()),
        }
    }

    async fn attempt(&self) -> Result<BatchOutcome, AttemptError> {
        let connection = self.server.connection().await?;
        let made = self.make(&connection).await;
        match &made {
            Ok(_) => connection.keep(),
            Err(AttemptError::NotMade(PostgresError::Silence) | AttemptError::Unknown { .. }) => connection.close(),
            // Its transaction is open, and ends with it.
            Err(AttemptError::NotMade(_) | AttemptError::Recorded) => drop(connection),
        }
        made
    }

    async fn make(&self, connection: &Object) -> Result<BatchOutcome, AttemptError> {
        let is_staged = !(self.steps.large.is_empty() && self.steps.staged.is_empty());
        if is_staged && let Some(refused) = self.prepare_to_stage(connection).await? {
            return Ok(refused);
        }
        let (sending, begin) = (&self.server.sending, self.server.sending.begin(MODE));
        let rows = if !is_staged && self.record.is_none() {
            let contents = vec![None; self.steps.kinds.len()];
            let parameters = self.parameters(&contents);
            // Both are on their way before the first is answered. Should it fail alone, the second is a transaction of its own, and
            // the commit that follows one of nothing.
            let work = join(connection.batch_execute(&begin), sending.query(connection, CHANGE, &parameters));
            let (_, rows) = self.server.within(work.map(Ok::<_, PostgresError>)).await?;
            rows.map_err(PostgresError::from)?
        } else {
            self.server.within(connection.batch_execute(&begin)).await?;
            self.record(connection).await?;
            let contents = if is_staged { self.stage(connection).await? } else { vec![None; self.steps.kinds.len()] };
            self.server.within(sending.query(connection, CHANGE, &self.parameters(&contents))).await?
        };
        let (outcome, id) = read(&rows)?;
        let Some(id) = id else {
            self.server.within(connection.batch_execute("ROLLBACK")).await?;
            return Ok(outcome);
        };
        match self.server.within(connection.batch_execute("COMMIT")).await {
            Ok(()) => Ok(outcome),
            // Even an error that the server itself reports may come after the commit.
            Err(_) => Err(AttemptError::Unknown { transaction: id, outcome }),
        }
    }

    fn parameters<'b>(&'b self, contents: &'b Vec<Option<i64>>) -> [Parameter<'b>; 17] {
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
        let parameters: [Parameter<'_>; 4] = [&self.name, key, request, result];
        let rows = self.server.within(self.server.sending.query(connection, RECORD, &parameters)).await?;
        if rows.is_empty() { Err(AttemptError::Recorded) } else { Ok(()) }
    }

    /// Makes sure that the namespace is there, and that the contents are not sent for nothing.
    async fn prepare_to_stage(&self, connection: &Object) -> PostgresResult<Option<BatchOutcome>> {
        let work = async {
            let sending = &self.server.sending;
            sending.query_alone(connection, MAKE_NAMESPACE, &[&self.name]).await?;
            let ConditionParameters { kinds, paths, versions } = &self.conditions;
            let rows = sending.query_alone(connection, REFUSAL, &[&self.name, kinds, paths, versions]).await?;
            let Some(row) = rows.first() else { return Ok::<_, PostgresError>(None) };
            Ok(Some(BatchOutcome::PreconditionFailed(path(row, 4)?, row::stored(row, 0)?)))
        };
        self.server.within(work).await
    }

    /// Sends large contents ahead, before the namespace is locked; the number of each for its step.
    async fn stage(&self, connection: &Object) -> PostgresResult<Vec<Option<i64>>> {
        let prepare = async {
            let sending = &self.server.sending;
            let space: i64 = only(sending.query(connection, FIND_NAMESPACE, &[&self.name]).await?)?.try_get(0)?;
            let count = self.steps.large.len() as i32;
            Ok::<_, PostgresError>((space, sending.query(connection, NEW_CONTENTS, &[&count]).await?))
        };
        let (space, numbers) = self.server.within(prepare).await?;
        let mut contents = vec![None; self.steps.kinds.len()];
        for (step, staged) in &self.steps.staged {
            contents[*step] = Some(self.server.within(staging::claim(self.server, connection, space, staged)).await?);
        }
        let mut on_their_way = FuturesUnordered::new();
        for (LargeContent { step, content, is_text }, number) in self.steps.large.iter().zip(&numbers) {
            let number: i64 = number.try_get(0)?;
            contents[*step] = Some(number);
            for (part, data) in (0_i32..).zip(content.chunks(CHUNK_BYTES)) {
                if on_their_way.len() == MAX_CONCURRENT_CHUNKS {
                    on_their_way.next().await.transpose()?;
                }
                on_their_way.push(self.send(connection, Chunk { space, number, part, is_text: *is_text, data }));
            }
        }
        while on_their_way.next().await.transpose()?.is_some() {}
        Ok(contents)
    }

    async fn send(&self, connection: &Object, chunk: Chunk<'_>) -> PostgresResult<()> {
        let Chunk { space, number, part, is_text, data } = chunk;
        let parameters: [Parameter<'_>; 5] = [&space, &number, &part, &is_text, &data];
        self.server.within(self.server.sending.query(connection, STAGE, &parameters)).await?;
        Ok(())
    }
}

/// A part of a content on its way.
struct Chunk<'a> {
    space: i64,
    number: i64,
    part: i32,
    is_text: bool,
    data: &'a [u8],
}

/// The answer of the server, and the transaction's id if there is something to commit.
fn read(rows: &[Row]) -> PostgresResult<(BatchOutcome, Option<String>)> {
    let Some(last) = rows.last() else { return Ok((BatchOutcome::Applied(Vec::new()), None)) };
    if !last.try_get::<_, bool>(0)? {
        return Ok((BatchOutcome::PreconditionFailed(path(last, 5)?, row::stored(last, 1)?), None));
    }
    let stored = |row: &Row| -> PostgresResult<StoredMeta> {
        row::stored(row, 1)?.ok_or_else(|| Error::new(ErrorKind::Internal, "a change has no answer; report it").into())
    };
    let done = rows.iter().map(stored).collect::<PostgresResult<_>>()?;
    Ok((BatchOutcome::Applied(done), Some(last.try_get(6)?)))
}

fn path(row: &Row, column: usize) -> PostgresResult<VfsPath> {
    Ok(VfsPath::parse(row.try_get(column)?)?)
}

fn unknown() -> Error {
    let message = "the connection to the Postgres server was lost while a change was being made, and it cannot be told \
                   whether it was; read it again";
    Error::new(ErrorKind::Unavailable, message)
}

/// The least time that an unknown outcome is looked into.
const MIN_OUTCOME_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(45);
