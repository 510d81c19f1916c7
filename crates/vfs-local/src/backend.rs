//! The backend: each operation a hop to the blocking pool, or none, or a search on its own.

mod blocking;
pub(crate) mod file_lock;
mod open_directory;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tokio::task::coop::consume_budget;
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUpload, FileUploadResponse, GlobRequest, GlobResult, GrepEvent,
    GrepRequest, GrepResult, LendRequest, LsRequest, LsResult, MultiModalContent, MultiModalReadRequest,
    MultiModalReader, OpContext, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, Resolved,
    Result, Searchable, StatRequest, VfsPath, Watch, WatchEvent, WatchRequest, WriteRequest, WriteResult,
    read_multi_modal, tree::SharedTree,
};
use vfs_search::Pool;

use self::blocking::run_on_blocking_pool;
use crate::config::LocalConfig;
use crate::config::options::Confinement;
use crate::local_fs::LocalFs;
use crate::search::tree::LocalTree;
use crate::watch::SharedWatcher;

/// Files on a local disk.
///
/// # Behaviour
///
/// * Confined by default: every path is resolved by the kernel below a root directory that is held open. Nothing outside
///   is ever read, made or changed, whatever links there are and whoever swaps directories meanwhile.
/// * Links inside the root are followed; deleting or renaming one moves the link. Links to absolute paths are refused,
///   also those that point back inside: the same target names another file in each root.
/// * Every change puts a new file in the old one's place in one step: a reader, and a crash of the process, finds the old
///   content or the new; so does a power cut, unless [`Durability`](crate::Durability) says otherwise. Mode, owner, access
///   control lists and extended attributes are kept; hard links are broken, not written through. A group that is not one's
///   own cannot be given away: then the file gets one's own, and nobody may do what they might not before.
/// * What may not be written is not changed; who may change its directory may delete or rename it, as everywhere on Unix. On
///   a file system whose server only decides when a file is opened for writing, as some of FUSE and CIFS do, a file is
///   replaced where its directory allows that.
/// * Changes of one file take turns, in this process and, through `flock`, with other processes that use this library. What
///   any other program writes into a file until the moment that it is replaced is not lost by an edit, an append, or a write
///   on a version; what it goes on to write into the old file is. Where the file system cannot swap two files, as NFS cannot,
///   it may be lost from the last look at the file on, right before the replacement. If a seccomp filter
///   refuses `flock` or `renameat2`, the same holds for changes by other processes of this library: see
///   [`weakness_between_processes`](crate::weakness_between_processes). Such a change is detected by size and timestamp:
///   a second write of the same size within one tick of the file system's clock is missed.
/// * A recursive delete first looks, up to 64 directories deep, for what would stop it in the middle: entries that may not be
///   removed, are marked immutable, are protected, or are mount points. Such a delete removes nothing. One that fails later, as
///   on a broken disk, names the entry, and its [`PartialDelete`](vfs_core::ErrorDetail::PartialDelete) counts what is gone.
///   What is left keeps its place, but for directories that were deeper, which are left at the top of the deleted one, as
///   `moved-up-…`. If the file system refuses even to give the rest its name back, the error says so.
/// * Where names are protected at any depth, a directory that goes deeper than that is not deleted (`policy_denied`).
/// * A copy keeps the holes of a sparse file. The copy of a tree of more than some hundred entries is synced with all of its
///   file system, unless that would hide errors, as through an overlay; it is on the disk when the call returns.
/// * On a file system in layers, as containers have them, a directory of a lower layer is emptied where it is when it is
///   deleted, and cannot be renamed: `cross_backend`, which says to copy it and then delete the original.
/// * A write beyond the limit on the size of files (`RLIMIT_FSIZE`) is `too_large`; the signal that the kernel sends with it
///   does not end the process, whose signal handlers and masks stay as they are.
/// * Reading and searching leave the times of access of one's own files alone, where the file system can: what cleans up by
///   those times does not see them. Edits, and copies of directories, may move them.
/// * Only regular files are opened. FIFOs, sockets and devices are refused without being touched.
/// * The change feed tells of what this backend does and of what other programs do, as the kernel tells of it, some
///   milliseconds later. A write of ours is one event; what is under way is none. Versions are those of the moment in which
///   the event is looked at, and there is none for what is gone by then. A directory that appears is told with all that is
///   in it. No link is followed, and what is beyond a directory that may not be read is not seen. A write through a mapping
///   shows when the file is closed, and a change made on another machine of a network file system does not.
/// * The first subscriber of a path looks through the directories below it on the calling thread, before `watch` returns.
///   The watcher runs until the last subscriber is gone; a cursor from before that is an overflow. A path that leads
///   through a link is refused, and so is the root of the whole host.
/// * Where there are more directories than the kernel lets one watch, `watch` fails with `quota_exceeded`, which says what
///   to raise. Where that comes to be while it is watched, every stream of this backend says that events were lost and
///   ends with that error: it could not see what happens in the new directory.
///
/// Needs Linux. A clone is a handle on the same root. `glob` and `grep` run on the workers of a search pool, which turns
/// them away as [`Busy`](vfs_core::ErrorKind::Busy) where thousands wait; other operations run on the blocking pool of the
/// tokio runtime that they are awaited in, or in place where there is none, and are `busy` where it cannot start a thread.
/// What the kernel has in memory is told in place as well, on the disks of this machine: `stat`, `resolve`, and reads of up to
/// 64 KiB of text. Who listens for permission events of fanotify, as virus scanners do, is waited for there.
///
/// ```no_run
/// # async fn example() -> vfs_core::Result<()> {
/// use vfs_core::BackendExt;
/// use vfs_local::LocalBackend;
///
/// let files = LocalBackend::open("/srv/project")?;
/// files.edit_text("/src/lib.rs", "fn old_name", "fn new_name").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LocalBackend {
    local_fs: Arc<LocalFs>,
    config: Arc<LocalConfig>,
    watcher: Arc<SharedWatcher>,
}

