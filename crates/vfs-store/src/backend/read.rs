//! Reads of a window or a whole file.

use std::thread;

use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};
use vfs_core::window::ByteRange;
use vfs_core::{Error, ErrorKind, FileDownloadResponse, FileInfo, ReadRequest, ReadResult, Result, VfsPath, window};

use super::concurrency::runtime::Runtime;
use super::view::namespace_view::{BLOCK_BYTES, NamespaceView, READ_ATTEMPTS, keeps_changing};
use crate::store::{Store, StoredMeta, StoredValue};

/// The most large files that are read at once, each on a thread and in two blocks.
static LARGE_READS: Semaphore = Semaphore::const_new(64);

pub(super) async fn stat<S: Store>(view: &NamespaceView<S>, path: VfsPath) -> Result<FileInfo> {
    let found = view.find(&path).await?;
    Ok(found.info(path))
}

/// Reads the window that `request` asks for: a small file, or a range of bytes, in one answer of the store, and a large file
/// block by block.
pub(super) async fn read<S: Store>(view: &NamespaceView<S>, request: &ReadRequest) -> Result<ReadResult> {
    let path = &request.path;
    for _ in 0..READ_ATTEMPTS {
        let range = request.bytes.map_or(0..BLOCK_BYTES, |asked| first_range(request, asked));
        let start = range.start;
        let Some(StoredValue { stored, content, .. }) = view.get(path, Some(range)).await? else {
            view.check_no_file(path).await?;
            continue;
        };
        if start == 0 && content.len() as u64 >= stored.size {
            return window::read_bytes(&content, request, stored.version);
        }
        let (wanted, _guard) = view.cx.cancel_on_drop();
        let source = BlockSource::new(view.with_context(wanted), path.clone(), stored, (start, content))?;
        if let Some(result) = read_large(view, request, source).await? {
            return Ok(result);
        }
    }
    Err(keeps_changing(path))
}

/// What is asked for first of the bytes `asked`: those, as many as the result may hold, and one that says whether there is more.
fn first_range(request: &ReadRequest, asked: ByteRange) -> std::ops::Range<u64> {
    let most = request.max_bytes.unwrap_or(ReadRequest::DEFAULT_MAX_BYTES);
    let most = asked.start.saturating_add(most);
    // A range in the wrong order is refused by whoever reads it.
    let end = asked.end.map_or(most, |end| end.clamp(asked.start, most));
    asked.start..end.saturating_add(1)
}

/// Reads a window through `source`, on a thread of its own that may wait; `None` where the file changed meanwhile.
///
/// Those of the runtime for blocking work may be the ones that the store needs to answer.
async fn read_large<S: Store>(
    view: &NamespaceView<S>,
    request: &ReadRequest,
    mut source: BlockSource<S>,
) -> Result<Option<ReadResult>> {
    let (key, version) = (view.key(&request.path), source.stored.version.clone());
    let lines = &view.shared.line_indexes;
    let mut index = lines.get(&key, &version);
    let request = request.clone();
    // It is never closed.
    let turn = view.ask(&request.path, async { Ok(LARGE_READS.acquire().await.ok()) }).await?;
    let (send, receive) = oneshot::channel();
    let work = move || {
        let version = source.stored.version.clone();
        let result = window::read_indexed(&mut source, &mut index, &request, version);
        drop(turn);
        // Whoever has given up needs no answer.
        let _ = send.send((result, source.has_changed, index));
    };
    thread::Builder::new().name("vfs-store-read".into()).spawn(work).map_err(|error| {
        Error::new(ErrorKind::Busy, "no thread can be started to read a large file; try again").with_source(error)
    })?;
    let (result, has_changed, index) = receive
        .await
        .map_err(|error| Error::new(ErrorKind::Internal, "a read ended in the middle").with_source(error))?;
    if has_changed {
        return Ok(None);
    }
    lines.keep(key, version, index);
    result.map(Some)
}

/// A large file for the window, which waits for the store where it needs more of it.
struct BlockSource<S> {
    view: NamespaceView<S>,
    runtime: Runtime,
    path: VfsPath,
    stored: StoredMeta,
    /// What came first, and the last block that was asked for: where each begins, and its bytes.
    held: [(u64, Bytes); 2],
    has_changed: bool,
}

impl<S: Store> BlockSource<S> {
    fn new(view: NamespaceView<S>, path: VfsPath, stored: StoredMeta, first: (u64, Bytes)) -> Result<Self> {
        let runtime = Runtime::current()
            .ok_or_else(|| Error::new(ErrorKind::Unsupported, "a large file needs a tokio runtime to be read"))?;
        Ok(Self { view, runtime, path, stored, held: [first, (0, Bytes::new())], has_changed: false })
    }

    /// The bytes from `offset` on, as far as they are held.
    fn held(&self, offset: u64) -> Option<&[u8]> {
        self.held.iter().find_map(|(start, bytes)| {
            let skip = usize::try_from(offset.checked_sub(*start)?).ok()?;
            bytes.get(skip..).filter(|rest| !rest.is_empty())
        })
    }
}

impl<S: Store> window::Source for BlockSource<S> {
    fn size(&self) -> u64 {
        self.stored.size
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if offset >= self.stored.size || buffer.is_empty() {
            return Ok(0);
        }
        if self.held(offset).is_none() {
            let end = offset.saturating_add(BLOCK_BYTES).min(self.stored.size);
            let value = self.runtime.wait(self.view.get(&self.path, Some(offset..end)))?;
            match value {
                Some(value) if value.stored.version == self.stored.version => self.held[1] = (offset, value.content),
                _ => {
                    self.has_changed = true;
                    return Err(keeps_changing(&self.path));
                }
            }
        }
        let Some(rest) = self.held(offset) else { return Ok(0) };
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// A whole file.
pub(super) async fn download<S: Store>(view: &NamespaceView<S>, path: VfsPath) -> FileDownloadResponse {
    match view.whole_file(&path, view.shared.max_file_size()).await {
        Ok(StoredValue { stored, content, .. }) => FileDownloadResponse::ok(path, content, stored.version),
        Err(error) => FileDownloadResponse::failed(path, error),
    }
}
