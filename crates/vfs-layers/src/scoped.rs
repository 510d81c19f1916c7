//! Layer that shows a directory as the root.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use vfs_core::multi_modal::{MultiModalReadRequest, MultiModalReadResult};
use vfs_core::operation::{Request as _, UnaryRequest, UploadContexts};
use vfs_core::path::{MapResultPaths, PathMapping};
use vfs_core::tree::{
    ChildKind, Directory, Listing, LookupResult, MappedTree, OpenTreeRequest, SearchableContent, Tree, TreeUse,
};
use vfs_core::watch::{WatchEvent, WatchRequest};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest,
    GlobResult, GrepEvent, GrepRequest, GrepResult, Layer, LsRequest, LsResult, MultiModalReader, OpContext,
    OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result,
    Shell, Snapshots, StatRequest, StreamingShell, TreeProvider, VfsPath, Watch, WriteRequest, WriteResult, edit,
};
use vfs_search::Pool;

/// Shows one directory of a backend as the root of a backend.
///
/// # Behaviour
///
/// * The directory is the root: nothing outside it can be named, it cannot be deleted or moved itself, and if it does
///   not exist yet it is an empty directory. Every path in every result is relative to it.
/// * Ignore files above the directory do not apply.
/// * A link that leads out of the directory is refused, like a link out of a root. Between the check of a link and
///   the operation another process may change the link; a [`LocalBackend`](https://docs.rs/vfs-local) that is opened
///   at the directory is confined by the kernel.
/// * There is no shell, and there are no snapshots: commands and snapshots of all files reach beyond the directory.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, Layer, VfsPath};
/// use vfs_layers::Scoped;
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let files = MemoryBackend::new();
/// files.create_text("/agents/one/plan.md", "read").await?;
/// let own = Scoped::new(VfsPath::parse("/agents/one")?).layer(Arc::new(files));
/// assert_eq!(own.read_text("/plan.md").await?, "read");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scoped {
    directory: VfsPath,
}

impl Scoped {
    /// Returns a layer that shows `directory` as the root.
    pub fn new(directory: VfsPath) -> Self {
        Self { directory }
    }
}

impl Layer for Scoped {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let mapping = PathMapping::new(VfsPath::root(), self.directory.clone());
        Arc::new(ScopedBackend { inner, mapping })
    }
}

/// The backend whose root is a directory of another one.
#[derive(Debug, Clone)]
struct ScopedBackend {
    inner: Arc<dyn Backend>,
    mapping: PathMapping,
}

impl ScopedBackend {
    /// Performs `request` in the directory.
    async fn send<Q>(&self, cx: &OpContext, request: Q) -> Result<Q::Output>
    where
        Q: UnaryRequest,
        Q::Output: MapResultPaths,
    {
        for path in request.as_request_ref().paths() {
            self.check_within(cx, path).await?;
        }
        let inner = request.map_paths(&mut |path| self.mapping.to_inner(path))?;
        let output = inner.send(&*self.inner, cx).await.map_err(|error| self.mapping.error(error))?;
        output.map_paths(&self.mapping)
    }

    /// Performs `request` on a file: the root is a directory, even before it exists.
    async fn send_file<Q>(&self, cx: &OpContext, path: &VfsPath, request: Q) -> Result<Q::Output>
    where
        Q: UnaryRequest,
        Q::Output: MapResultPaths,
    {
        if path.is_root() {
            cx.check()?;
            return Err(Error::at(ErrorKind::IsADirectory, path));
        }
        self.send(cx, request).await
    }

    /// Refuses a path whose links lead out of the directory. A link at its end is resolved, too.
    async fn check_within(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        let inner = self.mapping.to_inner(path)?;
        if self.mapping.inner().is_root() || !self.inner.capabilities(&inner).links {
            return Ok(());
        }
        let real = self.inner.resolve(cx, ResolveRequest::new(inner)).await;
        let real = real.map_err(|error| self.mapping.error(error).with_path(path))?;
        // The directory itself may be reached through a link; the caller of `Scoped::new` intended that.
        let root = self.inner.resolve(cx, ResolveRequest::new(self.mapping.inner().clone())).await;
        let root = root.map_err(|error| self.mapping.error(error).with_path(path))?;
        if real.path.starts_with(&root.path) { Ok(()) } else { Err(Error::at(ErrorKind::PathEscape, path)) }
    }

