//! Backend over the files of an agent's state.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use rpds::RedBlackTreeMapSync;
use vfs_core::backend::MutationMode;
use vfs_core::chunks::BufferedWriter;
use vfs_core::multi_modal::{MultiModalReadRequest, MultiModalReadResult};
use vfs_core::state::FilesUpdate;
use vfs_core::tree::{OpenTreeRequest, Tree};
use vfs_core::watch::{WatchEvent, WatchRequest};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext, OpenWriterRequest,
    ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result, StatRequest,
    TreeProvider, VfsPath, Watch, WriteRequest, WriteResult,
};

use super::files_state::FilesState;
use crate::change_events::EventGranularity;
use crate::config::{MemoryConfig, MutationContext};
use crate::cow_cell::CowCell;
use crate::file_map::{FileMap, MapChanges};
use crate::memory_file::{MemoryFile, StateContentFormat};
use crate::memory_tree::MemoryTree;
use crate::ops::{self, MutationPlan};

/// Backend over the files of an agent's state. The result of every change has the `files_update` that the runtime
/// merges into the state.
///
/// # Behaviour
///
/// * [`pure`](Self::pure): a change is only in its result. The runtime merges the update and builds the next backend
///   over the merged state. This suits a runtime whose tools return updates. Concurrent calls each start from the
///   same state, so of two changes of one file the one that is merged later wins.
/// * [`session`](Self::session): the next call sees the change, as on any other backend, and
///   [`take_update`](Self::take_update) returns all changes since its last call for the runtime's checkpoint.
/// * Otherwise both behave like [`MemoryBackend`](crate::MemoryBackend), and merging an update into the state gives
///   the result of the operation.
/// * A changed file keeps its creation time and its content format; a new file has the format of
///   [`with_format`](Self::with_format).
/// * A clone of a session shares the session. A session has a change feed; a pure backend has none.
///
/// ```
/// use vfs_core::state::FilesUpdate;
/// use vfs_core::BackendExt;
/// use vfs_memory::{FilesState, StateBackend};
///
/// # futures::executor::block_on(async {
/// let mut state = FilesState::new();
/// let files = StateBackend::pure(state.clone());
/// let written = files.create_text("/plan.md", "1. read\n").await?;
/// assert!(!files.exists("/plan.md").await?);
///
/// state.merge(written.files_update.unwrap_or_default())?;
/// assert_eq!(StateBackend::pure(state).read_text("/plan.md").await?, "1. read\n");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct StateBackend {
    session: Arc<CowCell<FilesWithPendingChanges>>,
    mutations: MutationMode,
    format: StateContentFormat,
    config: MemoryConfig,
}

/// The current files, and the changes since the last checkpoint.
#[derive(Debug, Clone, Default)]
struct FilesWithPendingChanges {
    files: FileMap,
    pending: RedBlackTreeMapSync<VfsPath, Option<Arc<MemoryFile>>>,
}

impl FilesWithPendingChanges {
    fn with(&self, change: MapChanges) -> Self {
        let mut pending = self.pending.clone();
        for (path, file) in &change {
            pending.insert_mut(path.clone(), file.clone());
        }
        Self { files: self.files.with(change), pending }
    }
}

impl StateBackend {
    /// Returns a backend that changes nothing: the effect of a mutation is in the `files_update` of its result.
    pub fn pure(state: FilesState) -> Self {
        Self::new(state, MutationMode::Returned)
    }

    /// Returns a backend whose reads see the changes so far.
    pub fn session(state: FilesState) -> Self {
        Self::new(state, MutationMode::InPlace)
    }

    fn new(state: FilesState, mutations: MutationMode) -> Self {
        let session = FilesWithPendingChanges { files: state.files, pending: RedBlackTreeMapSync::default() };
        Self {
            session: Arc::new(CowCell::new(session)),
            mutations,
            format: StateContentFormat::default(),
            config: MemoryConfig::new(),
        }
    }

    /// Sets the content format of new files in updates. Default [`StateContentFormat::Text`].
    #[must_use]
    pub fn with_format(mut self, format: StateContentFormat) -> Self {
        self.format = format;
        self
    }

    /// Sets the limits of the state. Default [`MemoryConfig::new`].
    #[must_use]
    pub fn with_config(mut self, config: MemoryConfig) -> Self {
        self.config = config;
        self
    }

    /// Returns all changes since the last call as one update for the runtime's checkpoint. Always empty on a pure
    /// backend.
    #[must_use = "each change is returned once; merge the update into the state"]
    pub fn take_update(&self) -> FilesUpdate {
        let take = |session: &FilesWithPendingChanges| {
            let next =
                FilesWithPendingChanges { files: session.files.clone(), pending: RedBlackTreeMapSync::default() };
            (next, session.pending.clone())
        };
        let pending = self.session.replace(take, |_| Vec::new());
        pending.iter().map(|(path, file)| update_entry(path, file.as_ref())).collect()
    }

    /// Returns the current state, with every change of a session.
    pub fn state(&self) -> FilesState {
        FilesState { files: self.files() }
    }

