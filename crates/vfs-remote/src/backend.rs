//! `SandboxBackend`: file operations as shell scripts, and searches over the remote tree.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{BoxStream, StreamExt as _};
use vfs_core::multi_modal::{MultiModalReadRequest, MultiModalReadResult, read_multi_modal};
use vfs_core::operation::deferred_stream;
use vfs_core::search::{HiddenNames, IgnoreMode};
use vfs_core::tree::{OpenTreeRequest, Tree, TreeUse};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext, OpenWriterRequest,
    ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result, Shell, StatRequest,
    TreeProvider, VfsPath, WriteRequest, WriteResult,
};
use vfs_search::{Pool, SearchScope};

use crate::config::RemoteConfig;
use crate::exec::RemoteExec;
use crate::operations::remote_writer::RemoteWriter;
use crate::operations::{bulk_transfer, edit, read, remove, rename_copy, stat, write};
use crate::remote_place_client::RemotePlaceClient;
use crate::tree::directory_listing::ListingDepth;
use crate::tree::{RemoteTree, everything};

/// The files and the shell of a place that runs a POSIX shell: a container, a machine behind SSH, or a cloud sandbox.
///
/// # Behaviour
///
/// * The place needs `sh` and the base tools of GNU, of the BSDs, or of busybox. The first call, or
///   [`connect`](Self::connect), probes their features once.
/// * An operation is one script. An edit is two, unless this backend has recently read or written the file and the file
///   has at most 64 KiB. A search is one script for the names, and one for every few hundred contents. Many small files
///   are uploaded or downloaded by one script. Names and contents may contain any bytes. A response is valid only with
///   its trailer: a response that was cut, or never arrived, is an error and never an empty result.
/// * Paths are below [`RemoteConfig::root`]. The shell walks to a file directory by directory, follows links itself,
///   and refuses a link that is absolute or leads out of the root; then it operates on a single name in its working
///   directory. A process *in the place* that replaces a name by a link at that moment can cause the target of the link
///   to be read or replaced: the place is the boundary, and a command in the place can reach that file anyway.
/// * New content is written beside the file and renamed over it, so that readers see the old file or the new one. The
///   mode and, if permitted, the owner are preserved; extended attributes and access control lists are not. Nothing is
///   synced to the disk of the place.
/// * Changes of one file are serialised, also those of other processes that use a backend like this one: a lock file is
///   beside the file. A lock that a dead process left behind is removed after a minute.
/// * Versions consist of inode, size and times, at least one of which every write changes. If the clock or the tools of
///   the place have a resolution of whole seconds, versions include the content too, which makes listings there slow.
/// * Commands run by `sh -c` in the place, with its `PATH` and the variables that are set for them. Both outputs are
///   separate; the combined output is standard output, then standard error. There are no terminals and no background
///   jobs.
/// * A response of the place takes at most 64 MiB of memory in this process, and the output of a command at most
///   [`RemoteConfig::max_output_bytes`]. If the entries of a directory do not fit into a response, or through the
///   transport, only some are listed, and a problem says so.
/// * Dropping a call ends its script, unless the script changes files: a change is completed.
///
/// The backend needs a tokio runtime with its timer.
///
/// # Errors
///
/// The errors of every backend and of [`RemoteExec`]; `unsupported` if the place lacks a tool; `unavailable` if a response
/// did not arrive complete, in which case the requested change may have been made.
///
/// ```
/// use vfs_core::BackendExt;
/// use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
/// # let directory = tempfile::tempdir().expect("a directory");
/// # let root = directory.path().to_str().expect("UTF-8");
/// let files = SandboxBackend::connect(LocalProcess::new(), RemoteConfig::new(root)).await?;
/// files.create_text("/notes/today.md", "- read\n").await?;
/// assert_eq!(files.read_text("/notes/today.md").await?, "- read\n");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
pub struct SandboxBackend<E> {
    pub(crate) place: Arc<RemotePlaceClient<E>>,
    pool: Pool,
}

impl<E: RemoteExec> SandboxBackend<E> {
    /// Creates a backend for the files below the root of `config`, in the place that `execute` reaches. No script runs
    /// yet.
    pub fn new(execute: E, config: RemoteConfig) -> Self {
        let pool = config.search_pool.clone().unwrap_or_else(|| Pool::new(config.concurrency.get()));
        Self { place: Arc::new(RemotePlaceClient::new(execute, config)), pool }
    }

    /// Creates a backend as [`new`](Self::new) does, and probes the place and the features of its tools.
    ///
    /// # Errors
    ///
    /// The errors of [`RemoteExec::run`]; `unsupported` if a tool is missing; `unavailable` if the root does not exist.
    pub async fn connect(execute: E, config: RemoteConfig) -> Result<Self> {
        let backend = Self::new(execute, config);
        backend.place.features().await?;
        Ok(backend)
    }

    /// Returns the transport.
    pub fn executor(&self) -> &E {
        &self.place.execute
    }

    /// Returns the configuration.
    pub fn config(&self) -> &RemoteConfig {
        &self.place.config
    }

