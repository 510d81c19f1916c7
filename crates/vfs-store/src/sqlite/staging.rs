//! Staged contents of files that are written in parts.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::{Connection, OptionalExtension as _};
use vfs_core::{Error, ErrorKind, Result};

use super::SqliteStore;
use super::connection_pool::TransactionEnd;
use super::content::{self, MAX_STAGED, PIECE_BYTES};
use super::disk_reserve_file::DiskReserveFile;
use super::error::SqliteResult;
use crate::store::{Key, StagedContent, Staging, StagingToken};

/// Age after which a content without a new part is removed.
const MAX_IDLE_TIME: TimeDelta = TimeDelta::days(1);

/// Value of `touched` of an abandoned content from which pieces were removed, which therefore takes no more parts.
const IN_REMOVAL: i64 = -1;

/// Upper bound on the pieces of an abandoned content that are removed when another begins.
const PIECES_PER_BEGIN: usize = 256;

/// Upper bound on the pieces of an abandoned content that are removed with each new part. They are more than the part has, so
/// that a store does not grow by contents that are abandoned.
const PIECES_PER_PART: usize = 16;

#[async_trait]
impl Staging for SqliteStore {
    fn max_size(&self) -> u64 {
        MAX_STAGED
    }

    async fn begin(&self, key: &Key, _created_at: DateTime<Utc>, _modified_at: DateTime<Utc>) -> Result<StagingToken> {
        let token = StagingToken::in_namespace(&key.namespace);
        let staged = token.clone();
        self.stage(None, move |connection| begin(connection, &staged)).await?;
        Ok(token)
    }

    async fn append(&self, token: &StagingToken, offset: u64, part: Bytes) -> Result<()> {
        if offset + part.len() as u64 > MAX_STAGED {
            let message = format!("the file is larger than the {MAX_STAGED} bytes that a SQLite store can hold");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let token = token.clone();
        self.stage(None, move |connection| append(connection, &token, offset, &part)).await
    }

    async fn discard(&self, token: &StagingToken) -> Result<()> {
        let token = token.clone();
        let discard = move |connection: &Connection| match find(connection, &token)? {
            Some(id) => remove(connection, id),
            None => Ok(()),
        };
        self.stage(Some(Arc::clone(&self.inner.reserve)), discard).await
    }
}

impl SqliteStore {
    async fn stage(
        &self,
        reserve: Option<Arc<DiskReserveFile>>,
        work: impl Fn(&Connection) -> SqliteResult<()> + Send + 'static,
    ) -> Result<()> {
        let work = move |connection: &Connection| work(connection).map(TransactionEnd::Commit);
        self.inner.writer.change(work, reserve, || {}).await
    }
}

/// Takes a content out of the staged ones, and returns its id for the file.
pub(super) fn take(connection: &Connection, staged: &StagedContent) -> SqliteResult<i64> {
    let id = find(connection, &staged.token)?.ok_or_else(StagingToken::unknown)?;
    let sql = "SELECT coalesce(sum(length(content)), 0) FROM chunks WHERE place >= ?1 AND place < ?2";
    let (start, end) = (content::place(id, 0), content::place(id + 1, 0));
    let size: i64 = connection.prepare_cached(sql)?.query_row((start, end), |row| row.get(0))?;
    if size.unsigned_abs() != staged.size {
        return Err(StagingToken::unknown().into());
    }
    forget(connection, id)?;
    Ok(id)
}

fn begin(connection: &Connection, token: &StagingToken) -> SqliteResult<()> {
    let now = Utc::now();
    remove_abandoned(connection, now, PIECES_PER_BEGIN)?;
    let id = content::next_id(connection)?;
    let mut statement = connection.prepare_cached("INSERT INTO staged (id, token, touched) VALUES (?1, ?2, ?3)")?;
    statement.execute((id, token.as_str(), now.timestamp_micros()))?;
    Ok(())
}

fn append(connection: &Connection, token: &StagingToken, offset: u64, part: &[u8]) -> SqliteResult<()> {
    let now = Utc::now();
    let sql = "UPDATE staged SET touched = ?2 WHERE token = ?1 AND touched <> ?3 RETURNING id";
    let mut statement = connection.prepare_cached(sql)?;
    let parameters = (token.as_str(), now.timestamp_micros(), IN_REMOVAL);
    let id = statement.query_row(parameters, |row| row.get(0)).optional()?;
    let id = id.ok_or_else(StagingToken::unknown)?;
    remove_abandoned(connection, now, PIECES_PER_PART)?;
    content::write(connection, id, offset / PIECE_BYTES, part)
}

/// Removes at most `max` pieces of the content that was abandoned first. Other writers wait for the transaction, so a large content
/// is removed by several of them.
fn remove_abandoned(connection: &Connection, now: DateTime<Utc>, max: usize) -> SqliteResult<()> {
    let sql = "SELECT id FROM staged WHERE touched < ?1 ORDER BY touched LIMIT 1";
    let before = (now - MAX_IDLE_TIME).timestamp_micros();
    let Some(id) = connection.prepare_cached(sql)?.query_row([before], |row| row.get(0)).optional()? else {
        return Ok(());
    };
    if content::remove_some(connection, id, max)? < max {
        return forget(connection, id);
    }
    connection.prepare_cached("UPDATE staged SET touched = ?2 WHERE id = ?1")?.execute((id, IN_REMOVAL))?;
    Ok(())
}

fn find(connection: &Connection, token: &StagingToken) -> SqliteResult<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM staged WHERE token = ?1")?;
    Ok(statement.query_row([token.as_str()], |row| row.get(0)).optional()?)
}

