//! Change log of a namespace.

use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio_postgres::Row;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::error::{PostgresError, PostgresResult};
use super::row;
use super::server::Server;
use super::watch::Listener;
use crate::store::{ChangePage, ChangeRecord, Namespace, Sequence};

/// How often whoever waits looks for himself, should a notification be lost.
const POLL_INTERVAL: Duration = Duration::from_millis(750);

const POSITION: &str = "SELECT sequence FROM namespaces WHERE name = $1";

const SINCE: &str = "SELECT namespaces.sequence, changes.sequence, size, version, created_at, modified_at, kind, path, target \
                     FROM namespaces \
                     LEFT JOIN LATERAL ( \
                         SELECT * FROM changes WHERE namespace = namespaces.id AND sequence > $2 \
                         ORDER BY namespace, sequence LIMIT $3 \
                     ) AS changes ON true \
                     WHERE name = $1 ORDER BY changes.sequence";

// Written anew only now and then.
const WATCH: &str = "INSERT INTO watched (namespace, until) \
                     SELECT id, clock_timestamp() + interval '30 seconds' FROM namespaces WHERE name = $1 \
                     AND NOT EXISTS (SELECT FROM watched WHERE namespace = id \
                         AND until > clock_timestamp() + interval '15 seconds') \
                     ON CONFLICT (namespace) DO UPDATE SET until = EXCLUDED.until";

/// The most changes in an answer, whatever the limit is.
const MAX_PAGE_SIZE: usize = 10_000;

pub(super) async fn position(server: &Server, namespace: &Namespace) -> Result<Sequence> {
    let Some(row) = server.row(POSITION, &[&namespace.as_str()]).await? else { return Ok(Sequence(0)) };
    number(&row, 0).map(Sequence).map_err(|fault| fault.describe(&server.config))
}

pub(super) async fn since(server: &Server, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage> {
    let most = limit.clamp(1, MAX_PAGE_SIZE) as i64;
    let after = i64::try_from(seen.0).unwrap_or(i64::MAX);
    let rows = server.rows(SINCE, &[&namespace.as_str(), &after, &most]).await?;
    page(&rows, seen).map_err(|fault| fault.describe(&server.config))
}

fn page(rows: &[Row], seen: Sequence) -> PostgresResult<ChangePage> {
    let last = rows.first().map_or(Ok(0), |row| number(row, 0))?;
    let mut changes = Vec::new();
    for row in rows {
        if row.try_get::<_, Option<i64>>(1)?.is_some() {
            changes.push((Sequence(number(row, 1)?), read_record(row)?));
        }
    }
    let is_known = match changes.first() {
        Some((first, _)) => first.0 == seen.0 + 1,
        None => seen.0 == last,
    };
    if !is_known {
        return Ok(ChangePage::Expired(Sequence(last)));
    }
    let next = changes.last().map_or(seen, |(position, _)| *position);
    Ok(ChangePage::Changes { changes, next, has_more: next.0 < last })
}

fn number(row: &Row, column: usize) -> PostgresResult<u64> {
    Ok(row.try_get::<_, i64>(column)?.unsigned_abs())
}

fn read_record(row: &Row) -> PostgresResult<ChangeRecord> {
    let path = VfsPath::parse(row.try_get(7)?)?;
    let stored = || row::stored(row, 2)?.ok_or_else(|| PostgresError::Ours(wrong()));
    match row.try_get::<_, i16>(6)? {
        1 => Ok(ChangeRecord::Created(path, stored()?)),
        2 => Ok(ChangeRecord::Changed(path, stored()?)),
        3 => Ok(ChangeRecord::Removed(path)),
        4 => Ok(ChangeRecord::Moved { from: path, to: VfsPath::parse(row.try_get(8)?)?, stored: stored()? }),
        _ => Err(wrong().into()),
    }
}

fn wrong() -> Error {
    Error::new(ErrorKind::InvalidArgument, "the Postgres store has a change of no known kind; use a newer program")
}

/// Waits until the last change is not the one that was `seen`.
pub(super) async fn changed(server: &Server, listener: &Listener, namespace: &Namespace, seen: Sequence) -> Result<()> {
    // Who listens first and looks then misses little that comes in between, and looks again soon.
    let mut news = listener.listen();
    loop {
        // Who polls needs no notification, for which all commits would wait for each other.
        if news.is_some() {
            server.rows(WATCH, &[&namespace.as_str()]).await?;
        }
        if position(server, namespace).await? != seen {
            return Ok(());
        }
        let notified = async {
            let Some(news) = &mut news else { return std::future::pending().await };
            loop {
                match news.recv().await {
                    Ok(news) if news.namespace == namespace.as_str() && news.position != seen => return,
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
