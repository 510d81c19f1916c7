//! Facets: optional operations that only some backends have.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::backend::Backend;
use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};
use crate::operation::ListSnapshotsRequest;
use crate::path::VfsPath;
use crate::requests::{
    Content, ForgetRequest, OpenTreeRequest, ReadRequest, ReadResult, RestoreRequest, SnapshotDiffRequest,
    SnapshotDiffResult, SnapshotInfo, SnapshotRequest, WatchEvent, WatchRequest,
};
use crate::tree::Tree;

/// A request for [`MultiModalReader::multi_modal_read`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MultiModalReadRequest {
    /// The file, and the window to read if the file is text.
    pub read: ReadRequest,
    /// The pages of a PDF, from 1, such as `1-5` or `3`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<String>,
}

impl MultiModalReadRequest {
    /// Creates a request for all pages of the file that `read` names.
    pub fn new(read: ReadRequest) -> Self {
        Self { read, pages: None }
    }
}

/// The type of a file part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PartKind {
    /// An image.
    Image,
    /// A PDF document.
    Pdf,
}

/// One part of a file for a multimodal model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FilePart {
    /// The type of the part.
    pub kind: PartKind,
    /// The MIME type, such as `image/png`.
    pub mime_type: String,
    /// The bytes; base64 in JSON.
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
    /// Creates a part.
    pub fn new(kind: PartKind, mime_type: impl Into<String>, data: Bytes) -> Self {
        Self { kind, mime_type: mime_type.into(), data }
    }
}

/// The content of a file for a multimodal model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MultiModalReadResult {
    /// The result of a plain read, for a file that is neither an image nor a PDF.
    Content(ReadResult),
    /// The images and documents of the file.
    Parts(Vec<FilePart>),
}

/// The facet that reads images and documents for a multimodal model.
#[async_trait]
pub trait MultiModalReader: Send + Sync {
    /// Reads a file as parts, or as [`Backend::read`] does.
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult>;
}

/// Reads an image or a PDF as one part, and any other file as [`Backend::read`] does, on any backend.
///
/// # Behaviour
///
/// * The type of a file is detected from its content. A part is the whole file, which is downloaded if one read is not enough.
/// * A request for a range of bytes returns the result of `read`.
///
/// # Errors
///
/// `invalid_argument` if `pages` is neither a number from 1 nor an ascending range; `unsupported` for `pages` of a PDF, as this
/// function does not split PDFs; those of [`Backend::read`] and [`Backend::download_files`].
pub async fn read_multi_modal(
    backend: &dyn Backend,
    cx: &OpContext,
    req: MultiModalReadRequest,
) -> Result<MultiModalReadResult> {
    let MultiModalReadRequest { read, pages } = req;
    if pages.as_deref().is_some_and(|pages| !is_page_range(pages)) {
        let message =
            "`pages` is invalid; give a page number from 1, such as '3', or an ascending range, such as '1-5'";
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
    let Some((kind, mime_type, mut data)) = part else { return Ok(MultiModalReadResult::Content(result)) };
    if kind == PartKind::Pdf && pages.is_some() {
        let message = "this backend cannot split a PDF into pages; read the whole document, without `pages`";
        return Err(Error::new(ErrorKind::Unsupported, message).with_path(&result.path));
    }
    if result.truncated.is_some() {
        data = download(backend, cx, result.path).await?;
    }
    Ok(MultiModalReadResult::Parts(vec![FilePart::new(kind, mime_type, data)]))
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

/// The facet that opens the files of a backend as a tree, so that a wrapper or a composite namespace can search them.
///
/// # Behaviour
///
/// * Opening a tree is an operation: layers intercept it, and return a tree of the files that their caller may see.
/// * The tree may be a snapshot of the time at which it was opened. The caller uses it for one search.
/// * A layer that opens the tree of another backend passes on [`OpenTreeRequest::search`].
#[async_trait]
pub trait TreeProvider: Send + Sync {
    /// Opens the tree of all files.
    ///
    /// # Errors
    ///
    /// Errors that prevent a search of the whole backend. A missing path is not an error here; the search reports it.
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>>;
}

/// The facet that takes snapshots of all files and restores them.
#[async_trait]
pub trait Snapshots: Send + Sync {
    /// Takes a snapshot of the current files.
    async fn snapshot(&self, cx: &OpContext, req: SnapshotRequest) -> Result<SnapshotInfo>;

    /// Returns all snapshots, oldest first.
    async fn snapshots(&self, cx: &OpContext, req: ListSnapshotsRequest) -> Result<Vec<SnapshotInfo>>;

    /// Restores the files of a snapshot, which is retained.
    async fn restore(&self, cx: &OpContext, req: RestoreRequest) -> Result<()>;

    /// Deletes a snapshot.
    async fn forget(&self, cx: &OpContext, req: ForgetRequest) -> Result<()>;

    /// Returns the differences between two snapshots, or between a snapshot and the current files.
    async fn diff(&self, cx: &OpContext, req: SnapshotDiffRequest) -> Result<SnapshotDiffResult>;
}

/// The facet that streams changes of files as they happen.
///
/// # Behaviour
///
/// * Every subscriber receives the events in the order of the changes.
/// * A subscriber that is too slow, or whose cursor is too old, receives [`Change::Overflow`] in place of the events that it
///   missed, then later events.
/// * The feed starts when `watch` is called, not when the stream is first polled. It ends with an error: when the context is
///   cancelled, its deadline passes, or the backend can no longer observe changes.
///
/// [`Change::Overflow`]: crate::watch::Change::Overflow
pub trait Watch: Send + Sync {
    /// Returns the stream of changes at and below the request's path.
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_ranges_start_at_one_and_ascend() {
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