fn remove(connection: &Connection, id: i64) -> SqliteResult<()> {
    content::remove(connection, id)?;
    forget(connection, id)
}

fn forget(connection: &Connection, id: i64) -> SqliteResult<()> {
    connection.prepare_cached("DELETE FROM staged WHERE id = ?1")?.execute([id])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;

    #[test]
    fn an_abandoned_content_is_removed_when_another_is_begun() {
        let mut connection = Connection::open_in_memory().expect("memory");
        schema::prepare(&mut connection).expect("a schema");
        let (abandoned, recent) = (StagingToken::new("\nabandoned"), StagingToken::new("\nrecent"));
        for token in [&abandoned, &recent] {
            begin(&connection, token).expect("it begins");
            append(&connection, token, 0, &[7; 3 << 20]).expect("it is stored");
        }
        connection.execute("UPDATE staged SET touched = 0 WHERE token = ?1", [abandoned.as_str()]).expect("it is old");
        begin(&connection, &StagingToken::new("\nnext")).expect("it begins");
        assert_eq!(find(&connection, &abandoned).expect("it reads"), None);
        assert!(find(&connection, &recent).expect("it reads").is_some());
        let pieces: i64 = connection.query_row("SELECT count(*) FROM chunks", [], |row| row.get(0)).expect("it counts");
        assert_eq!(pieces, 3, "those of the recent one");
    }

    #[test]
    fn a_large_abandoned_content_is_removed_over_several_beginnings_and_parts() {
        let mut connection = Connection::open_in_memory().expect("memory");
        schema::prepare(&mut connection).expect("a schema");
        let [abandoned, second, third] = ["\nabandoned", "\nsecond", "\nthird"].map(StagingToken::new);
        begin(&connection, &abandoned).expect("it begins");
        let id = find(&connection, &abandoned).expect("it reads").expect("it is there");
        for number in 0..300 {
            content::write(&connection, id, number, b"x").expect("it is stored");
        }
        connection.execute("UPDATE staged SET touched = 0", []).expect("it is old");
        let pieces =
            || -> i64 { connection.query_row("SELECT count(*) FROM chunks", [], |row| row.get(0)).expect("it counts") };
        begin(&connection, &second).expect("it begins");
        assert_eq!((pieces(), find(&connection, &abandoned).expect("it reads")), (44, Some(id)));
        assert!(append(&connection, &abandoned, 300 * PIECE_BYTES, b"x").is_err(), "a part of it is removed");
        append(&connection, &second, 0, b"x").expect("it is stored");
        assert_eq!(pieces(), 44 - 16 + 1);
        begin(&connection, &third).expect("it begins");
        assert_eq!((pieces(), find(&connection, &abandoned).expect("it reads")), (1, None));
    }
}
