//! Parser of replies.

use ::redis::Value;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::value_header;
use crate::store::StoredMeta;

/// Parts of a reply, in order.
pub(super) struct ReplyParts(std::vec::IntoIter<Value>);

impl ReplyParts {
    pub(super) fn new(reply: Value) -> Result<Self> {
        match reply {
            Value::Array(parts) => Ok(Self(parts.into_iter())),
            Value::Nil => Ok(Self(Vec::new().into_iter())),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    pub(super) fn value(&mut self) -> Result<Value> {
        self.0.next().ok_or_else(unexpected)
    }

    pub(super) fn parts(&mut self) -> Result<Self> {
        Self::new(self.value()?)
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>> {
        bytes(self.value()?)
    }

    pub(super) fn number(&mut self) -> Result<i64> {
        match self.value()? {
            Value::Int(number) => Ok(number),
            _ => Err(unexpected()),
        }
    }

    /// Returns the metadata in the next two parts, head and size, or `None` if another program wrote them.
    pub(super) fn meta(&mut self) -> Result<Option<StoredMeta>> {
        let head = self.bytes()?;
        Ok(value_header::parse(&head, self.number()?))
    }
}

pub(super) fn bytes(value: Value) -> Result<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        Value::Okay => Ok(b"OK".to_vec()),
        _ => Err(unexpected()),
    }
}

/// Parses a path in a reply. Returns `None` if the bytes are not the path of a file or directory.
pub(super) fn parse_path(bytes: &[u8]) -> Option<VfsPath> {
    let text = std::str::from_utf8(bytes).ok()?;
    VfsPath::parse(text).ok().filter(|path| path.as_str() == text && !path.is_root())
}

pub(super) fn unexpected() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the server sent a reply that no Redis server sends; check that it is a Redis server of version 6.2 or later",
    )
    .with_generic_model_message()
}

/// Returns the error of a value at `path` that another program wrote.
pub(super) fn damaged(path: &str) -> Error {
    let message = "another program wrote this value; remove its key from the Redis server, or use another 'prefix'";
    Error::invalid_argument(message).with_path_text(path).with_generic_model_message()
}
