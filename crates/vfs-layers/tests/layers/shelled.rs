//! A store in memory that also runs commands and tells of changes, as far as layers care.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use vfs_core::{
    Backend, BackendExt, Capabilities, Change, CopyRequest, CopyResult, Cursor, DeleteRequest, DeleteResult,
    EditRequest, EditResult, ExecuteEvent, ExecuteRequest, ExecuteResponse, FileDownloadResponse, FileInfo, FileUpload,
    FileUploadResponse, GlobRequest, GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, OpContext,
    ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, Resolved, Result, Shell, StatRequest,
    StreamingShell, VfsPath, Watch, WatchEvent, WatchRequest, WriteRequest, WriteResult,
};
use vfs_memory::MemoryBackend;

/// Every command writes itself to `/command`; a watch has one event, and then nothing for ever.
#[derive(Debug, Clone)]
pub(crate) struct Shelled(pub(crate) Arc<MemoryBackend>);

impl fmt::Display for Shelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shelled({})", self.0)
    }
}

macro_rules! forward {
    ($($name:ident($request:ty) -> $result:ty;)+) => {
        #[async_trait]
        impl Backend for Shelled {
            fn capabilities(&self, at: &VfsPath) -> Capabilities {
                self.0.capabilities(at)
            }

            $(async fn $name(&self, cx: &OpContext, req: $request) -> $result {
                self.0.$name(cx, req).await
            })+

            fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
                self.0.grep_stream(cx, req)
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
    resolve(ResolveRequest) -> Result<Resolved>;
    ls(LsRequest) -> Result<LsResult>;
    read(ReadRequest) -> Result<ReadResult>;
    write(WriteRequest) -> Result<WriteResult>;
    edit(EditRequest) -> Result<EditResult>;
    delete(DeleteRequest) -> Result<DeleteResult>;
    rename(RenameRequest) -> Result<RenameResult>;
    copy(CopyRequest) -> Result<CopyResult>;
    glob(GlobRequest) -> Result<GlobResult>;
    grep(GrepRequest) -> Result<GrepResult>;
    upload_files(Vec<FileUpload>) -> Vec<FileUploadResponse>;
    download_files(Vec<VfsPath>) -> Vec<FileDownloadResponse>;
}

#[async_trait]
impl Shell for Shelled {
    async fn execute(&self, _cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        self.0.write_text("/command", &req.command).await?;
        Ok(ExecuteResponse::default())
    }
}

impl StreamingShell for Shelled {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let shell = self.clone();
        let end = async move { shell.execute(&cx, req).await.map(ExecuteEvent::Exit) };
        stream::iter([Ok(ExecuteEvent::Stdout("running".into()))]).chain(stream::once(end)).boxed()
    }
}

impl Watch for Shelled {
    fn watch(&self, _cx: OpContext, _req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        let event = WatchEvent::new(Cursor::new("1"), Change::Overflow);
        stream::iter([Ok(event)]).chain(stream::pending()).boxed()
    }
}
