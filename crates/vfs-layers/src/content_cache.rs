//! Cache of file contents by version.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lru::LruCache;
use vfs_core::operation::{
    AnyOutput, Intercepted, OperationClass, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest,
};
use vfs_core::transfer::FileDownloadRequest;
use vfs_core::{
    Backend, Error, ErrorKind, Interceptor, Layer, OpContext, ReadRequest, ReadResult, Result, StatRequest, Version,
    VfsPath, window,
};

/// Estimated memory of an entry besides its content and path, in bytes.
const ENTRY_OVERHEAD: u64 = 256;

/// Caches the contents of files that were read, by their versions.
///
/// # Behaviour
///
/// * A read gets the current version from the inner backend by a `stat`, and is served from the cache if the content
///   of that version is cached. Otherwise the whole file is downloaded and cached. The cache pays only if a `stat` is
///   much cheaper than a `read`, as with remote stores; in front of a disk or of memory it only costs.
/// * Stale content is never returned, even if others change the files, because the backend's version decides.
/// * Results, errors and windows are those of the inner backend. Files over [`max_file_size`](Self::max_file_size),
///   and reads whose `stat` or download fails, go to its own `read`. Only `read` is cached: neither downloads nor
///   searches are.
/// * All callers share the contents, and the inner backend sees only the `stat`. A policy that forbids reads but not
///   `stat` belongs around the cache, not inside it.
/// * If the cache is full, the least recently read files are evicted first. A file that is changed through the layer
///   is evicted at once.
/// * The contents belong to the layered backend and its clones; the same value around two backends caches each
///   independently.
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
    /// Default of [`max_file_size`](Self::max_file_size): 1 MiB.
    pub const DEFAULT_MAX_FILE_SIZE: u64 = 1 << 20;

    /// Returns a cache of at most `max_bytes`: contents, paths and 256 bytes for each file. 0 caches nothing.
    pub fn new(max_bytes: u64) -> Self {
        Self { max_bytes, max_file_size: Self::DEFAULT_MAX_FILE_SIZE }
    }

    /// Sets the largest file that is cached, in bytes. Default [`Cache::DEFAULT_MAX_FILE_SIZE`].
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self
    }
}

impl Layer for Cache {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let contents = Mutex::new(ContentCache { entries: LruCache::unbounded(), weight: 0 });
        Arc::new(Intercepted::new(inner, Arc::new(CacheInterceptor { cache: *self, contents })))
    }
}

/// Interceptor that answers reads from the cached contents.
struct CacheInterceptor {
    cache: Cache,
    contents: Mutex<ContentCache>,
}

/// The most recent content of each path, in the order of use.
struct ContentCache {
    entries: LruCache<VfsPath, (Version, Bytes)>,
    weight: u64,
}

fn weight(path: &VfsPath, content: &Bytes) -> u64 {
    (path.as_str().len() + content.len()) as u64 + ENTRY_OVERHEAD
}

impl ContentCache {
    fn remove(&mut self, path: &VfsPath) {
        if let Some((_, content)) = self.entries.pop(path) {
            self.weight -= weight(path, &content);
        }
    }

    fn insert(&mut self, path: VfsPath, version: Version, content: Bytes, max_weight: u64) {
        self.remove(&path);
        let added = weight(&path, &content);
        if added > max_weight {
            return;
        }
        while self.weight + added > max_weight {
            let Some((path, (_, content))) = self.entries.pop_lru() else { break };
            self.weight -= weight(&path, &content);
        }
        self.weight += added;
        self.entries.put(path, (version, content));
    }
}

impl CacheInterceptor {
    fn contents(&self) -> MutexGuard<'_, ContentCache> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, path: &VfsPath, version: &Version) -> Option<Bytes> {
        let mut contents = self.contents();
        let (cached, content) = contents.entries.get(path)?;
        (cached == version).then(|| content.clone())
    }

    /// Returns the result of `request` from a cached or downloaded content; `None` if the backend must perform it.
    async fn read(&self, inner: &dyn Backend, cx: &OpContext, request: &ReadRequest) -> Option<Result<ReadResult>> {
        let path = &request.path;
        let info = inner.stat(cx, StatRequest::new(path.clone())).await.ok()?;
        let version = info.version.filter(|_| info.size <= self.cache.max_file_size)?;
        if let Some(content) = self.get(path, &version) {
            return Some(window::read_bytes(&content, request, version));
        }
        let file = FileDownloadRequest::new(path.clone()).send(inner, cx).await.ok()?;
        let (content, version) = file.content.zip(file.version)?;
        if content.len() as u64 <= self.cache.max_file_size {
            self.contents().insert(path.clone(), version.clone(), content.clone(), self.cache.max_bytes);
        }
        Some(window::read_bytes(&content, request, version))
    }
}

impl fmt::Debug for CacheInterceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = self.contents();
        f.debug_struct("CacheInterceptor")
            .field("cache", &self.cache)
            .field("files", &contents.entries.len())
            .field("weight", &contents.weight)
            .finish()
    }
}

impl Interceptor for CacheInterceptor {
    fn name(&self) -> &'static str {
        "cache"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if let RequestRef::Read(read) = request.as_request_ref()
            && let Some(result) = self.read(inner, cx, read).await
        {
            // The output of a read is one of `Q`, which is a read.
            return Q::from_any_output(AnyOutput::Read(result?)).ok_or_else(|| Error::of(ErrorKind::Internal));
        }
        if request.as_request_ref().class() == OperationClass::Read {
            return request.send(inner, cx).await;
        }
        let changed: Vec<VfsPath> = request.as_request_ref().paths().cloned().collect();
        let result = request.send(inner, cx).await;
        let mut contents = self.contents();
        changed.iter().for_each(|path| contents.remove(path));
        drop(contents);
        result
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}
