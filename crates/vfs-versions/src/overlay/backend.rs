//! `OverlayBackend`: the state of an overlay as a backend.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use futures::stream::BoxStream;
use tokio::sync::{Mutex, MutexGuard};
use vfs_core::backend::{AccessMode, MutationMode};
use vfs_core::chunks::BufferedWriter;
use vfs_core::edit::ApplyMode;
use vfs_core::multi_modal::{MultiModalReadRequest, MultiModalReadResult};
use vfs_core::operation::UnaryRequest;
use vfs_core::path::{MapResultPaths, PathMapping};
use vfs_core::transfer::FileDownloadRequest;
use vfs_core::tree::{OpenTreeRequest, Tree, TreeUse};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest,
    GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext,
    OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result,
    Shell, Snapshots, StatRequest, StreamingShell, TreeProvider, VfsPath, Watch, WriteRequest, WriteResult, edit,
};
use vfs_search::{Pool, run_until_cancelled};

use super::overlay_persistence::OverlayPersistence;
use super::overlay_state::{OverlayLookupResult, OverlayState};

/// Copy-on-write backend over a base, which is not written to until the changes are committed.
///
/// # Behaviour
///
/// * The overlay holds written, edited, moved and copied files, and hides deleted ones. Directories of both sides merge. Reads,
///   listings and searches see the result, with the present state of the base.
/// * [`diff`](Self::diff) returns the differences from the base, [`commit`](Self::commit) applies them to it,
///   [`discard`](Self::discard) discards all of them and [`discard_paths`](Self::discard_paths) some. [`fork`](Self::fork)
///   creates another overlay that starts with the same changes, and [`merge`](Self::merge) merges its changes into this one.
/// * A directory exists as long as it has a file, or if it is an empty directory of the base. To move or copy a large directory
///   needs room for all of its contents; the copy of a link to a file in it is a file.
/// * Changes are serialised. Each is visible as a whole or not at all. A context with a deadline that waits for another change
///   needs a Tokio runtime with a timer.
/// * All contents are in memory, within the [budget](Self::with_budget). An overlay that is [opened](Self::open) over a
///   store is also saved there after every change.
/// * All links are those of the base. A write, edit or copy to a link changes its target; deleting a link deletes the link itself
///   at the commit; links cannot be moved or created. A link that leads through another one shows the entry of the base, even if
///   the other one was deleted in the overlay.
/// * There is no shell, no change feed and there are no snapshots, since those of the base do not know the changes. Watching an
///   overlay that is mounted in a namespace is `unsupported`.
///
/// A clone is a handle on the same overlay.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, OpContext};
/// use vfs_versions::{CommitResult, OverlayBackend};
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let project = MemoryBackend::new();
/// project.create_text("/a.txt", "one\n").await?;
///
/// let attempt = OverlayBackend::new(Arc::new(project.clone()));
/// attempt.edit_text("/a.txt", "one", "two").await?;
/// assert_eq!(project.read_text("/a.txt").await?, "one\n");
/// assert!(attempt.diff(&OpContext::new()).await?.unified().contains("+two"));
///
/// assert!(matches!(attempt.commit(&OpContext::new()).await?, CommitResult::Applied(_)));
/// assert_eq!(project.read_text("/a.txt").await?, "two\n");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct OverlayBackend {
    inner: Arc<SharedOverlay>,
}

/// State that all clones of an overlay share.
#[derive(Debug)]
struct SharedOverlay {
    state: ArcSwap<OverlayState>,
    /// Locked during a change, from reading the state to its replacement.
    changes: Arc<Mutex<Option<OverlayPersistence>>>,
    budget: u64,
    /// State in which a fork started.
    origin: Option<OverlayState>,
}

impl OverlayBackend {
    /// Default budget of an overlay, in bytes of content: 256 MiB.
    pub const DEFAULT_BUDGET: u64 = 256 << 20;

    /// Returns an overlay over `base` without changes, in memory.
    pub fn new(base: Arc<dyn Backend>) -> Self {
        Self::from_parts(OverlayState::new(base, Self::DEFAULT_BUDGET), Self::DEFAULT_BUDGET, Arc::default(), None)
    }

    /// Opens a persistent overlay over `base`, whose changes are also saved in the directory `directory` of `store`, where the next
    /// process finds them. An interrupted commit there is finished first.
    ///
    /// One process at a time may change the overlay: of two that change it at once, the later change is a `conflict`. A process
    /// that opens the overlay while another one commits finishes that commit as well.
    ///
    /// # Errors
    ///
    /// `conflict` if a commit was interrupted and a file that it was about to write was changed since; `invalid_argument` if the
    /// store contains something else; those of the store.
    pub async fn open(base: Arc<dyn Backend>, store: Arc<dyn Backend>, directory: VfsPath) -> Result<Self> {
        let mut persistence = OverlayPersistence::new(store, directory);
        let state = persistence.load(&OpContext::new(), OverlayState::new(base, Self::DEFAULT_BUDGET)).await?;
        Ok(Self::from_parts(state, Self::DEFAULT_BUDGET, Arc::new(Mutex::new(Some(persistence))), None))
    }