impl LocalBackend {
    /// Opens a backend confined to `root`, with the default settings.
    ///
    /// # Errors
    ///
    /// `not_found`, `not_a_directory` or `permission_denied` where the root cannot be held.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        LocalConfig::new(root).open()
    }

    /// Opens a backend over the whole host: its paths are the host's own, and nothing is refused but what the operating
    /// system refuses. For tools that a person runs as themselves, never for an agent.
    ///
    /// # Errors
    ///
    /// As [`LocalBackend::open`], for `base`.
    pub fn host(base: impl AsRef<Path>) -> Result<Self> {
        LocalConfig::host(base).open()
    }

    pub(crate) fn with_config(mut config: LocalConfig) -> Result<Self> {
        if config.confinement == Confinement::None {
            config.root = config.root.canonicalize().map_err(|source| {
                let errno = rustix::io::Errno::from_io_error(&source).unwrap_or(rustix::io::Errno::IO);
                crate::fs::errno::from_errno_at(errno, &VfsPath::root())
            })?;
        }
        Ok(Self { local_fs: Arc::new(LocalFs::open(&config)?), config: Arc::new(config), watcher: Arc::default() })
    }

    /// The settings that it was opened with.
    pub fn config(&self) -> &LocalConfig {
        &self.config
    }

    /// Reads a path as a person at a terminal writes it: in host mode a relative one lies under the base, else under the
    /// root.
    ///
    /// # Errors
    ///
    /// As [`VfsPath::parse`].
    pub fn resolve(&self, text: &str) -> Result<VfsPath> {
        if self.config.confinement == Confinement::Root || text.starts_with('/') {
            return VfsPath::parse(text);
        }
        let base = self.config.root.to_str().ok_or_else(|| {
            Error::new(ErrorKind::InvalidPath, "the base directory's name is not UTF-8; write an absolute path")
                .with_path_text(text)
        })?;
        VfsPath::parse(text)?;
        VfsPath::parse(base)?.join(text)
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        cx: &OpContext,
        path: VfsPath,
        work: impl FnOnce(&LocalFs, &OpContext) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let local_fs = Arc::clone(&self.local_fs);
        run_on_blocking_pool(cx, move |cx| work(&local_fs, cx)).await.map_err(|error| error.or_path(&path))
    }

    /// What `work` gives where nothing has to be waited for.
    async fn try_fast_path<T>(
        &self,
        cx: &OpContext,
        path: &VfsPath,
        work: impl FnOnce(&LocalFs) -> Option<Result<T>>,
    ) -> Result<Option<T>> {
        // A task that never waits would keep others from their turns.
        consume_budget().await;
        cx.check().map_err(|error| error.or_path(path))?;
        cx.span().in_scope(|| work(&self.local_fs)).transpose().map_err(|error| error.or_path(path))
    }

    fn tree(&self) -> Arc<LocalTree> {
        Arc::new(LocalTree::new(Arc::clone(&self.local_fs)))
    }

    fn search_tree(&self) -> Arc<LocalTree> {
        Arc::new(LocalTree::for_search(Arc::clone(&self.local_fs)))
    }

    fn search_pool(&self) -> &Pool {
        self.config.search_pool.as_ref().unwrap_or_else(|| Pool::global())
    }
}

