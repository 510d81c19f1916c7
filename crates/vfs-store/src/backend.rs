//! File backend over a key-value store.

mod backend_shared;
mod change_feed;
mod config;
mod coordination;
mod delete;
mod edit;
mod nontransactional;
mod read;
mod search;
mod store_file_writer;
mod transfer;
mod upload;
mod view;
mod write;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt as _};
use vfs_core::backend::OperationIdSupport;
use vfs_core::chunks::BufferedWriter;
use vfs_core::edit::ApplyMode;
use vfs_core::multi_modal::{MultiModalReadRequest, MultiModalReadResult};
use vfs_core::tree::{OpenTreeRequest, Tree};
use vfs_core::watch::{WatchEvent, WatchRequest};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
    FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext, OpenWriterRequest,
    ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result, StatRequest,
    TreeProvider, VfsPath, Watch, WriteRequest, WriteResult,
};

pub use self::config::{NamespaceFn, NamespaceSource, StoreConfig};

use self::backend_shared::BackendShared;
use self::store_file_writer::StoreFileWriter;
use self::view::namespace_view::NamespaceView;
use crate::store::{Store, TimestampSource};

/// Backend of files over any [`Store`], shared by all processes that use it.
///
/// # Behaviour
///
/// * Each call works on the files of one namespace, selected by [`StoreConfig::namespace`].
/// * A directory exists while there are files below it; only the root always exists.
/// * Versions are those of the store. Every change that depends on the current content is conditional, so no acknowledged change is
///   lost. An edit or append that loses against another process is retried on the new content; those of one process wait for each
///   other.
/// * Over a store with [batches](Store::as_batch) every change is atomic: a file and a directory never share a path, and a directory
///   is renamed, copied or deleted as a whole. A file that another process creates in the directory meanwhile may remain.
/// * Such a change of a directory holds the names of all its files in memory, in this process and in the store: about 1.5 KiB each.
///   100,000 files took 60 to 160 MiB and 3 to 7 s (SQLite, Postgres, Redis; unoptimised builds), during which no other client can
///   change the namespace. Move larger directories in parts.
/// * A limited listing of one level requests only as many entries as it needs, if the store [lists by key](crate::LevelOrder::Keys);
///   all but Postgres and a bucket of `BucketStore::new` do.
/// * Over a store without batches, the parents and children of a new file are checked again after it was stored, and the file is
///   removed if it conflicts with another one. At least one of two such writers is refused. A rename copies every file and then
///   deletes the sources in the copied version; other clients can observe it half done, and a failure is rolled back. A recursive
///   delete removes file by file. If the process ends midway, the completed steps remain.
/// * Over a store with [staging](Store::as_staging) a [`FileWriter`] sends a file in parts of 8 MiB, one of which is in
///   memory at a time; a file of at most one part is written as a whole. Over a bucket, a file that is written in
///   several parts has the modification time at which the first was sent.
/// * Over a store with [recorded batches](Store::as_operations), a mutation whose context has an
///   [operation id](OpContext::with_operation_id) is made once: the id and the result are stored with the change for a day. Each file of
///   an upload is a mutation of its own.
/// * A small file is read by one request, a large one block by block in bounded memory. A read is restarted if another process
///   changes the file meanwhile.
/// * A search of a whole namespace lists it. If the store has a [change log](Store::as_changes), names are cached and brought up to
///   date from the log. Contents are cached by version. If the store has a [search index](Store::as_search), only candidates are
///   fetched.
/// * The change feed is available if the store has a change log. It reports each file, also when a directory was renamed or deleted. A
///   cursor is valid in every process and for every handle of the same namespace; one of another namespace is an overflow. A
///   change by this backend after a feed was requested waits until the feed has started; changes by other processes are reported
///   from the first answer of the store on.
/// * After a store was restored to an earlier state, a cursor beyond the restored log is an overflow until the log has
///   grown past it; from then on it refers to the new change of the same number. Before a restore, end the processes
///   that use the store; afterwards, let watchers list again and start without a cursor.
/// * A call that is cancelled or reaches its deadline stops waiting for the store. Its change may then be applied or
///   not.
///
/// Requires a tokio runtime with its timer.
///
/// # Errors
///
/// Errors of every backend, of the store, and of the [`NamespaceSource`]. `busy` for a change that lost against other
/// writers in [`StoreConfig::edit_attempts`] attempts.
///
/// ```
/// use vfs_core::BackendExt;
/// use vfs_store::{MemoryStore, StoreBackend};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
/// let store = MemoryStore::new();
/// let (one, other) = (StoreBackend::new(store.clone()), StoreBackend::new(store));
/// one.create_text("/notes/today.md", "- read\n").await?;
/// other.append_text("/notes/today.md", "- write\n").await?;
/// assert_eq!(one.read_text("/notes/today.md").await?, "- read\n- write\n");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
pub struct StoreBackend<S> {
    shared: Arc<BackendShared<S>>,
}

impl<S: Store> StoreBackend<S> {
    /// Returns a backend with the default configuration.
    pub fn new(store: S) -> Self {
        Self::with_config(store, StoreConfig::new())
    }

    /// Returns a backend with `config`.
    pub fn with_config(store: S, config: StoreConfig) -> Self {
        Self { shared: Arc::new(BackendShared::new(store, config)) }
    }

    /// Returns the store.
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// Returns the configuration.
    pub fn config(&self) -> &StoreConfig {
        &self.shared.config
    }

    /// Returns the view of a call; errors name `path`.
    fn view(&self, cx: &OpContext, path: &VfsPath) -> Result<NamespaceView<S>> {
        cx.check().map_err(|error| error.or_path(path))?;
        let namespace = self.shared.config.namespace.of(cx).map_err(|error| error.or_path(path))?;
        Ok(NamespaceView { shared: Arc::clone(&self.shared), namespace, cx: cx.clone(), operation: None })
    }
}

