//! Reads of one version of a value, part by part, to hash it or stage it elsewhere.

use bytes::Bytes;
use vfs_core::{Error, ErrorKind, Result, Version};

use crate::store::{Key, STAGED_PART_BYTES, StagedContent, Staging, StagingToken, Store, StoredMeta, version_of_hash};

/// The parts of a value that is the same from the first to the last.
pub(crate) struct PinnedValueReader<'a, S: ?Sized> {
    store: &'a S,
    key: &'a Key,
    stored: &'a StoredMeta,
    offset: u64,
}

impl<'a, S: Store + ?Sized> PinnedValueReader<'a, S> {
    /// Returns a reader from the beginning of the value.
    pub(crate) fn new(store: &'a S, key: &'a Key, stored: &'a StoredMeta) -> Self {
        Self { store, key, stored, offset: 0 }
    }

    /// Returns the next part and its offset, or `None` after the last; `conflict` if the value has changed.
    pub(crate) async fn next(&mut self) -> Result<Option<(u64, Bytes)>> {
        let (start, end) = (self.offset, self.stored.size.min(self.offset + STAGED_PART_BYTES as u64));
        if start == end {
            return Ok(None);
        }
        let part = self.store.get(self.key, Some(start..end)).await?;
        let part = part.filter(|part| part.stored.version == self.stored.version);
        let part = part.filter(|part| part.content.len() as u64 == end - start).ok_or_else(|| {
            let message = "the file was changed by another writer while it was read; try again";
            Error::new(ErrorKind::Conflict, message)
        })?;
        self.offset = end;
        Ok(Some((start, part.content)))
    }
}

/// Returns the version of the content of a value, as stores without versions of their own have it.
///
/// # Errors
///
/// `conflict` if the value has changed.
pub(crate) async fn hash_value<S: Store + ?Sized>(store: &S, key: &Key, stored: &StoredMeta) -> Result<Version> {
    let mut parts = PinnedValueReader::new(store, key, stored);
    let mut hasher = blake3::Hasher::new();
    while let Some((_, part)) = parts.next().await? {
        hasher.update(&part);
    }
    Ok(version_of_hash(hasher.finalize()))
}

/// Appends the content of a value to the staged content `token`.
///
/// # Errors
///
/// `conflict` if the value has changed.
pub(crate) async fn stage_value<S: Store + ?Sized>(
    (store, key, stored): (&S, &Key, &StoredMeta),
    staging: &dyn Staging,
    token: StagingToken,
) -> Result<StagedContent> {
    let mut parts = PinnedValueReader::new(store, key, stored);
    let mut hasher = blake3::Hasher::new();
    while let Some((offset, part)) = parts.next().await? {
        hasher.update(&part);
        staging.append(&token, offset, part).await?;
    }
    Ok(StagedContent { token, size: stored.size, version: version_of_hash(hasher.finalize()) })
}

/// Discards a content that is not needed any more. If that fails, the store removes it later.
pub(crate) async fn discard(staging: &dyn Staging, token: &StagingToken) {
    if let Err(error) = staging.discard(token).await {
        tracing::debug!(%error, "the parts of a file that was not written are left in the store");
    }
}
