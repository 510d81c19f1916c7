//! Contents that are stored in parts before the change that puts them.

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use uuid::Uuid;
use vfs_core::{Error, Result, Version};

use super::key::{Key, Namespace};

/// Size in bytes of each part of a staged content but the last: 8 MiB.
pub const STAGED_PART_BYTES: usize = 8 << 20;

/// A content that was stored with [`Staging`], for a put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedContent {
    /// Token of the content.
    pub token: StagingToken,
    /// Number of bytes of all parts.
    pub size: u64,
    /// The first half of the BLAKE3 hash of all parts in hexadecimal digits.
    pub version: Version,
}

/// Opaque token of a content, valid for the store that issued it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StagingToken(String);

impl StagingToken {
    /// Returns a token with a text that the store chose.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns a new random token.
    pub(crate) fn random() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }

    /// Returns a new token of a namespace: its name, a line break, and a random [`id`](Self::id).
    pub(crate) fn in_namespace(namespace: &Namespace) -> Self {
        Self(format!("{namespace}\n{}", Self::random().0))
    }

    /// Returns the namespace of a token that has one.
    pub(crate) fn namespace(&self) -> Result<Namespace> {
        let (namespace, _) = self.0.rsplit_once('\n').ok_or_else(Self::unknown)?;
        Namespace::parse(namespace)
    }

    /// Returns the random part of the token.
    #[cfg(feature = "redis")]
    pub(crate) fn id(&self) -> &str {
        self.0.rsplit_once('\n').map_or(&self.0, |(_, id)| id)
    }

    /// Returns the text of the token.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the error for a token without a content.
    pub(crate) fn unknown() -> Error {
        let message = "the staged parts of the file are not in the store any more; write the file again";
        Error::invalid_argument(message).with_generic_model_message()
    }
}

/// Storage of a content in parts before a change makes it the content of a value. Memory does not grow with the size of the content.
///
/// # Behaviour
///
/// * No part is visible before [`Store::put`](super::Store::put) or [`BatchStore::batch`](super::BatchStore::batch) with
///   [`ValueContent::Staged`](super::ValueContent::Staged) is applied, which copies no bytes. A change that is not applied leaves the content staged,
///   except in object storage: a conflict with another writer during the completion discards the content, and so does any
///   failure of the completion in a service that is not compatible with S3.
/// * If a put fails without a clear response, it can be repeated while the content is staged. In object storage, a repeated
///   put succeeds if the first one was applied and the value has not changed since.
/// * The store removes a content that is neither put nor discarded after a day without a new part. In object storage an upload belongs to
///   the process that began it; let a lifecycle rule of the bucket remove incomplete uploads.
///
/// # Errors
///
/// Those of [`Store`](super::Store); `invalid_argument` for a token without a content, or of another namespace, and for a size that
/// is not that of the parts.
#[async_trait]
pub trait Staging: Send + Sync {
    /// Returns the maximum size of a staged content in bytes.
    fn max_size(&self) -> u64;

    /// Begins a content for `key`.
    ///
    /// Object storage keeps metadata with the content: there the times are those of the value, and those of the later put are ignored.
    async fn begin(&self, key: &Key, created_at: DateTime<Utc>, modified_at: DateTime<Utc>) -> Result<StagingToken>;

    /// Appends the part at `offset`. Parts are appended one after another; each but the last has [`STAGED_PART_BYTES`].
    async fn append(&self, token: &StagingToken, offset: u64, part: Bytes) -> Result<()>;

    /// Removes a content that was not put. One that does not exist is no error.
    async fn discard(&self, token: &StagingToken) -> Result<()>;
}
