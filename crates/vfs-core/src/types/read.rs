//! Reading a window of a file.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::entry::{Truncation, Version};
use super::wire;
use crate::path::VfsPath;

/// A part of a file by bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByteRange {
    /// The first byte, from 0.
    #[serde(deserialize_with = "wire::required_whole")]
    pub start: u64,
    /// One past the last byte; `None` is the end of the file. An end past that is that.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub end: Option<u64>,
}

/// Asks for a window of a file, by lines or by bytes.
///
/// # Behaviour
///
/// * `offset` lines are skipped, then at most `limit` lines are read. Lines end at `\n` and nowhere else.
/// * With `bytes`, the window is that range of bytes instead; `offset` and `limit` must then be left alone.
/// * What is not text has no lines: its bytes are read from the first on, whatever `offset` and `limit` are.
/// * Whatever is asked for, at most `max_bytes` are returned, and the result says where to go on.
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
    /// Lines to skip. Default 0.
    #[serde(default, deserialize_with = "wire::whole")]
    pub offset: u64,
    /// Most lines. Default: all. With 0 the result is empty and says that there is more.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub limit: Option<u64>,
    /// A range of bytes instead of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteRange>,
    /// Most bytes of the file in the result. Default [`ReadRequest::DEFAULT_MAX_BYTES`]. No backend returns more than its
    /// largest file has ([`Capabilities::max_file_size`](crate::Capabilities::max_file_size)), whatever is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_bytes: Option<u64>,
    /// The form of the content. Default [`ContentForm::Decoded`].
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
    /// The bytes as they are in the file, always as [`Content::Binary`]; a byte order mark belongs to the first line. The result says
    /// the encoding of a text all the same.
    Raw,
}

impl ContentForm {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl ReadRequest {
    /// 16 MiB, the most that a read returns unless it asks for more.
    pub const DEFAULT_MAX_BYTES: u64 = 16 << 20;

    /// Asks for the whole of `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path, offset: 0, limit: None, bytes: None, max_bytes: None, form: ContentForm::Decoded }
    }

    /// Skips `lines`.
    #[must_use]
    pub fn offset(mut self, lines: u64) -> Self {
        self.offset = lines;
        self
    }

    /// Reads at most `lines`.
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

    /// Reads a range of bytes instead of lines; `end` is exclusive, `None` the end of the file.
    #[must_use]
    pub fn bytes(mut self, start: u64, end: Option<u64>) -> Self {
        self.bytes = Some(ByteRange { start, end });
        self
    }

    /// Returns at most `bytes` of the file.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Returns the bytes as they are in the file.
    #[must_use]
    pub fn raw(mut self) -> Self {
        self.form = ContentForm::Raw;
        self
    }

    /// Lowers [`max_bytes`](Self::max_bytes) to what a backend returns at most: its
    /// [`max_file_size`](crate::Capabilities::max_file_size), and never less than the default.
    #[must_use]
    pub fn clamp_max_bytes(mut self, max_file_size: u64) -> Self {
        let most = max_file_size.max(Self::DEFAULT_MAX_BYTES);
        self.max_bytes = self.max_bytes.map(|bytes| bytes.min(most));
        self
    }
}

/// What a file holds.
///
/// In JSON `{"text": "..."}` or `{"base64": "...", "mime_type": "..."}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text; for UTF-8 the file's bytes exactly, a leading byte order mark included.
    Text(String),
    /// Bytes that are not text, or that were asked for by range and do not decode.
    Binary {
        /// The bytes.
        bytes: Bytes,
        /// The MIME type, by the content's own signature; `application/octet-stream` where none is known.
        mime_type: String,
    },
}

impl Content {
    /// The text, where it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Content::Text(text) => Some(text),
            Content::Binary { .. } => None,
        }
    }

    /// The content as bytes: of a text, its UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Content::Text(text) => text.as_bytes(),
            Content::Binary { bytes, .. } => bytes,
        }
    }
}

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
        #[derive(Serialize)]
        struct TextContent<'a> {
            text: &'a str,
        }
        #[derive(Serialize)]
        struct BinaryContent<'a> {
            base64: wire::Base64<'a>,
            mime_type: &'a str,
        }
        match self {
            Content::Text(text) => TextContent { text }.serialize(serializer),
            Content::Binary { bytes, mime_type } => {
                BinaryContent { base64: wire::Base64(bytes), mime_type }.serialize(serializer)
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
            _ => Err(serde::de::Error::custom("content is either `text`, or `base64` with `mime_type`")),
        }
    }
}

/// How a text is spelled in bytes.
///
/// In JSON its name: `utf-8`, `utf-8-bom`, `utf-16le`, `utf-16be`, or the WHATWG label of a legacy encoding.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-8 that starts with a byte order mark.
    Utf8Bom,
    /// UTF-16, little end first, with a byte order mark.
    Utf16Le,
    /// UTF-16, big end first, with a byte order mark.
    Utf16Be,
    /// A legacy encoding of the [WHATWG standard](https://encoding.spec.whatwg.org), guessed from the content.
    Legacy(&'static encoding_rs::Encoding),
}

impl Encoding {
    /// The lower-case name.
    pub fn name(self) -> String {
        match self {
            Encoding::Utf8 => "utf-8".into(),
            Encoding::Utf8Bom => "utf-8-bom".into(),
            Encoding::Utf16Le => "utf-16le".into(),
            Encoding::Utf16Be => "utf-16be".into(),
            Encoding::Legacy(encoding) => encoding.name().to_ascii_lowercase(),
        }
    }

    /// The encoding of that name.
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
        Encoding::from_name(&name)
            .ok_or_else(|| serde::de::Error::custom(format_args!("`{name}` is not a known encoding")))
    }
}

/// How the lines of a window end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LineEnding {
    /// No line ends in it.
    #[default]
    None,
    /// All with `\n`.
    Lf,
    /// All with `\r\n`.
    Crlf,
    /// Some with one, some with the other.
    Mixed,
}

/// A window of a file.
///
/// Lines are numbered from 1. A window without lines has `end_line` one less than `start_line`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadResult {
    /// The file.
    pub path: VfsPath,
    /// What the window holds; line endings are the file's own.
    pub content: Content,
    /// The number of the first line of the window; 0 where the content is binary or a byte range.
    pub start_line: u64,
    /// The number of the last line, a part of one included; 0 where the content is binary or a byte range.
    pub end_line: u64,
    /// How many lines the file has, where that is known without reading what was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// The `offset` that goes on after this window, where there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// Where in the file the window goes on by bytes, where it was cut inside a line or is by bytes, and there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_byte: Option<u64>,
    /// The bytes of the file that the window covers.
    pub bytes: ByteRange,
    /// Why there is more than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
    /// The text's encoding; `None` for binary content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// How the window's lines end.
    #[serde(default)]
    pub line_ending: LineEnding,
    /// The size of the whole file in bytes.
    pub size: u64,
    /// The file's version, for a conditional write or edit.
    pub version: Version,
}
