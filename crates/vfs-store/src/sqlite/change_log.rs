//! Bounded change log of a namespace.

use rusqlite::{Connection, OptionalExtension, Row};

use super::error::{SqliteError, SqliteResult};
use super::file_rows;
use crate::store::{ChangePage, ChangeRecord, Namespace, Sequence, StoredMeta};

/// Minimum number of changes that the log of a namespace retains.
const MIN_LOG_LENGTH: i64 = 4096;
/// Number of changes after which the log is trimmed.
const LOG_TRIM_STEP: i64 = 64;

const CREATED: i64 = 1;
const CHANGED: i64 = 2;
const REMOVED: i64 = 3;
const MOVED: i64 = 4;

/// Appends a change to the log.
pub(super) fn append(
    connection: &Connection,
    namespace: i64,
    sequence: i64,
    record: &ChangeRecord,
) -> SqliteResult<()> {
    let (kind, path, origin, stored) = match record {
        ChangeRecord::Created(path, stored) => (CREATED, path, None, Some(stored)),
        ChangeRecord::Changed(path, stored) => (CHANGED, path, None, Some(stored)),
        ChangeRecord::Removed(path) => (REMOVED, path, None, None),
        ChangeRecord::Moved { from, to, stored } => (MOVED, to, Some(from), Some(stored)),
        // `Unreadable` is a result of reading the log and not stored in it.
        ChangeRecord::Unreadable(record, _) => return append(connection, namespace, sequence, record),
    };
    let sql = "INSERT INTO changes (namespace, sequence, kind, path, origin, size, version, created, modified)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    connection.prepare_cached(sql)?.execute((
        namespace,
        sequence,
        kind,
        path.as_str(),
        origin.map(|origin| origin.as_str()),
        stored.map(|stored| stored.size.cast_signed()),
        stored.map(file_rows::version_bytes).transpose()?,
        stored.and_then(|stored| stored.created_at).map(|time| time.timestamp_micros()),
        stored.map(|stored| stored.modified_at.timestamp_micros()),
    ))?;
    Ok(())
}

/// Returns whether the log no longer retains the change `sequence` once `last` is the newest change.
pub(super) fn is_trimmed_at(sequence: i64, last: i64) -> bool {
    sequence <= last - MIN_LOG_LENGTH
}

/// Removes old changes from the log after a transaction that made the changes after `before` up to `last`.
pub(super) fn trim(connection: &Connection, namespace: i64, before: i64, last: i64) -> SqliteResult<()> {
    if before / LOG_TRIM_STEP != last / LOG_TRIM_STEP {
        let mut statement = connection.prepare_cached("DELETE FROM changes WHERE namespace = ?1 AND sequence <= ?2")?;
        statement.execute((namespace, last - MIN_LOG_LENGTH))?;
    }
    Ok(())
}

/// Returns the sequence number of the newest change.
pub(super) fn last_sequence(connection: &Connection, namespace: &Namespace) -> SqliteResult<Sequence> {
    let mut statement = connection.prepare_cached("SELECT sequence FROM namespaces WHERE name = ?1")?;
    let sequence: Option<i64> = statement.query_row([namespace.as_str()], |row| row.get(0)).optional()?;
    Ok(Sequence(u64::try_from(sequence.unwrap_or(0)).map_err(|_| SqliteError::damaged())?))
}

/// Returns at most `limit` changes after `seen`.
pub(super) fn since(
    connection: &Connection,
    namespace: &Namespace,
    seen: Sequence,
    limit: usize,
) -> SqliteResult<ChangePage> {
    let last = last_sequence(connection, namespace)?;
    let namespace = file_rows::namespace_id(connection, namespace)?.unwrap_or_default();
    let mut statement = connection.prepare_cached("SELECT min(sequence) FROM changes WHERE namespace = ?1")?;
    let oldest: Option<i64> = statement.query_row([namespace], |row| row.get(0))?;
    let trimmed = oldest.map_or(last.0, |oldest| oldest.cast_unsigned().saturating_sub(1));
    if !(trimmed..=last.0).contains(&seen.0) {
        return Ok(ChangePage::Expired(last));
    }
    let sql = "SELECT sequence, kind, path, origin, size, version, created, modified FROM changes
               WHERE namespace = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(limit.max(1)).unwrap_or(i64::MAX);
    let mut rows = statement.query((namespace, seen.0.cast_signed(), limit))?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        changes.push((Sequence(row.get::<_, i64>(0)?.cast_unsigned()), read_record(row)?));
    }
    let next = changes.last().map_or(seen, |(sequence, _)| *sequence);
    Ok(ChangePage::Changes { changes, next, has_more: next < last })
}

fn read_record(row: &Row<'_>) -> SqliteResult<ChangeRecord> {
    let path = file_rows::parse_path(row.get_ref(2)?.as_str().map_err(|_| SqliteError::damaged())?)?;
    let stored = || -> SqliteResult<StoredMeta> { file_rows::read_meta(row, 4) };
    match row.get(1)? {
        CREATED => Ok(ChangeRecord::Created(path, stored()?)),
        CHANGED => Ok(ChangeRecord::Changed(path, stored()?)),
        REMOVED => Ok(ChangeRecord::Removed(path)),
        MOVED => {
            let from = file_rows::parse_path(row.get_ref(3)?.as_str().map_err(|_| SqliteError::damaged())?)?;
            Ok(ChangeRecord::Moved { from, to: path, stored: stored()? })
        }
        _ => Err(SqliteError::damaged()),
    }
}
