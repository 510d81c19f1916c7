//! A subtree as a root.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use vfs_core::tree::{ChildKind, DynDirectory, DynTree, Listing, Located, Opened, SharedTree, Sketch, Tree as _};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUpload, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, Layer, LsRequest, LsResult, MapPaths, MultiModalContent, MultiModalReadRequest,
    MultiModalReader, OpContext, OpenTreeRequest, OpenWriterRequest, PathMapping, ReadRequest, ReadResult,
    RenameRequest, RenameResult, Request as _, ResolveRequest, Resolved, Result, Shell, Snapshots, StatRequest,
    StreamingShell, TreeProvider, TreeUse, UnaryRequest, VfsPath, Watch, WatchEvent, WatchRequest, WriteRequest,
    WriteResult, edit,
};
use vfs_search::Pool;

/// Shows one directory of a backend as if it were all of it.
///
/// # Behaviour
///
/// * The directory is the root: nothing outside it can be named, it cannot be deleted or moved itself, and where it does
///   not exist yet it is an empty directory. Every path in every answer is relative to it.
/// * Ignore files above the directory do not count.
/// * A link that leads out of the directory is refused, as a link out of a root is. Between the look at a link and the
///   operation another process may change the link; a [`LocalBackend`] that is opened at the directory is kept there by
///   the kernel.
/// * There is no shell, and there are no snapshots: commands and states of all files reach beyond the directory.
///
/// [`LocalBackend`]: https://docs.rs/vfs-local
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
    /// Shows `directory` as the root.
    pub fn new(directory: VfsPath) -> Self {
        Self { directory }
    }
}

impl Layer for Scoped {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let rebase = PathMapping::new(VfsPath::root(), self.directory.clone());
        Arc::new(ScopedBackend { inner, rebase })
    }
}

#[derive(Debug, Clone)]
struct ScopedBackend {
    inner: Arc<dyn Backend>,
    rebase: PathMapping,
}

impl ScopedBackend {
    /// Performs `request` in the directory.
    async fn send<Q>(&self, cx: &OpContext, request: Q) -> Result<Q::Output>
    where
        Q: UnaryRequest,
        Q::Output: MapPaths,
    {
        for path in request.as_request_ref().paths() {
            self.stays_within(cx, path).await?;
        }
        let inner = request.map_paths(&mut |path| self.rebase.to_inner(path))?;
        let output = inner.send(&*self.inner, cx).await.map_err(|error| self.rebase.error(error))?;
        output.map_paths(&self.rebase)
    }

    /// As [`send`](Self::send), of what cannot be done to a directory, which the root is even before it exists.
    async fn send_file<Q>(&self, cx: &OpContext, path: &VfsPath, request: Q) -> Result<Q::Output>
    where
        Q: UnaryRequest,
        Q::Output: MapPaths,
    {
        if path.is_root() {
            cx.check()?;
            return Err(Error::at(ErrorKind::IsADirectory, path));
        }
        self.send(cx, request).await
    }

    /// Refuses a path whose links lead out of the directory. A link at its end is looked at by what follows it.
    async fn stays_within(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        let inner = self.rebase.to_inner(path)?;
        if self.rebase.inner().is_root() || !self.inner.capabilities(&inner).links {
            return Ok(());
        }
        let real = self.inner.resolve(cx, ResolveRequest::new(inner)).await;
        let real = real.map_err(|error| self.rebase.error(error).with_path(path))?;
        // The directory itself may be reached through a link, which whoever chose it meant.
        let root = self.inner.resolve(cx, ResolveRequest::new(self.rebase.inner().clone())).await;
        let root = root.map_err(|error| self.rebase.error(error).with_path(path))?;
        if real.path.starts_with(&root.path) { Ok(()) } else { Err(Error::at(ErrorKind::PathEscape, path)) }
    }

    /// The same of an entry that is moved or removed as it is: only what is above it is followed.
    async fn send_entry<Q>(&self, cx: &OpContext, request: Q) -> Result<Q::Output>
    where
        Q: UnaryRequest,
        Q::Output: MapPaths,
    {
        for path in request.as_request_ref().paths() {
            let Some(parent) = path.parent() else {
                let message = "the root itself cannot be changed; name something below it";
                return Err(Error::invalid_argument(message).with_path(path));
            };
            self.stays_within(cx, &parent).await.map_err(|error| error.with_path(path))?;
        }
        let inner = request.map_paths(&mut |path| self.rebase.to_inner(path))?;
        let output = inner.send(&*self.inner, cx).await.map_err(|error| self.rebase.error(error))?;
        output.map_paths(&self.rebase)
    }

    async fn tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<SharedTree> {
        self.stays_within(cx, &req.path).await?;
        let rebase = self.real_rebase(cx).await?;
        let inner = rebase.to_inner(&req.path)?;
        let request = req.at(inner);
        let lent = vfs_search::open_tree(&self.inner, cx, request).await.map_err(|error| rebase.error(error))?;
        Ok(SharedTree::new(ScopedTree(lent.rebased(rebase))))
    }

