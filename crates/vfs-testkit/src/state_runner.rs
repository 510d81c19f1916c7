//! Runner of an agent's state: the loop around a backend that returns its changes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::stream::BoxStream;
use vfs_core::backend::Mutations;
use vfs_core::chunks::BufferedWriter;
use vfs_core::edit::EditMode;
use vfs_core::state::{FileData, FilesUpdate};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadResponse, FileInfo, FileUploadResponse, FileWriter, GlobRequest, GlobResult, GrepEvent, GrepRequest,
    GrepResult, LsRequest, LsResult, MultiModalReader, OpContext, OpenWriterRequest, ReadRequest, ReadResult,
    RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result, Shell, Snapshots, StatRequest, StreamingShell,
    TreeProvider, UploadRequest, VfsPath, Watch, WriteRequest, WriteResult,
};

/// The files of an agent's state, as a runtime stores them between two steps.
type Files = BTreeMap<VfsPath, FileData>;

/// A backend that works like one which changes in place, over one whose mutations are [`Mutations::Returned`].
///
/// # Behaviour
///
/// * The runner has the files, sends each call to a backend over them, and merges the `files_update` of each mutation,
///   as an agent's runtime does between two steps.
/// * Mutations are serialised, because each must see the one before it. Reads run concurrently.
///
/// # Panics
///
/// A call panics if a mutation succeeds without a `files_update`.
#[derive(Clone)]
pub struct StateRunner {
    over: Arc<dyn Fn(Files) -> Arc<dyn Backend> + Send + Sync>,
    state: Arc<Mutex<RunnerState>>,
    mutation: Arc<tokio::sync::Mutex<()>>,
}

struct RunnerState {
    files: Files,
    backend: Arc<dyn Backend>,
}

impl StateRunner {
    /// Starts without files; `over` makes a backend over the files that there are by then.
    pub fn new(over: impl Fn(Files) -> Arc<dyn Backend> + Send + Sync + 'static) -> Self {
        let backend = over(Files::new());
        Self {
            over: Arc::new(over),
            state: Arc::new(Mutex::new(RunnerState { files: Files::new(), backend })),
            mutation: Arc::default(),
        }
    }

    /// Returns the current files.
    pub fn files(&self) -> BTreeMap<VfsPath, FileData> {
        self.with_state(|state| state.files.clone())
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut RunnerState) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the backend over the current files.
    fn now(&self) -> Arc<dyn Backend> {
        self.with_state(|state| Arc::clone(&state.backend))
    }

    fn merge(&self, update: FilesUpdate) {
        self.with_state(|state| {
            for (path, file) in update {
                match file {
                    Some(file) => drop(state.files.insert(path, file)),
                    None => drop(state.files.remove(&path)),
                }
            }
            state.backend = (self.over)(state.files.clone());
        });
    }

    /// Merges the update of a mutation and removes it from the result, since the change is made for the caller.
    fn apply(&self, update: &mut Option<FilesUpdate>) {
        self.merge(update.take().expect("a mutation that succeeds returns its update"));
    }
}

impl fmt::Debug for StateRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateRunner").field("backend", &self.now()).finish_non_exhaustive()
    }
}

impl fmt::Display for StateRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state-runner({})", self.now())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for StateRunner {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        let mut capabilities = self.now().capabilities(at);
        assert_eq!(capabilities.mutations, Mutations::Returned, "the backend does not return its changes");
        capabilities.mutations = Mutations::InPlace;
        capabilities
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        self.now().stat(cx, req).await
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        self.now().resolve(cx, req).await
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        self.now().ls(cx, req).await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        self.now().read(cx, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        let _guard = self.mutation.lock().await;
        let mut result = self.now().write(cx, req).await?;
        self.apply(&mut result.files_update);
        Ok(result)
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        BufferedWriter::open(self.clone(), cx, req)
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        let _guard = self.mutation.lock().await;
        let mode = req.mode;
        let mut result = self.now().edit(cx, req).await?;
        match mode {
            EditMode::DryRun => assert_eq!(result.files_update, None, "a dry run changes nothing"),
            _ => self.apply(&mut result.files_update),
        }
        Ok(result)
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        let _guard = self.mutation.lock().await;
        let mut result = self.now().delete(cx, req).await?;
        self.apply(&mut result.files_update);
        Ok(result)
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        let _guard = self.mutation.lock().await;
        let mut result = self.now().rename(cx, req).await?;
        self.apply(&mut result.files_update);
        Ok(result)
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        let _guard = self.mutation.lock().await;
        let mut result = self.now().copy(cx, req).await?;
        self.apply(&mut result.files_update);
        Ok(result)
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        self.now().glob(cx, req).await
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        self.now().grep(cx, req).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        self.now().grep_stream(cx, req)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<UploadRequest>) -> Vec<FileUploadResponse> {
        let _guard = self.mutation.lock().await;
        let mut answers = self.now().upload_files(cx, files).await;
        let written = answers.iter_mut().filter(|answer| answer.error.is_none());
        let updates = written.map(|answer| answer.files_update.take().expect("a file that was written has an update"));
        self.merge(updates.flatten().collect());
        answers
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        self.now().download_files(cx, paths).await
    }

    // Every mutation replaces the backend, and with it its facets.
    fn as_shell(&self) -> Option<&dyn Shell> {
        None
    }

    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        None
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        None
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        None
    }

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        None
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        None
    }
}
