//! Reads of values and metadata.

use std::collections::HashMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use tokio_postgres::Row;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::error::PostgresResult;
use super::postgres_client::PostgresClient;
use super::row_conversion;
use crate::store::{Key, Namespace, PathStat, StoredMeta, StoredValue};

/// Size in bytes of the content in a row of `chunks`.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

const HEAD: &str = "SELECT size, version, created_at, modified_at FROM files \
                    WHERE namespace = (SELECT id FROM namespaces WHERE name = $1) AND path = $2";

// One statement reads one snapshot, so that the content is that of the version. Only the requested part of the first
// and the last chunk is read.
const GET: &str = "SELECT size, version, created_at, modified_at, part, \
                       substring(data FROM (greatest($3::bigint - part * 1048576::bigint, 0) + 1)::integer \
                           FOR (least($4::bigint - part * 1048576::bigint, 1048576) - greatest($3::bigint - part * 1048576::bigint, 0))::integer) \
                   FROM files \
                   LEFT JOIN chunks ON chunks.namespace = files.namespace AND chunks.content = files.content \
                       AND $3::bigint < $4::bigint AND part BETWEEN $3::bigint / 1048576 AND ($4::bigint - 1) / 1048576 \
                   WHERE files.namespace = (SELECT id FROM namespaces WHERE name = $1) AND path = $2";

const STAT_MANY: &str = "SELECT size, version, created_at, modified_at, EXISTS ( \
                             SELECT FROM files AS below WHERE below.namespace = space.id \
                             AND below.path > rtrim(wanted.path, '/') || '/' AND below.path < rtrim(wanted.path, '/') || '0' \
                         ) \
                         FROM unnest($2::text[]) WITH ORDINALITY AS wanted (path, number) \
                         LEFT JOIN namespaces AS space ON space.name = $1 \
                         LEFT JOIN files ON files.namespace = space.id AND files.path = wanted.path \
                         ORDER BY wanted.number";

const GET_MANY: &str = "SELECT path, size, version, created_at, modified_at, data FROM files \
                        LEFT JOIN chunks ON chunks.namespace = files.namespace AND chunks.content = files.content AND part = 0 \
                        WHERE files.namespace = (SELECT id FROM namespaces WHERE name = $1) AND path = ANY ($2::text[]) \
                        AND size <= $3";

pub(super) async fn head(server: &PostgresClient, key: &Key) -> Result<Option<StoredMeta>> {
    let found = server.row(HEAD, &[&key.namespace.as_str(), &key.path.as_str()]).await?;
    let Some(row) = found else { return Ok(None) };
    row_conversion::read_meta(&row, 0).map_err(|fault| fault.describe(&server.config))
}

pub(super) async fn get(server: &PostgresClient, key: &Key, range: Option<Range<u64>>) -> Result<Option<StoredValue>> {
    // This bound is the largest size of a value, and small enough that no sum in the query overflows.
    let bounded = |at: u64| i64::try_from(at).unwrap_or(i64::MAX).min(1 << 40);
    let range = range.map_or(0..bounded(u64::MAX), |range| bounded(range.start)..bounded(range.end));
    let parameters: [super::statement::ParameterRef<'_>; 4] =
        [&key.namespace.as_str(), &key.path.as_str(), &range.start, &range.end];
    let rows = server.rows(GET, &parameters).await?;
    let describe = |fault: super::error::PostgresError| fault.describe(&server.config).or_path(&key.path);
    let Some(first) = rows.first() else { return Ok(None) };
    let Some(stored) = row_conversion::read_meta(first, 0).map_err(describe)? else { return Ok(None) };
    let cut = |at: i64| at.unsigned_abs().min(stored.size);
    let (start, end) = (cut(range.start), cut(range.end));
    let content = assemble(&rows, start, end.max(start)).map_err(describe)?;
    Ok(Some(StoredValue::new(stored, content)))
}

pub(super) async fn stat_many(
    server: &PostgresClient,
    namespace: &Namespace,
    paths: &[VfsPath],
) -> Result<Vec<PathStat>> {
    let texts: Vec<&str> = paths.iter().map(VfsPath::as_str).collect();
    let rows = server.rows(STAT_MANY, &[&namespace.as_str(), &texts]).await?;
    let read = |row: &Row| -> PostgresResult<PathStat> {
        Ok(PathStat::new(row_conversion::read_meta(row, 0)?, row.try_get(4)?))
    };
    rows.iter().map(|row| read(row).map_err(|fault| fault.describe(&server.config))).collect()
}

/// Returns the values of at most one chunk; the caller reads larger ones individually.
pub(super) async fn get_many(
    server: &PostgresClient,
    namespace: &Namespace,
    paths: &[VfsPath],
    max_size: u64,
) -> Result<Vec<Option<StoredValue>>> {
    let texts: Vec<&str> = paths.iter().map(VfsPath::as_str).collect();
    let max = max_size.min(CHUNK_BYTES as u64) as i64;
    let rows = server.rows(GET_MANY, &[&namespace.as_str(), &texts, &max]).await?;
    let read = |row: &Row| -> PostgresResult<Option<(String, StoredValue)>> {
        let Some(stored) = row_conversion::read_meta(row, 1)? else { return Ok(None) };
        let data = row.try_get::<_, Option<&[u8]>>(5)?.unwrap_or_default();
        // Reading a damaged value individually reports the damage.
        if data.len() as u64 != stored.size {
            return Ok(None);
        }
        Ok(Some((row.try_get(0)?, StoredValue::new(stored, Bytes::copy_from_slice(data)))))
    };
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        found.extend(read(row).map_err(|fault| fault.describe(&server.config))?);
    }
    Ok(paths.iter().map(|path| found.remove(path.as_str())).collect())
}

/// Returns the bytes from `start` to `end` from chunks in any order.
fn assemble(rows: &[Row], start: u64, end: u64) -> PostgresResult<Bytes> {
    let damaged = || {
        Error::new(
            ErrorKind::InvalidArgument,
            "the content of the file is damaged in the Postgres database; restore a backup",
        )
    };
    if let [row] = rows
        && let Some(data) = row.try_get::<_, Option<&[u8]>>(5)?
        && data.len() as u64 == end - start
    {
        return Ok(Bytes::copy_from_slice(data));
    }
    let length = usize::try_from(end - start).map_err(|_| damaged())?;
    let mut content = BytesMut::zeroed(length);
    let mut found = 0;
    for row in rows {
        let Some(part) = row.try_get::<_, Option<i32>>(4)? else { continue };
        let data: &[u8] = row.try_get(5)?;
        let begin = (u64::from(part.unsigned_abs()) * CHUNK_BYTES as u64).max(start) - start;
        let place = usize::try_from(begin).ok().and_then(|begin| content.get_mut(begin..begin + data.len()));
        place.ok_or_else(damaged)?.copy_from_slice(data);
        found += data.len();
    }
    if found == length { Ok(content.freeze()) } else { Err(damaged().into()) }
}
