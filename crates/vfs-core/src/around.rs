//! Layers that do the same around every operation.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::{BoxFuture, ready};
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};

use crate::backend::{Backend, Capabilities};
use crate::context::OpContext;
use crate::error::Result;
use crate::facets::{MultiModalContent, MultiModalReadRequest, MultiModalReader, Searchable, Snapshots, Watch};
use crate::path::VfsPath;
use crate::request::{Action, Call, ExecuteStreamRequest, GrepStreamRequest, Operation, Request, SnapshotsRequest};
use crate::shell::{
    ExecuteEvent, ExecuteRequest, ExecuteResponse, Job, JobOutput, JobOutputRequest, JobsRequest, Shell,
    StopJobRequest, StreamingShell,
};
use crate::tree::SharedTree;
use crate::types::{
    ChangeSet, CopyRequest, CopyResult, DeleteRequest, DeleteResult, DiffRequest, DownloadRequest, EditRequest,
    EditResult, FileDownloadResponse, FileInfo, FileUpload, FileUploadResponse, ForgetRequest, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, LendRequest, LsRequest, LsResult, ReadRequest, ReadResult, RenameRequest,
    RenameResult, ResolveRequest, Resolved, RestoreRequest, SnapshotInfo, SnapshotRequest, StatRequest, WatchEvent,
    WatchRequest, WriteRequest, WriteResult,
};

/// What a layer does around each operation of a backend.
///
/// # Behaviour
///
/// * [`around`](Self::around) is called for every operation, those of facets too; files of an upload or download one by
///   one. It sends the request on, or does not, and may do so with another context, later, or again.
/// * What the backend shows, and where, stays as it is.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{Around, Backend, OpContext, Request, Result, Wrapped};
///
/// #[derive(Debug)]
/// struct Logged;
///
/// impl Around for Logged {
///     fn name(&self) -> &'static str {
///         "logged"
///     }
///
///     async fn around<Q: Request>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
///         tracing::info!(operation = %Q::OPERATION, "asked");
///         request.send(inner, cx).await
///     }
/// }
///
/// fn logged(files: Arc<dyn Backend>) -> Arc<dyn Backend> {
///     Arc::new(Wrapped::new(files, Arc::new(Logged)))
/// }
/// ```
pub trait Around: fmt::Debug + Send + Sync + 'static {
    /// The layer's name in `Display`.
    fn name(&self) -> &'static str;

    /// Performs `request` on `inner`, or does not.
    fn around<Q: Request>(
        &self,
        inner: &dyn Backend,
        cx: &OpContext,
        request: Q,
    ) -> impl Future<Output = Result<Q::Output>> + Send;

    /// Goes around a search that has begun; its items come after `around` has returned.
    fn streamed(
        self: Arc<Self>,
        _cx: OpContext,
        _request: GrepRequest,
        events: BoxStream<'static, Result<GrepEvent>>,
    ) -> BoxStream<'static, Result<GrepEvent>> {
        events
    }

    /// What the backend can do with this layer around it, given what it can do without.
    fn capabilities(&self, inner: Capabilities) -> Capabilities {
        inner
    }
}

/// A backend with an [`Around`] around it.
#[derive(Debug)]
pub struct Wrapped<A> {
    inner: Arc<dyn Backend>,
    around: Arc<A>,
}

impl<A> Clone for Wrapped<A> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), around: Arc::clone(&self.around) }
    }
}

impl<A: Around> Wrapped<A> {
    /// `inner` with `around` around it.
    pub fn new(inner: Arc<dyn Backend>, around: Arc<A>) -> Self {
        Self { inner, around }
    }

    async fn send<Q: Request>(&self, cx: &OpContext, request: Q) -> Result<Q::Output> {
        self.around.around(&*self.inner, cx, request).await
    }

