//! Files of an agent's state in JSON, and updates of such a state.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};

use crate::path::VfsPath;

/// An update of an agent's files: the new file for each path, or `None` if it is deleted.
pub type FilesUpdate = BTreeMap<VfsPath, Option<FileData>>;

/// The content of a file in an agent's state.
///
/// The JSON form is a list of lines, joined by `\n`, or a string. Bytes that are not UTF-8 are a string in base64, with
/// `"encoding": "base64"` beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FileDataContent {
    /// Lines, such as `["line 1", "line 2"]`.
    Lines(Vec<String>),
    /// A string, such as `"line 1\nline 2"`.
    Text(String),
}

/// A file of an agent's state: `{content, created_at, modified_at}`, with `encoding` if the content is a string.
///
/// ```
/// use vfs_core::state::FileData;
///
/// let old: FileData = serde_json::from_str(
///     r#"{"content": ["a", "b"], "created_at": "2025-01-15T10:30:00Z", "modified_at": "2025-01-15T10:35:00Z"}"#,
/// )?;
/// assert_eq!(old.to_bytes().expect("lines are text"), "a\nb");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileData {
    /// The content.
    pub content: FileDataContent,
    /// The encoding of a string, `utf-8` or `base64`; omitted for lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The creation time. Default in JSON: 1970.
    #[serde(default, deserialize_with = "time")]
    pub created_at: DateTime<Utc>,
    /// The modification time. Default in JSON: 1970.
    #[serde(default, deserialize_with = "time")]
    pub modified_at: DateTime<Utc>,
}

/// Deserialises an ISO 8601 time, with `T` or a space before the time of day. The default offset is UTC, the default time of day
/// midnight, and the default of an empty string 1970.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()) else {
        return Ok(DateTime::default());
    };
    let with_offset = || text.parse::<DateTime<Utc>>().ok();
    let without = |format| NaiveDateTime::parse_from_str(&text, format).ok().map(|time| time.and_utc());
    let day = || text.parse::<NaiveDate>().ok().map(|day| day.and_time(NaiveTime::MIN).and_utc());
    let time = with_offset()
        .or_else(|| without("%Y-%m-%dT%H:%M:%S%.f"))
        .or_else(|| without("%Y-%m-%d %H:%M:%S%.f"))
        .or_else(day);
    time.ok_or_else(|| serde::de::Error::custom(format_args!("`{text}` is not an ISO 8601 time")))
}

impl FileData {
    /// Creates a file with its content as a string, in base64 unless the content is UTF-8.
    pub fn text(content: &[u8], created_at: DateTime<Utc>, modified_at: DateTime<Utc>) -> Self {
        let (text, encoding) = match std::str::from_utf8(content) {
            Ok(text) => (text.to_owned(), "utf-8"),
            Err(_) => (STANDARD.encode(content), "base64"),
        };
        Self { content: FileDataContent::Text(text), encoding: Some(encoding.into()), created_at, modified_at }
    }

    /// Creates a file with its content as lines, or as a string in base64 unless the content is UTF-8.
    pub fn lines(content: &[u8], created_at: DateTime<Utc>, modified_at: DateTime<Utc>) -> Self {
        match std::str::from_utf8(content) {
            Ok(text) => Self {
                content: FileDataContent::Lines(text.split('\n').map(str::to_owned).collect()),
                encoding: None,
                created_at,
                modified_at,
            },
            Err(_) => Self::text(content, created_at, modified_at),
        }
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    ///
    /// A message, if the `encoding` is unknown or the text is not valid base64.
    pub fn to_bytes(&self) -> Result<Bytes, String> {
        match (&self.content, self.encoding.as_deref()) {
            (FileDataContent::Lines(lines), None | Some("utf-8")) => Ok(lines.join("\n").into()),
            (FileDataContent::Text(text), None | Some("utf-8")) => Ok(text.clone().into()),
            (FileDataContent::Text(text), Some("base64")) => {
                STANDARD.decode(text).map(Bytes::from).map_err(|error| format!("the content is not base64: {error}"))
            }
            (_, Some(other)) => Err(format!("the encoding '{other}' is neither 'utf-8' nor 'base64'")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_in_every_form_that_states_use() {
        for (json, expected) in [
            (r#"{"content": "a", "created_at": "2025-01-15T10:30:00Z"}"#, "2025-01-15T10:30:00+00:00"),
            (r#"{"content": "a", "created_at": "2025-01-15T10:30:00+02:00"}"#, "2025-01-15T08:30:00+00:00"),
            (r#"{"content": "a", "created_at": "2025-01-15T10:30:00.5"}"#, "2025-01-15T10:30:00.500+00:00"),
            (r#"{"content": "a", "created_at": "2025-01-15 10:30:00+0200"}"#, "2025-01-15T08:30:00+00:00"),
            (r#"{"content": "a", "created_at": "2025-01-15 10:30:00"}"#, "2025-01-15T10:30:00+00:00"),
            (r#"{"content": "a", "created_at": "2025-01-15"}"#, "2025-01-15T00:00:00+00:00"),
            (r#"{"content": ["a"], "created_at": ""}"#, "1970-01-01T00:00:00+00:00"),
            (r#"{"content": ["a"]}"#, "1970-01-01T00:00:00+00:00"),
        ] {
            let data: FileData = serde_json::from_str(json).expect(json);
            assert_eq!(data.created_at.to_rfc3339(), expected, "{json}");
        }
        assert!(serde_json::from_str::<FileData>(r#"{"content": "a", "created_at": "yesterday"}"#).is_err());
    }
}