    async fn tree(&self, cx: &OpContext, path: &VfsPath, max_depth: ListingDepth) -> Result<Arc<RemoteTree<E>>> {
        RemoteTree::new(&self.place, cx, path, max_depth).await.map(Arc::new)
    }
}

/// Returns how far the directories below `path` are listed in advance: completely if the search may enter any
/// directory, else one level.
fn listing_depth(scope: &SearchScope, path: &VfsPath, all: ListingDepth) -> ListingDepth {
    // No pattern can match this name.
    let goes_anywhere = path.child("\u{1}anywhere\u{1}").is_ok_and(|anywhere| scope.reaches(&anywhere));
    if goes_anywhere { all } else { ListingDepth::Level }
}

fn depth_of_glob(req: &GlobRequest) -> ListingDepth {
    let all = everything(req.hidden, req.ignore);
    SearchScope::of_glob(req).map_or(ListingDepth::Level, |scope| listing_depth(&scope, &req.path, all))
}

fn depth_of_grep(req: &GrepRequest) -> ListingDepth {
    let all = everything(req.hidden, req.ignore);
    // The search reports an error of the request.
    SearchScope::of_grep(req).map_or(ListingDepth::Level, |scope| listing_depth(&scope, &req.path, all))
}

fn depth_of_ls(req: &LsRequest) -> ListingDepth {
    match req.depth() {
        Some(0 | 1) => ListingDepth::Level,
        // One level more, so that entries below the limit are counted as skipped.
        Some(levels) => ListingDepth::Levels(levels.saturating_add(1)),
        None => everything(HiddenNames::Include, IgnoreMode::Disregard),
    }
}

impl<E> Clone for SandboxBackend<E> {
    fn clone(&self) -> Self {
        Self { place: Arc::clone(&self.place), pool: self.pool.clone() }
    }
}

impl<E: RemoteExec> fmt::Debug for SandboxBackend<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxBackend").field("place", &self.place).finish_non_exhaustive()
    }
}

impl<E: RemoteExec> fmt::Display for SandboxBackend<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.place.execute, f)
    }
}

#[async_trait]
impl<E: RemoteExec> Backend for SandboxBackend<E> {
    fn capabilities(&self, _at: &VfsPath) -> Capabilities {
        let mut capabilities = Capabilities::new(self.place.config.max_file_size);
        capabilities.empty_directories = true;
        capabilities.links = true;
        capabilities.max_streamed_size = self.place.config.max_streamed_size;
        capabilities
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        stat::stat(&self.place, cx, req.path).await
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        stat::resolve(&self.place, cx, req.path).await
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        let (child_cx, _guard) = cx.cancel_on_drop();
        let path = req.path.clone();
        let tree = self.tree(&child_cx, &path, depth_of_ls(&req)).await?;
        vfs_search::ls_on(&self.pool, tree, cx.clone(), req).await.map_err(|error| error.or_path(&path))
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        read::read(&self.place, cx, req.clamp_max_bytes(self.place.config.max_file_size)).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        write::write(&self.place, cx, req).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        Ok(Box::new(RemoteWriter::open(&self.place, cx, req).await?))
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        edit::edit(&self.place, cx, &req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        remove::delete(&self.place, cx, req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        rename_copy::rename(&self.place, cx, req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        rename_copy::copy(&self.place, cx, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        let (child_cx, _guard) = cx.cancel_on_drop();
        let path = req.path.clone();
        let tree = self.tree(&child_cx, &path, depth_of_glob(&req)).await?;
        vfs_search::glob_on(&self.pool, tree, cx.clone(), req).await.map_err(|error| error.or_path(&path))
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        let (child_cx, _guard) = cx.cancel_on_drop();
        let path = req.path.clone();
        let tree = self.tree(&child_cx, &path, depth_of_grep(&req)).await?;
        vfs_search::grep_on(&self.pool, tree, cx.clone(), req).await.map_err(|error| error.or_path(&path))
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let this = self.clone();
        let (child_cx, guard) = cx.cancel_on_drop();
        let events = deferred_stream(async move {
            let tree = this.tree(&child_cx, &req.path, depth_of_grep(&req)).await?;
            Ok(vfs_search::grep_stream_on(&this.pool, tree, cx, req))
        });
        // Dropping the stream stops the scripts that make its tree.
        events.inspect(move |_| _ = &guard).boxed()
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        bulk_transfer::upload(&self.place, cx, files).await
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        bulk_transfer::downloads(&self.place, cx, paths).await
    }

    fn as_shell(&self) -> Option<&dyn Shell> {
        Some(self)
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        Some(self)
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        Some(self)
    }
}

#[async_trait]
impl<E: RemoteExec> MultiModalReader for SandboxBackend<E> {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult> {
        read_multi_modal(self, cx, req).await
    }
}

#[async_trait]
impl<E: RemoteExec> TreeProvider for SandboxBackend<E> {
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        let max_depth = match (&req.search, req.purpose) {
            (Some(search), _) => depth_of_grep(search),
            (None, TreeUse::Grep) => everything(HiddenNames::Skip, IgnoreMode::Apply),
            (None, _) => ListingDepth::Level,
        };
        Ok(self.tree(cx, &req.path, max_depth).await?)
    }
}