    /// Sets the budget: the overlay holds at most `bytes` of content. Default [`OverlayBackend::DEFAULT_BUDGET`].
    ///
    /// Set this before the overlay is shared: a handle that was cloned before keeps its budget.
    #[must_use]
    pub fn with_budget(self, bytes: u64) -> Self {
        let SharedOverlay { state, changes, origin, .. } = &*self.inner;
        let state = OverlayState { budget: bytes, ..OverlayState::clone(&state.load()) };
        Self::from_parts(state, bytes, Arc::clone(changes), origin.clone())
    }

    /// Records commits in the directory `directory` of `store`, so that a commit that a crash interrupts can be
    /// [finished](Self::finish_commit). After a commit that could not be recorded, the next change checks the record first, and
    /// fails if that fails.
    ///
    /// Only one of the overlays that share a journal commits at a time; the others get a `conflict`. An overlay that was
    /// [opened](Self::open) records its commits already: with a journal it is no longer persistent.
    ///
    /// Set this before the overlay is shared, as [`with_budget`](Self::with_budget).
    #[must_use]
    pub fn with_journal(self, store: Arc<dyn Backend>, directory: VfsPath) -> Self {
        let SharedOverlay { state, budget, origin, .. } = &*self.inner;
        let changes = Arc::new(Mutex::new(Some(OverlayPersistence::for_commits(store, directory))));
        Self::from_parts(OverlayState::clone(&state.load()), *budget, changes, origin.clone())
    }

    /// Returns another overlay over the same base that starts with the present changes, in constant time. The fork is in
    /// memory only, and neither overlay sees later changes of the other.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.state();
        Self::from_parts(state.draft(), self.budget(), Arc::default(), Some(state.draft()))
    }

    fn from_parts(
        state: OverlayState,
        budget: u64,
        changes: Arc<Mutex<Option<OverlayPersistence>>>,
        origin: Option<OverlayState>,
    ) -> Self {
        Self { inner: Arc::new(SharedOverlay { state: ArcSwap::from_pointee(state), changes, budget, origin }) }
    }

    /// Returns the base.
    pub fn base(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.state().base)
    }

    /// Returns whether the overlay has no changes.
    pub fn is_unchanged(&self) -> bool {
        self.state().is_unchanged()
    }

    pub(crate) fn state(&self) -> Arc<OverlayState> {
        self.inner.state.load_full()
    }

    pub(super) fn set_state(&self, state: OverlayState) {
        self.inner.state.store(Arc::new(state));
    }

    pub(crate) fn budget(&self) -> u64 {
        self.inner.budget
    }

    pub(crate) fn origin(&self) -> Option<&OverlayState> {
        self.inner.origin.as_ref()
    }

    /// Waits until no other change is in progress, or the caller cancels the change of `path`. Returns the persistence, if the
    /// overlay has one.
    pub(super) async fn lock(
        &self,
        cx: &OpContext,
        path: &VfsPath,
    ) -> Result<MutexGuard<'_, Option<OverlayPersistence>>> {
        run_until_cancelled(cx, path, self.inner.changes.lock()).await
    }

    /// Applies `change` to a draft and publishes the result, as a whole or not at all.
    pub(crate) async fn mutate<R>(
        &self,
        cx: &OpContext,
        path: &VfsPath,
        change: impl AsyncFnOnce(&mut OverlayState) -> Result<R>,
    ) -> Result<R> {
        cx.check()?;
        let mut persistence = self.lock(cx, path).await?;
        let state = self.state();
        let mut draft = state.draft();
        let result = change(&mut draft).await?;
        draft.check_budget(state.content_size(), path)?;
        if let Some(persistence) = &mut *persistence {
            persistence.save(&cx.without_operation_id(), &draft).await.map_err(|error| error.with_path(path))?;
        }
        self.set_state(draft);
        Ok(result)
    }

    /// Performs `request`, which reads the file at `path`, on the side that has the file.
    async fn read_with<Q: UnaryRequest>(&self, cx: &OpContext, path: &VfsPath, request: Q) -> Result<Q::Output>
    where
        Q::Output: MapResultPaths,
    {
        cx.check()?;
        let state = self.state();
        let real = state.real(cx, path).await?;
        let entry = state.find(cx, &real).await.map_err(|error| error.with_path(path))?;
        let side: &dyn Backend = match entry {
            OverlayLookupResult::Upper(_) => &state.upper,
            OverlayLookupResult::Base(_) => &*state.base,
            OverlayLookupResult::Directory(_) => return Err(Error::at(ErrorKind::IsADirectory, path)),
            OverlayLookupResult::Nothing | OverlayLookupResult::Link => return Err(Error::not_found(path)),
        };
        if real == *path {
            return request.send(side, cx).await;
        }
        let rebase = PathMapping::new(path.clone(), real.clone());
        let output = request.map_paths(&mut |_| Ok(real.clone()))?.send(side, cx).await;
        output.map_err(|error| rebase.error(error))?.map_paths(&rebase)
    }
}

