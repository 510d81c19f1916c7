//! Conversion of rows and paths.

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use vfs_core::{Version, VfsPath};

use super::error::PostgresResult;
use crate::store::StoredMeta;

/// Reads the metadata of a value from the four columns that begin with `first`, or returns `None` if they are null.
pub(super) fn read_meta(row: &Row, first: usize) -> PostgresResult<Option<StoredMeta>> {
    let Some(size) = row.try_get::<_, Option<i64>>(first)? else { return Ok(None) };
    let version: String = row.try_get(first + 1)?;
    let created_at: DateTime<Utc> = row.try_get(first + 2)?;
    let modified_at: DateTime<Utc> = row.try_get(first + 3)?;
    Ok(Some(StoredMeta::new(size.unsigned_abs(), Version::new(version), modified_at).created_at(created_at)))
}

/// Returns the directory of `path` with a trailing `/`, and the name in it.
pub(super) fn split_path(path: &VfsPath) -> (&str, &str) {
    let text = path.as_str();
    text.split_at(text.rfind('/').map_or(0, |slash| slash + 1))
}

/// Returns the prefix of the paths below `directory`, and the first text after all of them: '0' is the character after
/// '/'.
pub(super) fn range_below(directory: &VfsPath) -> (String, String) {
    let bare = directory.as_str().trim_end_matches('/');
    (format!("{bare}/"), format!("{bare}0"))
}
