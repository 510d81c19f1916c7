//! A fake shell and change feed beside the files of any backend.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use vfs_core::watch::{Change, WatchCursor, WatchEvent, WatchRequest};
use vfs_core::{
    Backend, BackendExt, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    ExecuteEvent, ExecuteRequest, ExecuteResponse, FileDownloadResponse, FileInfo, FileUploadRequest,
    FileUploadResponse, FileWriter, GlobRequest, GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult,
    OpContext, OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult,
    Result, Shell, StatRequest, StreamingShell, VfsPath, Watch, WriteRequest, WriteResult,
};

/// Adds a shell and a change feed to a backend without either, for tests of wrappers around them.
///
/// # Behaviour
///
/// * A command starts no process: it writes its own text to `/command` and succeeds. A streamed one prints `running` first.
/// * A watch yields one event, [`Change::Overflow`], and then waits for ever.
/// * File operations are those of the inner backend.
#[derive(Debug, Clone)]
pub struct WithFakeFacets {
    inner: Arc<dyn Backend>,
}

impl WithFakeFacets {
    /// Returns `inner` with a fake shell and change feed beside its files.
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self { inner }
    }
}

impl fmt::Display for WithFakeFacets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fake_shell({})", self.inner)
    }
}

macro_rules! forward {
    ($($name:ident($request:ty) -> $result:ty;)+) => {
        #[async_trait]
        impl Backend for WithFakeFacets {
            fn capabilities(&self, at: &VfsPath) -> Capabilities {
                self.inner.capabilities(at)
            }

            $(async fn $name(&self, cx: &OpContext, req: $request) -> $result {
                self.inner.$name(cx, req).await
            })+

            fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
                self.inner.grep_stream(cx, req)
            }

            fn as_shell(&self) -> Option<&dyn Shell> {
                Some(self)
            }

            fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
                Some(self)
            }

            fn as_watch(&self) -> Option<&dyn Watch> {
                Some(self)
            }
        }
    };
}

forward! {
    stat(StatRequest) -> Result<FileInfo>;
    resolve(ResolveRequest) -> Result<ResolveResult>;
    ls(LsRequest) -> Result<LsResult>;
    read(ReadRequest) -> Result<ReadResult>;
    write(WriteRequest) -> Result<WriteResult>;
    open_writer(OpenWriterRequest) -> Result<Box<dyn FileWriter>>;
    edit(EditRequest) -> Result<EditResult>;
    delete(DeleteRequest) -> Result<DeleteResult>;
    rename(RenameRequest) -> Result<RenameResult>;
    copy(CopyRequest) -> Result<CopyResult>;
    glob(GlobRequest) -> Result<GlobResult>;
    grep(GrepRequest) -> Result<GrepResult>;
    upload_files(Vec<FileUploadRequest>) -> Vec<FileUploadResponse>;
    download_files(Vec<VfsPath>) -> Vec<FileDownloadResponse>;
}

#[async_trait]
impl Shell for WithFakeFacets {
    async fn execute(&self, _cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        self.inner.write_text("/command", &req.command).await?;
        Ok(ExecuteResponse::default())
    }
}

impl StreamingShell for WithFakeFacets {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let shell = self.clone();
        let end = async move { shell.execute(&cx, req).await.map(ExecuteEvent::Exit) };
        stream::iter([Ok(ExecuteEvent::Stdout("running".into()))]).chain(stream::once(end)).boxed()
    }
}

impl Watch for WithFakeFacets {
    fn watch(&self, _cx: OpContext, _req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        let event = WatchEvent::new(WatchCursor::new("1"), Change::Overflow);
        stream::iter([Ok(event)]).chain(stream::pending()).boxed()
    }
}
