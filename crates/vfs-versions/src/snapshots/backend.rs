//! `CheckpointedBackend`: snapshots, undo and diff as methods and facets.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::Mutex;
use vfs_core::backend::MutationMode;
use vfs_core::operation::{Intercepted, OperationClass, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::snapshots::{
    ForgetRequest, ListSnapshotsRequest, RestoreRequest, SnapshotDiffRequest, SnapshotDiffResult, SnapshotInfo,
    SnapshotRequest,
};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest,
    GlobResult, GrepEvent, GrepRequest, GrepResult, Interceptor, LsRequest, LsResult, MultiModalReader, OpContext,
    OpenWriterRequest, Operation, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult,
    Result, Shell, Snapshots, StatRequest, StreamingShell, TreeProvider, VfsPath, Watch, WriteRequest, WriteResult,
};
use vfs_search::run_until_cancelled;

use super::caller_files::CallerFiles;
use super::checkpoint_store::CheckpointStore;
use super::restore::restore;
use crate::undo_log::{ReportedOutcome, UndoCursor, UndoEntry, UndoLog, UndoReport};

/// Interceptor that writes an undo record around every change.
#[derive(Debug)]
pub(super) struct UndoInterceptor {
    pub(super) store: Arc<CheckpointStore>,
    pub(super) cursor: Arc<Mutex<UndoCursor>>,
    pub(super) excluded: Vec<VfsPath>,
    pub(super) max_undo_records: u64,
}

impl UndoInterceptor {
    /// Waits until no change is in progress, and returns the undo log.
    async fn lock(&self, cx: &OpContext, path: &VfsPath) -> Result<UndoLog<'_>> {
        let cursor = run_until_cancelled(cx, path, self.cursor.lock()).await?;
        Ok(UndoLog { store: &self.store, cursor, max_records: self.max_undo_records })
    }
}

impl Interceptor for UndoInterceptor {
    fn name(&self) -> &'static str {
        "checkpoints"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let path = request.as_request_ref().primary_path();
        let is_change = request.as_request_ref().class() == OperationClass::Write
            && !matches!(Q::OPERATION, Operation::OpenWriter | Operation::Restore);
        if !is_change || inner.capabilities(&path).mutations == MutationMode::Returned {
            return request.send(inner, cx).await;
        }
        let mut log = self.lock(cx, &path).await?;
        // The id is that of the change, and not of its records.
        let own = cx.without_operation_id();
        let files = CallerFiles { inner, cx: &own, excluded: &self.excluded };
        let record = log.begin(&files, request.as_request_ref()).await.map_err(|error| error.or_path(&path))?;
        let may_be_replayed = request.as_request_ref().may_be_replayed(inner, cx);
        let output = request.send(inner, cx).await;
        match record {
            Some(record) => {
                let outcome = ReportedOutcome::of(&record, output.as_ref().map(Q::output_ref), may_be_replayed);
                log.conclude(&files, record, outcome).await;
            }
            None if output.is_ok() && may_be_replayed => {}
            None if output.is_ok() && self.max_undo_records > 0 && !files.is_excluded(&path) => {
                tracing::warn!(operation = %Q::OPERATION, "a change without an undo record succeeded unexpectedly");
            }
            None => {}
        }
        output
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// Backend with [`Checkpoints`](super::Checkpoints) around it, made by [`Checkpoints::over`](super::Checkpoints::over).
///
/// A clone is a handle on the same backend.
#[derive(Debug, Clone)]
pub struct CheckpointedBackend {
    inner: Arc<dyn Backend>,
    interceptor: Arc<UndoInterceptor>,
    /// The inner backend with an undo record around every change.
    recorded: Intercepted<UndoInterceptor>,
}

impl CheckpointedBackend {
    pub(super) fn new(inner: Arc<dyn Backend>, interceptor: UndoInterceptor) -> Self {
        let interceptor = Arc::new(interceptor);
        let recorded = Intercepted::new(Arc::clone(&inner), Arc::clone(&interceptor));
        Self { inner, interceptor, recorded }
    }

    /// Undoes the last operations, at most `operations`, the newest first.
    ///
    /// # Behaviour
    ///
    /// * An operation is undone as a whole or not at all, and only if each file that it touched has the state in which the
    ///   operation left it. A file that has its old state already is accepted, so an undo that was interrupted, or whose end
    ///   could not be recorded, can be repeated.
    /// * If an operation cannot be undone, older ones are not undone either: the error says how many newer ones were, and
    ///   [`history`](Self::history) lists the rest. If there are fewer operations than requested, all of them are undone.
    /// * A rename is undone by a rename if no file was replaced, was added or was removed since, each link that led to no
    ///   file at its new path leads to its old content again, and no excluded path is at, above or below its target. Everything
    ///   else is undone by writing and deleting files: contents are restored, but not permissions, times, links or directories
    ///   without files.
    /// * An undone operation leaves the history, and cannot be redone.
    ///
    /// # Errors
    ///
    /// `conflict` at a file that another process has changed since; `unsupported` at the root if changes are only returned;
    /// `internal`, `unavailable` and others if the store fails or has lost a content; `timeout` and `cancelled` while waiting
    /// for other changes; and those of the inner backend.
    pub async fn undo(&self, cx: &OpContext, operations: usize) -> Result<UndoReport> {
        self.check_in_place()?;
        let cx = &cx.without_operation_id();
        self.lock(cx).await?.undo(&self.tracked(cx), operations).await.map_err(at_root)
    }