impl fmt::Display for OverlayBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "overlay({})", self.state().base)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for OverlayBackend {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        let state = self.state();
        let mut capabilities = state.upper.capabilities(at);
        let base = state.base.capabilities(at);
        capabilities.links = base.links;
        capabilities.set_times = false;
        capabilities.max_file_size = capabilities.max_file_size.min(base.max_file_size);
        // A writer buffers its chunks and writes them at once.
        capabilities.max_streamed_size = capabilities.max_file_size;
        (capabilities.access, capabilities.mutations) = (AccessMode::ReadWrite, MutationMode::InPlace);
        capabilities
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        cx.check()?;
        let state = self.state();
        let real = state.real(cx, &req.path).await?;
        match state.find(cx, &real).await.map_err(|error| error.with_path(&req.path))? {
            OverlayLookupResult::Nothing | OverlayLookupResult::Link => Err(Error::not_found(&req.path)),
            OverlayLookupResult::Upper(mut info)
            | OverlayLookupResult::Base(mut info)
            | OverlayLookupResult::Directory(mut info) => {
                info.path = req.path;
                Ok(info)
            }
        }
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        cx.check()?;
        let state = self.state();
        let at = state.resolve(cx, &req.path).await?;
        match state.find(cx, &at.path).await {
            Ok(OverlayLookupResult::Base(_)) => state.base.resolve(cx, req).await,
            _ => Ok(at.names(1)),
        }
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        cx.check()?;
        self.state().ls(cx, req).await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        let path = req.path.clone();
        self.read_with(cx, &path, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        req.refuse_modified_at()?;
        let path = req.path.clone();
        self.mutate(cx, &path, async |draft| draft.write(cx, req).await).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        BufferedWriter::open(self.clone(), cx, req)
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        edit::check(&req)?;
        let path = req.path.clone();
        if req.mode == ApplyMode::DryRun {
            return self.state().draft().edit(cx, req).await;
        }
        self.mutate(cx, &path, async |draft| draft.edit(cx, req).await).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        let path = req.path.clone();
        self.mutate(cx, &path, async |draft| draft.delete(cx, req).await).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        let path = req.from.clone();
        self.mutate(cx, &path, async |draft| draft.rename(cx, req).await).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        let path = req.from.clone();
        self.mutate(cx, &path, async |draft| draft.copy(cx, req).await).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        cx.check()?;
        let path = req.path.clone();
        let tree = self.state().tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::Glob)).await?;
        let result = vfs_search::glob_on(Pool::global(), tree, cx.clone(), req).await;
        result.map_err(|error| error.or_path(&path))
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        cx.check()?;
        let path = req.path.clone();
        let tree = self.state().tree(cx, OpenTreeRequest::for_grep(&req)).await?;
        let result = vfs_search::grep_on(Pool::global(), tree, cx.clone(), req).await;
        result.map_err(|error| error.or_path(&path))
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let (state, path, tree_cx) = (self.state(), req.path.clone(), cx.clone());
        let lend = OpenTreeRequest::for_grep(&req);
        let tree = async move { state.tree(&tree_cx, lend).await.map_err(|error| error.or_path(&path)) };
        vfs_search::grep_stream_in_tree(Pool::global().clone(), tree, cx, req)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        let mut responses = Vec::with_capacity(files.len());
        for file in files {
            let path = file.path.clone();
            let written = self.write(cx, file.into()).await.map_err(|error| error.or_path(&path));
            responses.push(FileUploadResponse::of_write(path, written));
        }
        responses
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let mut responses = Vec::with_capacity(paths.len());
        for path in paths {
            let response = self.read_with(cx, &path, FileDownloadRequest::new(path.clone())).await;
            let response = response.map_err(|error| error.or_path(&path));
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
        Some(self)
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        Some(self)
    }

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        None
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        None
    }
}

#[async_trait]
impl MultiModalReader for OverlayBackend {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult> {
        vfs_core::multi_modal::read_multi_modal(self, cx, req).await
    }
}

#[async_trait]
impl TreeProvider for OverlayBackend {
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        cx.check()?;
        self.state().tree(cx, req).await
    }
}