    fn files(&self) -> FileMap {
        self.session.load().files.clone()
    }

    fn tree(&self) -> Arc<MemoryTree> {
        Arc::new(MemoryTree::new(self.files()))
    }

    /// Applies the change that `plan` computes if changes are made in place, and returns its update; `None` if
    /// nothing changes.
    fn mutate<R>(
        &self,
        cx: &OpContext,
        granularity: EventGranularity<'_>,
        plan: impl Fn(&FileMap, &MutationContext<'_>) -> MutationPlan<R>,
    ) -> Result<(Option<FilesUpdate>, R)> {
        let compute = |session: &FilesWithPendingChanges| {
            let (change, result) = plan(&session.files, &MutationContext::now(&self.config, self.format))?;
            granularity.compute_versions(self.session.feed(), &session.files, &change);
            let changes_here = self.mutations == MutationMode::InPlace && !change.is_empty();
            Ok((changes_here.then(|| session.with(change.clone())), (change, result)))
        };
        let to_events = |session: &FilesWithPendingChanges, (change, _): &(MapChanges, R)| {
            granularity.events(&session.files, change)
        };
        let (change, result) = self.session.update(cx, compute, to_events)?;
        let update = change.iter().map(|(path, file)| update_entry(path, file.as_ref())).collect();
        Ok(((!change.is_empty()).then_some(update), result))
    }

    fn upload(&self, cx: &OpContext, file: FileUploadRequest) -> FileUploadResponse {
        let req = WriteRequest::from(file);
        let written = self.mutate(cx, EventGranularity::PerFile, |files, rules| ops::write(files, &req, rules));
        let (update, written) =
            written.map_or_else(|error| (None, Err(error)), |(update, written)| (update, Ok(written)));
        let mut response = FileUploadResponse::of_write(req.path, written);
        response.files_update = update;
        response
    }
}

fn update_entry(path: &VfsPath, file: Option<&Arc<MemoryFile>>) -> (VfsPath, Option<vfs_core::state::FileData>) {
    (path.clone(), file.map(|file| file.to_data()))
}

impl fmt::Display for StateBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("state")
    }
}

#[async_trait]
impl Backend for StateBackend {
    fn capabilities(&self, _at: &VfsPath) -> Capabilities {
        let mut capabilities = Capabilities::new(self.config.max_file_size);
        capabilities.mutations = self.mutations;
        capabilities.set_times = true;
        capabilities
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        ops::stat(&self.session.load().files, cx, req)
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        cx.check()?;
        Ok(ResolveResult::at(req.path))
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        cx.check()?;
        vfs_search::ls(self.tree(), cx, &req)
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        ops::read(&self.session.load().files, cx, &req.clamp_max_bytes(self.config.max_file_size))
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        let (update, mut result) =
            self.mutate(cx, EventGranularity::PerFile, |files, rules| ops::write(files, &req, rules))?;
        result.files_update = update;
        Ok(result)
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        BufferedWriter::open(self.clone(), cx, req)
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        let (update, mut result) =
            self.mutate(cx, EventGranularity::PerFile, |files, rules| ops::edit(files, &req, rules))?;
        result.files_update = update;
        Ok(result)
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        let (update, mut result) =
            self.mutate(cx, EventGranularity::Removal(&req.path), |files, _| ops::delete(files, cx, &req))?;
        result.files_update = update;
        Ok(result)
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        let (update, mut result) =
            self.mutate(cx, EventGranularity::Rename(&req.from, &req.to), |files, _| ops::rename(files, cx, &req))?;
        result.files_update = update;
        Ok(result)
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        let (update, mut result) =
            self.mutate(cx, EventGranularity::PerFile, |files, rules| ops::copy(files, cx, &req, rules))?;
        result.files_update = update;
        Ok(result)
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        cx.check()?;
        vfs_search::glob(self.tree(), cx, &req)
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        cx.check()?;
        vfs_search::grep_on(self.config.pool(), self.tree(), cx.clone(), req).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        vfs_search::grep_stream_on(self.config.pool(), self.tree(), cx, req)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        // The files of one request must be consistent with each other, also in a backend that never changes.
        let target = match self.mutations {
            MutationMode::InPlace => self.clone(),
            _ => Self::session(self.state()).with_format(self.format).with_config(self.config.clone()),
        };
        files.into_iter().map(|file| target.upload(cx, file)).collect()
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let files = self.files();
        paths.into_iter().map(|path| ops::download(&files, cx, path)).collect()
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        Some(self)
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        Some(self)
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        (self.mutations == MutationMode::InPlace).then_some(self as &dyn Watch)
    }
}

impl Watch for StateBackend {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        self.session.feed().subscribe(cx, req)
    }
}

#[async_trait]
impl TreeProvider for StateBackend {
    async fn open_tree(&self, cx: &OpContext, _req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        cx.check()?;
        Ok(self.tree())
    }
}

#[async_trait]
impl MultiModalReader for StateBackend {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult> {
        vfs_core::multi_modal::read_multi_modal(self, cx, req).await
    }
}
