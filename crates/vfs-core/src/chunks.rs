//! Reads and writes of files in chunks.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;

use crate::backend::Backend;
use crate::context::OpContext;
use crate::error::{Error, Result};
use crate::operation::ResultStream;
pub use crate::requests::{BufferedWriter, CommitWriterRequest, FileWriter, OpenWriterRequest};
use crate::requests::{ReadRequest, ReadResult, Version};

/// The default size of a chunk, 4 MiB.
const DEFAULT_CHUNK_SIZE: u64 = 4 << 20;

/// Streams the bytes of a file of any size in chunks of one version.
///
/// # Behaviour
///
/// * The request is for a range of bytes, or for the whole file; `max_bytes` is the size of a chunk, 4 MiB by default. Each item is
///   the next window of that range; [`Content::as_bytes`](crate::Content::as_bytes) has the bytes as they are in the file. A chunk
///   whose bytes are not UTF-8 by themselves has the MIME type of the file, by its signature.
/// * An empty file has one empty chunk. The stream ends after the last chunk or the first error.
/// * At most one chunk is in memory, and the next one is read when the stream is polled for it.
///
/// # Errors
///
/// The errors of [`Backend::read`]; `conflict` if the file changes after the first chunk; `invalid_argument` for a
/// request with `offset` or `limit`.
///
/// ```
/// use std::sync::Arc;
/// use futures::TryStreamExt as _;
/// use vfs_core::chunks::read_chunks;
/// use vfs_core::{Backend, OpContext, ReadRequest, Result, VfsPath};
///
/// async fn size(files: Arc<dyn Backend>, path: VfsPath) -> Result<usize> {
///     let chunks = read_chunks(files, OpContext::new(), ReadRequest::new(path));
///     chunks.try_fold(0, async |size, chunk| Ok(size + chunk.content.as_bytes().len())).await
/// }
/// ```
pub fn read_chunks(backend: Arc<dyn Backend>, cx: OpContext, request: ReadRequest) -> ResultStream<ReadResult> {
    let chunk_size = request.max_bytes.unwrap_or(DEFAULT_CHUNK_SIZE);
    let range = request.bytes;
    let request = request.bytes(range.map_or(0, |range| range.start), range.and_then(|range| range.end));
    let first = Some((request.max_bytes(chunk_size).raw(), None));
    stream::try_unfold(first, move |state: Option<(ReadRequest, Option<Version>)>| {
        let (backend, cx) = (Arc::clone(&backend), cx.clone());
        async move {
            let Some((request, version)) = state else { return Ok(None) };
            let chunk = read_version(&*backend, &cx, request.clone(), version).await?;
            let end = request.bytes.and_then(|range| range.end);
            let next = chunk.next_byte.filter(|next| end.is_none_or(|end| *next < end));
            let next = next.map(|next| (request.bytes(next, end), Some(chunk.version.clone())));
            Ok(Some((chunk, next)))
        }
    })
    .boxed()
}

/// Reads a window; fails with `conflict` unless the file has `version`.
async fn read_version(
    backend: &dyn Backend,
    cx: &OpContext,
    request: ReadRequest,
    version: Option<Version>,
) -> Result<ReadResult> {
    let path = request.path.clone();
    let chunk = match backend.read(cx, request).await {
        Err(error) if version.is_some() && error.is_absence() => return Err(Error::conflict(&path, None)),
        chunk => chunk?,
    };
    match version {
        Some(version) if version != chunk.version => Err(Error::conflict(&path, Some(chunk.version))),
        _ => Ok(chunk),
    }
}
