//! Counts of a store.

use rusqlite::Connection;

use super::error::SqliteResult;
use crate::store::StoreStats;

/// How large a SQLite file is, and what is in it beside the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteStats {
    /// Pages of the file.
    pub pages: u64,
    /// Those of them that are free, to be used again.
    pub free_pages: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// Values that the search index does not know, and which every search reads.
    pub not_indexed: u64,
    /// Changes that are remembered, of all namespaces.
    pub changes: u64,
    /// The version of the file's tables.
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