    /// Performs `request` on an entry that is moved or removed itself: only links in its parent are followed.
    async fn send_entry<Q>(&self, cx: &OpContext, request: Q) -> Result<Q::Output>
    where
        Q: UnaryRequest,
        Q::Output: MapResultPaths,
    {
        for path in request.as_request_ref().paths() {
            let Some(parent) = path.parent() else {
                let message = "the root itself cannot be changed; name something below it";
                return Err(Error::invalid_argument(message).with_path(path));
            };
            self.check_within(cx, &parent).await.map_err(|error| error.with_path(path))?;
        }
        let inner = request.map_paths(&mut |path| self.mapping.to_inner(path))?;
        let output = inner.send(&*self.inner, cx).await.map_err(|error| self.mapping.error(error))?;
        output.map_paths(&self.mapping)
    }

    async fn tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        self.check_within(cx, &req.path).await?;
        let mapping = self.real_mapping(cx).await?;
        let inner = mapping.to_inner(&req.path)?;
        let opened =
            vfs_search::open_tree(&self.inner, cx, req.at(inner)).await.map_err(|error| mapping.error(error))?;
        Ok(Arc::new(EmptyRootFallback(Arc::new(MappedTree::new(opened, mapping)))))
    }

    /// Returns the mapping to the real path of the directory, which may have been given through a link.
    async fn real_mapping(&self, cx: &OpContext) -> Result<PathMapping> {
        if !self.inner.capabilities(self.mapping.inner()).links {
            return Ok(self.mapping.clone());
        }
        let root = self.inner.resolve(cx, ResolveRequest::new(self.mapping.inner().clone())).await;
        let root = root.map_err(|error| self.mapping.error(error))?;
        Ok(PathMapping::new(VfsPath::root(), root.path))
    }
}

impl fmt::Display for ScopedBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scoped({}:{})", self.inner, self.mapping.inner())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for ScopedBackend {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.inner.capabilities(&self.mapping.to_inner(at).unwrap_or_default())
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        let is_root = req.path.is_root();
        match self.send(cx, req).await {
            Err(error) if is_root && error.kind() == ErrorKind::NotFound => Ok(FileInfo::directory(VfsPath::root())),
            response => response,
        }
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        if req.path.is_root() {
            cx.check()?;
            return Ok(ResolveResult::at(req.path));
        }
        self.check_within(cx, &req.path).await?;
        let mapping = self.real_mapping(cx).await?;
        let resolved = self.inner.resolve(cx, ResolveRequest::new(mapping.to_inner(&req.path)?)).await;
        resolved.map_err(|error| mapping.error(error))?.map_paths(&mapping)
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::List)).await?;
        let listed = vfs_search::ls_on(Pool::global(), tree, cx.clone(), req).await;
        listed.map_err(|error| error.or_path(&path))
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        let path = req.path.clone();
        self.send_file(cx, &path, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        let path = req.path.clone();
        self.send_file(cx, &path, req).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        let path = req.path.clone();
        let writer = self.send_file(cx, &path, req).await?;
        Ok(Box::new(ScopedWriter { backend: self.clone(), cx: cx.clone(), path, writer }))
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        edit::check(&req)?;
        let path = req.path.clone();
        self.send_file(cx, &path, req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.send_entry(cx, req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.send_entry(cx, req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        // A copy follows a link at its target.
        self.check_within(cx, &req.from).await?;
        self.check_within(cx, &req.to).await?;
        self.send_entry(cx, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::Glob)).await?;
        let found = vfs_search::glob_on(Pool::global(), tree, cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::for_grep(&req)).await?;
        let found = vfs_search::grep_on(Pool::global(), tree, cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let (backend, path, tree_cx) = (self.clone(), req.path.clone(), cx.clone());
        let request = OpenTreeRequest::for_grep(&req);
        let tree = async move { backend.tree(&tree_cx, request).await.map_err(|error| error.or_path(&path)) };
        vfs_search::grep_stream_in_tree(Pool::global().clone(), tree, cx, req)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        let mut responses = Vec::with_capacity(files.len());
        let mut contexts = UploadContexts::new(cx);
        for file in files {
            let path = file.path.clone();
            let response = match contexts.next(&path, self.capabilities(&path).operation_ids) {
                Ok(cx) => self.send_file(&cx, &path, file).await,
                Err(error) => Err(error),
            };
            let response = response.unwrap_or_else(|error| FileUploadResponse::failed(path, error));
            contexts.record(&response);
            responses.push(response);
        }
        responses
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let mut responses = Vec::with_capacity(paths.len());
        for path in paths {
            let response = self.send_file(cx, &path, vfs_core::transfer::FileDownloadRequest::new(path.clone())).await;
            responses.push(response.unwrap_or_else(|error| FileDownloadResponse::failed(path, error)));
        }
        responses
    }

    fn as_shell(&self) -> Option<&dyn Shell> {
        None
    }

    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        None
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        self.inner.as_multi_modal().map(|_| self as &dyn MultiModalReader)
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        Some(self)
    }

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        None
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        self.inner.as_watch().map(|_| self as &dyn Watch)
    }
}

