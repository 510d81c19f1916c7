//! Backend wrapper that passes every operation through an interceptor.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};

use super::interceptor::{Interceptor, StreamCall};
use super::request::{ExecuteStreamRequest, GrepStreamRequest, ListSnapshotsRequest, StreamRequest, UnaryRequest};
use super::result_stream::ResultStream;
use super::upload_contexts::UploadContexts;
use crate::backend::{Backend, Capabilities};
use crate::context::OpContext;
use crate::error::Result;
use crate::facets::{MultiModalReadRequest, MultiModalReadResult, MultiModalReader, Snapshots, TreeProvider, Watch};
use crate::path::VfsPath;
use crate::requests::{
    CommitWriterRequest, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadRequest, FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter,
    ForgetRequest, GlobRequest, GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, OpenTreeRequest,
    OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult,
    RestoreRequest, SnapshotDiffRequest, SnapshotDiffResult, SnapshotInfo, SnapshotRequest, StatRequest, WatchEvent,
    WatchRequest, WriteRequest, WriteResult,
};
use crate::shell::{
    ExecuteEvent, ExecuteRequest, ExecuteResponse, JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, Shell,
    StopJobRequest, StreamingShell,
};
use crate::tree::Tree;

/// A backend whose operations pass an [`Interceptor`].
#[derive(Debug)]
pub struct Intercepted<I> {
    inner: Arc<dyn Backend>,
    interceptor: Arc<I>,
}

impl<I> Clone for Intercepted<I> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), interceptor: Arc::clone(&self.interceptor) }
    }
}

impl<I: Interceptor> Intercepted<I> {
    /// Wraps `inner`, whose operations then pass `interceptor`.
    pub fn new(inner: Arc<dyn Backend>, interceptor: Arc<I>) -> Self {
        Self { inner, interceptor }
    }

    async fn call<Q: UnaryRequest>(&self, cx: &OpContext, request: Q) -> Result<Q::Output> {
        self.interceptor.call(&*self.inner, cx, request).await
    }

    /// Returns a stream that calls the interceptor when it is first polled.
    fn stream<Q: StreamRequest>(
        &self,
        cx: OpContext,
        request: Q,
        begun: Option<ResultStream<Q::Output>>,
    ) -> ResultStream<Q::Output> {
        let call = StreamCall::new(Arc::clone(&self.inner), request, begun);
        let interceptor = Arc::clone(&self.interceptor);
        stream::once(async move { interceptor.stream(cx, call) }).flatten().boxed()
    }
}

impl<I: Interceptor> fmt::Display for Intercepted<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.interceptor.name(), self.inner)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<I: Interceptor> Backend for Intercepted<I> {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.interceptor.capabilities(self.inner.capabilities(at))
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        self.call(cx, req).await
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        self.call(cx, req).await
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        self.call(cx, req).await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        self.call(cx, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        self.call(cx, req).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        let writer = self.call(cx, req.clone()).await?;
        let commit = CommitWriterRequest::new(req, writer);
        Ok(Box::new(InterceptedCommitWriter { files: self.clone(), cx: cx.clone(), commit }))
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        self.call(cx, req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.call(cx, req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.call(cx, req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        self.call(cx, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        self.call(cx, req).await
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        self.call(cx, req).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        self.stream(cx, GrepStreamRequest(req), None)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        let mut answers = Vec::with_capacity(files.len());
        let mut contexts = UploadContexts::new(cx);
        for file in files {
            let path = file.path.clone();
            let answer = match contexts.next(&path, self.capabilities(&path).operation_ids) {
                Ok(cx) => self.call(&cx, file).await,
                Err(error) => Err(error),
            };
            let answer = answer.unwrap_or_else(|error| FileUploadResponse::failed(path, error));
            contexts.record(&answer);
            answers.push(answer);
        }
        answers
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let mut answers = Vec::with_capacity(paths.len());
        for path in paths {
            let answer = self.call(cx, FileDownloadRequest::new(path.clone())).await;
            answers.push(answer.unwrap_or_else(|error| FileDownloadResponse::failed(path, error)));
        }
        answers
    }

    fn as_shell(&self) -> Option<&dyn Shell> {
        self.inner.as_shell().map(|_| self as &dyn Shell)
    }

    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        self.inner.as_streaming_shell().map(|_| self as &dyn StreamingShell)
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        self.inner.as_multi_modal().map(|_| self as &dyn MultiModalReader)
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        self.inner.as_tree_provider().map(|_| self as &dyn TreeProvider)
    }

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        self.inner.as_snapshots().map(|_| self as &dyn Snapshots)
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        self.inner.as_watch().map(|_| self as &dyn Watch)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<I: Interceptor> Shell for Intercepted<I> {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        self.call(cx, req).await
    }

    async fn jobs(&self, cx: &OpContext, req: JobsRequest) -> Result<Vec<JobInfo>> {
        self.call(cx, req).await
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutputResult> {
        self.call(cx, req).await
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<JobInfo> {
        self.call(cx, req).await
    }
}

impl<I: Interceptor> StreamingShell for Intercepted<I> {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        self.stream(cx, ExecuteStreamRequest(req), None)
    }
}

#[async_trait]
impl<I: Interceptor> MultiModalReader for Intercepted<I> {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult> {
        self.call(cx, req).await
    }
}

#[async_trait]
impl<I: Interceptor> TreeProvider for Intercepted<I> {
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        self.call(cx, req).await
    }
}

#[async_trait]
impl<I: Interceptor> Snapshots for Intercepted<I> {
    async fn snapshot(&self, cx: &OpContext, req: SnapshotRequest) -> Result<SnapshotInfo> {
        self.call(cx, req).await
    }

    async fn snapshots(&self, cx: &OpContext, req: ListSnapshotsRequest) -> Result<Vec<SnapshotInfo>> {
        self.call(cx, req).await
    }

    async fn restore(&self, cx: &OpContext, req: RestoreRequest) -> Result<()> {
        self.call(cx, req).await
    }

    async fn forget(&self, cx: &OpContext, req: ForgetRequest) -> Result<()> {
        self.call(cx, req).await
    }

    async fn diff(&self, cx: &OpContext, req: SnapshotDiffRequest) -> Result<SnapshotDiffResult> {
        self.call(cx, req).await
    }
}

impl<I: Interceptor> Watch for Intercepted<I> {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        // Start the feed before the interceptor runs, so that no change is missed meanwhile.
        let begun = self.inner.as_watch().map(|watch| watch.watch(cx.clone(), req.clone()));
        self.stream(cx, req, begun)
    }
}

/// A writer whose commit passes the interceptor.
#[derive(Debug)]
struct InterceptedCommitWriter<I> {
    files: Intercepted<I>,
    cx: OpContext,
    commit: CommitWriterRequest,
}

#[async_trait]
impl<I: Interceptor> FileWriter for InterceptedCommitWriter<I> {
    async fn write(&mut self, chunk: Bytes) -> Result<()> {
        self.commit.write(chunk).await
    }

    async fn commit(&mut self) -> Result<WriteResult> {
        self.files.call(&self.cx, self.commit.clone()).await
    }
}
