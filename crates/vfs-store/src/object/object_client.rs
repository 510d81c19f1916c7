//! Requests for single objects.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt, PutMultipartOptions};

use super::error::BucketError;
use super::http_transport::OperationTimeout;
use super::object_metadata::{FoundObject, MetadataNames, strong_tag};
use super::repeatable_upload::RepeatableUploadFactory;
use crate::store::StoredValue;

/// Maximum size of a value in bytes, which every service supports.
pub(super) const MAX_VALUE: u64 = 5 << 30;

/// Upper bound on the size of any object; some services reject a range that ends after this.
const MAX_RANGE_END: u64 = 1 << 50;

/// Size in bytes of one request for content. Each piece has its own timeout and retries, however large the object is.
const PIECE_BYTES: u64 = 8 << 20;
/// Maximum number of pieces that are requested concurrently.
const MAX_CONCURRENT_PIECES: usize = 4;
/// Maximum number of attempts to read an object that changes in the meantime.
const MAX_READ_ATTEMPTS: usize = 4;

/// Object storage service with its particularities.
#[derive(Debug, Clone)]
pub(super) struct ObjectClient {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) conditions: ConditionBasis,
    pub(super) labels: MetadataNames,
    pub(super) limit: OperationTimeout,
    /// Uploads of staged values; `None` if the completion of an upload cannot be repeated.
    pub(super) repeatable_uploads: Option<RepeatableUploadFactory>,
}

/// Kind of precondition that a service checks for a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionBasis {
    /// Entity tags.
    Tags,
    /// Generation numbers.
    #[cfg_attr(not(feature = "gcp"), expect(dead_code, reason = "only Google Cloud Storage has them"))]
    Generations,
}

/// Object with its content, or the requested part of it.
#[derive(Debug, Clone)]
pub(super) struct FetchedObject {
    pub(super) found: FoundObject,
    pub(super) content: Bytes,
}

/// An object that was read piece by piece.
#[derive(Debug, Clone)]
pub(super) struct HashedObject {
    pub(super) found: FoundObject,
    /// Number of bytes that the service sent.
    pub(super) bytes: u64,
    hash: blake3::Hash,
}

impl HashedObject {
    /// Returns whether the content has the hash in the metadata. Uploads in parts and objects of other programs have no hash and always
    /// match.
    pub(super) fn matches_hash(&self) -> bool {
        self.found.content_hash.as_deref().is_none_or(|expected| *expected == *self.hash.to_hex())
    }
}

impl From<FetchedObject> for StoredValue {
    fn from(FetchedObject { found, content }: FetchedObject) -> Self {
        Self::new(found.stored, content)
    }
}

