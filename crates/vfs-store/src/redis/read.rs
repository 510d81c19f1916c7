//! Reads of values in pieces.

use std::ops::Range;
use std::sync::LazyLock;

use ::redis::Script;
use vfs_core::{Result, fallible_alloc};

use super::RedisStore;
use super::connection::{RedisRequest, start};
use super::reply::{self, ReplyParts};
use super::value_header::MAX_VALUE;
use crate::store::{Key, StoredValue};

static READ: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("read.lua"))));

/// Maximum size of one reply in bytes: other requests on the connection wait while it is transferred.
const PIECE_BYTES: u64 = 4 << 20;

impl RedisStore {
    /// Returns the `range` of a file.
    pub(super) async fn read(&self, key: &Key, range: Range<u64>) -> Result<Option<StoredValue>> {
        let (start, end) = (range.start.min(MAX_VALUE), range.end.min(MAX_VALUE));
        let mut piece = PIECE_BYTES;
        'restart: loop {
            let Some(first) = self.read_piece(key, start..end.min(start + piece)).await? else { return Ok(None) };
            let end = end.min(first.stored.size);
            let mut at = start + first.content.len() as u64;
            if at >= end {
                return Ok(Some(first));
            }
            let mut content = fallible_alloc::with_capacity(usize::try_from(end - start).unwrap_or(usize::MAX))?;
            content.extend_from_slice(&first.content);
            while at < end {
                let next = self.read_piece(key, at..end.min(at + piece)).await?;
                match next.filter(|next| next.stored == first.stored && !next.content.is_empty()) {
                    Some(next) => content.extend_from_slice(&next.content),
                    None => {
                        // The file was written in between. Larger pieces make success likely even if it is written all
                        // the time.
                        piece = piece.saturating_mul(4);
                        continue 'restart;
                    }
                }
                at = start + content.len() as u64;
            }
            return Ok(Some(StoredValue::new(first.stored, content.into())));
        }
    }

    /// Returns the metadata of a file, and a `range` of its content.
    pub(super) async fn read_piece(&self, key: &Key, range: Range<u64>) -> Result<Option<StoredValue>> {
        let base = self.names().base(&key.namespace);
        let read = |_| {
            let mut cmd = start(&READ, &base);
            cmd.arg(key.path.as_str());
            if !range.is_empty() {
                cmd.arg(range.start).arg(range.end - 1);
            }
            RedisRequest::Script(&READ, cmd)
        };
        let reply = self.link().ask(read).await.map_err(|error| error.or_path(&key.path))?;
        let mut parts = ReplyParts::new(reply)?;
        if parts.is_empty() {
            return Ok(None);
        }
        let stored = parts.meta()?.ok_or_else(|| reply::damaged(key.path.as_str()))?;
        Ok(Some(StoredValue::new(stored, parts.bytes()?.into())))
    }
}