    /// The stream that `request` gives, begun when it is first asked for an item.
    fn stream<T, Q>(self, cx: OpContext, request: Q) -> BoxStream<'static, Result<T>>
    where
        T: Send + 'static,
        Q: Request<Output = BoxStream<'static, Result<T>>>,
    {
        let begin = async move {
            match self.send(&cx, request).await {
                Ok(items) => items,
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(begin).flatten().boxed()
    }
}

impl<A: Around> fmt::Display for Wrapped<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.around.name(), self.inner)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<A: Around> Backend for Wrapped<A> {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.around.capabilities(self.inner.capabilities(at))
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        self.send(cx, req).await
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<Resolved> {
        self.send(cx, req).await
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        self.send(cx, req).await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        self.send(cx, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        self.send(cx, req).await
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        self.send(cx, req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.send(cx, req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.send(cx, req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        self.send(cx, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        self.send(cx, req).await
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        self.send(cx, req).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let events = self.clone().stream(cx.clone(), GrepStreamRequest(req.clone()));
        Arc::clone(&self.around).streamed(cx, req, events)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
        let mut answers = Vec::with_capacity(files.len());
        for file in files {
            let path = file.path.clone();
            answers.push(self.send(cx, file).await.unwrap_or_else(|error| FileUploadResponse::failed(path, error)));
        }
        answers
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let mut answers = Vec::with_capacity(paths.len());
        for path in paths {
            let answer = self.send(cx, DownloadRequest::new(path.clone())).await;
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

    fn as_multimodal(&self) -> Option<&dyn MultiModalReader> {
        self.inner.as_multimodal().map(|_| self as &dyn MultiModalReader)
    }

    fn as_searchable(&self) -> Option<&dyn Searchable> {
        self.inner.as_searchable().map(|_| self as &dyn Searchable)
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
impl<A: Around> Shell for Wrapped<A> {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        self.send(cx, req).await
    }

    async fn jobs(&self, cx: &OpContext, req: JobsRequest) -> Result<Vec<Job>> {
        self.send(cx, req).await
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutput> {
        self.send(cx, req).await
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<Job> {
        self.send(cx, req).await
    }
}

impl<A: Around> StreamingShell for Wrapped<A> {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        self.clone().stream(cx, ExecuteStreamRequest(req))
    }
}

#[async_trait]
impl<A: Around> MultiModalReader for Wrapped<A> {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalContent> {
        self.send(cx, req).await
    }
}

#[async_trait]
impl<A: Around> Searchable for Wrapped<A> {
    async fn lend(&self, cx: &OpContext, req: LendRequest) -> Result<SharedTree> {
        self.send(cx, req).await
    }
}

#[async_trait]
impl<A: Around> Snapshots for Wrapped<A> {
    async fn snapshot(&self, cx: &OpContext, req: SnapshotRequest) -> Result<SnapshotInfo> {
        self.send(cx, req).await
    }

    async fn snapshots(&self, cx: &OpContext) -> Result<Vec<SnapshotInfo>> {
        self.send(cx, SnapshotsRequest).await
    }

    async fn restore(&self, cx: &OpContext, req: RestoreRequest) -> Result<()> {
        self.send(cx, req).await
    }

    async fn forget(&self, cx: &OpContext, req: ForgetRequest) -> Result<()> {
        self.send(cx, req).await
    }

    async fn diff(&self, cx: &OpContext, req: DiffRequest) -> Result<ChangeSet> {
        self.send(cx, req).await
    }
}

impl<A: Around> Watch for Wrapped<A> {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        // The feed begins now, whenever the layer lets it through: what happens meanwhile is not to be missed.
        let events = self.inner.as_watch().map(|watch| watch.watch(cx.clone(), req.clone()));
        self.clone().stream(cx, Begun { request: req, events: Arc::new(Mutex::new(events)) })
    }
}

type Feed = BoxStream<'static, Result<WatchEvent>>;

/// A feed that has begun already, to be sent once.
#[derive(Clone)]
struct Begun {
    request: WatchRequest,
    events: Arc<Mutex<Option<Feed>>>,
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl Request for Begun {
    type Output = Feed;

    const OPERATION: Operation = Operation::Watch;

    fn action(&self) -> Action<'_> {
        Action::Watch(&self.request)
    }

    fn into_call(self) -> Call {
        Call::Watch(self.request)
    }

    fn from_call(call: Call) -> Option<Self> {
        // A feed of another request begins when it is sent.
        WatchRequest::from_call(call).map(|request| Self { request, events: Arc::default() })
    }

    fn send<'a>(self, backend: &'a dyn Backend, cx: &'a OpContext) -> BoxFuture<'a, Result<Feed>> {
        let begun = self.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        match begun {
            Some(events) => ready(Ok(events)).boxed(),
            None => self.request.send(backend, cx),
        }
    }

    fn map_paths(self, map: &mut dyn FnMut(&VfsPath) -> Result<VfsPath>) -> Result<Self> {
        Ok(Self { request: self.request.map_paths(map)?, events: Arc::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_that_has_begun_is_sent_once_and_stays_a_request_to_watch() {
        let request = WatchRequest::new(VfsPath::root());
        let begun = Begun { request: request.clone(), events: Arc::new(Mutex::new(Some(stream::empty().boxed()))) };
        assert_eq!(begun.action().operation(), Operation::Watch);
        assert_eq!(begun.clone().into_call(), Call::Watch(request.clone()));
        let other = Begun::from_call(Call::Watch(request)).expect("a request to watch");
        assert!(other.events.lock().expect("nobody panicked").is_none());
        assert!(begun.events.lock().expect("nobody panicked").is_some());
    }
}
