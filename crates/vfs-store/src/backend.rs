//! Files over a store.

mod config;
mod contents;
mod delete;
mod directory;
mod documents;
mod edit;
mod index;
mod lines;
mod narrow;
mod needles;
mod read;
mod read_ahead;
mod runtime;
mod search;
mod single;
mod space;
mod starts;
mod transfer;
mod tree;
mod turns;
mod upload;
mod waiting;
mod watch;
mod write;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::Semaphore;
use vfs_core::tree::SharedTree;
use vfs_core::{
    Backend, BufferedWriter, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest,
    EditResult, FileDownloadResponse, FileInfo, FileUpload, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalContent, MultiModalReadRequest,
    MultiModalReader, OpContext, OpenTreeRequest, OpenWriterRequest, ReadRequest, ReadResult, RenameRequest,
    RenameResult, ResolveRequest, Resolved, Result, StatRequest, TreeProvider, VfsPath, Watch, WatchEvent,
    WatchRequest, WriteRequest, WriteResult,
};
use vfs_search::Pool;

pub use self::config::{NamespaceOf, NamespaceSource, StoreConfig};
pub use self::documents::{DocumentForm, Documents};

use self::contents::Contents;
use self::index::Indexes;
use self::lines::LineIndexes;
use self::space::Space;
use self::starts::Starts;
use self::turns::Turns;
use crate::store::{Store, Times};

/// Files over any store, shared by all processes that use it.
///
/// # Behaviour
///
/// * Each call works on the files of one namespace, as [`StoreConfig::namespace`] says, and sees nothing of any other.
/// * Directories are there as long as there are files below them; only the root is always there.
/// * Versions are the store's, and every change is conditional where it depends on what was there: no acknowledged change is
///   ever lost. An edit, or writing to the end, is made anew on the newest content where another process was faster; those of
///   one process wait for one another.
/// * Over a store with [batches](Store::as_batch) every change is one step: a file and a directory never share a path, and
///   renaming, copying and deleting a directory happen as a whole. What another process puts into a directory while it is
///   renamed or deleted may stay where it was put.
/// * Such a change of a directory holds the names of all its files in memory, here and in the store: about 1.5 KiB for each. Of
///   100,000 files it took 60 to 160 MiB and 3 to 7 s (SQLite, Postgres, Redis; unoptimised builds), in which nobody else changes
///   the namespace. Larger ones are better moved in parts.
/// * A limited listing of one level asks for as many entries as it needs, where the store [lists by
///   key](crate::LevelOrder::Keys); all do but Postgres.
/// * Over one that changes a single value at a time, a new file is looked at again after it was put, and taken back where a part
///   of its path became a file, or it a directory, meanwhile. Of two that meet so at least one is refused. Renaming is to copy
///   everything, then to delete what was copied as it was copied; others can see it half done, and a failure is taken back. A
///   recursive delete goes file by file. Where the process ends in the middle, what was done until then stays.
/// * Small files are read in one answer of the store, large ones block by block in bounded memory; a file that another process
///   changes meanwhile is begun again.
/// * A search of a whole namespace lists it. Where the store tells of [changes](Store::as_changes), the names are kept and each
///   search only asks what has changed since the last. Contents that were searched are kept by their versions. Where the store
///   can [tell which files](Store::as_search) may hold a text, only these are fetched.
/// * The change feed is there where the store tells of changes. It tells of each file, also where a directory was renamed or
///   deleted. A cursor is good for every process, and for every handle of the same namespace; one of another namespace is an
///   overflow. A change that this backend is asked for after a feed waits until that has begun; of those of others it tells from
///   when the store has answered for the first time.
/// * After a store was put back to an earlier state, a cursor of a change that is no longer there is an overflow, until as many
///   changes were made again: from then on it is taken for the new change of its number. Whoever puts a store back ends its
///   processes before, and has those who watch list again and start without a cursor.
/// * The token and the deadline of a call end its waiting for the store. A change may then have been made or not.
///
/// It needs a tokio runtime with its timer.
///
/// # Errors
///
/// Those of every backend, those of the store, and of a [`NamespaceSource`]. `conflict` for an edit, and `busy` for another
/// change, that others overtook [`StoreConfig::edit_attempts`] times.
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
    inner: Arc<Inner<S>>,
}

/// What all handles of a backend share.
#[derive(Debug)]
struct Inner<S> {
    store: S,
    config: StoreConfig,
    pool: Pool,
    contents: Contents,
    indexes: Indexes,
    lines: LineIndexes,
    turns: Turns,
    starts: Arc<Starts>,
    /// Permits to fetch blocks of files that no search waits for yet.
    blocks_ahead: Arc<Semaphore>,
}

impl<S: Store> Inner<S> {
    /// The largest file that the configuration and the store allow.
    fn max_file_size(&self) -> u64 {
        self.config.max_file_size.min(self.store.abilities().max_value)
    }
}

impl<S: Store> StoreBackend<S> {
    /// Files of the namespace without components, with the default limits.
    pub fn new(store: S) -> Self {
        Self::with_config(store, StoreConfig::new())
    }

