//! `CheckpointedBackend`: snapshots, undo and diff as methods and facets.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::MutexGuard;
use vfs_core::{
    Backend, Capabilities, ChangeSet, CopyRequest, CopyResult, DeleteRequest, DeleteResult, DiffRequest, EditRequest,
    EditResult, Error, ErrorKind, FileDownloadResponse, FileInfo, FileUpload, FileUploadResponse, FileWriter,
    ForgetRequest, GlobRequest, GlobResult, GrepEvent, GrepRequest, GrepResult, Intercepted, LsRequest, LsResult,
    MultiModalReader, Mutations, OpContext, OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult,
    ResolveRequest, Resolved, RestoreRequest, Result, Shell, SnapshotInfo, SnapshotRequest, Snapshots, StatRequest,
    StreamingShell, TreeProvider, VfsPath, Watch, WriteRequest, WriteResult,
};
use vfs_search::run_until_cancelled;

use super::Keeper;
use super::files::{Files, for_cleanup};
use super::undo::{UndoEntry, Undone};
use super::undo_log::UndoCursor;

/// A backend with [`Checkpoints`](super::Checkpoints) around it; made by [`Checkpoints::over`](super::Checkpoints::over).
/// Clones are handles on the same.
#[derive(Debug, Clone)]
pub struct CheckpointedBackend {
    inner: Arc<dyn Backend>,
    keeper: Arc<Keeper>,
    /// The inner backend with an undo record around every change.
    files: Intercepted<Keeper>,
}

impl CheckpointedBackend {
    pub(super) fn new(inner: Arc<dyn Backend>, keeper: Keeper) -> Self {
        let keeper = Arc::new(keeper);
        let files = Intercepted::new(Arc::clone(&inner), Arc::clone(&keeper));
        Self { inner, keeper, files }
    }

    /// Undoes the last operations, at most `operations`, the newest first.
    ///
    /// # Behaviour
    ///
    /// * An operation is taken back whole or not at all, and only if each file that it touched is as it left it. One that
    ///   is already what it was before is fine, too, so that an undo that was cut short, or whose end could not be written
    ///   down, can be repeated.
    /// * Where one cannot be taken back, those after it are: its error says how many, and [`history`](Self::history) lists
    ///   what is left. Where there are fewer operations than asked for, all of them are taken back.
    /// * A rename is undone by a rename where nothing was replaced. Everything else is undone by writing and deleting files:
    ///   contents come back, but not permissions, times, links or directories without files.
    /// * What is taken back is no longer in the history, and cannot be done again.
    ///
    /// # Errors
    ///
    /// `conflict` at a file that somebody else has changed since; `unsupported` at the root where changes are only returned;
    /// `internal`, `unavailable` and the like where the store fails or has lost a content; `timeout` and `cancelled` while
    /// it waits for its turn; and those of the inner backend.
    pub async fn undo(&self, cx: &OpContext, operations: usize) -> Result<Undone> {
        self.check_in_place()?;
        let mut turn = self.turn(cx).await?;
        self.keeper.undo(&self.files_of(cx), &mut turn, operations).await.map_err(at_root)
    }

    /// Returns the operations that can be undone, the newest first.
    ///
    /// # Errors
    ///
    /// Those of the store, as with [`undo`](Self::undo); `timeout` and `cancelled` while it waits for its turn.
    pub async fn history(&self, cx: &OpContext) -> Result<Vec<UndoEntry>> {
        let mut turn = self.turn(cx).await?;
        let files = self.files_of(cx);
        self.keeper.settle(&files, &mut turn).await.map_err(at_root)?;
        let records = self.keeper.records(&files).await.map_err(at_root)?;
        Ok(records.iter().rev().map(UndoEntry::from).collect())
    }

