//! The [`LocalBackend`]: routes each operation to the fast path, the blocking pool or the search pool.

pub(crate) mod blocking_pool;
pub(crate) mod file_lock;
mod open_directory;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tokio::task::coop::consume_budget;
use vfs_core::multi_modal::{MultiModalReadRequest, MultiModalReadResult, read_multi_modal};
use vfs_core::tree::{OpenTreeRequest, Tree};
use vfs_core::watch::{WatchEvent, WatchRequest};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest,
    GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext,
    OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result,
    StatRequest, TreeProvider, VfsPath, Watch, WriteRequest, WriteResult,
};
use vfs_search::Pool;

use self::blocking_pool::run_on_blocking_pool;
use crate::config::LocalConfig;
use crate::config::policies::Confinement;
use crate::local_fs::LocalFs;
use crate::ops::local_writer::LocalWriter;
use crate::search::local_tree::LocalTree;
use crate::watch::SharedWatcher;

/// A backend over files on a local disk.
///
/// # Behaviour
///
/// * Confined by default: the kernel resolves every path below a root directory that stays open. Nothing outside the
///   root is read, created or changed, regardless of links, and even if another process swaps directories meanwhile.
/// * Links inside the root are followed; deleting or renaming a link affects the link itself. Links to absolute paths
///   are refused, also those that point back inside the root: the same target names a different file in each root.
/// * Every change replaces the old file by a new one atomically: a reader, and a crash of the process, finds the old
///   content or the new; so does a power cut, unless [`Durability`](crate::Durability) says otherwise. Mode, owner,
///   access control lists and extended attributes are preserved; hard links are broken, not written through. If the
///   file's group is not one of the caller's own, the new file cannot get it: the file then gets the caller's own
///   group, and nobody gains an access that they did not have before.
/// * A file that the caller may not write is not changed; a caller who may change its directory may delete or rename
///   it, as everywhere on Unix. On a file system whose server decides about permissions only when a file is opened for
///   writing, as some FUSE and CIFS servers do, a file is replaced if its directory allows that.
/// * Changes of one file are serialised, within this process and, through `flock`, with other processes that use this
///   library. Data that any other program writes into a file before the moment of its replacement is not lost by an
///   edit, an append, or a write on a version. Data that it writes into the old file afterwards is lost. If the file
///   system cannot exchange two files, as NFS cannot, data may also be lost that is written between the last check of
///   the file and the replacement right after it. If a seccomp filter refuses `flock` or `renameat2`, the same holds
///   for changes by other processes of this library: see
///   [`weakness_between_processes`](crate::weakness_between_processes). Such a change is detected by size and
///   timestamp: a second write of the same size within one tick of the file system's clock is missed.
/// * A recursive delete first checks, up to 64 directories deep, for entries that would stop it in the middle: entries
///   that may not be removed, are marked immutable, are protected, or are mount points. If it finds one, nothing is
///   removed. A delete that fails later, as on a broken disk, names the entry, and its
///   [`PartialDelete`](vfs_core::error::ErrorDetail::PartialDelete) counts the files that were removed. The remaining entries
///   keep their places, except for directories that were deeper, which are left at the top of the deleted one, as
///   `moved-up-…`. If the file system refuses even to rename the remaining tree back, the error says so.
/// * If names are protected at any depth, a directory that is nested deeper than that is not deleted (`policy_denied`).
/// * A copy keeps the holes of a sparse file. The copy of a tree of more than some hundred entries is synced together
///   with its whole file system, unless that would hide errors, as through an overlay; it is on the disk when the call
///   returns.
/// * On a layered file system, as containers have, a directory of a lower layer is emptied in place when it is deleted,
///   and cannot be renamed: the error is `cross_backend`, and says to copy the directory and then delete the original.
/// * A write beyond the process's limit on file sizes (`RLIMIT_FSIZE`) is `too_large`; the signal that the kernel sends
///   with it does not end the process, whose signal handlers and masks stay as they are.
/// * Reading and searching leave the access times of the caller's own files alone if the file system can do that:
///   programs that clean up by access time do not see these reads. Edits, and copies of directories, may change access
///   times.
/// * Only regular files are opened. FIFOs, sockets and devices are refused without being touched.
/// * The change feed reports the changes of this backend and of other programs, as the kernel reports them, some
///   milliseconds later. A write by this backend is one event; its staging files cause none. A version in an event is
///   the one at the moment when the event is processed, and absent for a file that no longer exists by then. A
///   directory that appears is reported with everything in it. Links are not followed, and changes beyond an unreadable
///   directory are not seen. A write through a memory map is reported when the file is closed, and a change made on
///   another machine of a network file system is not reported.
/// * The first subscriber of a path lists the directories below it on the calling thread, before `watch` returns. The
///   watcher runs until the last stream is dropped; a cursor from before that is an overflow. A path that leads
///   through a link is refused, and so is the root of the whole host.
/// * If there are more directories than the kernel allows to watch, `watch` fails with `quota_exceeded`, which says
///   which limit to raise. If the limit is reached while a watch is active, every stream of this backend reports that
///   events were lost and ends with that error, because the new directory cannot be watched.
///
/// Needs Linux. A clone is a handle on the same root. `glob` and `grep` run on the workers of a search pool, which
/// rejects them as [`Busy`](vfs_core::ErrorKind::Busy) if thousands are waiting; other operations run on the blocking
/// pool of the tokio runtime that they are awaited in, or on the calling thread if there is none, and are `busy` if the
/// pool cannot start a thread. On the disks of this machine, results that the kernel has in memory are also returned on
/// the calling thread: `stat`, `resolve`, and reads of up to 64 KiB of text. Listeners for fanotify permission events,
/// such as virus scanners, are waited for there.
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
    /// `not_found`, `not_a_directory` or `permission_denied` if the root cannot be opened.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        LocalConfig::new(root).open()
    }

    /// Opens a backend over the whole host: its paths are the host's own, and only the operating system refuses
    /// accesses. For tools that a person runs as themselves, never for an agent.
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

    /// Returns the settings that this backend was opened with.
    pub fn config(&self) -> &LocalConfig {
        &self.config
    }

    /// Parses a path as a person writes it at a terminal: in host mode, a relative path is resolved under the base,
    /// otherwise under the root.
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

    /// Returns the result of `work` if it can be computed without blocking.
    async fn try_fast_path<T>(
        &self,
        cx: &OpContext,
        path: &VfsPath,
        work: impl FnOnce(&LocalFs) -> Option<Result<T>>,
    ) -> Result<Option<T>> {
        // A task that never yields would starve the other tasks of its thread.
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
    async fn multi_modal_read(&self, cx: &OpContext, req: MultiModalReadRequest) -> Result<MultiModalReadResult> {
        read_multi_modal(self, cx, req).await
    }
}

#[async_trait]
impl TreeProvider for LocalBackend {
    async fn open_tree(&self, cx: &OpContext, _req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        cx.check()?;
        Ok(self.search_tree())
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
        capabilities.max_streamed_size = self.config.max_streamed_size;
        capabilities
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        match self.try_fast_path(cx, &req.path, |local_fs| local_fs.stat_fast_path(&req.path)).await? {
            Some(info) => Ok(info),
            None => self.run_blocking(cx, req.path.clone(), move |local_fs, _| local_fs.stat(&req.path)).await,
        }
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        match self.try_fast_path(cx, &req.path, |local_fs| local_fs.resolve_fast_path(&req.path)).await? {
            Some(resolved) => Ok(resolved),
            None => self.run_blocking(cx, req.path.clone(), move |local_fs, _| local_fs.resolve(&req.path)).await,
        }
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        let tree = self.tree();
        self.run_blocking(cx, req.path.clone(), move |_, cx| vfs_search::ls(tree, cx, &req)).await
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

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        Ok(Box::new(LocalWriter::open(Arc::clone(&self.local_fs), cx, req).await?))
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

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        Some(self)
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        Some(self)
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        Some(self)
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
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
