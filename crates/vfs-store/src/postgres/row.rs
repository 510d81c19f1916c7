//! Conversion of rows.

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use vfs_core::{Version, VfsPath};

use super::error::PostgresResult;
use crate::store::StoredMeta;

/// What is known of a value, from the four columns that begin with `first`; `None` where they are empty.
pub(super) fn stored(row: &Row, first: usize) -> PostgresResult<Option<StoredMeta>> {
    let Some(size) = row.try_get::<_, Option<i64>>(first)? else { return Ok(None) };
    let version: String = row.try_get(first + 1)?;
    let created_at: DateTime<Utc> = row.try_get(first + 2)?;
    let modified_at: DateTime<Utc> = row.try_get(first + 3)?;
    Ok(Some(StoredMeta::new(size.unsigned_abs(), Version::new(version), modified_at).created_at(created_at)))
}

/// The directory of `path` with a `/` at its end, and the name in it.
pub(super) fn split(path: &VfsPath) -> (&str, &str) {
    let text = path.as_str();
    text.split_at(text.rfind('/').map_or(0, |slash| slash + 1))
}

/// What the paths below `directory` begin with, and the first text after all of them: '0' comes after '/'.
pub(super) fn inside(directory: &VfsPath) -> (String, String) {
    let bare = directory.as_str().trim_end_matches('/');
    (format!("{bare}/"), format!("{bare}0"))
}
