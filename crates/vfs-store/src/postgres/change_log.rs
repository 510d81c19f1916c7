//! Change log of a namespace.

use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio_postgres::Row;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::change_listener::ChangeListener;
use super::error::{PostgresError, PostgresResult};
use super::postgres_client::PostgresClient;
use super::row_conversion;
use crate::store::{ChangePage, ChangeRecord, Namespace, Sequence};

/// Interval at which a waiting caller polls the store, in case a notification is lost.
const POLL_INTERVAL: Duration = Duration::from_millis(750);

const LAST_SEQUENCE: &str = "SELECT sequence FROM namespaces WHERE name = $1";

const SINCE: &str = "SELECT namespaces.sequence, changes.sequence, size, version, created_at, modified_at, kind, path, target \
                     FROM namespaces \
                     LEFT JOIN LATERAL ( \
                         SELECT * FROM changes WHERE namespace = namespaces.id AND sequence > $2 \
                         ORDER BY namespace, sequence LIMIT $3 \
                     ) AS changes ON true \
                     WHERE name = $1 ORDER BY changes.sequence";

// Renewed only when it is about to expire.
const WATCH: &str = "INSERT INTO watched (namespace, until) \
                     SELECT id, clock_timestamp() + interval '30 seconds' FROM namespaces WHERE name = $1 \
                     AND NOT EXISTS (SELECT FROM watched WHERE namespace = id \
                         AND until > clock_timestamp() + interval '15 seconds') \
                     ON CONFLICT (namespace) DO UPDATE SET until = EXCLUDED.until";

/// Maximum number of changes in a page, whatever limit is requested.
const MAX_PAGE_SIZE: usize = 10_000;

pub(super) async fn last_sequence(server: &PostgresClient, namespace: &Namespace) -> Result<Sequence> {
    let Some(row) = server.row(LAST_SEQUENCE, &[&namespace.as_str()]).await? else { return Ok(Sequence(0)) };
    read_sequence(&row, 0).map(Sequence).map_err(|fault| fault.describe(&server.config))
}

pub(super) async fn since(
    server: &PostgresClient,
    namespace: &Namespace,
    seen: Sequence,
    limit: usize,
) -> Result<ChangePage> {
    let limit = limit.clamp(1, MAX_PAGE_SIZE) as i64;
    let after = i64::try_from(seen.0).unwrap_or(i64::MAX);
    let rows = server.rows(SINCE, &[&namespace.as_str(), &after, &limit]).await?;
    read_page(&rows, seen).map_err(|fault| fault.describe(&server.config))
}

fn read_page(rows: &[Row], seen: Sequence) -> PostgresResult<ChangePage> {
    let last = rows.first().map_or(Ok(0), |row| read_sequence(row, 0))?;
    let mut changes = Vec::new();
    for row in rows {
        if row.try_get::<_, Option<i64>>(1)?.is_some() {
            changes.push((Sequence(read_sequence(row, 1)?), read_record(row)?));
        }
    }
    let is_contiguous = match changes.first() {
        Some((first, _)) => first.0 == seen.0 + 1,
        None => seen.0 == last,
    };
    if !is_contiguous {
        return Ok(ChangePage::Expired(Sequence(last)));
    }
    let next = changes.last().map_or(seen, |(sequence, _)| *sequence);
    Ok(ChangePage::Changes { changes, next, has_more: next.0 < last })
}

fn read_sequence(row: &Row, column: usize) -> PostgresResult<u64> {
    Ok(row.try_get::<_, i64>(column)?.unsigned_abs())
}

fn read_record(row: &Row) -> PostgresResult<ChangeRecord> {
    let path = VfsPath::parse(row.try_get(7)?)?;
    let stored = || row_conversion::read_meta(row, 2)?.ok_or_else(|| PostgresError::Store(unknown_kind()));
    match row.try_get::<_, i16>(6)? {
        1 => Ok(ChangeRecord::Created(path, stored()?)),
        2 => Ok(ChangeRecord::Changed(path, stored()?)),
        3 => Ok(ChangeRecord::Removed(path)),
        4 => Ok(ChangeRecord::Moved { from: path, to: VfsPath::parse(row.try_get(8)?)?, stored: stored()? }),
        _ => Err(unknown_kind().into()),
    }
}

fn unknown_kind() -> Error {
    Error::new(ErrorKind::InvalidArgument, "the Postgres store has a change of an unknown kind; use a newer program")
}

/// Waits until the last change is another one than `seen`.
pub(super) async fn changed(
    server: &PostgresClient,
    listener: &ChangeListener,
    namespace: &Namespace,
    seen: Sequence,
) -> Result<()> {
    // Listen before reading the sequence, so that few changes in between are missed; polling finds those.
    let mut receiver = listener.listen();
    loop {
        // Without a listener, do not request notifications: they would serialise all commits.
        if receiver.is_some() {
            server.rows(WATCH, &[&namespace.as_str()]).await?;
        }
        if last_sequence(server, namespace).await? != seen {
            return Ok(());
        }
        let notified = async {
            let Some(receiver) = &mut receiver else { return std::future::pending().await };
            loop {
                match receiver.recv().await {
                    Ok(change) if change.namespace == namespace.as_str() && change.sequence != seen => return,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return,
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        if tokio::time::timeout(POLL_INTERVAL, notified).await.is_ok() {
            return Ok(());
        }
    }
}
