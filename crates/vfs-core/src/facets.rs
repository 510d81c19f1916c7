//! What some backends can do beside the operations that all can.

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::backend::Backend;
use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;
use crate::tree::SharedTree;
use crate::types::{
    ChangeSet, Content, DiffRequest, ForgetRequest, OpenTreeRequest, ReadRequest, ReadResult, RestoreRequest,
    SnapshotInfo, SnapshotRequest, WatchEvent, WatchRequest,
};

/// Asks for a file as something a multimodal model can look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MultiModalReadRequest {
    /// The file, and the window of it where it is text.
    pub read: ReadRequest,
    /// Pages of a PDF, from 1, such as `1-5` or `3`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<String>,
}

impl MultiModalReadRequest {
    /// Reads all of what `read` names.
    pub fn new(read: ReadRequest) -> Self {
        Self { read, pages: None }
    }
}

/// Whether a part is a picture or a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PartKind {
    /// A picture.
    Image,
    /// A PDF document.
    Pdf,
}

/// One part of a file for a multimodal model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FilePart {
    /// Picture or document.
    pub kind: PartKind,
    /// Its MIME type, such as `image/png`.
    pub mime_type: String,
    /// Its bytes; base64 in JSON.
    #[serde(with = "base64_data")]
    pub data: Bytes,
}

mod base64_data {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(data: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(data))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Bytes::from).map_err(serde::de::Error::custom)
    }
}

impl FilePart {
    /// A part of `kind`.
    pub fn new(kind: PartKind, mime_type: impl Into<String>, data: Bytes) -> Self {
        Self { kind, mime_type: mime_type.into(), data }
    }
}

/// A file as text, or as parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MultiModalContent {
    /// It is neither picture nor PDF: what `read` gives.
    Content(ReadResult),
    /// Pictures and documents.
    Parts(Vec<FilePart>),
}

/// Reads pictures and documents as parts for a multimodal model.
#[async_trait]
pub trait MultiModalReader: Send + Sync {
    /// Reads one file.
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalContent>;
}

/// Reads a picture or a PDF as one part, and anything else as [`Backend::read`] does: a [`MultiModalReader`] for every
/// backend.
///
/// # Behaviour
///
/// * What a file is, its content says. A part holds the whole file, which is downloaded where a read does not give it all.
/// * A range of bytes is never a part: it is what `read` gives.
///
/// # Errors
///
/// `invalid_argument` where `pages` is neither a number from 1 nor a range of two in order; `unsupported` where it is given
/// for a PDF, as PDFs are not taken apart here; and those of the read and the download.
pub async fn read_multi_modal(
    backend: &dyn Backend,
    cx: &OpContext,
    req: MultiModalReadRequest,
) -> Result<MultiModalContent> {
    let MultiModalReadRequest { read, pages } = req;
    if pages.as_deref().is_some_and(|pages| !is_page_range(pages)) {
        let message = "`pages` is a page number from 1, such as '3', or a range in order, such as '1-5'";
        return Err(Error::invalid_argument(message).with_path(&read.path));
    }
    let by_bytes = read.bytes.is_some();
    let result = backend.read(cx, read).await?;
    let part = match &result.content {
        Content::Binary { bytes, mime_type } if !by_bytes => {
            part_kind(mime_type).map(|kind| (kind, mime_type.clone(), bytes.clone()))
        }
        _ => None,
    };
    let Some((kind, mime_type, mut data)) = part else { return Ok(MultiModalContent::Content(result)) };
    if kind == PartKind::Pdf && pages.is_some() {
        let message = "a PDF cannot be taken apart into pages here; read the whole document, without `pages`";
        return Err(Error::new(ErrorKind::Unsupported, message).with_path(&result.path));
    }
    if result.truncated.is_some() {
        data = download(backend, cx, result.path).await?;
    }
    Ok(MultiModalContent::Parts(vec![FilePart::new(kind, mime_type, data)]))
}

fn part_kind(mime_type: &str) -> Option<PartKind> {
    match mime_type {
        "application/pdf" => Some(PartKind::Pdf),
        image if image.starts_with("image/") => Some(PartKind::Image),
        _ => None,
    }
}

fn is_page_range(pages: &str) -> bool {
    let number = |text: &str| {
        let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|page| is_digits && *page > 0)
    };
    match pages.split_once('-') {
        Some((first, last)) => number(first).zip(number(last)).is_some_and(|(first, last)| first <= last),
        None => number(pages).is_some(),
    }
}

async fn download(backend: &dyn Backend, cx: &OpContext, path: VfsPath) -> Result<Bytes> {
    let file = backend.download_files(cx, vec![path.clone()]).await.pop();
    match file.map(|file| (file.content, file.cause)) {
        Some((Some(content), _)) => Ok(content),
        Some((None, Some(cause))) => Err(cause),
        Some((None, None)) | None => Err(Error::at(ErrorKind::Internal, &path)),
    }
}

/// Lends its files as a tree, so that a wrapper or a namespace of several backends can search them as its own.
///
/// # Behaviour
///
/// TreeProvider is an operation: a layer around the backend sees it, and lends what its caller may see. The tree may be of the
/// moment it was lent, and is used until the search is over. A layer that asks another for its tree passes on
/// [what it is for](OpenTreeRequest::search).
///
/// # Errors
///
/// What keeps the backend as a whole from being searched. That nothing is at the path is for the search to find.
#[async_trait]
pub trait TreeProvider: Send + Sync {
    /// Lends the tree of all files.
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<SharedTree>;
}

/// Remembers states of all files and goes back to them.
#[async_trait]
pub trait Snapshots: Send + Sync {
    /// Remembers the state of now.
    async fn snapshot(&self, cx: &OpContext, req: SnapshotRequest) -> Result<SnapshotInfo>;

    /// The states that are remembered, the oldest first.
    async fn snapshots(&self, cx: &OpContext) -> Result<Vec<SnapshotInfo>>;

    /// Goes back to a remembered state, which stays remembered.
    async fn restore(&self, cx: &OpContext, req: RestoreRequest) -> Result<()>;

    /// Forgets a state.
    async fn forget(&self, cx: &OpContext, req: ForgetRequest) -> Result<()>;

    /// Says what differs between two states, or between one and now.
    async fn diff(&self, cx: &OpContext, req: DiffRequest) -> Result<ChangeSet>;
}

/// Tells of changes as they happen.
///
/// # Behaviour
///
/// * Events come in the order in which the changes were made, to every subscriber.
/// * A subscriber that is too slow, or asks for events that are no longer remembered, gets [`Change::Overflow`] in place of
///   those it missed, and then what follows.
/// * The feed begins when `watch` is called, not when its stream is first asked. The context's token and deadline end it,
///   with an error, and so does the backend where it can no longer see what happens: it never ends in silence.
///
/// [`Change::Overflow`]: crate::Change::Overflow
pub trait Watch: Send + Sync {
    /// Changes at and below the request's path.
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbers_from_one_in_order() {
        for (pages, expected) in [
            ("1", true),
            ("1-5", true),
            ("3-3", true),
            ("", false),
            ("0", false),
            ("0-2", false),
            ("5-1", false),
            ("+1", false),
            ("1-", false),
            ("-1", false),
            ("1-2-3", false),
            (" 1", false),
            ("99999999999", false),
        ] {
            assert_eq!(is_page_range(pages), expected, "{pages:?}");
        }
    }
}
