//! Reads of objects and their metadata.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};
use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions,
};
use tokio::runtime::Handle;
use vfs_core::{Error, Version};
use vfs_search::run_blocking;

use super::error::BucketError;
use super::http_transport::{ObjectCondition, OperationTimeout};
use super::repeatable_upload::RepeatableUploads;
use crate::store::{NewValue, StoredMeta, StoredValue, WriteId};

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

/// Size in bytes above which a content is hashed on a blocking thread.
const INLINE_HASH_THRESHOLD: usize = 256 << 10;

/// Maximum length of an entity tag in bytes; those of services have under 100.
const MAX_TAG_BYTES: usize = 512;

/// Object storage service with its particularities.
#[derive(Debug, Clone)]
pub(super) struct ObjectClient {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) conditions: ConditionBasis,
    pub(super) labels: MetadataNames,
    pub(super) limit: OperationTimeout,
    /// Uploads of staged values; `None` if the completion of an upload cannot be repeated.
    pub(super) repeatable_uploads: Option<RepeatableUploads>,
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

/// Names of the metadata of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MetadataNames {
    created_at: &'static str,
    modified_at: &'static str,
    write_id: &'static str,
    content_hash: &'static str,
}

impl MetadataNames {
    /// Names for most services.
    pub(super) const HYPHENED: Self = Self {
        created_at: "vfs-created-at",
        modified_at: "vfs-modified-at",
        write_id: "vfs-write-id",
        content_hash: "vfs-content-hash",
    };
    /// Names for Azure, where they must be identifiers of C#.
    #[cfg(feature = "azure")]
    pub(super) const UNDERSCORED: Self = Self {
        created_at: "vfs_created_at",
        modified_at: "vfs_modified_at",
        write_id: "vfs_write_id",
        content_hash: "vfs_content_hash",
    };

    /// Returns the metadata of a value with this content.
    pub(super) async fn of(self, value: &NewValue, content: &Bytes) -> Result<Attributes, Error> {
        let mut labels = self.without_hash(value.created_at, value.modified_at, value.id);
        labels.insert(Attribute::Metadata(self.content_hash.into()), hash(content).await?.into());
        Ok(labels)
    }

    /// Returns the metadata of a value whose content is sent later.
    pub(super) fn without_hash(self, created_at: DateTime<Utc>, modified_at: DateTime<Utc>, id: WriteId) -> Attributes {
        let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Micros, true);
        let labels = [
            (self.created_at, time(created_at)),
            (self.modified_at, time(modified_at)),
            (self.write_id, format_id(id)),
        ];
        labels.into_iter().map(|(name, text)| (Attribute::Metadata(name.into()), text)).collect()
    }
}

/// Returns the BLAKE3 hash of a content in hexadecimal digits.
async fn hash(content: &Bytes) -> Result<String, Error> {
    let hash = |content: &[u8]| blake3::hash(content).to_hex().to_string();
    match Handle::try_current() {
        Ok(runtime) if content.len() > INLINE_HASH_THRESHOLD => {
            let content = content.clone();
            run_blocking(&runtime, move || hash(&content)).await
        }
        _ => Ok(hash(content)),
    }
}

fn format_id(id: WriteId) -> String {
    format!("{:032x}", id.get())
}

/// Metadata of an existing object.
#[derive(Debug, Clone)]
pub(super) struct FoundObject {
    pub(super) stored: StoredMeta,
    /// Precondition of a change of exactly this object; `None` if the service has no entity tags.
    pub(super) guard: Option<ObjectCondition>,
    write_id: Option<String>,
    content_hash: Option<String>,
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

impl FoundObject {
    /// Returns whether the write `id` put the object.
    pub(super) fn is_by(&self, id: WriteId) -> bool {
        self.write_id.as_deref() == Some(format_id(id).as_str())
    }

    fn from_meta(meta: &ObjectMeta, attributes: &Attributes, labels: MetadataNames) -> Self {
        let text = |name: &'static str| {
            attributes.get(&Attribute::Metadata(name.into())).map(|value| value.as_ref().to_owned())
        };
        let time = |name| text(name).and_then(|text| Some(DateTime::parse_from_rfc3339(&text).ok()?.to_utc()));
        let modified_at = time(labels.modified_at).unwrap_or(meta.last_modified);
        let version = version(meta.e_tag.as_deref(), meta.size, meta.last_modified);
        let guard = meta
            .e_tag
            .as_ref()
            .and_then(|_| tag(&version))
            .map(|e_tag| ObjectCondition::Tag { e_tag, generation: meta.version.clone() });
        let stored =
            StoredMeta::new(meta.size, version, modified_at.trunc_subsecs(6)).created_at(time(labels.created_at));
        Self { stored, guard, write_id: text(labels.write_id), content_hash: text(labels.content_hash) }
    }
}

/// Returns the version of an object: its entity tag without quotes, because some services omit the quotes in listings.
pub(super) fn version(e_tag: Option<&str>, size: u64, last_modified: DateTime<Utc>) -> Version {
    match e_tag {
        Some(e_tag) => {
            let bare = e_tag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            Version::new(bare.unwrap_or(e_tag))
        }
        None => Version::new(format!("{size}@{}", last_modified.timestamp_micros())),
    }
}

/// Returns the entity tag of a version in quotes, or `None` if the version cannot be that of an object.
pub(super) fn tag(version: &Version) -> Option<String> {
    let text = version.as_str();
    let weak = text.strip_prefix("W/\"").and_then(|rest| rest.strip_suffix('"'));
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    match (weak, text) {
        // The tag `*` matches any object, for some services also in quotes.
        (_, "" | "*") => None,
        _ if text.len() > MAX_TAG_BYTES => None,
        (Some(bare), _) => is_plain(bare).then(|| text.to_owned()),
        (None, _) => is_plain(text).then(|| format!("\"{text}\"")),
    }
}

/// Returns the entity tag of a version for a condition of a read. A weak tag never matches a
/// condition; comparing the version detects changes all the same.
fn strong_tag(version: &Version) -> Option<String> {
    tag(version).filter(|tag| !tag.starts_with("W/"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_tag_without_its_quotes() {
        for (e_tag, text) in [("\"0f-2\"", "0f-2"), ("0x8D", "0x8D"), ("W/\"a\"", "W/\"a\""), ("\"", "\"")] {
            assert_eq!(version(Some(e_tag), 0, DateTime::UNIX_EPOCH).as_str(), text);
        }
        assert_eq!(tag(&"0f-2".into()).as_deref(), Some("\"0f-2\""));
        assert_eq!(tag(&"W/\"a\"".into()).as_deref(), Some("W/\"a\""));
        for text in ["", "*", "\"*\"", "a\nb", "a b", "ü", "\"", &"x".repeat(513)] {
            assert_eq!(tag(&text.into()), None, "{text}");
        }
    }
}
