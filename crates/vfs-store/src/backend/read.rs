//! Reads of a window or a whole file.

use std::thread;

use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};
use vfs_core::window::ByteRange;
use vfs_core::{Error, ErrorKind, FileDownloadResponse, FileInfo, ReadRequest, ReadResult, Result, VfsPath, window};

use super::coordination::shutdown_aware_runtime::ShutdownAwareRuntime;
use super::view::namespace_view::{BLOCK_BYTES, NamespaceView, READ_ATTEMPTS, keeps_changing};
use crate::store::{Store, StoredMeta, StoredValue};

/// Permits for reads block by block, each of which occupies a thread and the memory of two blocks.
static BLOCK_READS: Semaphore = Semaphore::const_new(64);

pub(super) async fn stat<S: Store>(view: &NamespaceView<S>, path: VfsPath) -> Result<FileInfo> {
    let found = view.find(&path).await?;
    Ok(found.info(path))
}

/// Reads the window of `request`: a file that the first request returns as a whole at once, any other block by block on a
/// thread of its own.
pub(super) async fn read<S: Store>(view: &NamespaceView<S>, request: &ReadRequest) -> Result<ReadResult> {
    let path = &request.path;
    for _ in 0..READ_ATTEMPTS {
        let range = request.bytes.map_or(0..BLOCK_BYTES, |range| first_range(request, range));
        let start = range.start;
        let Some(StoredValue { stored, content, .. }) = view.get(path, Some(range)).await? else {
            view.check_no_file(path).await?;
            continue;
        };
        if start == 0 && content.len() as u64 >= stored.size {
            return window::read_bytes(&content, request, stored.version);
        }
        let (cx, _guard) = view.cx.cancel_on_drop();
        let source = WindowBlockSource::new(view.with_context(cx), path.clone(), stored, (start, content))?;
        if let Some(result) = read_by_blocks(view, request, source).await? {
            return Ok(result);
        }
    }
    Err(keeps_changing(path))
}

/// Returns the first range to request for the bytes of `range`: as many as the result may have, and one more that shows
/// whether the file continues.
fn first_range(request: &ReadRequest, range: ByteRange) -> std::ops::Range<u64> {
    let max_bytes = request.max_bytes.unwrap_or(ReadRequest::DEFAULT_MAX_BYTES);
    let max_end = range.start.saturating_add(max_bytes);
    // The window refuses a range that ends before its start.
    let end = range.end.map_or(max_end, |end| end.clamp(range.start, max_end));
    range.start..end.saturating_add(1)
}

/// Reads the window of `request` from `source` on a thread of its own, or returns `None` if the file changed meanwhile.
///
/// The read does not block a thread of the runtime, as the store may need the runtime's blocking threads to answer.
async fn read_by_blocks<S: Store>(
    view: &NamespaceView<S>,
    request: &ReadRequest,
    mut source: WindowBlockSource<S>,
) -> Result<Option<ReadResult>> {
    let (key, version) = (view.key(&request.path), source.stored.version.clone());
    let lines = &view.shared.line_indexes;
    let mut index = lines.get(&key, &version);
    let request = request.clone();
    // The semaphore is never closed.
    let permit = view.ask(&request.path, async { Ok(BLOCK_READS.acquire().await.ok()) }).await?;
    let (send, receive) = oneshot::channel();
    let work = move || {
        let version = source.stored.version.clone();
        let result = window::read_indexed(&mut source, &mut index, &request, version);
        drop(permit);
        // The receiver no longer exists if the call was cancelled.
        let _ = send.send((result, source.has_changed, index));
    };
    thread::Builder::new().name("vfs-store-read".into()).spawn(work).map_err(|error| {
        Error::new(ErrorKind::Busy, "no thread can be started to read a large file; try again").with_source(error)
    })?;
    let (result, has_changed, index) = receive.await.map_err(|error| {
        Error::new(ErrorKind::Internal, "internal: the thread that reads a large file ended without a result")
            .with_source(error)
    })?;
    if has_changed {
        return Ok(None);
    }
    lines.insert(key, version, index);
    result.map(Some)
}

/// Source of a window of a large file, which fetches blocks of the file from the store and blocks the thread meanwhile.
struct WindowBlockSource<S> {
    view: NamespaceView<S>,
    runtime: ShutdownAwareRuntime,
    path: VfsPath,
    stored: StoredMeta,
    /// The first block and the last one that was fetched, each with its offset in the file.
    blocks: [(u64, Bytes); 2],
    has_changed: bool,
}

impl<S: Store> WindowBlockSource<S> {
    fn new(view: NamespaceView<S>, path: VfsPath, stored: StoredMeta, first: (u64, Bytes)) -> Result<Self> {
        let runtime = ShutdownAwareRuntime::current()
            .ok_or_else(|| Error::new(ErrorKind::Unsupported, "the read of a large file needs a tokio runtime"))?;
        Ok(Self { view, runtime, path, stored, blocks: [first, (0, Bytes::new())], has_changed: false })
    }

    /// Returns the fetched bytes from `offset` on, or `None` if there are none.
    fn fetched(&self, offset: u64) -> Option<&[u8]> {
        self.blocks.iter().find_map(|(start, bytes)| {
            let skip = usize::try_from(offset.checked_sub(*start)?).ok()?;
            bytes.get(skip..).filter(|rest| !rest.is_empty())
        })
    }
}

impl<S: Store> window::ContentSource for WindowBlockSource<S> {
    fn size(&self) -> u64 {
        self.stored.size
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if offset >= self.stored.size || buffer.is_empty() {
            return Ok(0);
        }
        if self.fetched(offset).is_none() {
            let end = offset.saturating_add(BLOCK_BYTES).min(self.stored.size);
            let value = self.runtime.wait(self.view.get(&self.path, Some(offset..end)))?;
            match value {
                Some(value) if value.stored.version == self.stored.version => self.blocks[1] = (offset, value.content),
                _ => {
                    self.has_changed = true;
                    return Err(keeps_changing(&self.path));
                }
            }
        }
        let Some(rest) = self.fetched(offset) else { return Ok(0) };
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Reads a whole file.
pub(super) async fn download<S: Store>(view: &NamespaceView<S>, path: VfsPath) -> FileDownloadResponse {
    match view.whole_file(&path, view.shared.max_file_size()).await {
        Ok(StoredValue { stored, content, .. }) => FileDownloadResponse::ok(path, content, stored.version),
        Err(error) => FileDownloadResponse::failed(path, error),
    }
}
