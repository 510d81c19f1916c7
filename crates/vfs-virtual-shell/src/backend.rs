//! Backend with a shell that is interpreted in this process.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tokio::sync::Semaphore;
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, Layer, LsRequest, LsResult, MultiModalReader, OpContext, OpenWriterRequest,
    ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result, Shell, Snapshots,
    StatRequest, StreamingShell, TreeProvider, VfsPath, Watch, WriteRequest, WriteResult,
};

use crate::config::VirtualShellConfig;
use crate::job_table::JobTable;

/// Backend with a shell that starts no process: an interpreter runs the commands on the files of the backend.
///
/// # Behaviour
///
/// * A command line runs as in bash, with the usual tools built in (`grep`, `sed`, `awk`, `sort`, `find`, `xargs`, `tar`,
///   ...) and no others: nothing of the host can be run, read or reached, and there is no network. `env` has the variables
///   of the request; `HOME` is the root.
/// * Every access to a file is an operation of the backend with the caller's context, so policies, quotas, audits and
///   overlays *below* this shell see and decide each one. A layer *around* it sees the command alone.
/// * File operations go to the backend unchanged. This shell hides a shell of the backend.
/// * Writes are whole: a redirection replaces its file at once, and `>>` appends. Directories above a written file are
///   created, as by every write. A directory that `mkdir` creates exists until the command ends, and longer if it is not
///   empty or the backend can store empty directories.
/// * Files have no modes: all can be run as scripts, and `chmod` changes nothing. Links are followed where the backend has
///   them and cannot be created. `/dev/null` exists. Names with control characters cannot be reached.
/// * `&` runs a command concurrently with the rest of the line. Background commands that still run a moment after the last
///   command end with it. If the line has a `trap` or a here-document, or `set -e` ended it, they are waited for instead.
/// * Each command line starts with a clean shell. Command lines that run at the same time share nothing but the files.
/// * Each command line runs on a thread of its own; operations of the backend run in the caller's tokio runtime, if there is
///   one. A stopped command ends at its next simple command; the response is returned at once, and no file is touched from
///   then on. Its full output is then written only if the command timed out or was stopped as a job.
/// * A command that exceeds a limit of [`VirtualShellConfig`] ends as by `SIGKILL` and names the limit. The same holds for
///   the fixed limits: a script of more than 128 KiB, functions that call one another more than 16 deep, commands nested
///   deeper than the stack, `test` or `find` with more than 1,000 words of an expression, and very wide fields or lines.
/// * `seq` prints at most 100,000 lines or 1 MiB, and `yes` at most 10,000 lines; beyond that they report an error and fail.
///   `sleep` takes at most a minute and `timeout` five. There is no `bc`: use `awk` or `$(( ))`.
///
/// # Errors
///
/// Those of [`Shell`]; `unsupported` for a terminal, for the environment of the serving process, and on a backend whose
/// changes are [returned](vfs_core::backend::MutationMode::Returned) instead of made; `busy` for a background command if the maximum
/// number of commands runs.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{Backend, BackendExt, ExecuteRequest, OpContext};
/// use vfs_memory::MemoryBackend;
/// use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};
///
/// # futures::executor::block_on(async {
/// let files = VirtualShell::new(Arc::new(MemoryBackend::new()), VirtualShellConfig::new());
/// files.create_text("/fruit", "pear\napple\n").await?;
///
/// let shell = files.as_shell().expect("it has one");
/// let request = ExecuteRequest::new("sort fruit | head -n 1 > first; cat first");
/// let answer = shell.execute(&OpContext::new(), request).await?;
/// assert_eq!((answer.stdout.as_str(), answer.exit_code), ("apple\n", Some(0)));
/// assert_eq!(files.read_text("/first").await?, "apple\n");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct VirtualShell(pub(crate) Arc<VirtualShellInner>);

/// State that all clones of a [`VirtualShell`] share.
#[derive(Debug)]
pub(crate) struct VirtualShellInner {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) config: VirtualShellConfig,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) jobs: JobTable,
}

impl VirtualShell {
    /// Adds a shell to `backend`.
    pub fn new(backend: Arc<dyn Backend>, config: VirtualShellConfig) -> Self {
        let permits = Arc::new(Semaphore::new(config.max_concurrent.clamp(1, Semaphore::MAX_PERMITS)));
        Self(Arc::new(VirtualShellInner { backend, config, permits, jobs: JobTable::default() }))
    }
}

impl fmt::Display for VirtualShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "virtual_shell({})", self.0.backend)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for VirtualShell {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.0.backend.capabilities(at)
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        self.0.backend.stat(cx, req).await
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        self.0.backend.resolve(cx, req).await
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        self.0.backend.ls(cx, req).await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        self.0.backend.read(cx, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        self.0.backend.write(cx, req).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        self.0.backend.open_writer(cx, req).await
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        self.0.backend.edit(cx, req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.0.backend.delete(cx, req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.0.backend.rename(cx, req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        self.0.backend.copy(cx, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        self.0.backend.glob(cx, req).await
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        self.0.backend.grep(cx, req).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        self.0.backend.grep_stream(cx, req)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        self.0.backend.upload_files(cx, files).await
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        self.0.backend.download_files(cx, paths).await
    }

    fn as_shell(&self) -> Option<&dyn Shell> {
        Some(self)
    }

    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        Some(self)
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        self.0.backend.as_multi_modal()
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        self.0.backend.as_tree_provider()
    }

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        self.0.backend.as_snapshots()
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        self.0.backend.as_watch()
    }
}

impl Layer for VirtualShellConfig {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(VirtualShell::new(inner, self.clone()))
    }
}
