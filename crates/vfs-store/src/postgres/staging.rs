//! Staged contents of files that are written in parts.

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use deadpool_postgres::Object;
use vfs_core::{Error, ErrorKind, Result};

use super::PostgresStore;
use super::change::MAKE_NAMESPACE;
use super::error::PostgresResult;
use super::postgres_client::PostgresClient;
use super::read::CHUNK_BYTES;
use super::statement::ParameterRef;
use crate::store::{Key, StagedContent, Staging, StagingToken};

/// Maximum size of a value that is staged in parts, 1 TiB.
pub(super) const MAX_STAGED: u64 = 1 << 40;

/// Number of chunks of one statement, which is copied into the buffer of its connection.
const CHUNKS_PER_STATEMENT: usize = 2;

/// Upper bound on the chunks of an abandoned content that are removed when another begins, in one statement that ends within
/// `statement_timeout`.
const CHUNKS_PER_BEGIN: i64 = 256;

/// Upper bound on the chunks of an abandoned content that are removed with each new part. They are more than the part has, so
/// that a store does not grow by contents that are abandoned.
const CHUNKS_PER_PART: i64 = 16;

// Removes some chunks of the content that was abandoned first, and its row with the last of them. Until then, the time `-infinity`
// refuses more parts. A concurrent removal may have removed the same chunks, so those that were found count.
const REMOVE_ABANDONED: &str = "WITH idle AS ( \
                                    SELECT token, namespace, content FROM staged \
                                    WHERE touched_at < now() - interval '1 day' \
                                    ORDER BY touched_at LIMIT 1 FOR UPDATE SKIP LOCKED \
                                ), found AS ( \
                                    SELECT namespace, content, part FROM chunks JOIN idle USING (namespace, content) \
                                    ORDER BY part LIMIT $1 \
                                ), removed AS ( \
                                    DELETE FROM chunks USING found \
                                    WHERE chunks.namespace = found.namespace AND chunks.content = found.content \
                                      AND chunks.part = found.part \
                                ), ended AS ( \
                                    DELETE FROM staged USING idle \
                                    WHERE staged.token = idle.token AND (SELECT count(*) FROM found) < $1 \
                                ) \
                                UPDATE staged SET touched_at = '-infinity' FROM idle \
                                WHERE staged.token = idle.token AND (SELECT count(*) FROM found) >= $1";

const INSERT_STAGED: &str = "INSERT INTO staged (token, namespace, content, touched_at) \
                     SELECT $1, id, nextval('contents'), now() FROM namespaces WHERE name = $2 \
                     ON CONFLICT (token) DO NOTHING";

// A part may be sent again after a lost answer.
const APPEND: &str = "WITH found AS ( \
                          UPDATE staged SET touched_at = now() WHERE token = $1 AND touched_at > '-infinity' \
                          RETURNING namespace, content \
                      ), \
                      stored AS ( \
                          INSERT INTO chunks (namespace, content, part, is_text, data) \
                          SELECT found.namespace, found.content, part, false, data \
                          FROM found, unnest($2::integer[], $3::bytea[]) AS parts (part, data) \
                          ON CONFLICT (namespace, content, part) DO UPDATE SET data = excluded.data \
                      ) \
                      SELECT content FROM found";

// A separate statement waits for a concurrent append, so that the deletion sees its chunks.
const LOCK: &str = "UPDATE staged SET touched_at = now() WHERE token = $1 AND touched_at > '-infinity'";

const DISCARD: &str = "WITH found AS (DELETE FROM staged WHERE token = $1 RETURNING namespace, content) \
                       DELETE FROM chunks USING found \
                       WHERE chunks.namespace = found.namespace AND chunks.content = found.content";

const CLAIM: &str = "WITH found AS ( \
                         DELETE FROM staged WHERE token = $1 AND namespace = $2 AND touched_at > '-infinity' \
                         RETURNING namespace, content \
                     ) \
                     SELECT content, coalesce(( \
                         SELECT sum(length(data)) FROM chunks \
                         WHERE chunks.namespace = found.namespace AND chunks.content = found.content), 0)::bigint \
                     FROM found";

/// Takes a content out of the staged ones, and returns its number for the file.
pub(super) async fn claim(
    server: &PostgresClient,
    connection: &Object,
    namespace: i64,
    staged: &StagedContent,
) -> PostgresResult<i64> {
    let parameters: [ParameterRef<'_>; 2] = [&staged.token.as_str(), &namespace];
    let rows = server.sending.query(connection, CLAIM, &parameters).await?;
    let row = rows.first().ok_or_else(StagingToken::unknown)?;
    if row.try_get::<_, i64>(1)?.unsigned_abs() != staged.size {
        return Err(StagingToken::unknown().into());
    }
    Ok(row.try_get(0)?)
}

/// Removes up to `max_chunks` chunks of an abandoned content.
///
/// A failure does not affect the content of the caller, as the statement is a transaction of its own. There is one attempt, so that
/// the caller does not wait for locks of others again and again; the next part or content continues the removal.
async fn remove_abandoned(server: &PostgresClient, max_chunks: i64) {
    if let Err(fault) = server.rows_once(REMOVE_ABANDONED, &[&max_chunks]).await {
        tracing::warn!(?fault, "chunks of an abandoned content are left in the database");
    }
}

#[async_trait]
impl Staging for PostgresStore {
    fn max_size(&self) -> u64 {
        MAX_STAGED
    }

    async fn begin(&self, key: &Key, _created_at: DateTime<Utc>, _modified_at: DateTime<Utc>) -> Result<StagingToken> {
        let (server, token, name) = (&self.0.server, StagingToken::random(), key.namespace.as_str());
        server.rows(MAKE_NAMESPACE, &[&name]).await?;
        remove_abandoned(server, CHUNKS_PER_BEGIN).await;
        server.rows(INSERT_STAGED, &[&token.as_str(), &name]).await?;
        Ok(token)
    }

    async fn append(&self, token: &StagingToken, offset: u64, part: Bytes) -> Result<()> {
        if offset + part.len() as u64 > MAX_STAGED {
            let message = format!("the file is larger than the {MAX_STAGED} bytes that a Postgres store can hold");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let first = i32::try_from(offset / CHUNK_BYTES as u64).unwrap_or(i32::MAX);
        let chunks: Vec<(i32, &[u8])> = (first..).zip(part.chunks(CHUNK_BYTES)).collect();
        for chunks in chunks.chunks(CHUNKS_PER_STATEMENT) {
            let (numbers, chunks): (Vec<i32>, Vec<Option<&[u8]>>) =
                chunks.iter().map(|(number, chunk)| (*number, Some(*chunk))).unzip();
            if self.0.server.rows(APPEND, &[&token.as_str(), &numbers, &chunks]).await?.is_empty() {
                return Err(StagingToken::unknown());
            }
        }
        remove_abandoned(&self.0.server, CHUNKS_PER_PART).await;
        Ok(())
    }

    async fn discard(&self, token: &StagingToken) -> Result<()> {
        self.0.server.rows(LOCK, &[&token.as_str()]).await?;
        self.0.server.rows(DISCARD, &[&token.as_str()]).await?;
        Ok(())
    }
}
