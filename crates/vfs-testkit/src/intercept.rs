//! Wrappers that do one thing before every operation: count, wait, fail.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUpload, FileUploadResponse, GlobRequest, GlobResult, GrepEvent,
    GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext, ReadRequest, ReadResult, RenameRequest,
    RenameResult, Result, Shell, Snapshots, StatRequest, StreamingShell, VfsPath, Watch, WriteRequest, WriteResult,
};

/// The operations of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Operation {
    /// [`Backend::stat`].
    Stat,
    /// [`Backend::ls`].
    Ls,
    /// [`Backend::read`].
    Read,
    /// [`Backend::write`].
    Write,
    /// [`Backend::edit`].
    Edit,
    /// [`Backend::delete`].
    Delete,
    /// [`Backend::rename`].
    Rename,
    /// [`Backend::copy`].
    Copy,
    /// [`Backend::glob`].
    Glob,
    /// [`Backend::grep`].
    Grep,
    /// [`Backend::grep_stream`].
    GrepStream,
    /// One file of [`Backend::upload_files`].
    Upload,
    /// One file of [`Backend::download_files`].
    Download,
}

impl Operation {
    const COUNT: usize = Operation::Download as usize + 1;
}

/// Does something before every operation of an [`Intercepted`] backend.
#[async_trait]
pub trait Intercept: fmt::Debug + Send + Sync + 'static {
    /// Called before `operation` at `path`; of a rename or copy that is where it comes from. Uploads and downloads are
    /// asked about for each file.
    ///
    /// # Errors
    ///
    /// An error ends the operation with it; the wrapped backend is then not called.
    async fn before(&self, operation: Operation, path: &VfsPath) -> Result<()>;
}

/// Any backend, with an [`Intercept`] before every operation.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{Backend, BackendExt};
/// use vfs_testkit::{Counting, Intercepted, Operation};
///
/// async fn two_reads(backend: Arc<dyn Backend>) -> vfs_core::Result<()> {
///     let counting = Arc::new(Counting::default());
///     let counted = Intercepted::new(backend, Arc::clone(&counting) as _);
///     counted.read_text("/a").await?;
///     counted.read_text("/b").await?;
///     assert_eq!(counting.calls(Operation::Read), 2);
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Intercepted {
    inner: Arc<dyn Backend>,
    intercept: Arc<dyn Intercept>,
}

impl Intercepted {
    /// `inner` with `intercept` before every operation.
    pub fn new(inner: Arc<dyn Backend>, intercept: Arc<dyn Intercept>) -> Self {
        Self { inner, intercept }
    }
}

impl fmt::Display for Intercepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.intercept, self.inner)
    }
}

/// Writes the methods that take one request with a path and give one result.
macro_rules! intercepted {
    ($($method:ident $operation:ident ($path:ident): $request:ty => $result:ty;)+) => {
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl Backend for Intercepted {
            fn capabilities(&self, at: &VfsPath) -> Capabilities {
                self.inner.capabilities(at)
            }
            $(async fn $method(&self, cx: &OpContext, req: $request) -> Result<$result> {
                self.intercept.before(Operation::$operation, &req.$path).await?;
                self.inner.$method(cx, req).await
            })+
            fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
                let Intercepted { inner, intercept } = self.clone();
                stream::once(async move {
                    match intercept.before(Operation::GrepStream, &req.path).await {
                        Ok(()) => inner.grep_stream(cx, req),
                        Err(error) => stream::iter([Err(error)]).boxed(),
                    }
                })
                .flatten()
                .boxed()
            }
            async fn upload_files(&self, cx: &OpContext, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
                let mut answers = Vec::new();
                for file in files {
                    match self.intercept.before(Operation::Upload, &file.path).await {
                        Ok(()) => answers.extend(self.inner.upload_files(cx, vec![file]).await),
                        Err(error) => answers.push(FileUploadResponse::failed(file.path, error)),
                    }
                }
                answers
            }
            async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
                let mut answers = Vec::new();
                for path in paths {
                    match self.intercept.before(Operation::Download, &path).await {
                        Ok(()) => answers.extend(self.inner.download_files(cx, vec![path]).await),
                        Err(error) => answers.push(FileDownloadResponse::failed(path, error)),
                    }
                }
                answers
            }
            fn as_shell(&self) -> Option<&dyn Shell> {
                self.inner.as_shell()
            }
            fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
                self.inner.as_streaming_shell()
            }
            fn as_multimodal(&self) -> Option<&dyn MultiModalReader> {
                self.inner.as_multimodal()
            }
            fn as_snapshots(&self) -> Option<&dyn Snapshots> {
                self.inner.as_snapshots()
            }
            fn as_watch(&self) -> Option<&dyn Watch> {
                self.inner.as_watch()
            }
        }
    };
}

intercepted! {
    stat Stat (path): StatRequest => FileInfo;
    ls Ls (path): LsRequest => LsResult;
    read Read (path): ReadRequest => ReadResult;
    write Write (path): WriteRequest => WriteResult;
    edit Edit (path): EditRequest => EditResult;
    delete Delete (path): DeleteRequest => DeleteResult;
    rename Rename (from): RenameRequest => RenameResult;
    copy Copy (from): CopyRequest => CopyResult;
    glob Glob (path): GlobRequest => GlobResult;
    grep Grep (path): GrepRequest => GrepResult;
}

/// Counts the calls of each operation.
#[derive(Debug, Default)]
pub struct Counting {
    calls: [AtomicU64; Operation::COUNT],
}

impl Counting {
    /// How often `operation` was called.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.calls[operation as usize].load(Ordering::Relaxed)
    }

    /// How many calls there were in all.
    pub fn total(&self) -> u64 {
        self.calls.iter().map(|calls| calls.load(Ordering::Relaxed)).sum()
    }
}

#[async_trait]
impl Intercept for Counting {
    async fn before(&self, operation: Operation, _: &VfsPath) -> Result<()> {
        self.calls[operation as usize].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Waits before every operation; needs the timer of a tokio runtime.
#[derive(Debug, Clone, Copy)]
pub struct Slow {
    /// How long.
    pub delay: Duration,
}

#[async_trait]
impl Intercept for Slow {
    async fn before(&self, _: Operation, _: &VfsPath) -> Result<()> {
        tokio::time::sleep(self.delay).await;
        Ok(())
    }
}

/// Fails an operation a number of times, then lets it through.
#[derive(Debug)]
pub struct Faulty {
    operation: Operation,
    kind: ErrorKind,
    left: AtomicU64,
}

impl Faulty {
    /// Fails the next `times` calls of `operation` with `kind`; `u64::MAX` is for ever.
    pub fn new(operation: Operation, kind: ErrorKind, times: u64) -> Self {
        Self { operation, kind, left: AtomicU64::new(times) }
    }
}

#[async_trait]
impl Intercept for Faulty {
    async fn before(&self, operation: Operation, path: &VfsPath) -> Result<()> {
        let one_less = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(1) };
        if operation == self.operation && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
        {
            return Err(Error::at(self.kind, path));
        }
        Ok(())
    }
}