/// Returns another handle of the same backend.
impl<S> Clone for StoreBackend<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: Store> fmt::Debug for StoreBackend<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BackendShared { store, config, contents, indexes, .. } = &*self.shared;
        f.debug_struct("StoreBackend")
            .field("store", store)
            .field("config", config)
            .field("contents", contents)
            .field("indexes", indexes)
            .finish_non_exhaustive()
    }
}

impl<S: Store> fmt::Display for StoreBackend<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.shared.store, f)
    }
}

#[async_trait]
impl<S: Store> Backend for StoreBackend<S> {
    fn capabilities(&self, _at: &VfsPath) -> Capabilities {
        let mut capabilities = Capabilities::new(self.shared.max_file_size());
        capabilities.max_streamed_size = self.shared.max_streamed_size();
        if self.shared.store.as_operations().is_some() {
            capabilities.operation_ids = OperationIdSupport::Stored;
        }
        capabilities.set_times = self.shared.store.capabilities().timestamps == TimestampSource::Caller;
        capabilities
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        read::stat(&self.view(cx, &req.path)?, req.path).await
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        cx.check().map_err(|error| error.or_path(&req.path))?;
        Ok(ResolveResult::at(req.path))
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        let view = self.view(cx, &req.path)?;
        if !req.recursive {
            return search::ls(&view, &req).await;
        }
        let (search_cx, _guard) = cx.cancel_on_drop();
        let tree = search::tree_for_ls(&view.with_context(search_cx), &req).await?;
        vfs_search::ls_on(&self.shared.pool, tree, cx.clone(), req).await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        let req = req.clamp_max_bytes(self.shared.max_file_size());
        read::read(&self.view(cx, &req.path)?, &req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        self.shared.feed_barrier.wait().await;
        let view = self.view(cx, &req.path)?.for_mutation(&req)?;
        view.once(write::write(&view, req)).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        if self.shared.store.as_staging().is_none() {
            return BufferedWriter::open(self.clone(), cx, req);
        }
        Ok(Box::new(StoreFileWriter::open(self.view(cx, &req.path)?, req)?))
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        self.shared.feed_barrier.wait().await;
        let mut view = self.view(cx, &req.path)?;
        if req.mode != ApplyMode::DryRun {
            view = view.for_mutation(&req)?;
        }
        view.once(edit::edit(&view, &req)).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.shared.feed_barrier.wait().await;
        let view = self.view(cx, &req.path)?.for_mutation(&req)?;
        view.once(delete::delete(&view, &req)).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.shared.feed_barrier.wait().await;
        let view = self.view(cx, &req.from)?.for_mutation(&req)?;
        view.once(transfer::rename(&view, &req)).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        self.shared.feed_barrier.wait().await;
        let view = self.view(cx, &req.from)?.for_mutation(&req)?;
        view.once(transfer::copy(&view, &req)).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        let (search_cx, _guard) = cx.cancel_on_drop();
        let view = self.view(cx, &req.path)?.with_context(search_cx);
        let tree = search::tree_for_glob(&view, &req).await?;
        vfs_search::glob_on(&self.shared.pool, tree, cx.clone(), req).await
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        let (search_cx, _guard) = cx.cancel_on_drop();
        let view = self.view(cx, &req.path)?.with_context(search_cx);
        let tree = search::tree_for_grep(&view, &req).await?;
        vfs_search::grep_on(&self.shared.pool, tree, cx.clone(), req).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let this = self.clone();
        let (search_cx, guard) = cx.cancel_on_drop();
        let begin = async move {
            let tree = async {
                let view = this.view(&cx, &req.path)?.with_context(search_cx);
                search::tree_for_grep(&view, &req).await
            };
            match tree.await {
                Ok(tree) => vfs_search::grep_stream_on(&this.shared.pool, tree, cx.clone(), req),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        let events = stream::once(begin).flatten();
        // Dropping the stream cancels the search.
        events.inspect(move |_| _ = &guard).boxed()
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        self.shared.feed_barrier.wait().await;
        let Some(first) = files.first() else { return Vec::new() };
        match self.view(cx, &first.path) {
            Ok(view) => upload::upload_all(&view, files).await,
            Err(error) => {
                let failed = |FileUploadRequest { path, .. }| {
                    let error = error.clone().with_path(&path);
                    FileUploadResponse::failed(path, error)
                };
                files.into_iter().map(failed).collect()
            }
        }
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let downloads: Vec<_> = paths
            .into_iter()
            .map(|path| async move {
                match self.view(cx, &path) {
                    Ok(view) => read::download(&view, path).await,
                    Err(error) => FileDownloadResponse::failed(path, error),
                }
            })
            .collect();
        stream::iter(downloads).buffered(self.shared.config.fetches.get()).collect().await
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        Some(self)
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        Some(self)
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        self.shared.store.as_changes().map(|_| self as &dyn Watch)
    }
}

#[async_trait]
impl<S: Store> TreeProvider for StoreBackend<S> {
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        Ok(search::tree_to_lend(&self.view(cx, &req.path)?, &req).await?)
    }
}

#[async_trait]
impl<S: Store> MultiModalReader for StoreBackend<S> {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult> {
        vfs_core::multi_modal::read_multi_modal(self, cx, req).await
    }
}

impl<S: Store> Watch for StoreBackend<S> {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        match self.view(&cx, &req.path) {
            Ok(view) => change_feed::watch(view, req, &self.shared.feed_barrier),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
}
