//! Live store in memory.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use vfs_core::chunks::BufferedWriter;
use vfs_core::multi_modal::{MultiModalReadRequest, MultiModalReadResult};
use vfs_core::snapshots::{
    ForgetRequest, ListSnapshotsRequest, RestoreRequest, SnapshotDiffRequest, SnapshotDiffResult, SnapshotInfo,
    SnapshotRequest,
};
use vfs_core::tree::{OpenTreeRequest, Tree};
use vfs_core::watch::{WatchEvent, WatchRequest};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext, OpenWriterRequest,
    ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result, Snapshots,
    StatRequest, TreeProvider, VfsPath, Watch, WriteMode, WriteRequest, WriteResult,
};

use crate::change_events::{self, EventGranularity};
use crate::config::{MemoryConfig, MutationContext};
use crate::cow_cell::CowCell;
use crate::file_map::FileMap;
use crate::memory_file::StateContentFormat;
use crate::memory_tree::MemoryTree;
use crate::ops::{self, MutationPlan};
use crate::snapshot::{NamedSnapshots, Snapshot};

/// Files in memory, shared by every clone of this handle.
///
/// # Behaviour
///
/// * A directory exists as long as there are files below it; only the root always exists.
/// * A version depends on the content alone: equal contents have equal versions in every store in memory.
/// * Reads and searches work on the files at their start and never wait. Changes are applied one at a time and as a
///   whole; conflicting ones are computed again on the newest files, so that edits of different places all succeed.
/// * [`snapshot`](Self::snapshot), [`restore`](Self::restore) and [`fork`](Self::fork) take constant time and share
///   contents.
/// * Work is done on the calling thread, except that of `grep`.
/// * The change feed reports files, as directories exist only with them: one event for a write, an edit or an upload,
///   and one for each file of a copy. Deleting or renaming a directory is one event about everything below it.
///   Restoring a snapshot reports each file that differs, or an overflow if these are too many. A change that leaves
///   the content of a file as it was is not reported. The feed begins with the first subscriber, and a fork has its
///   own.
///
/// ```
/// use vfs_core::BackendExt;
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let files = MemoryBackend::new();
/// files.create_text("/src/lib.rs", "fn one() {}\n").await?;
///
/// let attempt = files.fork();
/// attempt.edit_text("/src/lib.rs", "one", "two").await?;
/// assert_eq!(attempt.read_text("/src/lib.rs").await?, "fn two() {}\n");
/// assert_eq!(files.read_text("/src/lib.rs").await?, "fn one() {}\n");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct MemoryBackend {
    inner: Arc<MemoryBackendInner>,
}

/// The state that all handles of a store share.
#[derive(Debug)]
struct MemoryBackendInner {
    files: CowCell<FileMap>,
    config: MemoryConfig,
    snapshots: NamedSnapshots,
}

impl MemoryBackend {
    /// Returns an empty store with the default limits.
    pub fn new() -> Self {
        Self::with_config(MemoryConfig::new())
    }

    /// Returns an empty store with the limits of `config`.
    pub fn with_config(config: MemoryConfig) -> Self {
        Self::from_map(FileMap::default(), config)
    }

    /// Returns a store of `files` with the default limits; of two at the same path the later one wins.
    ///
    /// # Errors
    ///
    /// The errors of writing each file: `is_a_directory` or `not_a_directory` for the root and for a path that a file and
    /// a directory would share; `too_large`.
    pub fn from_files(files: impl IntoIterator<Item = (VfsPath, Bytes)>) -> Result<Self> {
        let config = MemoryConfig::new();
        let rules = MutationContext::now(&config, StateContentFormat::default());
        let mut map = FileMap::default();
        for (path, content) in files {
            let request = WriteRequest::new(path, content).mode(WriteMode::Overwrite);
            let (change, _) = ops::write(&map, &request, &rules)?;
            map.apply(change);
        }
        Ok(Self::from_map(map, config))
    }