    /// Where the directory really is, which may have been chosen by a link.
    async fn real_rebase(&self, cx: &OpContext) -> Result<PathMapping> {
        if !self.inner.capabilities(self.rebase.inner()).links {
            return Ok(self.rebase.clone());
        }
        let root = self.inner.resolve(cx, ResolveRequest::new(self.rebase.inner().clone())).await;
        let root = root.map_err(|error| self.rebase.error(error))?;
        Ok(PathMapping::new(VfsPath::root(), root.path))
    }
}

impl fmt::Display for ScopedBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scoped({}:{})", self.inner, self.rebase.inner())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for ScopedBackend {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.inner.capabilities(&self.rebase.to_inner(at).unwrap_or_default())
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        let is_root = req.path.is_root();
        match self.send(cx, req).await {
            Err(error) if is_root && error.kind() == ErrorKind::NotFound => Ok(FileInfo::directory(VfsPath::root())),
            answer => answer,
        }
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<Resolved> {
        if req.path.is_root() {
            cx.check()?;
            return Ok(Resolved::at(req.path));
        }
        self.stays_within(cx, &req.path).await?;
        let rebase = self.real_rebase(cx).await?;
        let resolved = self.inner.resolve(cx, ResolveRequest::new(rebase.to_inner(&req.path)?)).await;
        resolved.map_err(|error| rebase.error(error))?.map_paths(&rebase)
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::List)).await?;
        let listed = vfs_search::ls_on(Pool::global(), Arc::new(tree), cx.clone(), req).await;
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
        self.send_file(cx, &path, req).await
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
        // A copy is written through a link at its target.
        self.stays_within(cx, &req.from).await?;
        self.stays_within(cx, &req.to).await?;
        self.send_entry(cx, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::Glob)).await?;
        let found = vfs_search::glob_on(Pool::global(), Arc::new(tree), cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::for_grep(&req)).await?;
        let found = vfs_search::grep_on(Pool::global(), Arc::new(tree), cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let (this, path, within) = (self.clone(), req.path.clone(), cx.clone());
        let lend = OpenTreeRequest::for_grep(&req);
        let tree = async move { this.tree(&within, lend).await.map_err(|error| error.or_path(&path)) };
        vfs_search::grep_stream_in_tree(Pool::global().clone(), tree, cx, req)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
        let mut answers = Vec::with_capacity(files.len());
        for file in files {
            let path = file.path.clone();
            let answer = self.send_file(cx, &path, file).await;
            answers.push(answer.unwrap_or_else(|error| FileUploadResponse::failed(path, error)));
        }
        answers
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let mut answers = Vec::with_capacity(paths.len());
        for path in paths {
            let answer = self.send_file(cx, &path, vfs_core::DownloadRequest::new(path.clone())).await;
            answers.push(answer.unwrap_or_else(|error| FileDownloadResponse::failed(path, error)));
        }
        answers
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

#[async_trait]
impl MultiModalReader for ScopedBackend {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalContent> {
        let path = req.read.path.clone();
        self.send_file(cx, &path, req).await
    }
}

#[async_trait]
impl TreeProvider for ScopedBackend {
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<SharedTree> {
        self.tree(cx, req).await
    }
}

impl Watch for ScopedBackend {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        let Some(watch) = self.inner.as_watch() else {
            let message = "this backend has no change feed";
            return Error::new(ErrorKind::Unsupported, message).with_path(&req.path).into_stream();
        };
        let rebase = self.rebase.clone();
        match req.map_paths(&mut |path| rebase.to_inner(path)) {
            Err(error) => error.into_stream(),
            Ok(inner) => watch
                .watch(cx, inner)
                .map(move |event| event.map_err(|error| rebase.error(error))?.map_paths(&rebase))
                .boxed(),
        }
    }
}

/// The subtree, whose root is there even before it exists.
struct ScopedTree(SharedTree);

impl DynTree for ScopedTree {
    fn locate(&self, path: &VfsPath) -> Result<Located<Arc<dyn DynDirectory>>> {
        match self.0.locate(path) {
            Err(error) if path.is_root() && error.kind() == ErrorKind::NotFound => {
                Ok(Located::Directory(Arc::new(EmptyDirectory)))
            }
            located => located,
        }
    }
}

/// A directory that nobody has put anything into.
struct EmptyDirectory;

impl DynDirectory for EmptyDirectory {
    fn list(&self) -> Result<Listing> {
        Ok(Listing::default())
    }

    fn list_only(&self, _names: &[String]) -> Result<Listing> {
        Ok(Listing::default())
    }

    fn enter(&self, _name: &str, path: &VfsPath) -> Result<Arc<dyn DynDirectory>> {
        Err(Error::not_found(path))
    }

    fn follow(&self, _name: &str) -> Result<ChildKind> {
        Err(Error::of(ErrorKind::NotFound))
    }

    fn info(&self, _name: &str, path: VfsPath) -> Result<FileInfo> {
        Err(Error::not_found(&path))
    }

    fn known(&self, _name: &str, _kind: ChildKind) -> Option<Sketch> {
        None
    }

    fn open(&self, _name: &str, _kind: ChildKind) -> Result<Opened> {
        Err(Error::of(ErrorKind::NotFound))
    }

    fn resolve(&self, name: &str) -> Result<Resolved> {
        VfsPath::root().child(name).map(Resolved::at)
    }
}
