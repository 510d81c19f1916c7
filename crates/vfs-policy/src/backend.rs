//! `Backend` implementation that enforces a policy.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::future::ready;
use futures::stream::{self, BoxStream};
use tokio::runtime::Handle;
use vfs_core::multi_modal::{MultiModalReadRequest, MultiModalReadResult};
use vfs_core::operation::{
    ExecuteStreamRequest, GrepStreamRequest, StreamRequest as _, UnaryRequest, UploadContexts, deferred_stream,
};
use vfs_core::shell::{JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, StopJobRequest};
use vfs_core::snapshots::{
    ForgetRequest, ListSnapshotsRequest, RestoreRequest, SnapshotDiffRequest, SnapshotDiffResult, SnapshotInfo,
    SnapshotRequest,
};
use vfs_core::transfer::FileDownloadRequest;
use vfs_core::tree::{OpenTreeRequest, Tree, TreeUse};
use vfs_core::watch::{Change, WatchEvent, WatchRequest};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, FileDownloadResponse, FileInfo, FileUploadRequest,
    FileUploadResponse, FileWriter, GlobRequest, GlobResult, GrepEvent, GrepRequest, GrepResult, Layer, LsRequest,
    LsResult, MultiModalReader, OpContext, OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult,
    ResolveRequest, ResolveResult, Result, Shell, Snapshots, StatRequest, StreamingShell, TreeProvider, VfsPath, Watch,
    WriteRequest, WriteResult,
};
use vfs_search::Pool;

use crate::enforcer::{Enforcer, denied};
use crate::masked_error::missing_as_conflict;
use crate::policy::{Decision, Permission, Policy};
use crate::policy_tree::{ReadFilter, filter_tree};
use crate::policy_writer::PolicyWriter;

/// A backend behind a [`Policy`].
#[derive(Debug, Clone)]
pub struct PolicyBackend {
    pub(crate) enforcer: Enforcer,
}

impl PolicyBackend {
    /// Returns `inner` behind `policy`.
    pub fn new(inner: Arc<dyn Backend>, policy: Policy) -> Self {
        Self { enforcer: Enforcer::new(inner, policy) }
    }

    fn inner(&self) -> &dyn Backend {
        &*self.enforcer.inner
    }

    /// Performs `request` if the policy permits it.
    async fn send<Q: UnaryRequest>(&self, cx: &OpContext, request: Q) -> Result<Q::Output> {
        self.enforcer.permit(cx, request).await?.send(self.inner(), cx).await
    }

    /// Performs `request`, which has at most two paths. An error does not reveal the version of a file that may not be read, or that
    /// a component above one of the paths is such a file.
    async fn send_at<Q: UnaryRequest>(&self, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let mut path = request.as_request_ref().primary_path();
        let answer = match self.enforcer.permit(cx, request).await {
            Ok(request) => {
                // An approver may have replaced the path.
                path = request.as_request_ref().primary_path();
                request.send(self.inner(), cx).await
            }
            Err(error) => Err(error),
        };
        match answer {
            // Boxed, so that the requests that succeed do not carry its state.
            Err(error) => Err(Box::pin(self.enforcer.without_hidden_files(cx, error, &path)).await),
            answer => answer,
        }
    }

    /// Returns whether `path` is a directory, which may be shown because it leads to readable entries.
    async fn is_directory(&self, cx: &OpContext, path: &VfsPath) -> bool {
        self.inner().stat(cx, StatRequest::new(path.clone())).await.is_ok_and(|info| info.is_dir)
    }

    /// Returns the tree of readable entries, for a search that was permitted.
    async fn tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        let tree = vfs_search::open_tree(&self.enforcer.inner, cx, req).await?;
        if self.enforcer.reads_all(cx, &VfsPath::root()).await {
            return Ok(tree);
        }
        let (hook, runtime) = (Arc::clone(self.enforcer.hook()), Handle::try_current().ok());
        let inner = Arc::clone(&self.enforcer.inner);
        Ok(filter_tree(tree, ReadFilter { hook, cx: cx.clone(), inner, runtime }))
    }

    async fn permitted_tree(self, cx: OpContext, request: GrepRequest) -> Result<(Arc<dyn Tree>, GrepRequest)> {
        let request = self.enforcer.permit(&cx, GrepStreamRequest(request)).await?.0;
        let tree = self.tree(&cx, OpenTreeRequest::for_grep(&request)).await?;
        Ok((tree, request))
    }

    async fn reads(&self, cx: &OpContext, path: &VfsPath) -> bool {
        self.enforcer.hook().check_path(cx, Permission::Read, path).await == Decision::Allow
    }

    /// Returns the visible part of a change event, or `None`.
    async fn visible_event(&self, cx: &OpContext, event: WatchEvent) -> Option<WatchEvent> {
        let change = match event.change {
            Change::Created { ref path, .. } | Change::Changed { ref path, .. } | Change::Removed { ref path } => {
                self.reads(cx, path).await.then_some(event.change)?
            }
            Change::Renamed { from, to, version } => match (self.reads(cx, &from).await, self.reads(cx, &to).await) {
                (true, true) => Change::Renamed { from, to, version },
                (true, false) => Change::Removed { path: from },
                (false, true) => Change::Created { path: to, version },
                (false, false) => return None,
            },
            change => change,
        };
        Some(WatchEvent::new(event.cursor, change))
    }

    /// Returns the visible events of a change feed.
    fn filtered(
        &self,
        cx: OpContext,
        events: BoxStream<'static, Result<WatchEvent>>,
    ) -> BoxStream<'static, Result<WatchEvent>> {
        let this = self.clone();
        let visible_events = events.then(move |event| {
            let (this, cx) = (this.clone(), cx.clone());
            async move {
                match event {
                    Ok(event) => this.visible_event(&cx, event).await.map(Ok),
                    Err(error) => Some(Err(error)),
                }
            }
        });
        visible_events.filter_map(ready).boxed()
    }

    async fn require_full_access(&self, cx: &OpContext) -> Result<()> {
        if self.enforcer.allows_everything(cx).await {
            return Ok(());
        }
        Err(denied("states of all files concern some that may not be touched", &VfsPath::root()))
    }
}

