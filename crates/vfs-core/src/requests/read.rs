//! Requests and results of reads, content and encodings.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::incomplete_results::TruncationReason;
use super::version::Version;
use super::wire;
use crate::path::VfsPath;

/// A range of bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByteRange {
    /// The first byte, from 0.
    #[serde(deserialize_with = "wire::required_whole")]
    pub start: u64,
    /// The end, exclusive; `None` is the end of the file. A larger end is lowered to the end of the file.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub end: Option<u64>,
}

/// A request for [`Backend::read`](crate::Backend::read): a window of a file, by lines or by bytes.
///
/// # Behaviour
///
/// * The window starts after `offset` lines and has at most `limit` lines. Lines end at `\n` only.
/// * If `bytes` is set, the window is that range, and `offset` and `limit` must not be set.
/// * Binary content has no lines: the window starts at its first byte, and `limit` has no effect.
/// * The window has at most `max_bytes` bytes. The result has the position of the rest.
///
/// ```
/// use vfs_core::{ReadRequest, VfsPath};
///
/// let request = ReadRequest::new(VfsPath::parse("/log.txt")?).lines(900_000, 100);
/// assert_eq!((request.offset, request.limit), (900_000, Some(100)));
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadRequest {
    /// The file.
    pub path: VfsPath,
    /// The number of lines to skip. Default: 0.
    #[serde(default, deserialize_with = "wire::whole")]
    pub offset: u64,
    /// The maximum number of lines. Default: all. With 0, the result is empty and truncated.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub limit: Option<u64>,
    /// A range of bytes instead of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteRange>,
    /// The maximum size of the window in bytes of the file. Default: [`ReadRequest::DEFAULT_MAX_BYTES`]. A backend lowers larger
    /// values to its [`Capabilities::max_file_size`](crate::Capabilities::max_file_size).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_bytes: Option<u64>,
    /// The form of the content. Default: [`ContentForm::Decoded`].
    #[serde(default, skip_serializing_if = "ContentForm::is_default", deserialize_with = "wire::or_default")]
    pub form: ContentForm,
}

/// The form of the content of a [`ReadResult`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentForm {
    /// Text is decoded to UTF-8.
    #[default]
    Decoded,
    /// The bytes of the file, always as [`Content::Binary`]; a byte order mark belongs to the first line. The result has the
    /// encoding of a text nevertheless.
    Raw,
}

impl ContentForm {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl ReadRequest {
    /// The default maximum size of a window: 16 MiB.
    pub const DEFAULT_MAX_BYTES: u64 = 16 << 20;

    /// Creates a request for the whole file `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path, offset: 0, limit: None, bytes: None, max_bytes: None, form: ContentForm::Decoded }
    }

    /// Skips `lines` lines.
    #[must_use]
    pub fn offset(mut self, lines: u64) -> Self {
        self.offset = lines;
        self
    }

    /// Reads at most `lines` lines.
    #[must_use]
    pub fn limit(mut self, lines: u64) -> Self {
        self.limit = Some(lines);
        self
    }

    /// Skips `offset` lines and reads at most `limit`.
    #[must_use]
    pub fn lines(self, offset: u64, limit: u64) -> Self {
        self.offset(offset).limit(limit)
    }

    /// Reads a range of bytes instead of lines. The end is exclusive; `None` is the end of the file.
    #[must_use]
    pub fn bytes(mut self, start: u64, end: Option<u64>) -> Self {
        self.bytes = Some(ByteRange { start, end });
        self
    }

    /// Sets the maximum size of the window in bytes.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Returns the bytes of the file instead of decoded text.
    #[must_use]
    pub fn raw(mut self) -> Self {
        self.form = ContentForm::Raw;
        self
    }

    /// Lowers [`max_bytes`](Self::max_bytes) to `max_file_size`, the [limit](crate::Capabilities::max_file_size) of a backend,
    /// but not below the default.
    #[must_use]
    pub fn clamp_max_bytes(mut self, max_file_size: u64) -> Self {
        let max = max_file_size.max(Self::DEFAULT_MAX_BYTES);
        self.max_bytes = self.max_bytes.map(|bytes| bytes.min(max));
        self
    }
}

/// The content of a window.
///
/// The JSON form is `{"text": "..."}` or `{"base64": "...", "mime_type": "..."}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text. For UTF-8, the exact bytes of the file, with a leading byte order mark.
    Text(String),
    /// Bytes of binary content, of a range that is not valid text, or in [raw form](ContentForm::Raw).
    Binary {
        /// The bytes.
        bytes: Bytes,
        /// The MIME type by signature, or `application/octet-stream`.
        mime_type: String,
    },
}