    /// Files over `store`.
    pub fn with_config(store: S, config: StoreConfig) -> Self {
        let pool = config.search_pool.clone().unwrap_or_else(|| Pool::new(config.fetches.get()));
        let contents = Contents::new(config.content_cache);
        let indexes = Indexes::new(config.index_entries, config.index_namespaces);
        let (lines, turns) = (LineIndexes::default(), Turns::new());
        let blocks_ahead = Arc::new(Semaphore::new(read_ahead::MAX_BLOCKS_AHEAD));
        Self {
            inner: Arc::new(Inner {
                store,
                config,
                pool,
                contents,
                indexes,
                lines,
                turns,
                starts: Arc::default(),
                blocks_ahead,
            }),
        }
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.inner.store
    }

    /// The configuration.
    pub fn config(&self) -> &StoreConfig {
        &self.inner.config
    }

    /// The files that a call is about; errors name `path`.
    fn space(&self, cx: &OpContext, path: &VfsPath) -> Result<Space<S>> {
        cx.check().map_err(|error| error.or_path(path))?;
        let namespace = self.inner.config.namespace.of(cx).map_err(|error| error.or_path(path))?;
        Ok(Space { inner: Arc::clone(&self.inner), namespace, cx: cx.clone() })
    }
}

/// Another handle of the same backend.
impl<S> Clone for StoreBackend<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S: Store> fmt::Debug for StoreBackend<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { store, config, contents, indexes, .. } = &*self.inner;
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
        fmt::Display::fmt(&self.inner.store, f)
    }
}

#[async_trait]
impl<S: Store> Backend for StoreBackend<S> {
    fn capabilities(&self, _at: &VfsPath) -> Capabilities {
        let mut capabilities = Capabilities::new(self.inner.max_file_size());
        capabilities.set_times = self.inner.store.abilities().times == Times::Kept;
        capabilities
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        read::stat(&self.space(cx, &req.path)?, req.path).await
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<Resolved> {
        cx.check().map_err(|error| error.or_path(&req.path))?;
        Ok(Resolved::at(req.path))
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        let space = self.space(cx, &req.path)?;
        if !req.recursive {
            return search::ls(&space, &req).await;
        }
        let (wanted, _guard) = cx.cancel_on_drop();
        let tree = search::tree_for_ls(&space.with_context(wanted), &req).await?;
        vfs_search::ls_on(&self.inner.pool, tree, cx.clone(), req).await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        let req = req.clamp_max_bytes(self.inner.max_file_size());
        read::read(&self.space(cx, &req.path)?, &req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        self.inner.starts.settled().await;
        write::write(&self.space(cx, &req.path)?, req).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        BufferedWriter::open(self.clone(), cx, req)
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        self.inner.starts.settled().await;
        edit::edit(&self.space(cx, &req.path)?, &req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.inner.starts.settled().await;
        delete::delete(&self.space(cx, &req.path)?, &req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.inner.starts.settled().await;
        transfer::rename(&self.space(cx, &req.from)?, &req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        self.inner.starts.settled().await;
        transfer::copy(&self.space(cx, &req.from)?, &req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        let (wanted, _guard) = cx.cancel_on_drop();
        let space = self.space(cx, &req.path)?.with_context(wanted);
        let tree = search::tree_for_glob(&space, &req).await?;
        vfs_search::glob_on(&self.inner.pool, tree, cx.clone(), req).await
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        let (wanted, _guard) = cx.cancel_on_drop();
        let space = self.space(cx, &req.path)?.with_context(wanted);
        let tree = search::tree_for_grep(&space, &req).await?;
        vfs_search::grep_on(&self.inner.pool, tree, cx.clone(), req).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let this = self.clone();
        let (wanted, guard) = cx.cancel_on_drop();
        let begin = async move {
            let tree = async {
                let space = this.space(&cx, &req.path)?.with_context(wanted);
                search::tree_for_grep(&space, &req).await
            };
            match tree.await {
                Ok(tree) => vfs_search::grep_stream_on(&this.inner.pool, tree, cx.clone(), req),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        let events = stream::once(begin).flatten();
        // Whoever drops the stream waits for nothing any more.
        events.inspect(move |_| _ = &guard).boxed()
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
        self.inner.starts.settled().await;
        let Some(first) = files.first() else { return Vec::new() };
        match self.space(cx, &first.path) {
            Ok(space) => upload::upload_all(&space, files).await,
            Err(error) => {
                let failed = |FileUpload { path, .. }| {
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
                match self.space(cx, &path) {
                    Ok(space) => read::download(&space, path).await,
                    Err(error) => FileDownloadResponse::failed(path, error),
                }
            })
            .collect();
        stream::iter(downloads).buffered(self.inner.config.fetches.get()).collect().await
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        Some(self)
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        Some(self)
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        self.inner.store.as_changes().map(|_| self as &dyn Watch)
    }
}

#[async_trait]
impl<S: Store> TreeProvider for StoreBackend<S> {
    async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<SharedTree> {
        let tree = search::tree_to_lend(&self.space(cx, &req.path)?, &req).await?;
        Ok(SharedTree::of(tree))
    }
}

#[async_trait]
impl<S: Store> MultiModalReader for StoreBackend<S> {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalContent> {
        vfs_core::read_multi_modal(self, cx, req).await
    }
}

impl<S: Store> Watch for StoreBackend<S> {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        match self.space(&cx, &req.path) {
            Ok(space) => watch::watch(space, req, &self.inner.starts),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
}
