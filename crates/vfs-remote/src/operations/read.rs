//! File reads: line windows and whole files, at one version.

use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Handle;
use vfs_core::{Error, ErrorKind, FileDownloadResponse, OpContext, ReadRequest, ReadResult, Result, Version, VfsPath};
use vfs_core::{fallible_alloc, window};
use vfs_search::run_blocking;

use crate::exec::RemoteExec;
use crate::operations::stat::{facts, refuse_reserved, unreadable};
use crate::remote_place_client::{ATTEMPTS, CachedLineIndex, RemotePlaceClient, backoff};
use crate::script::PathResolutionMode;
use crate::script::entry_metadata::EntryMetadata;
use crate::script::place_features::PlaceFeatures;

/// Unit of reads, in bytes.
const BLOCK: u64 = 64 << 10;

/// Number of blocks of the first request, when the size of the file is unknown: 1 MiB and a block.
const FIRST: u64 = 17;

/// Maximum number of blocks of one request: 32 MiB.
const MAX_BLOCKS: u64 = 512;

/// Number of blocks that are read at once if a window continues beyond its first part: 4 MiB.
const READ_AHEAD: u64 = 64;

/// Size in bytes that is reserved in a response for everything but the content of a file.
pub(crate) const ANSWER_ROOM: u64 = 16 << 10;

/// A part of a file.
#[derive(Debug)]
pub(crate) struct FetchedPart {
    pub(crate) facts: EntryMetadata,
    /// Offset of the part in the file.
    pub(crate) start: u64,
    pub(crate) content: Bytes,
}

impl<E: RemoteExec> RemotePlaceClient<E> {
    /// Returns the maximum number of blocks in one response.
    pub(crate) fn max_blocks(&self) -> u64 {
        (self.max_answer_bytes().saturating_sub(ANSWER_ROOM) / BLOCK).clamp(1, MAX_BLOCKS)
    }

    /// Reads `count` blocks from the block `skip` on, of one version of the file at `path`.
    pub(crate) async fn part(&self, cx: &OpContext, path: &VfsPath, skip: u64, count: u64) -> Result<FetchedPart> {
        let mut attempt = 0;
        loop {
            let mut script = self.script_with(cx, path, PlaceFeatures::read_functions).await?;
            script.walk(PathResolutionMode::Followed, path);
            script.push(&format!("fetch {skip} {count}"));
            let answer = self.query(cx, path, script).await?;
            attempt += 1;
            let is_last = attempt == ATTEMPTS;
            if answer.is_overtaken() && !is_last {
                backoff(cx, path, attempt).await?;
                continue;
            }
            let reply = answer.done(path)?;
            let found = facts(&reply, path)?;
            let content = reply.get(b'c').cloned().ok_or_else(|| unreadable(path))?;
            let mut entries =
                reply.all(b'e').skip(1).map(|field| EntryMetadata::parse(field, false).map(|(facts, _)| facts));
            match entries.next() {
                Some(again) if again.as_ref() != Some(&found) && !is_last => backoff(cx, path, attempt).await?,
                Some(again) if again.as_ref() != Some(&found) => return Err(keeps_changing(path)),
                _ => return Ok(FetchedPart { facts: found, start: skip * BLOCK, content }),
            }
        }
    }

    /// Reads a whole file of at most `max` bytes.
    pub(crate) async fn whole(&self, cx: &OpContext, path: &VfsPath, max: u64) -> Result<(EntryMetadata, Bytes)> {
        let too_large =
            || Error::new(ErrorKind::TooLarge, format!("the file is over the limit of {max} bytes")).with_path(path);
        for attempt in 1..=ATTEMPTS {
            let count = self.max_blocks();
            let FetchedPart { facts, content, .. } = self.part(cx, path, 0, count).await?;
            if facts.size > max || content.len() as u64 > max {
                return Err(too_large());
            }
            if (content.len() as u64) < count * BLOCK && content.len() as u64 >= facts.size {
                return Ok((facts, content));
            }
            if let Some(content) = self.rest(cx, path, &facts, content, max).await? {
                return Ok((facts, content));
            }
            backoff(cx, path, attempt).await?;
        }
        Err(keeps_changing(path))
    }

    /// Reads the rest of the file that begins with `first`, and returns the whole file. Returns `None` if the file has
    /// changed since.
    async fn rest(
        &self,
        cx: &OpContext,
        path: &VfsPath,
        facts: &EntryMetadata,
        first: Bytes,
        max: u64,
    ) -> Result<Option<Bytes>> {
        let count = self.max_blocks();
        let mut content = Vec::from(first);
        loop {
            let at = content.len() as u64;
            if !at.is_multiple_of(BLOCK) || at > max {
                return Ok((at >= facts.size && at <= max).then(|| content.into()));
            }
            let next = self.part(cx, path, at / BLOCK, count).await?;
            if next.facts != *facts {
                return Ok(None);
            }
            fallible_alloc::append(&mut content, &next.content)?;
            if (next.content.len() as u64) < count * BLOCK {
                let is_whole = content.len() as u64 >= facts.size && content.len() as u64 <= max;
                return Ok(is_whole.then(|| content.into()));
            }
        }
    }
}

pub(crate) fn keeps_changing(path: &VfsPath) -> Error {
    Error::new(ErrorKind::Busy, "the file keeps changing while it is read; try again").with_path(path)
}

