//! Adapter that applies the returned changes of a backend, as an agent's runtime does.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::stream::BoxStream;
use vfs_core::backend::MutationMode;
use vfs_core::chunks::BufferedWriter;
use vfs_core::edit::ApplyMode;
use vfs_core::state::{FileData, FilesUpdate};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext, OpenWriterRequest,
    ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result, Shell, Snapshots,
    StatRequest, StreamingShell, TreeProvider, VfsPath, Watch, WriteRequest, WriteResult,
};

/// The files of an agent's state, as a runtime stores them between two steps.
type StateFiles = BTreeMap<VfsPath, FileData>;

/// Adapter from [`MutationMode::Returned`] to [`MutationMode::InPlace`]: the changes that the inner backend returns are applied to the
/// files at once.
///
/// # Behaviour
///
/// * The adapter has the files, sends each call to a backend over them, and merges the `files_update` of each mutation,
///   as an agent's runtime does between two steps.
/// * Mutations are serialised, because each must see the one before it. Reads run concurrently.
///
/// # Panics
///
/// A call panics if a mutation succeeds without a `files_update`.
#[derive(Clone)]
pub struct ReturnedUpdateApplier {
    over: Arc<dyn Fn(StateFiles) -> Arc<dyn Backend> + Send + Sync>,
    state: Arc<Mutex<AdapterState>>,
    mutation: Arc<tokio::sync::Mutex<()>>,
}

/// The current files, and the backend over them.
struct AdapterState {
    files: StateFiles,
    backend: Arc<dyn Backend>,
}

impl ReturnedUpdateApplier {
    /// Returns an adapter without files. `over` is called with the files at first and after each mutation, and returns a backend over
    /// them.
    pub fn new(over: impl Fn(StateFiles) -> Arc<dyn Backend> + Send + Sync + 'static) -> Self {
        let backend = over(StateFiles::new());
        Self {
            over: Arc::new(over),
            state: Arc::new(Mutex::new(AdapterState { files: StateFiles::new(), backend })),
            mutation: Arc::default(),
        }
    }

    /// Returns the current files.
    pub fn files(&self) -> BTreeMap<VfsPath, FileData> {
        self.with_state(|state| state.files.clone())
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut AdapterState) -> T) -> T {
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

impl fmt::Debug for ReturnedUpdateApplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReturnedUpdateApplier").field("backend", &self.now()).finish_non_exhaustive()
    }
}

impl fmt::Display for ReturnedUpdateApplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in-place-adapter({})", self.now())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for ReturnedUpdateApplier {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        let mut capabilities = self.now().capabilities(at);
        assert_eq!(capabilities.mutations, MutationMode::Returned, "the backend does not return its changes");
        capabilities.mutations = MutationMode::InPlace;
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
            ApplyMode::DryRun => assert_eq!(result.files_update, None, "a dry run changes nothing"),
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

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
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