impl Content {
    /// Returns the text, or `None` for binary content.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Content::Text(text) => Some(text),
            Content::Binary { .. } => None,
        }
    }

    /// Returns the content as bytes; text as UTF-8.
    ///
    /// The bytes are those of the file if the content is binary or the file is in UTF-8; for another encoding, request
    /// [`ContentForm::Raw`]. To take the bytes without a copy, match the variants.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Content::Text(text) => text.as_bytes(),
            Content::Binary { bytes, .. } => bytes,
        }
    }
}

/// The JSON form of a content.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireContent {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    base64: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// The JSON form of a text.
        #[derive(Serialize)]
        struct TextContent<'a> {
            text: &'a str,
        }
        /// The JSON form of bytes.
        #[derive(Serialize)]
        struct BinaryContent<'a> {
            base64: wire::Base64Bytes<'a>,
            mime_type: &'a str,
        }
        match self {
            Content::Text(text) => TextContent { text }.serialize(serializer),
            Content::Binary { bytes, mime_type } => {
                BinaryContent { base64: wire::Base64Bytes(bytes), mime_type }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match WireContent::deserialize(deserializer)? {
            WireContent { text: Some(text), base64: None, mime_type: None } => Ok(Content::Text(text)),
            WireContent { text: None, base64: Some(encoded), mime_type } => Ok(Content::Binary {
                bytes: wire::decode(&encoded).map_err(serde::de::Error::custom)?,
                mime_type: mime_type.unwrap_or_else(|| crate::text::OCTET_STREAM.into()),
            }),
            _ => Err(serde::de::Error::custom("invalid content: give either `text`, or `base64` with `mime_type`")),
        }
    }
}

/// The character encoding of a text.
///
/// The JSON form is the name: `utf-8`, `utf-8-bom`, `utf-16le`, `utf-16be`, or the WHATWG label of a legacy encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// UTF-8 without a byte order mark.
    Utf8,
    /// UTF-8 that starts with a byte order mark.
    Utf8Bom,
    /// Little-endian UTF-16 with a byte order mark.
    Utf16Le,
    /// Big-endian UTF-16 with a byte order mark.
    Utf16Be,
    /// A legacy encoding of the [WHATWG standard](https://encoding.spec.whatwg.org), detected from the content.
    Legacy(&'static encoding_rs::Encoding),
}

impl Encoding {
    /// Returns the lower-case name.
    pub fn name(self) -> String {
        match self {
            Encoding::Utf8 => "utf-8".into(),
            Encoding::Utf8Bom => "utf-8-bom".into(),
            Encoding::Utf16Le => "utf-16le".into(),
            Encoding::Utf16Be => "utf-16be".into(),
            Encoding::Legacy(encoding) => encoding.name().to_ascii_lowercase(),
        }
    }

    /// Returns the encoding with the given name, or `None` if it is unknown.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "utf-8" => Encoding::Utf8,
            "utf-8-bom" => Encoding::Utf8Bom,
            "utf-16le" => Encoding::Utf16Le,
            "utf-16be" => Encoding::Utf16Be,
            other => Encoding::Legacy(encoding_rs::Encoding::for_label(other.as_bytes())?),
        })
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Serialize for Encoding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for Encoding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Encoding::from_name(&name).ok_or_else(|| serde::de::Error::custom(format_args!("unknown encoding `{name}`")))
    }
}

/// The line endings of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LineEnding {
    /// The window contains no line ending.
    #[default]
    None,
    /// All lines end with `\n`.
    Lf,
    /// All lines end with `\r\n`.
    Crlf,
    /// Some lines end with `\n`, some with `\r\n`.
    Mixed,
}

/// The result of a read: a window of a file.
///
/// Lines are numbered from 1. In a window without lines, `end_line` is one less than `start_line`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadResult {
    /// The file.
    pub path: VfsPath,
    /// The content, with the line endings of the file.
    pub content: Content,
    /// The number of the first line; 0 for binary content or a range of bytes.
    pub start_line: u64,
    /// The number of the last line, which may be cut; 0 for binary content or a range of bytes.
    pub end_line: u64,
    /// The number of lines of the file, if the read of the window determines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// The `offset` of the next window, if more lines follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// The byte at which the next window starts, if more bytes follow and this window is by bytes or ends within a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_byte: Option<u64>,
    /// The range of bytes of the file that the window covers.
    pub bytes: ByteRange,
    /// The reason for which the window is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<TruncationReason>,
    /// The encoding of the text; `None` for binary content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// The line endings of the window.
    #[serde(default)]
    pub line_ending: LineEnding,
    /// The size of the whole file in bytes.
    pub size: u64,
    /// The version of the file, for a conditional write or edit.
    pub version: Version,
}
