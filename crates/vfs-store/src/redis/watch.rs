//! Change log of a namespace in a Redis stream.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{RedisError, Script, Value};
use async_trait::async_trait;
use tokio::sync::Semaphore;
use vfs_core::{Result, VfsPath};

use super::RedisStore;
use super::connection::{RedisClient, Request, start};
use super::reply::{self, ReplyParts};
use crate::store::{ChangePage, ChangeRecord, Changes, Namespace, Sequence};

static SINCE: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("since.lua"))));

/// How many changes are told at once.
const MAX_CHANGES: usize = 4096;
/// How long one wait is at most.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// How many wait with a connection of their own. The others look once a second.
const MAX_BLOCKING_CONNECTIONS: usize = 16;

/// Connections on which the server is kept waiting.
#[derive(Debug)]
pub(super) struct BlockingConnections {
    idle: Mutex<Vec<MultiplexedConnection>>,
    places: Semaphore,
}

impl Default for BlockingConnections {
    fn default() -> Self {
        Self { idle: Mutex::default(), places: Semaphore::new(MAX_BLOCKING_CONNECTIONS) }
    }
}

impl BlockingConnections {
    /// Waits for an entry of the stream `log` after `seen`. A connection that fails, or whose wait is dropped, is not used again.
    async fn wait(&self, link: &RedisClient, log: &str, seen: Sequence) -> bool {
        let Ok(_place) = self.places.try_acquire() else { return false };
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => match link.connect().await {
                Ok(connection) => connection,
                Err(_) => return false,
            },
        };
        let mut cmd = ::redis::cmd("XREAD");
        cmd.arg("COUNT").arg(1).arg("BLOCK").arg(BLOCK_TIMEOUT.as_millis() as u64);
        cmd.arg("STREAMS").arg(log).arg(format!("{}-0", seen.0));
        let answer: Result<Result<Value, RedisError>, _> =
            tokio::time::timeout(link.timeout().saturating_add(BLOCK_TIMEOUT), cmd.query_async(&mut connection)).await;
        let has_answered = matches!(answer, Ok(Ok(_)));
        if has_answered {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        has_answered
    }
}

impl RedisStore {
    /// The position after the newest change, and where a position and a number are given, so many entries after that.
    async fn newest(&self, namespace: &Namespace, after: Option<(Sequence, usize)>) -> Result<(Sequence, ReplyParts)> {
        let base = self.names().base(namespace);
        let ask = |_| {
            let mut cmd = start(&SINCE, &base);
            if let Some((seen, limit)) = after {
                cmd.arg(limit).arg(seen.0);
            }
            Request::Script(&SINCE, cmd)
        };
        let mut parts = ReplyParts::of(self.link().ask(ask).await?)?;
        let number = parts.bytes()?;
        let number = std::str::from_utf8(&number).ok().and_then(|number| number.parse().ok());
        Ok((Sequence(number.ok_or_else(reply::unexpected)?), parts.parts()?))
    }
}

#[async_trait]
impl Changes for RedisStore {
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence> {
        Ok(self.newest(namespace, None).await?.0)
    }

    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage> {
        let (last, mut entries) = self.newest(namespace, Some((seen, limit.clamp(1, MAX_CHANGES)))).await?;
        let mut changes = Vec::new();
        let mut next = seen;
        while !entries.is_empty() {
            let entry = read_entry(entries.parts()?)?;
            // A number that is missing was forgotten, or is not ours.
            let Some(change) = entry.filter(|(position, _)| position.0 == next.0 + 1) else {
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
        if !self.inner.waiting.wait(self.link(), &log, seen).await && self.last_sequence(namespace).await? == seen {
            tokio::time::sleep(BLOCK_TIMEOUT).await;
        }
        Ok(())
    }
}

fn read_id(id: &[u8]) -> Option<Sequence> {
    let (number, _) = std::str::from_utf8(id).ok()?.split_once('-')?;
    number.parse().ok().map(Sequence)
}

/// An entry of the stream; `None` where another program wrote it.
fn read_entry(mut entry: ReplyParts) -> Result<Option<(Sequence, ChangeRecord)>> {
    let position = read_id(&entry.bytes()?);
    let mut fields = entry.parts()?;
    let mut values = Vec::new();
    while !fields.is_empty() {
        let (_, value) = (fields.bytes()?, fields.bytes()?);
        values.push(value);
    }
    let record = match values.as_slice() {
        [kind, path, from, head, size] => read_record(kind, path, from, head, size),
        _ => None,
    };
    Ok(position.zip(record))
}

fn read_record(kind: &[u8], path: &[u8], from: &[u8], head: &[u8], size: &[u8]) -> Option<ChangeRecord> {
    let path: VfsPath = reply::path(path)?;
    if kind == b"removed" {
        return Some(ChangeRecord::Removed(path));
    }
    let size = std::str::from_utf8(size).ok()?.parse().ok()?;
    let stored = super::head::read(head, size)?;
    match kind {
        b"created" => Some(ChangeRecord::Created(path, stored)),
        b"changed" => Some(ChangeRecord::Changed(path, stored)),
        b"moved" => Some(ChangeRecord::Moved { from: reply::path(from)?, to: path, stored }),
        _ => None,
    }
}
