//! Metadata and versions of objects.

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};
use object_store::{Attribute, Attributes, ObjectMeta};
use tokio::runtime::Handle;
use vfs_core::{Error, Version};
use vfs_search::run_blocking;

use super::http_transport::ObjectCondition;
use crate::store::{NewValue, StoredMeta, WriteId};

/// Size in bytes above which a content is hashed on a blocking thread.
const INLINE_HASH_THRESHOLD: usize = 256 << 10;

/// Maximum length of an entity tag in bytes; those of services have under 100.
const MAX_TAG_BYTES: usize = 512;

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
    pub(super) content_hash: Option<String>,
}

impl FoundObject {
    /// Returns whether the write `id` put the object.
    pub(super) fn is_by(&self, id: WriteId) -> bool {
        self.write_id.as_deref() == Some(format_id(id).as_str())
    }

    pub(super) fn from_meta(meta: &ObjectMeta, attributes: &Attributes, labels: MetadataNames) -> Self {
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
pub(super) fn strong_tag(version: &Version) -> Option<String> {
    tag(version).filter(|tag| !tag.starts_with("W/"))
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
