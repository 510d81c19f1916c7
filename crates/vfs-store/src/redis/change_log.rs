//! Change log of a namespace in a Redis stream.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{RedisError, Script, Value};
use async_trait::async_trait;
use tokio::sync::Semaphore;
use vfs_core::{Result, VfsPath};

use super::RedisStore;
use super::connection::{RedisClient, RedisRequest, start};
use super::reply::{self, ReplyParts};
use crate::store::{ChangePage, ChangeRecord, Namespace, Sequence, StoreChangeLog};

static SINCE: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("since.lua"))));

/// Maximum number of changes in a page.
const MAX_CHANGES: usize = 4096;
/// Maximum time of one wait, and interval at which callers without a connection poll.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of callers that wait on a separate connection. Other callers poll once a second.
const MAX_BLOCKING_CONNECTIONS: usize = 16;

/// Connections for blocking requests.
#[derive(Debug)]
pub(super) struct BlockingConnectionPool {
    idle: Mutex<Vec<MultiplexedConnection>>,
    permits: Semaphore,
}

impl Default for BlockingConnectionPool {
    fn default() -> Self {
        Self { idle: Mutex::default(), permits: Semaphore::new(MAX_BLOCKING_CONNECTIONS) }
    }
}

impl BlockingConnectionPool {
    /// Waits for an entry of the stream `log` after `seen`. A connection that fails, or whose wait is dropped, is not
    /// used again.
    async fn wait(&self, client: &RedisClient, log: &str, seen: Sequence) -> bool {
        let Ok(_permit) = self.permits.try_acquire() else { return false };
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => match client.connect().await {
                Ok(connection) => connection,
                Err(_) => return false,
            },
        };
        let mut cmd = ::redis::cmd("XREAD");
        cmd.arg("COUNT").arg(1).arg("BLOCK").arg(BLOCK_TIMEOUT.as_millis() as u64);
        cmd.arg("STREAMS").arg(log).arg(format!("{}-0", seen.0));
        let reply: Result<Result<Value, RedisError>, _> =
            tokio::time::timeout(client.timeout().saturating_add(BLOCK_TIMEOUT), cmd.query_async(&mut connection))
                .await;
        let has_replied = matches!(reply, Ok(Ok(_)));
        if has_replied {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        has_replied
    }
}

impl RedisStore {
    /// Returns the sequence number of the newest change and, with `after`, up to that number of entries after that
    /// sequence number.
    async fn read_log(
        &self,
        namespace: &Namespace,
        after: Option<(Sequence, usize)>,
    ) -> Result<(Sequence, ReplyParts)> {
        let base = self.names().base(namespace);
        let read = |_| {
            let mut cmd = start(&SINCE, &base);
            if let Some((seen, limit)) = after {
                cmd.arg(limit).arg(seen.0);
            }
            RedisRequest::Script(&SINCE, cmd)
        };
        let mut parts = ReplyParts::new(self.link().ask(read).await?)?;
        let number = parts.bytes()?;
        let number = std::str::from_utf8(&number).ok().and_then(|number| number.parse().ok());
        Ok((Sequence(number.ok_or_else(reply::unexpected)?), parts.parts()?))
    }
}

#[async_trait]
impl StoreChangeLog for RedisStore {
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence> {
        Ok(self.read_log(namespace, None).await?.0)
    }

    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage> {
        let (last, mut entries) = self.read_log(namespace, Some((seen, limit.clamp(1, MAX_CHANGES)))).await?;
        let mut changes = Vec::new();
        let mut next = seen;
        while !entries.is_empty() {
            let entry = parse_entry(entries.parts()?)?;
            // A missing sequence number was removed from the log, or another program wrote the entry.
            let Some(change) = entry.filter(|(sequence, _)| sequence.0 == next.0 + 1) else {
                return Ok(ChangePage::Expired(last));
            };
            next = change.0;
            changes.push(change);
        }
        if next > last || (changes.is_empty() && next < last) {
            return Ok(ChangePage::Expired(last));
        }
        Ok(ChangePage::Changes { changes, next, has_more: next < last })
    }

    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()> {
        let log = self.names().log(namespace);
        if !self.inner.blocking.wait(self.link(), &log, seen).await && self.last_sequence(namespace).await? == seen {
            tokio::time::sleep(BLOCK_TIMEOUT).await;
        }
        Ok(())
    }
}

fn parse_id(id: &[u8]) -> Option<Sequence> {
    let (number, _) = std::str::from_utf8(id).ok()?.split_once('-')?;
    number.parse().ok().map(Sequence)
}

/// Parses an entry of the stream. Returns `None` if another program wrote it.
fn parse_entry(mut entry: ReplyParts) -> Result<Option<(Sequence, ChangeRecord)>> {
    let sequence = parse_id(&entry.bytes()?);
    let mut fields = entry.parts()?;
    let mut values = Vec::new();
    while !fields.is_empty() {
        let (_, value) = (fields.bytes()?, fields.bytes()?);
        values.push(value);
    }
    let record = match values.as_slice() {
        [kind, path, from, head, size] => parse_record(kind, path, from, head, size),
        _ => None,
    };
    Ok(sequence.zip(record))
}

fn parse_record(kind: &[u8], path: &[u8], from: &[u8], head: &[u8], size: &[u8]) -> Option<ChangeRecord> {
    let path: VfsPath = reply::parse_path(path)?;
    if kind == b"removed" {
        return Some(ChangeRecord::Removed(path));
    }
    let size = std::str::from_utf8(size).ok()?.parse().ok()?;
    let stored = super::value_header::parse(head, size)?;
    match kind {
        b"created" => Some(ChangeRecord::Created(path, stored)),
        b"changed" => Some(ChangeRecord::Changed(path, stored)),
        b"moved" => Some(ChangeRecord::Moved { from: reply::parse_path(from)?, to: path, stored }),
        _ => None,
    }
}