/// A writer whose commit checks the path again, since links may have changed.
#[derive(Debug)]
struct ScopedWriter {
    backend: ScopedBackend,
    cx: OpContext,
    path: VfsPath,
    writer: Box<dyn FileWriter>,
}

#[async_trait]
impl FileWriter for ScopedWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<()> {
        self.writer.write(chunk).await
    }

    async fn commit(&mut self) -> Result<WriteResult> {
        self.backend.check_within(&self.cx, &self.path).await?;
        self.writer.commit().await
    }
}

#[async_trait]
impl MultiModalReader for ScopedBackend {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult> {
        let path = req.read.path.clone();
        self.send_file(cx, &path, req).await
    }
}

#[async_trait]
impl TreeProvider for ScopedBackend {
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        self.tree(cx, req).await
    }
}

impl Watch for ScopedBackend {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        let Some(watch) = self.inner.as_watch() else {
            let message = "this backend has no change feed";
            return Error::new(ErrorKind::Unsupported, message).with_path(&req.path).into_stream();
        };
        let mapping = self.mapping.clone();
        match req.map_paths(&mut |path| mapping.to_inner(path)) {
            Err(error) => error.into_stream(),
            Ok(inner) => watch
                .watch(cx, inner)
                .map(move |event| event.map_err(|error| mapping.error(error))?.map_paths(&mapping))
                .boxed(),
        }
    }
}

/// The subtree, whose root exists even before it is created.
struct EmptyRootFallback(Arc<dyn Tree>);

impl Tree for EmptyRootFallback {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        match Arc::clone(&self.0).lookup(path) {
            Err(error) if path.is_root() && error.kind() == ErrorKind::NotFound => {
                Ok(LookupResult::Directory(Arc::new(EmptyDirectory)))
            }
            result => result,
        }
    }
}

/// A directory without entries.
struct EmptyDirectory;

impl Directory for EmptyDirectory {
    fn list(&self) -> Result<Listing> {
        Ok(Listing::default())
    }

    fn open_dir(&self, _name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        Err(Error::not_found(path))
    }

    fn follow_link(&self, _name: &str) -> Result<ChildKind> {
        Err(Error::of(ErrorKind::NotFound))
    }

    fn stat(&self, _name: &str, path: VfsPath) -> Result<FileInfo> {
        Err(Error::not_found(&path))
    }

    fn open_file(&self, _name: &str, _kind: ChildKind) -> Result<SearchableContent> {
        Err(Error::of(ErrorKind::NotFound))
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        VfsPath::root().child(name).map(ResolveResult::at)
    }
}