    /// Returns the operations that can be undone, the newest first.
    ///
    /// # Errors
    ///
    /// The errors of the store, as with [`undo`](Self::undo); `timeout` and `cancelled` while waiting for other changes.
    pub async fn history(&self, cx: &OpContext) -> Result<Vec<UndoEntry>> {
        let cx = &cx.without_operation_id();
        self.lock(cx).await?.history(&self.tracked(cx)).await.map_err(at_root)
    }

    /// Performs `work`, which rewrites the files at `paths` with the same content, such as the commit of an overlay further in,
    /// and keeps the operations on these files undoable.
    ///
    /// # Behaviour
    ///
    /// An operation is undone only if its files have the versions that it left. This method compares the files before and after
    /// `work`, also if it fails, and records the new version of each file whose content is the same. A file with another content
    /// was changed by another caller, and stays a `conflict` of an undo. No change through this layer begins meanwhile.
    ///
    /// # Errors
    ///
    /// The errors of [`history`](Self::history), before `work` begins, and those of `work`.
    pub async fn keep_undoable<R: Send>(
        &self,
        cx: &OpContext,
        paths: &[VfsPath],
        work: BoxFuture<'_, Result<R>>,
    ) -> Result<R> {
        let cx = &cx.without_operation_id();
        let mut log = self.lock(cx).await?;
        let files = self.tracked(cx);
        log.settle(&files).await.map_err(at_root)?;
        let unchanged = log.unchanged_files(&files, paths).await.map_err(at_root)?;
        let outcome = work.await;
        if let Err(error) = log.renew_versions(&self.tracked(&cx.for_cleanup()), unchanged).await {
            tracing::warn!(%error, "failed to update undo records, so operations before a commit cannot be undone");
        }
        outcome
    }

    fn tracked<'a>(&'a self, cx: &'a OpContext) -> CallerFiles<'a> {
        CallerFiles { inner: &*self.inner, cx, excluded: &self.interceptor.excluded }
    }

    async fn lock(&self, cx: &OpContext) -> Result<UndoLog<'_>> {
        self.interceptor.lock(cx, &VfsPath::root()).await
    }

    fn check_in_place(&self) -> Result<()> {
        let root = VfsPath::root();
        if self.inner.capabilities(&root).mutations == MutationMode::InPlace {
            return Ok(());
        }
        let message = "this backend only returns changes, so no file can be restored in place";
        Err(Error::new(ErrorKind::Unsupported, message).with_path(&root))
    }
}

fn at_root(error: Error) -> Error {
    error.or_path(&VfsPath::root())
}

impl fmt::Display for CheckpointedBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.recorded.fmt(f)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for CheckpointedBackend {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.recorded.capabilities(at)
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        self.recorded.stat(cx, req).await
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        self.recorded.resolve(cx, req).await
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        self.recorded.ls(cx, req).await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        self.recorded.read(cx, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        self.recorded.write(cx, req).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        self.recorded.open_writer(cx, req).await
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        self.recorded.edit(cx, req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.recorded.delete(cx, req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.recorded.rename(cx, req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        self.recorded.copy(cx, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        self.recorded.glob(cx, req).await
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        self.recorded.grep(cx, req).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        self.recorded.grep_stream(cx, req)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        self.recorded.upload_files(cx, files).await
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        // Reads bypass the interceptor, so that the inner backend gets all paths at once.
        self.inner.download_files(cx, paths).await
    }

    fn as_shell(&self) -> Option<&dyn Shell> {
        self.recorded.as_shell()
    }

    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        self.recorded.as_streaming_shell()
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        self.recorded.as_multi_modal()
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        self.recorded.as_tree_provider()
    }

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        Some(self)
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        self.recorded.as_watch()
    }
}

#[async_trait]
impl Snapshots for CheckpointedBackend {
    async fn snapshot(&self, cx: &OpContext, req: SnapshotRequest) -> Result<SnapshotInfo> {
        let cx = &cx.without_operation_id();
        let log = self.lock(cx).await?;
        log.store.take_snapshot(&self.tracked(cx), req).await.map_err(at_root)
    }

    async fn snapshots(&self, cx: &OpContext, _req: ListSnapshotsRequest) -> Result<Vec<SnapshotInfo>> {
        self.interceptor.store.list_snapshots(cx).await.map_err(at_root)
    }

    async fn restore(&self, cx: &OpContext, req: RestoreRequest) -> Result<()> {
        self.check_in_place()?;
        let cx = &cx.without_operation_id();
        restore(&mut self.lock(cx).await?, &self.tracked(cx), &req.id).await.map_err(at_root)
    }

    async fn forget(&self, cx: &OpContext, req: ForgetRequest) -> Result<()> {
        let cx = &cx.without_operation_id();
        let log = self.lock(cx).await?;
        log.store.forget_snapshot(cx, &req.id).await.map_err(at_root)
    }

    async fn diff(&self, cx: &OpContext, req: SnapshotDiffRequest) -> Result<SnapshotDiffResult> {
        self.interceptor.store.compare(&self.tracked(cx), &req).await.map_err(at_root)
    }
}