impl Layer for Policy {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(PolicyBackend::new(inner, self.clone()))
    }
}

impl fmt::Display for PolicyBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.enforcer.name(), self.enforcer.inner)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for PolicyBackend {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.inner().capabilities(at)
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        let path = req.path.clone();
        let answer = self.send_at(cx, req).await;
        // A directory may be shown because it leads to readable entries; a file is readable or not.
        if answer.as_ref().is_ok_and(|info| info.is_dir) {
            return answer;
        }
        match self.enforcer.refusal(cx, &path, &answer).await {
            Some(refusal) => Err(refusal),
            None => answer,
        }
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        let path = req.path.clone();
        let answer = self.send_at(cx, req).await;
        match self.enforcer.refusal(cx, &path, &answer).await {
            Some(refusal) if !self.is_directory(cx, &path).await => Err(refusal),
            _ => answer,
        }
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        let req = self.enforcer.permit(cx, req).await?;
        if self.enforcer.reads_all(cx, &VfsPath::root()).await {
            return self.inner().ls(cx, req).await;
        }
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::List)).await?;
        let listed = vfs_search::ls_on(Pool::global(), tree, cx.clone(), req).await;
        listed.map_err(|error| error.or_path(&path))
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        self.send_at(cx, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        let (path, mode) = (req.path.clone(), req.mode.clone());
        self.send_at(cx, req).await.map_err(|error| missing_as_conflict(error, &mode, &path))
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        let req = self.enforcer.permit(cx, req).await?;
        let path = req.path.clone();
        match req.clone().send(self.inner(), cx).await {
            Ok(writer) => Ok(Box::new(PolicyWriter { files: self.clone(), cx: cx.clone(), request: req, writer })),
            Err(error) => Err(Box::pin(self.enforcer.without_hidden_files(cx, error, &path)).await),
        }
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        self.send_at(cx, req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.send_at(cx, req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.send_at(cx, req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        self.send_at(cx, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        let req = self.enforcer.permit(cx, req).await?;
        if self.enforcer.reads_all(cx, &VfsPath::root()).await {
            return self.inner().glob(cx, req).await;
        }
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::Glob)).await?;
        let found = vfs_search::glob_on(Pool::global(), tree, cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        let req = self.enforcer.permit(cx, req).await?;
        if self.enforcer.reads_all(cx, &VfsPath::root()).await {
            return self.inner().grep(cx, req).await;
        }
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::for_grep(&req)).await?;
        let found = vfs_search::grep_on(Pool::global(), tree, cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let this = self.clone();
        deferred_stream(async move {
            let (tree, req) = this.permitted_tree(cx.clone(), req).await?;
            Ok(vfs_search::grep_stream_on(Pool::global(), tree, cx, req))
        })
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        let mut answers = Vec::with_capacity(files.len());
        let (mut permitted, mut places) = (Vec::new(), Vec::new());
        // The inner backend numbers the files of one path, so none of them may be left out before another.
        let mut contexts = UploadContexts::new(cx);
        for (place, file) in files.into_iter().enumerate() {
            let path = file.path.clone();
            let file = match contexts.next(&path, self.inner().capabilities(&path).operation_ids) {
                Ok(_) => self.enforcer.permit(cx, file).await,
                Err(error) => Err(error),
            };
            match file {
                Ok(file) => {
                    permitted.push(file);
                    places.push(place);
                    answers.push(FileUploadResponse::failed(path.clone(), unanswered(&path)));
                }
                Err(error) => {
                    let error = self.enforcer.without_hidden_files(cx, error, &path).await;
                    let answer = FileUploadResponse::failed(path, error);
                    contexts.record(&answer);
                    answers.push(answer);
                }
            }
        }
        for (place, answer) in places.into_iter().zip(self.inner().upload_files(cx, permitted).await) {
            answers[place] = match answer.cause {
                Some(error) => {
                    let error = self.enforcer.without_hidden_files(cx, error, &answer.path).await;
                    FileUploadResponse::failed(answer.path, error)
                }
                None => answer,
            };
        }
        answers
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let mut answers = Vec::with_capacity(paths.len());
        let (mut permitted, mut places) = (Vec::new(), Vec::new());
        for (place, path) in paths.into_iter().enumerate() {
            match self.enforcer.permit(cx, FileDownloadRequest::new(path.clone())).await {
                Ok(request) => {
                    permitted.push(request.path);
                    places.push(place);
                    answers.push(FileDownloadResponse::failed(path.clone(), unanswered(&path)));
                }
                Err(error) => {
                    let error = self.enforcer.without_hidden_files(cx, error, &path).await;
                    answers.push(FileDownloadResponse::failed(path, error));
                }
            }
        }
        for (place, answer) in places.into_iter().zip(self.inner().download_files(cx, permitted).await) {
            answers[place] = match answer.cause {
                Some(error) => {
                    let error = self.enforcer.without_hidden_files(cx, error, &answer.path).await;
                    FileDownloadResponse::failed(answer.path, error)
                }
                None => answer,
            };
        }
        answers
    }

    fn as_shell(&self) -> Option<&dyn Shell> {
        self.inner().as_shell().map(|_| self as &dyn Shell)
    }

    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        self.inner().as_streaming_shell().map(|_| self as &dyn StreamingShell)
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        self.inner().as_multi_modal().map(|_| self as &dyn MultiModalReader)
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        Some(self)
    }

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        self.inner().as_snapshots().map(|_| self as &dyn Snapshots)
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        self.inner().as_watch().map(|_| self as &dyn Watch)
    }
}