    /// Performs `work`, which writes the files at `paths` without changing what they hold, as the commit of an overlay further in
    /// does, and keeps the operations on them undoable.
    ///
    /// # Behaviour
    ///
    /// An operation is taken back only if its files have the versions that it left. This method looks at the files before and
    /// after `work`, also if it fails, and records the new version of each file whose content is the same. A file that holds
    /// something else afterwards was changed by somebody else, and stays a `conflict` of an undo. No change through this layer
    /// begins meanwhile.
    ///
    /// # Errors
    ///
    /// Those of [`history`](Self::history), before `work` begins, and those of `work`.
    pub async fn keep_undoable<R: Send>(
        &self,
        cx: &OpContext,
        paths: &[VfsPath],
        work: BoxFuture<'_, Result<R>>,
    ) -> Result<R> {
        let mut turn = self.turn(cx).await?;
        let files = self.files_of(cx);
        self.keeper.settle(&files, &mut turn).await.map_err(at_root)?;
        let current = self.keeper.current(&files, paths).await.map_err(at_root)?;
        let outcome = work.await;
        let cx = for_cleanup(cx);
        if let Err(error) = self.keeper.renew_versions(&self.files_of(&cx), current).await {
            tracing::warn!(%error, "operations before a commit cannot be undone, as their notes could not be renewed");
        }
        outcome
    }

    fn files_of<'a>(&'a self, cx: &'a OpContext) -> Files<'a> {
        Files { inner: &*self.inner, cx, excluded: &self.keeper.excluded }
    }

    /// Waits until no change is in progress.
    async fn turn(&self, cx: &OpContext) -> Result<MutexGuard<'_, UndoCursor>> {
        run_until_cancelled(cx, &VfsPath::root(), self.keeper.turn.lock()).await
    }

    fn check_in_place(&self) -> Result<()> {
        let root = VfsPath::root();
        if self.inner.capabilities(&root).mutations == Mutations::InPlace {
            return Ok(());
        }
        let message = "changes are only returned here, and no file can be brought back in place";
        Err(Error::new(ErrorKind::Unsupported, message).with_path(&root))
    }
}

fn at_root(error: Error) -> Error {
    error.or_path(&VfsPath::root())
}

impl fmt::Display for CheckpointedBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for CheckpointedBackend {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.files.capabilities(at)
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        self.files.stat(cx, req).await
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<Resolved> {
        self.files.resolve(cx, req).await
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        self.files.ls(cx, req).await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        self.files.read(cx, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        self.files.write(cx, req).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        self.files.open_writer(cx, req).await
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        self.files.edit(cx, req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.files.delete(cx, req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.files.rename(cx, req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        self.files.copy(cx, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        self.files.glob(cx, req).await
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        self.files.grep(cx, req).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        self.files.grep_stream(cx, req)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
        self.files.upload_files(cx, files).await
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        // Reads bypass the interceptor, so that the inner backend gets all paths at once.
        self.inner.download_files(cx, paths).await
    }

    fn as_shell(&self) -> Option<&dyn Shell> {
        self.files.as_shell()
    }

    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        self.files.as_streaming_shell()
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        self.files.as_multi_modal()
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        self.files.as_tree_provider()
    }

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        Some(self)
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        self.files.as_watch()
    }
}

#[async_trait]
impl Snapshots for CheckpointedBackend {
    async fn snapshot(&self, cx: &OpContext, req: SnapshotRequest) -> Result<SnapshotInfo> {
        let _turn = self.turn(cx).await?;
        self.keeper.take(&self.files_of(cx), req).await.map_err(at_root)
    }

    async fn snapshots(&self, cx: &OpContext) -> Result<Vec<SnapshotInfo>> {
        self.keeper.list(cx).await.map_err(at_root)
    }

    async fn restore(&self, cx: &OpContext, req: RestoreRequest) -> Result<()> {
        self.check_in_place()?;
        let mut turn = self.turn(cx).await?;
        self.keeper.go_back(&self.files_of(cx), &mut turn, &req.id).await.map_err(at_root)
    }

    async fn forget(&self, cx: &OpContext, req: ForgetRequest) -> Result<()> {
        let _turn = self.turn(cx).await?;
        self.keeper.forget(cx, &req.id).await.map_err(at_root)
    }

    async fn diff(&self, cx: &OpContext, req: DiffRequest) -> Result<ChangeSet> {
        self.keeper.compare(&self.files_of(cx), &req).await.map_err(at_root)
    }
}