/// Reads the window of `request`: a small file or a range of bytes in one response, and a large file part by part.
pub(crate) async fn read<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    request: ReadRequest,
) -> Result<ReadResult> {
    refuse_reserved(&request.path)?;
    for attempt in 1..=ATTEMPTS {
        let (skip, count) = first_part(&request, place.max_blocks());
        let first = place.part(cx, &request.path, skip, count).await?;
        let version = first.facts.version();
        let is_whole =
            skip == 0 && (first.content.len() as u64) < count * BLOCK && first.content.len() as u64 >= first.facts.size;
        if is_whole {
            place.recent.insert(&request.path, version.clone(), Some(&first.content));
            return window::read_bytes(&first.content, &request, version);
        }
        if let Some(result) = read_large(place, cx, &request, first).await? {
            return Ok(result);
        }
        backoff(cx, &request.path, attempt).await?;
    }
    Err(keeps_changing(&request.path))
}

/// Returns the first block of the first request, and the number of its blocks.
fn first_part(request: &ReadRequest, max_blocks: u64) -> (u64, u64) {
    let Some(range) = request.bytes else { return (0, FIRST.min(max_blocks)) };
    let bytes = request.max_bytes.unwrap_or(ReadRequest::DEFAULT_MAX_BYTES);
    let end = range.end.unwrap_or(u64::MAX).min(range.start.saturating_add(bytes)).saturating_add(1);
    let skip = range.start / BLOCK;
    (skip, end.div_ceil(BLOCK).saturating_sub(skip).clamp(1, max_blocks))
}

/// Reads a window on a thread that may block. Returns `None` if the file changed meanwhile.
async fn read_large<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    request: &ReadRequest,
    first: FetchedPart,
) -> Result<Option<ReadResult>> {
    let version = first.facts.version();
    let CachedLineIndex { mut lines, head } = place.lines.take(&version);
    let runtime = Handle::try_current().map_err(|error| {
        Error::new(ErrorKind::Unsupported, "a large file needs a tokio runtime to be read")
            .with_path(&request.path)
            .with_source(error)
    })?;
    let (cx, _guard) = cx.cancel_on_drop();
    let mut source = RemoteFileSource {
        place: Arc::clone(place),
        cx,
        runtime: runtime.clone(),
        path: request.path.clone(),
        version: version.clone(),
        size: first.facts.size,
        buffered: first,
        head,
        has_changed: false,
    };
    source.remember_head();
    let (request, expected) = (request.clone(), version.clone());
    let work = move || {
        let result = window::read_indexed(&mut source, &mut lines, &request, expected);
        (result, source.has_changed, CachedLineIndex { lines, head: source.head })
    };
    let (result, has_changed, knowledge) = run_blocking(&runtime, work).await?;
    if has_changed {
        return Ok(None);
    }
    place.lines.insert(version, knowledge);
    result.map(Some)
}

/// A large file, whose parts are fetched from the place as the window needs them.
struct RemoteFileSource<E> {
    place: Arc<RemotePlaceClient<E>>,
    cx: OpContext,
    runtime: Handle,
    path: VfsPath,
    version: Version,
    size: u64,
    buffered: FetchedPart,
    /// The first block, which reads of ranges need for the type of the content.
    head: Option<Bytes>,
    has_changed: bool,
}

impl<E: RemoteExec> RemoteFileSource<E> {
    /// Returns the buffered bytes from `offset` on.
    fn buffered(&self, offset: u64) -> &[u8] {
        let skip = offset.checked_sub(self.buffered.start).and_then(|skip| usize::try_from(skip).ok());
        let rest = skip.and_then(|skip| self.buffered.content.get(skip..)).unwrap_or_default();
        let head = self.head.as_deref().filter(|_| rest.is_empty());
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        head.and_then(|head| head.get(start..)).unwrap_or(rest)
    }

    /// Copies the first block, if the last part begins with it.
    fn remember_head(&mut self) {
        if self.buffered.start == 0 && self.head.is_none() {
            let length = self.buffered.content.len().min(BLOCK as usize);
            self.head = Some(Bytes::copy_from_slice(&self.buffered.content[..length]));
        }
    }
}

impl<E: RemoteExec> window::ContentSource for RemoteFileSource<E> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.buffered(offset).is_empty() {
            if offset >= self.size.max(self.buffered.start + self.buffered.content.len() as u64) && self.size > 0 {
                return Ok(0);
            }
            // A read at 0 needs only the head, for the type of the content. Any other read is likely to continue.
            let count = if offset == 0 { 1 } else { self.place.max_blocks().min(READ_AHEAD) };
            let part = self.place.part(&self.cx, &self.path, offset / BLOCK, count);
            self.buffered = self.runtime.block_on(part)?;
            if self.buffered.facts.version() != self.version {
                self.has_changed = true;
                return Err(keeps_changing(&self.path));
            }
            self.remember_head();
        }
        let rest = self.buffered(offset);
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Downloads a whole file.
pub(crate) async fn download<E: RemoteExec>(
    place: &RemotePlaceClient<E>,
    cx: &OpContext,
    path: VfsPath,
) -> FileDownloadResponse {
    let whole = async {
        refuse_reserved(&path)?;
        place.whole(cx, &path, place.config.max_file_size).await
    };
    match whole.await {
        Ok((facts, content)) => FileDownloadResponse::ok(path, content, facts.version()),
        Err(error) => FileDownloadResponse::failed(path, error),
    }
}