impl ObjectClient {
    /// Returns the metadata of the object at a key.
    pub(super) async fn look(&self, location: &Path) -> Result<Option<FoundObject>, BucketError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.limit.of(self.objects.get_opts(location, options)).await {
            Ok(response) => Ok(Some(FoundObject::from_meta(&response.meta, &response.attributes, self.labels))),
            Err(fault) if fault.is_missing() => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Returns the content at a key, or a part of it.
    pub(super) async fn get(
        &self,
        location: &Path,
        range: Option<Range<u64>>,
    ) -> Result<Option<FetchedObject>, BucketError> {
        let range = range.map_or(0..MAX_RANGE_END, |range| range.start..range.end.min(MAX_RANGE_END));
        for _ in 0..MAX_READ_ATTEMPTS {
            let Some(first) = self.read_piece(location, piece_range(&range, range.start), None).await? else {
                return Ok(None);
            };
            let rest = range.start + first.content.len() as u64..range.end.min(first.found.stored.size);
            if rest.is_empty() {
                return Ok(Some(first));
            }
            if let Some(value) = self.read_rest(location, first, rest).await? {
                return Ok(Some(value));
            }
        }
        Err(BucketError::changing())
    }

    /// Returns `first` with the `rest` appended, or `None` if the object changed in the meantime.
    async fn read_rest(
        &self,
        location: &Path,
        first: FetchedObject,
        rest: Range<u64>,
    ) -> Result<Option<FetchedObject>, BucketError> {
        let tag = strong_tag(&first.found.stored.version);
        let starts = (0..).map(|number| rest.start + number * PIECE_BYTES).take_while(|start| *start < rest.end);
        let pieces: Vec<_> =
            starts.map(|start| self.read_piece(location, piece_range(&rest, start), tag.clone())).collect();
        let mut pieces = stream::iter(pieces).buffered(MAX_CONCURRENT_PIECES);
        let whole = first.content.len() as u64 + (rest.end - rest.start).min(MAX_VALUE);
        let mut content = BytesMut::with_capacity(usize::try_from(whole).unwrap_or_default());
        content.extend_from_slice(&first.content);
        while let Some(piece) = pieces.next().await {
            match piece {
                Ok(Some(piece)) if piece.found.stored == first.found.stored && !piece.content.is_empty() => {
                    content.extend_from_slice(&piece.content);
                }
                Ok(_) => return Ok(None),
                Err(fault) if fault.is_refusal() => return Ok(None),
                Err(fault) => return Err(fault),
            }
        }
        Ok(Some(FetchedObject { found: first.found, content: content.freeze() }))
    }

    /// Reads the object at a key piece by piece, without holding it in memory; `None` if there is none.
    pub(super) async fn digest(&self, location: &Path) -> Result<Option<HashedObject>, BucketError> {
        for _ in 0..MAX_READ_ATTEMPTS {
            let Some(first) = self.read_piece(location, 0..PIECE_BYTES, None).await? else {
                return Ok(None);
            };
            if let Some(digest) = self.digest_rest(location, first).await? {
                return Ok(Some(digest));
            }
        }
        Err(BucketError::changing())
    }

    /// Returns the digest of the object that begins with `first`, or `None` if the object changed in the meantime.
    async fn digest_rest(&self, location: &Path, first: FetchedObject) -> Result<Option<HashedObject>, BucketError> {
        let FetchedObject { found, content } = first;
        let tag = strong_tag(&found.stored.version);
        let (mut hasher, mut piece, mut bytes) = (blake3::Hasher::new(), content, 0);
        while !piece.is_empty() {
            hasher.update(&piece);
            bytes += piece.len() as u64;
            if bytes >= found.stored.size {
                break;
            }
            piece = match self.read_piece(location, piece_range(&(0..found.stored.size), bytes), tag.clone()).await {
                Ok(Some(next)) if next.found.stored == found.stored => next.content,
                Ok(_) => return Ok(None),
                Err(fault) if fault.is_refusal() => return Ok(None),
                Err(fault) => return Err(fault),
            };
        }
        Ok(Some(HashedObject { found, bytes, hash: hasher.finalize() }))
    }

    /// Reads a part of the content at a key in one request, with `if_match` only of the object with that entity tag.
    async fn read_piece(
        &self,
        location: &Path,
        range: Range<u64>,
        if_match: Option<String>,
    ) -> Result<Option<FetchedObject>, BucketError> {
        if range.is_empty() {
            return self.read_meta(location).await;
        }
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), if_match, ..GetOptions::default() };
        for attempt in 1.. {
            match self.limit.of(self.read_content(location, options.clone())).await {
                Ok(object) => return Ok(Some(object)),
                Err(fault) if fault.is_missing() => return Ok(None),
                // Services fail for a range that begins at or after the end of the content; here the result is empty.
                Err(fault) if fault.may_be_range() => match self.read_meta(location).await? {
                    // The object has grown in the meantime, or the range was not the cause of the failure.
                    Some(value) if value.found.stored.size > range.start && attempt == MAX_READ_ATTEMPTS => {
                        return Err(fault);
                    }
                    Some(value) if value.found.stored.size > range.start => {}
                    value => return Ok(value),
                },
                Err(fault) => return Err(fault),
            }
        }
        Err(BucketError::changing())
    }

    async fn read_content(&self, location: &Path, options: GetOptions) -> object_store::Result<FetchedObject> {
        let response = self.objects.get_opts(location, options).await?;
        let found = FoundObject::from_meta(&response.meta, &response.attributes, self.labels);
        Ok(FetchedObject { found, content: response.bytes().await? })
    }

    async fn read_meta(&self, location: &Path) -> Result<Option<FetchedObject>, BucketError> {
        Ok(self.look(location).await?.map(|found| FetchedObject { found, content: Bytes::new() }))
    }

    /// Begins the upload of a staged value.
    pub(super) async fn begin_upload(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>, BucketError> {
        match &self.repeatable_uploads {
            Some(uploads) => self.limit.of(uploads.begin(location, options)).await,
            None => self.limit.of(self.objects.put_multipart_opts(location, options)).await,
        }
    }

    /// Removes the object at a key. Most services report success if there is none.
    pub(super) async fn remove(&self, location: &Path) -> Result<(), BucketError> {
        self.limit.of(self.objects.delete(location)).await
    }
}

/// Returns the piece of `range` that begins at `start`.
fn piece_range(range: &Range<u64>, start: u64) -> Range<u64> {
    start..range.end.min(start.saturating_add(PIECE_BYTES))
}
