//! A backend with a shell of the host beside its files.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, ExecuteRequest, ExecuteResponse, FileDownloadResponse, FileInfo, FileUpload, FileUploadResponse,
    GlobRequest, GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext,
    ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, Resolved, Result, Searchable, Shell,
    Snapshots, StatRequest, StreamingShell, VfsPath, Watch, WriteRequest, WriteResult,
};

/// Some files, and commands that run in a directory of the host.
#[derive(Debug)]
pub struct Shelled {
    files: Arc<dyn Backend>,
    root: PathBuf,
}

impl Shelled {
    /// `files`, and commands in `root`.
    pub fn new(files: Arc<dyn Backend>, root: impl Into<PathBuf>) -> Self {
        Self { files, root: root.into() }
    }
}

impl fmt::Display for Shelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shelled({})", self.files)
    }
}

#[async_trait]
impl Shell for Shelled {
    async fn execute(&self, _cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let output = Command::new("sh")
            .arg("-c")
            .arg(&req.command)
            .current_dir(self.root.join(req.cwd.relative()))
            .output()
            .map_err(|source| Error::new(ErrorKind::Internal, "no shell could be started").with_source(source))?;
        let mut response = ExecuteResponse::default();
        response.output = String::from_utf8_lossy(&output.stdout).into_owned();
        response.exit_code = output.status.code();
        Ok(response)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for Shelled {
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
        self.files.download_files(cx, paths).await
    }
    fn as_shell(&self) -> Option<&dyn Shell> {
        Some(self)
    }
    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        None
    }
    fn as_multimodal(&self) -> Option<&dyn MultiModalReader> {
        self.files.as_multimodal()
    }
    fn as_searchable(&self) -> Option<&dyn Searchable> {
        self.files.as_searchable()
    }
    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        self.files.as_snapshots()
    }
    fn as_watch(&self) -> Option<&dyn Watch> {
        self.files.as_watch()
    }
}
