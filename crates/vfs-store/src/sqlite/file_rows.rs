//! Conversion of rows of the table of files.

use chrono::{DateTime, SubsecRound, Utc};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};
use vfs_core::{Version, VfsPath};

use super::error::{SqliteError, SqliteResult};
use crate::store::{Namespace, StoredMeta};

/// Number of decimal places of a second that are stored.
const MICROSECONDS: u16 = 6;

/// File as described by its row.
#[derive(Debug, Clone)]
pub(super) struct FileRow {
    pub(super) id: i64,
    pub(super) stored: StoredMeta,
    pub(super) indexed: FileIndexState,
}

/// State of the entry of a file in the search index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileIndexState {
    /// The file has no entry and is not to be indexed.
    Never,
    /// The entry is that of the content.
    Current,
    /// The file has no entry yet.
    Waiting,
    /// The entry is that of an earlier content.
    Stale,
}

impl FileIndexState {
    /// Returns whether the index has an entry of the file.
    pub(super) fn has_row(self) -> bool {
        matches!(self, Self::Current | Self::Stale)
    }
}

impl ToSql for FileIndexState {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(match self {
            Self::Never => 0,
            Self::Current => 1,
            Self::Waiting => 2,
            Self::Stale => 3,
        }))
    }
}

impl FromSql for FileIndexState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_i64()? {
            0 => Ok(Self::Never),
            1 => Ok(Self::Current),
            2 => Ok(Self::Waiting),
            3 => Ok(Self::Stale),
            other => Err(FromSqlError::OutOfRange(other)),
        }
    }
}

/// Columns that [`read_file_row`] reads.
macro_rules! columns {
    () => {
        "size, version, created, modified, id, indexed"
    };
}
pub(super) use columns;

/// Returns whether there are files below `path`.
pub(super) fn has_below(connection: &Connection, namespace: i64, path: &VfsPath) -> SqliteResult<bool> {
    let (start, end) = range_below(path);
    let sql = "SELECT EXISTS (SELECT 1 FROM files WHERE namespace = ?1 AND path >= ?2 AND path < ?3)";
    Ok(connection.prepare_cached(sql)?.query_row((namespace, start, end), |row| row.get(0))?)
}

/// Returns the id of `namespace`, or `None` if it was never written to.
pub(super) fn namespace_id(connection: &Connection, namespace: &Namespace) -> SqliteResult<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM namespaces WHERE name = ?1")?;
    Ok(statement.query_row([namespace.as_str()], |row| row.get(0)).optional()?)
}

/// Returns the file at `path`.
pub(super) fn find(connection: &Connection, namespace: i64, path: &str) -> SqliteResult<Option<FileRow>> {
    let sql = concat!("SELECT ", columns!(), " FROM files WHERE namespace = ?1 AND path = ?2");
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((namespace, path))?;
    rows.next()?.map(|row| read_file_row(row, 0)).transpose()
}

/// Reads the [`columns`] that begin at column `first`.
pub(super) fn read_file_row(row: &Row<'_>, first: usize) -> SqliteResult<FileRow> {
    Ok(FileRow { stored: read_meta(row, first)?, id: row.get(first + 4)?, indexed: row.get(first + 5)? })
}

/// Reads size, version and times, beginning at column `first`.
pub(super) fn read_meta(row: &Row<'_>, first: usize) -> SqliteResult<StoredMeta> {
    let size = u64::try_from(row.get::<_, i64>(first)?).map_err(|_| SqliteError::damaged())?;
    let version = row.get::<_, [u8; 16]>(first + 1)?;
    let created_at = time(row.get(first + 2)?)?;
    Ok(StoredMeta::new(size, version_text(version), time(row.get(first + 3)?)?).created_at(created_at))
}

/// Parses a path that a store wrote. Any other text is damage.
pub(super) fn parse_path(text: &str) -> SqliteResult<VfsPath> {
    VfsPath::parse(text).ok().filter(|path| path.as_str() == text).ok_or_else(SqliteError::damaged)
}

/// Returns the range of the paths below `directory`, as its first path and the path after its last one.
pub(super) fn range_below(directory: &VfsPath) -> (String, String) {
    let name = directory.as_str().trim_end_matches('/');
    // '0' is the character after '/'.
    (format!("{name}/"), format!("{name}0"))
}

pub(super) fn version_text(version: [u8; 16]) -> Version {
    Version::new(format!("{:032x}", u128::from_be_bytes(version)))
}

fn time(microseconds: i64) -> SqliteResult<DateTime<Utc>> {
    DateTime::from_timestamp_micros(microseconds).ok_or_else(SqliteError::damaged)
}

/// Returns `time` with the precision with which it is stored.
pub(super) fn truncate_time(time: DateTime<Utc>) -> DateTime<Utc> {
    time.trunc_subsecs(MICROSECONDS)
}

/// Returns the bytes of the version of `stored`, which must be a version of this store.
pub(super) fn version_bytes(stored: &StoredMeta) -> SqliteResult<[u8; 16]> {
    u128::from_str_radix(stored.version.as_str(), 16).map(u128::to_be_bytes).map_err(|_| SqliteError::damaged())
}
