//! Contents that need not be fetched again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lru::LruCache;
use vfs_core::{
    AnyOutput, Backend, DownloadRequest, Error, ErrorKind, Intercepted, Interceptor, Layer, OpContext, OperationClass,
    ReadRequest, ReadResult, RequestRef, Result, ResultStream, StatRequest, StreamCall, StreamRequest, UnaryRequest,
    Version, VfsPath, window,
};

/// What an entry is taken to weigh beside its content and path, in bytes.
const ENTRY_WEIGHT: u64 = 256;

/// Keeps the contents of files that were read, by their versions.
///
/// # Behaviour
///
/// * A read asks the inner backend for the version of now by a `stat`, and is answered from the cache where the content of
///   just that version is in it. Else the whole file is downloaded and kept. So it pays only where a `stat` is much cheaper
///   than a `read`, as with stores far away; in front of a disk or of memory it only costs.
/// * Nothing old is ever read, whoever changes the files: that is for the backend's versions to say.
/// * Answers, errors and windows are those of the inner backend. Files over [`max_file_size`](Self::max_file_size), and
///   whatever fails on the way, are left to its own `read`. Only `read` is cached: not downloads, nor searches.
/// * Contents are the same for every caller, and the inner backend is asked for the `stat` only. A policy that forbids
///   reads but not `stat` belongs around the cache, not inside of it.
/// * The least recently read files go first where it gets full. A file that is changed through the layer goes at once.
/// * The contents belong to the layered backend and its clones; the same value around two backends keeps each on its own.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, Layer};
/// use vfs_layers::Cache;
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let files = Cache::new(64 << 20).max_file_size(4 << 20).layer(Arc::new(MemoryBackend::new()));
/// files.create_text("/a", "text").await?;
/// assert_eq!(files.read_text("/a").await?, "text");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    max_bytes: u64,
    max_file_size: u64,
}

impl Cache {
    /// 1 MiB.
    pub const DEFAULT_MAX_FILE_SIZE: u64 = 1 << 20;

    /// Keeps at most `max_bytes` of contents, paths and 256 bytes for each file. 0 keeps nothing.
    pub fn new(max_bytes: u64) -> Self {
        Self { max_bytes, max_file_size: Self::DEFAULT_MAX_FILE_SIZE }
    }

    /// Sets the largest file that is kept, in bytes. Default [`Cache::DEFAULT_MAX_FILE_SIZE`].
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self
    }
}

impl Layer for Cache {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let contents = Mutex::new(Contents { entries: LruCache::unbounded(), weight: 0 });
        Arc::new(Intercepted::new(inner, Arc::new(Cached { cache: *self, contents })))
    }
}

struct Cached {
    cache: Cache,
    contents: Mutex<Contents>,
}

/// The newest known content of each path.
struct Contents {
    entries: LruCache<VfsPath, (Version, Bytes)>,
    weight: u64,
}

fn weight(path: &VfsPath, content: &Bytes) -> u64 {
    (path.as_str().len() + content.len()) as u64 + ENTRY_WEIGHT
}

impl Contents {
    fn remove(&mut self, path: &VfsPath) {
        if let Some((_, content)) = self.entries.pop(path) {
            self.weight -= weight(path, &content);
        }
    }

    fn insert(&mut self, path: VfsPath, version: Version, content: Bytes, most: u64) {
        self.remove(&path);
        let added = weight(&path, &content);
        if added > most {
            return;
        }
        while self.weight + added > most {
            let Some((path, (_, content))) = self.entries.pop_lru() else { break };
            self.weight -= weight(&path, &content);
        }
        self.weight += added;
        self.entries.put(path, (version, content));
    }
}

impl Cached {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self, path: &VfsPath, version: &Version) -> Option<Bytes> {
        let mut contents = self.contents();
        let (kept, content) = contents.entries.get(path)?;
        (kept == version).then(|| content.clone())
    }

    /// What `request` asks for, from a content that is kept or is from now on; `None` where the backend has to say.
    async fn read(&self, inner: &dyn Backend, cx: &OpContext, request: &ReadRequest) -> Option<Result<ReadResult>> {
        let path = &request.path;
        let info = inner.stat(cx, StatRequest::new(path.clone())).await.ok()?;
        let version = info.version.filter(|_| info.size <= self.cache.max_file_size)?;
        if let Some(content) = self.kept(path, &version) {
            return Some(window::read_bytes(&content, request, version));
        }
        let file = DownloadRequest::new(path.clone()).send(inner, cx).await.ok()?;
        let (content, version) = file.content.zip(file.version)?;
        if content.len() as u64 <= self.cache.max_file_size {
            self.contents().insert(path.clone(), version.clone(), content.clone(), self.cache.max_bytes);
        }
        Some(window::read_bytes(&content, request, version))
    }
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = self.contents();
        f.debug_struct("Cached")
            .field("cache", &self.cache)
            .field("files", &contents.entries.len())
            .field("weight", &contents.weight)
            .finish()
    }
}

impl Interceptor for Cached {
    fn name(&self) -> &'static str {
        "cache"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if let RequestRef::Read(read) = request.as_request_ref()
            && let Some(answer) = self.read(inner, cx, read).await
        {
            // The output of a read is one of `Q`, which is a read.
            return Q::from_any_output(AnyOutput::Read(answer?)).ok_or_else(|| Error::of(ErrorKind::Internal));
        }
        if request.as_request_ref().class() == OperationClass::Read {
            return request.send(inner, cx).await;
        }
        let changed: Vec<VfsPath> = request.as_request_ref().paths().cloned().collect();
        let answer = request.send(inner, cx).await;
        let mut contents = self.contents();
        changed.iter().for_each(|path| contents.remove(path));
        drop(contents);
        answer
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}
