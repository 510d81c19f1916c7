//! Backend that combines files and a shell.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext, OpenWriterRequest,
    ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result, Shell, Snapshots,
    StatRequest, StreamingShell, TreeProvider, VfsPath, Watch, WriteRequest, WriteResult,
};

/// Backend with the files of one backend and a separate shell.
///
/// All file operations, and all facets except the shell, are those of the files. The backend does not make the shell see the
/// same files at the same paths; the shell has to.
#[derive(Debug)]
pub struct WithShell<S> {
    name: &'static str,
    files: Arc<dyn Backend>,
    shell: S,
}

impl<S> WithShell<S> {
    /// Combines `files` and `shell`; the backend is displayed as `name(files)`.
    pub fn new(name: &'static str, files: Arc<dyn Backend>, shell: S) -> Self {
        Self { name, files, shell }
    }

    /// Returns the backend of the files.
    pub fn files(&self) -> &Arc<dyn Backend> {
        &self.files
    }

    /// Returns the shell.
    pub fn shell(&self) -> &S {
        &self.shell
    }
}

impl<S> fmt::Display for WithShell<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.files)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Shell + StreamingShell + fmt::Debug + 'static> Backend for WithShell<S> {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.files.capabilities(at)
    }
    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        self.files.stat(cx, req).await
    }
    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
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
    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        self.files.upload_files(cx, files).await
    }
    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        self.files.download_files(cx, paths).await
    }
    fn as_shell(&self) -> Option<&dyn Shell> {
        Some(&self.shell)
    }
    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        Some(&self.shell)
    }
    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        self.files.as_multi_modal()
    }
    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        self.files.as_tree_provider()
    }
    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        self.files.as_snapshots()
    }
    fn as_watch(&self) -> Option<&dyn Watch> {
        self.files.as_watch()
    }
}
