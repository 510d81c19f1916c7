//! Content of a new value.

use bytes::Bytes;
use vfs_core::{Error, Result, Version};

use super::staging::StagedContent;

/// Returns the version of `content` for stores without versions: the first half of its BLAKE3 hash in hexadecimal digits.
pub(crate) fn version_of(content: &[u8]) -> Version {
    version_of_hash(blake3::hash(content))
}

/// Returns the version of the content with this hash.
pub(crate) fn version_of_hash(hash: blake3::Hash) -> Version {
    Version::new(&hash.to_hex()[..32])
}

/// Content of a [`NewValue`](super::NewValue).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueContent {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Content that was staged in the store.
    Staged(StagedContent),
}

impl ValueContent {
    /// Returns the number of bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Staged(staged) => staged.size,
        }
    }

    /// Returns the version for stores without versions of their own: the first half of the BLAKE3 hash in hexadecimal digits.
    pub fn version(&self) -> Version {
        match self {
            Self::Bytes(bytes) => version_of(bytes),
            Self::Staged(staged) => staged.version.clone(),
        }
    }

    /// Returns the bytes of a content in memory.
    ///
    /// # Behaviour
    ///
    /// A store without [`Staging`](super::Staging) receives only such contents from [`StoreBackend`](crate::StoreBackend), so that
    /// it can call this method for every put.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for a staged content: only a store with [`Staging`](super::Staging) accepts it.
    pub fn bytes(&self) -> Result<&Bytes> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Staged(_) => {
                let message = "this store does not support staging; put the bytes instead";
                Err(Error::invalid_argument(message).with_generic_model_message())
            }
        }
    }
}

impl From<Bytes> for ValueContent {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}