impl LocalConfig {
    /// Opens the backend.
    ///
    /// # Errors
    ///
    /// As [`LocalBackend::open`].
    pub fn open(self) -> Result<LocalBackend> {
        LocalBackend::with_config(self)
    }
}

impl fmt::Display for LocalBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.local_fs.root.is_host() { "host" } else { "local" })
    }
}

#[async_trait]
impl MultiModalReader for LocalBackend {
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalContent> {
        read_multi_modal(self, cx, req).await
    }
}

#[async_trait]
impl Searchable for LocalBackend {
    async fn lend(&self, cx: &OpContext, _req: LendRequest) -> Result<SharedTree> {
        cx.check()?;
        Ok(SharedTree::of(self.search_tree()))
    }
}

impl Watch for LocalBackend {
    fn watch(&self, cx: OpContext, req: WatchRequest) -> BoxStream<'static, Result<WatchEvent>> {
        self.watcher.watch(&self.local_fs, cx, req)
    }
}

#[async_trait]
impl Backend for LocalBackend {
    fn capabilities(&self, _at: &VfsPath) -> Capabilities {
        let mut capabilities = Capabilities::new(self.config.max_file_size);
        capabilities.empty_directories = true;
        capabilities.links = true;
        capabilities.set_times = true;
        capabilities
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        match self.try_fast_path(cx, &req.path, |local_fs| local_fs.stat_fast_path(&req.path)).await? {
            Some(info) => Ok(info),
            None => self.run_blocking(cx, req.path.clone(), move |local_fs, _| local_fs.stat(&req.path)).await,
        }
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<Resolved> {
        match self.try_fast_path(cx, &req.path, |local_fs| local_fs.resolve_fast_path(&req.path)).await? {
            Some(resolved) => Ok(resolved),
            None => self.run_blocking(cx, req.path.clone(), move |local_fs, _| local_fs.resolve(&req.path)).await,
        }
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        let tree = self.tree();
        self.run_blocking(cx, req.path.clone(), move |_, cx| vfs_search::ls(&*tree, cx, &req)).await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        let req = req.clamp_max_bytes(self.config.max_file_size);
        match self.try_fast_path(cx, &req.path, |local_fs| local_fs.read_fast_path(&req)).await? {
            Some(read) => Ok(read),
            None => self.run_blocking(cx, req.path.clone(), move |local_fs, cx| local_fs.read(&req, cx)).await,
        }
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        self.run_blocking(cx, req.path.clone(), move |local_fs, cx| local_fs.write(req, cx)).await
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        self.run_blocking(cx, req.path.clone(), move |local_fs, cx| local_fs.edit(req, cx)).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        self.run_blocking(cx, req.path.clone(), move |local_fs, cx| local_fs.delete(req, cx)).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        self.run_blocking(cx, req.from.clone(), move |local_fs, cx| local_fs.rename(req, cx)).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        self.run_blocking(cx, req.from.clone(), move |local_fs, cx| local_fs.copy(req, cx)).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        let path = req.path.clone();
        let found = vfs_search::glob_on(self.search_pool(), self.search_tree(), cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        let path = req.path.clone();
        vfs_search::grep_on(self.search_pool(), self.search_tree(), cx.clone(), req)
            .await
            .map_err(|error| error.or_path(&path))
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        vfs_search::grep_stream_on(self.search_pool(), self.search_tree(), cx, req)
    }

    fn as_multimodal(&self) -> Option<&dyn MultiModalReader> {
        Some(self)
    }

    fn as_searchable(&self) -> Option<&dyn Searchable> {
        Some(self)
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        Some(self)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        let uploaded = self.run_blocking(cx, VfsPath::root(), move |local_fs, cx| {
            Ok(files.into_iter().map(|file| local_fs.upload(file, cx)).collect())
        });
        uploaded.await.unwrap_or_else(|error| {
            paths
                .into_iter()
                .map(|path| FileUploadResponse::failed(path.clone(), error.clone().with_path(&path)))
                .collect()
        })
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let requested = paths.clone();
        let downloaded = self.run_blocking(cx, VfsPath::root(), move |local_fs, cx| {
            Ok(paths.into_iter().map(|path| local_fs.download(path, cx)).collect())
        });
        downloaded.await.unwrap_or_else(|error| {
            requested
                .into_iter()
                .map(|path| FileDownloadResponse::failed(path.clone(), error.clone().with_path(&path)))
                .collect()
        })
    }
}