fn unanswered(path: &VfsPath) -> Error {
    Error::new(ErrorKind::Internal, "internal: the backend returned no result for the file").with_path(path)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Shell for PolicyBackend {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        self.send(cx, req).await
    }

    async fn jobs(&self, cx: &OpContext, req: JobsRequest) -> Result<Vec<JobInfo>> {
        self.send(cx, req).await
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutputResult> {
        self.send(cx, req).await
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<JobInfo> {
        self.send(cx, req).await
    }
}

impl StreamingShell for PolicyBackend {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let this = self.clone();
        deferred_stream(async move {
            let request = this.enforcer.permit(&cx, ExecuteStreamRequest(req)).await?;
            Ok(request.start(this.inner(), cx))
        })
    }
}

#[async_trait]
impl MultiModalReader for PolicyBackend {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult> {
        self.send_at(cx, req).await
    }
}

#[async_trait]
impl TreeProvider for PolicyBackend {
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        let req = self.enforcer.permit(cx, req).await?;
        self.tree(cx, req).await
    }
}

#[async_trait]
impl Snapshots for PolicyBackend {
    async fn snapshot(&self, cx: &OpContext, req: SnapshotRequest) -> Result<SnapshotInfo> {
        self.send(cx, req).await
    }

    async fn snapshots(&self, cx: &OpContext, req: ListSnapshotsRequest) -> Result<Vec<SnapshotInfo>> {
        self.send(cx, req).await
    }

    async fn restore(&self, cx: &OpContext, req: RestoreRequest) -> Result<()> {
        self.require_full_access(cx).await?;
        self.send(cx, req).await
    }

    async fn forget(&self, cx: &OpContext, req: ForgetRequest) -> Result<()> {
        self.send(cx, req).await
    }

    async fn diff(&self, cx: &OpContext, req: SnapshotDiffRequest) -> Result<SnapshotDiffResult> {
        self.require_full_access(cx).await?;
        self.send(cx, req).await
    }
}

impl Watch for PolicyBackend {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        // Subscribe before the check, so that no event during the check is missed.
        let Some(watch) = self.inner().as_watch() else {
            let message = "this backend has no change feed";
            return Error::new(ErrorKind::Unsupported, message).with_path(&req.path).into_stream();
        };
        let events = watch.watch(cx.clone(), req.clone());
        let this = self.clone();
        deferred_stream(async move {
            let answer = this.enforcer.permit(&cx, req.clone()).await;
            let path = answer.as_ref().map_or(&req.path, |permitted| &permitted.path);
            match this.enforcer.refusal(&cx, path, &answer).await {
                Some(refusal) if !this.is_directory(&cx, path).await => return Err(refusal),
                _ => {}
            }
            match answer {
                Ok(permitted) if permitted != req => match this.inner().as_watch() {
                    Some(watch) => Ok(this.filtered(cx.clone(), watch.watch(cx, permitted))),
                    None => Ok(stream::empty().boxed()),
                },
                Ok(_) => Ok(this.filtered(cx, events)),
                Err(error) => Err(error),
            }
        })
    }
}
