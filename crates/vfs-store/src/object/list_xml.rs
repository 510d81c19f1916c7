//! Parser of S3 listings that returns keys exactly as they are sent.

use chrono::{DateTime, Utc};
use serde::Deserialize;

/// Extension of a request for a listing with keys exactly as they are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawKeysExtension;

/// Page of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ObjectListing {
    /// Objects, in the order of the service.
    pub(super) objects: Vec<ListedObject>,
    /// Common prefixes of the other keys, up to and including the next `/`.
    pub(super) prefixes: Vec<String>,
    /// Continuation token of the service for the next page.
    pub(super) next: Option<String>,
}

/// Object of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListedObject {
    /// Key of the object.
    pub(super) key: String,
    /// Size of the content in bytes.
    pub(super) size: u64,
    /// Time at which the object was put.
    pub(super) last_modified: DateTime<Utc>,
    /// Entity tag of the object.
    #[serde(rename = "ETag")]
    pub(super) e_tag: Option<String>,
}

/// Response to a request for a listing.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListBucketResult {
    #[serde(default)]
    contents: Vec<ListedObject>,
    #[serde(default)]
    common_prefixes: Vec<CommonPrefix>,
    next_continuation_token: Option<String>,
}

/// Prefix of several keys, up to a delimiter.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CommonPrefix {
    prefix: String,
}

/// Parses a response of S3 or a compatible service.
pub(super) fn parse(body: &[u8]) -> Result<ObjectListing, quick_xml::DeError> {
    let result: ListBucketResult = quick_xml::de::from_reader(body)?;
    Ok(ObjectListing {
        objects: result.contents,
        prefixes: result.common_prefixes.into_iter().map(|common| common.prefix).collect(),
        next: result.next_continuation_token.filter(|token| !token.is_empty()),
    })
}

impl ObjectListing {
    /// Returns the last key or the last prefix, whichever comes later.
    pub(super) fn last_key(&self) -> Option<&str> {
        let last = self.objects.last().map(|object| object.key.as_str());
        last.max(self.prefixes.last().map(String::as_str))
    }

    /// Returns the body of a response that has only the continuation token.
    pub(super) fn without_objects(&self) -> String {
        let next = self
            .next
            .as_deref()
            .map(quick_xml::escape::escape)
            .map(|token| format!("<NextContinuationToken>{token}</NextContinuationToken>"));
        format!("<ListBucketResult>{}</ListBucketResult>", next.unwrap_or_default())
    }
}

impl From<object_store::ListResult> for ObjectListing {
    fn from(result: object_store::ListResult) -> Self {
        Self {
            objects: result.objects.into_iter().map(ListedObject::from).collect(),
            prefixes: result.common_prefixes.into_iter().map(|prefix| format!("{prefix}/")).collect(),
            next: None,
        }
    }
}

impl From<object_store::ObjectMeta> for ListedObject {
    fn from(meta: object_store::ObjectMeta) -> Self {
        Self { key: meta.location.into(), size: meta.size, last_modified: meta.last_modified, e_tag: meta.e_tag }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are() {
        let body = br#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><IsTruncated>true</IsTruncated>
<Contents><Key>a//b</Key><LastModified>2026-01-02T03:04:05.678Z</LastModified><ETag>&quot;0f&quot;</ETag><Size>3</Size></Contents>
<CommonPrefixes><Prefix>x &amp; y/</Prefix></CommonPrefixes>
<Contents><Key> folder/</Key><LastModified>2026-01-02T03:04:05Z</LastModified><Size>0</Size></Contents>
<NextContinuationToken>1&lt;2</NextContinuationToken></ListBucketResult>"#;
        let listing = parse(body).expect("a listing");
        let keys: Vec<&str> = listing.objects.iter().map(|object| object.key.as_str()).collect();
        assert_eq!(keys, ["a//b", " folder/"]);
        assert_eq!(listing.objects[0].e_tag.as_deref(), Some("\"0f\""));
        assert_eq!(listing.prefixes, ["x & y/"]);
        assert_eq!(parse(listing.without_objects().as_bytes()).expect("a listing").next.as_deref(), Some("1<2"));
        assert_eq!(parse(b"<ListBucketResult/>").expect("an empty listing"), ObjectListing::default());
        assert!(parse(b"<html>nonsense").is_err());
    }
}
