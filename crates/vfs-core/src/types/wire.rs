//! How contents, values that may stand alone or in a list, and fields that may be left out look in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};

/// The pair of fields that carries bytes: `content` where they are UTF-8, else `content_base64`.
pub(super) type ContentFields = (Option<String>, Option<String>);

pub(super) fn split(content: Bytes) -> ContentFields {
    match String::from_utf8(content.into()) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
    }
}

pub(super) fn join(fields: ContentFields) -> Result<Bytes, String> {
    match fields {
        (Some(text), None) => Ok(text.into()),
        (None, Some(encoded)) => decode(&encoded),
        (None, None) => Err("missing field `content` or `content_base64`".into()),
        (Some(_), Some(_)) => Err("give either `content` or `content_base64`, not both".into()),
    }
}

pub(super) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn decode(encoded: &str) -> Result<Bytes, String> {
    STANDARD.decode(encoded).map(Bytes::from).map_err(|error| format!("`content_base64` is not base64: {error}"))
}

/// Reads `null` as what a field is that is left out: models that must name every field of a schema send it.
pub(crate) fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads `"a"` as `["a"]`, for fields that mostly hold one value, and `null` as none.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a string or a list of strings")]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Option::deserialize(deserializer)? {
        None => Vec::new(),
        Some(OneOrMany::One(value)) => vec![value],
        Some(OneOrMany::Many(values)) => values,
    })
}