    /// Returns a snapshot of all files.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { files: self.files() }
    }

    /// Replaces all files by those of `snapshot` in one step; later changes are lost.
    ///
    /// The snapshot may come from another store, and is not checked against the limits of this one.
    pub fn restore(&self, snapshot: &Snapshot) {
        let files = &snapshot.files;
        self.inner.files.replace(|_| (files.clone(), ()), |before| change_events::restore_events(before, files));
    }

    /// Returns another store with the same files and limits. Neither sees the other's changes.
    pub fn fork(&self) -> MemoryBackend {
        Self::from_map(self.files(), self.inner.config.clone())
    }

    fn from_map(files: FileMap, config: MemoryConfig) -> Self {
        Self {
            inner: Arc::new(MemoryBackendInner {
                files: CowCell::new(files),
                config,
                snapshots: NamedSnapshots::default(),
            }),
        }
    }

    fn files(&self) -> FileMap {
        FileMap::clone(&self.inner.files.load())
    }

    fn tree(&self) -> Arc<MemoryTree> {
        Arc::new(MemoryTree::new(self.files()))
    }

    /// Applies the change that `plan` computes, and reports it in events of `granularity`.
    fn mutate<R>(
        &self,
        cx: &OpContext,
        granularity: EventGranularity<'_>,
        plan: impl Fn(&FileMap, &MutationContext<'_>) -> MutationPlan<R>,
    ) -> Result<R> {
        let files = &self.inner.files;
        let compute = |before: &FileMap| {
            let (change, result) =
                plan(before, &MutationContext::now(&self.inner.config, StateContentFormat::default()))?;
            granularity.compute_versions(files.feed(), before, &change);
            Ok(((!change.is_empty()).then(|| before.with(change.clone())), (change, result)))
        };
        let (_, result) = files.update(cx, compute, |before, (change, _)| granularity.events(before, change))?;
        Ok(result)
    }
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory")
    }
}

#[async_trait]
impl Backend for MemoryBackend {
    fn capabilities(&self, _at: &VfsPath) -> Capabilities {
        let mut capabilities = Capabilities::new(self.inner.config.max_file_size);
        capabilities.set_times = true;
        capabilities
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        ops::stat(&self.inner.files.load(), cx, req)
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
        ops::read(&self.inner.files.load(), cx, &req.clamp_max_bytes(self.inner.config.max_file_size))
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        self.mutate(cx, EventGranularity::PerFile, |files, rules| ops::write(files, &req, rules))
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        BufferedWriter::open(self.clone(), cx, req)
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        self.mutate(cx, EventGranularity::PerFile, |files, rules| ops::edit(files, &req, rules))
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.mutate(cx, EventGranularity::Removal(&req.path), |files, _| ops::delete(files, cx, &req))
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.mutate(cx, EventGranularity::Rename(&req.from, &req.to), |files, _| ops::rename(files, cx, &req))
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        self.mutate(cx, EventGranularity::PerFile, |files, rules| ops::copy(files, cx, &req, rules))
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        cx.check()?;
        vfs_search::glob(self.tree(), cx, &req)
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        cx.check()?;
        vfs_search::grep_on(self.inner.config.pool(), self.tree(), cx.clone(), req).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        vfs_search::grep_stream_on(self.inner.config.pool(), self.tree(), cx, req)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        let upload = |file: FileUploadRequest| {
            let req = WriteRequest::from(file);
            let written = self.mutate(cx, EventGranularity::PerFile, |files, rules| ops::write(files, &req, rules));
            FileUploadResponse::of_write(req.path, written)
        };
        files.into_iter().map(upload).collect()
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

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        Some(self)
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        Some(self)
    }
}

#[async_trait]
impl TreeProvider for MemoryBackend {
    async fn open_tree(&self, cx: &OpContext, _req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        cx.check()?;
        Ok(self.tree())
    }
}

#[async_trait]
impl MultiModalReader for MemoryBackend {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult> {
        vfs_core::multi_modal::read_multi_modal(self, cx, req).await
    }
}

impl Watch for MemoryBackend {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        self.inner.files.feed().subscribe(cx, req)
    }
}

#[async_trait]
impl Snapshots for MemoryBackend {
    async fn snapshot(&self, cx: &OpContext, req: SnapshotRequest) -> Result<SnapshotInfo> {
        cx.check()?;
        Ok(self.inner.snapshots.insert(MemoryBackend::snapshot(self), req))
    }

    async fn snapshots(&self, cx: &OpContext, _req: ListSnapshotsRequest) -> Result<Vec<SnapshotInfo>> {
        cx.check()?;
        Ok(self.inner.snapshots.list())
    }

    async fn restore(&self, cx: &OpContext, req: RestoreRequest) -> Result<()> {
        cx.check()?;
        MemoryBackend::restore(self, &self.inner.snapshots.get(&req.id)?);
        Ok(())
    }

    async fn forget(&self, cx: &OpContext, req: ForgetRequest) -> Result<()> {
        cx.check()?;
        self.inner.snapshots.forget(&req.id)
    }

    async fn diff(&self, cx: &OpContext, req: SnapshotDiffRequest) -> Result<SnapshotDiffResult> {
        cx.check()?;
        let from = self.inner.snapshots.get(&req.from)?;
        let to = match &req.to {
            Some(id) => self.inner.snapshots.get(id)?,
            None => MemoryBackend::snapshot(self),
        };
        Ok(from.diff(&to))
    }
}
