//! Statistics of a store and its file.

use rusqlite::Connection;

use super::error::SqliteResult;
use crate::store::StoreStats;

/// Size of a SQLite file, and counts of its data other than values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteStats {
    /// Number of pages of the file.
    pub pages: u64,
    /// Number of pages that are free and will be reused.
    pub free_pages: u64,
    /// Size of a page in bytes.
    pub page_size: u64,
    /// Number of values that are not in the search index, or not with their current content. Every search reads them.
    pub not_indexed: u64,
    /// Number of changes in the logs of all namespaces.
    pub changes: u64,
    /// Version of the database schema.
    pub schema_version: u64,
}

pub(super) fn stats(connection: &Connection) -> SqliteResult<StoreStats> {
    Ok(StoreStats {
        namespaces: number(connection, "SELECT count(*) FROM namespaces WHERE files > 0")?,
        files: number(connection, "SELECT coalesce(sum(files), 0) FROM namespaces")?,
        bytes: number(connection, "SELECT coalesce(sum(bytes), 0) FROM namespaces")?,
    })
}

pub(super) fn file_stats(connection: &Connection) -> SqliteResult<SqliteStats> {
    Ok(SqliteStats {
        pages: number(connection, "PRAGMA page_count")?,
        free_pages: number(connection, "PRAGMA freelist_count")?,
        page_size: number(connection, "PRAGMA page_size")?,
        not_indexed: number(connection, "SELECT count(*) FROM files WHERE indexed <> 1")?,
        changes: number(connection, "SELECT count(*) FROM changes")?,
        schema_version: number(connection, "PRAGMA user_version")?,
    })
}

fn number(connection: &Connection, sql: &str) -> SqliteResult<u64> {
    let value: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(u64::try_from(value).unwrap_or(0))
}
