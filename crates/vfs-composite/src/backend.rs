//! Backend that routes each operation to a mount, and searches over all mounts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use futures::future::join_all;
use futures::stream::BoxStream;
use vfs_core::operation::{UnaryRequest, deferred_stream};
use vfs_core::path::MapResultPaths;
use vfs_core::search::IgnoreMode;
use vfs_core::transfer::TransferTargetMode;
use vfs_core::tree::{OpenTreeRequest, Tree, TreeUse};
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest,
    GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext,
    OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result,
    Shell, Snapshots, StatRequest, StreamingShell, TreeProvider, VfsPath, Watch, WriteRequest, WriteResult, edit,
};
use vfs_search::{Pool, SearchScope};

use crate::journal::{Journal, JournalLock};
use crate::mount_identity::MountIdentity;
use crate::mount_table::MountTable;
use crate::mounted_backend::{MountInfo, MountedBackend};
use crate::shadowed_paths::{FinalLink, without_shadowed};
use crate::union_tree::UnionTree;

/// One namespace over many backends.
///
/// # Behaviour
///
/// * A path belongs to the mount at its longest prefix of whole segments: `/memories/projects` takes precedence over
///   `/memories`, and `/memoriesx` belongs to neither. A path without a mount belongs to the default backend.
/// * Mount points and their ancestor directories exist and are listed, whatever the backends contain; they cannot be
///   deleted, moved or overwritten. A mount shadows the files beneath it.
/// * `ls`, `glob` and `grep` see one tree: one order, one limit, the ignore rules of directories above a mount, and
///   no entry twice. Mounts that the request cannot reach are not called; if one mount fails, results from the others
///   are still returned and the error is listed in `problems`.
/// * Every path in every result, error, problem, diff and update is in this namespace.
/// * A rename or copy within a mount is the backend's own. Across mounts files are copied; a rename then verifies
///   each copy and deletes its source in the version that was copied; links become the files that they lead to. A
///   failed transfer is rolled back. With a [journal](Self::with_journal) a rename that a crash interrupted is
///   completed by [`recover`](Self::recover).
/// * Mounts may be added and removed while operations run; each operation uses the mounts at its start.
/// * Commands run in the mount that is named as [executor](Self::with_executor).
/// * A backend without a tree runs a search itself if the search lies in its mount, and serves listings and reads if
///   the search spans several mounts.
/// * A link leads to a path of its own backend. If another mount shadows that path, following the link is refused
///   with `path_escape`, like a link out of a backend, and is a problem of a listing or search that follows it; a
///   directory that is reached through a link shows nothing that a mount shadows. For that, the backend resolves the
///   path before the operation; a link that is created in between is followed.
///
/// A clone shares the same mount table.
#[derive(Debug, Clone)]
pub struct CompositeBackend {
    table: Arc<ArcSwap<MountTable>>,
    pub(crate) journal: Option<Arc<Journal>>,
    pool: Option<Pool>,
}

impl CompositeBackend {
    /// Returns a namespace of `default` alone.
    pub fn new(default: Arc<dyn Backend>) -> Self {
        Self { table: Arc::new(ArcSwap::from_pointee(MountTable::new(default))), journal: None, pool: None }
    }

    /// Returns this namespace with `backend` mounted at `at`, like [`mount`](Self::mount).
    ///
    /// # Errors
    ///
    /// The errors of [`mount`](Self::mount) and of [`VfsPath::parse`].
    pub fn with_mount(self, at: &str, backend: Arc<dyn Backend>) -> Result<Self> {
        self.mount(VfsPath::parse(at)?, backend)?;
        Ok(self)
    }

    /// Returns this namespace with commands running in the mount at `at`; `/` is the default backend.
    ///
    /// # Errors
    ///
    /// `not_found` if nothing is mounted there, `unsupported` if that backend has no shell.
    pub fn with_executor(self, at: &str) -> Result<Self> {
        let at = VfsPath::parse(at)?;
        self.change(|table| Ok((table.with_executor_at(at.clone())?, ())))?;
        Ok(self)
    }

    /// Returns this backend with `identity` for the mount at `at`; `/` is the default backend. Records of renames are recovered
    /// only with the mounts that they were written for, so each mount of a [journal](Self::with_journal) should have one.
    ///
    /// # Errors
    ///
    /// `not_found` if nothing is mounted there.
    pub fn with_identity(self, at: &VfsPath, identity: MountIdentity) -> Result<Self> {
        self.change(|table| Ok((table.with_identity(at, identity.clone())?, ())))?;
        Ok(self)
    }

    /// Returns this backend with renames across mounts recorded in the directory `directory` of `backend`, so that a
    /// rename that a crash interrupts can be [recovered](Self::recover).
    ///
    /// # Behaviour
    ///
    /// The directory is created with the first rename. The backend must outlive the process, and its callers must not
    /// be able to write to it, because recovery trusts the records. A rename that cannot be recorded fails, and moves
    /// nothing. A rename from or to files in memory, by the [identity](Self::with_identity) of their mount, is not
    /// recorded.
    #[must_use]
    pub fn with_journal(mut self, backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        self.journal = Some(Arc::new(Journal::new(backend, directory, None)));
        self
    }

    /// Returns this backend with a [journal](Self::with_journal) that several processes share: `lock` separates
    /// recoveries from running renames, and from each other. The file `lock` in the directory is reserved for it.
    #[must_use]
    pub fn with_locked_journal(
        mut self,
        backend: Arc<dyn Backend>,
        directory: VfsPath,
        lock: Arc<dyn JournalLock>,
    ) -> Self {
        self.journal = Some(Arc::new(Journal::new(backend, directory, Some(lock))));
        self
    }

    /// Returns this namespace with searches on the workers of `pool`. Default [`Pool::global`].
    #[must_use]
    pub fn with_search_pool(mut self, pool: Pool) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Mounts `backend` at `at`, which need not exist.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for the root, `already_exists` if a backend is mounted there.
    pub fn mount(&self, at: VfsPath, backend: Arc<dyn Backend>) -> Result<()> {
        self.change(|table| Ok((table.with(at.clone(), Arc::clone(&backend))?, ())))
    }

    /// Removes the mount at `at`, and returns its backend. Mounts below it stay.
    ///
    /// # Errors
    ///
    /// `not_found` if nothing is mounted there.
    pub fn unmount(&self, at: &VfsPath) -> Result<Arc<dyn Backend>> {
        let mount = self.change(|table| table.without(at))?;
        Ok(Arc::clone(&mount.backend))
    }

    /// Returns the mounts, the default backend first, then ordered by the bytes of their paths.
    pub fn mounts(&self) -> Vec<MountInfo> {
        self.table.load().list()
    }

    fn change<R>(&self, change: impl Fn(&MountTable) -> Result<(MountTable, R)>) -> Result<R> {
        loop {
            let current = self.table.load_full();
            let (next, result) = change(&current)?;
            let before = self.table.compare_and_swap(&current, Arc::new(next));
            if Arc::ptr_eq(&before, &current) {
                return Ok(result);
            }
        }
    }

    pub(crate) fn table(&self) -> Arc<MountTable> {
        self.table.load_full()
    }

    fn pool(&self) -> &Pool {
        self.pool.as_ref().unwrap_or_else(|| Pool::global())
    }

    /// Performs `request` on the mount of the file at `path`.
    async fn send_to_file<Q>(&self, cx: &OpContext, path: &VfsPath, request: Q) -> Result<Q::Output>
    where
        Q: UnaryRequest,
        Q::Output: MapResultPaths,
    {
        let table = self.table.load_full();
        if table.is_mount_or_ancestor(path) {
            cx.check()?;
            return Err(Error::at(ErrorKind::IsADirectory, path));
        }
        if table.is_mount_or_ancestor(&table.real_path(cx, path, FinalLink::Follow).await?) {
            return Err(Error::at(ErrorKind::IsADirectory, path));
        }
        table.route(path).send(cx, request).await
    }

    /// Returns an error if a mount is at or below the entry at `path`, also through links.
    async fn refuse_mounted(&self, cx: &OpContext, table: &MountTable, path: &VfsPath) -> Result<()> {
        cx.check()?;
        if table.is_mount_or_ancestor(&table.real_path(cx, path, FinalLink::NoFollow).await?) {
            Err(mount_point_error(path))
        } else {
            Ok(())
        }
    }

    /// Returns the tree of all mounts that `scope` reaches.
    async fn tree(&self, cx: &OpContext, req: OpenTreeRequest, scope: &SearchScope) -> Result<Arc<dyn Tree>> {
        cx.check()?;
        let start = &req.path;
        let table = self.table();
        let reached = table.below(start).filter(|mount| scope.reaches(mount.at()));
        let mounts: Vec<_> = table.above(start).chain(reached).cloned().collect();
        let opened = join_all(mounts.iter().map(|mount| mount.open_tree(cx, req.clone()))).await;
        let opened =
            mounts.iter().zip(opened).map(|(mount, tree)| tree.map(|tree| without_shadowed(tree, mount, &table)));
        let trees: BTreeMap<_, _> = mounts.iter().map(|mount| mount.at().clone()).zip(opened).collect();
        // A cancelled request fails as a whole, and is no problem of a mount.
        cx.check()?;
        Ok(Arc::new(UnionTree { table, trees }))
    }

    /// Returns the mount that can search everything at and below `start` by itself, and has no tree.
    async fn single_mount(
        &self,
        cx: &OpContext,
        start: &VfsPath,
        ignore: IgnoreMode,
    ) -> Result<Option<Arc<MountedBackend>>> {
        let table = self.table();
        let mount = table.route(start);
        if mount.backend.as_tree_provider().is_some()
            || table.has_mounts_below(start)
            || table.can_reach_shadowed(mount, start)
        {
            return Ok(None);
        }
        // Ignore files above a mount apply in it, but its backend cannot see them.
        if ignore == IgnoreMode::Apply && self.has_ignore_files_above(cx, mount.at()).await? {
            return Ok(None);
        }
        Ok(Some(Arc::clone(mount)))
    }

    /// Returns whether there is an ignore file in a directory above `path`.
    async fn has_ignore_files_above(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        let mut above = path.parent();
        while let Some(directory) = above {
            for name in IGNORE_FILES {
                match self.stat(cx, StatRequest::new(directory.join(name)?)).await {
                    Ok(_) => return Ok(true),
                    Err(error) if matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Timeout) => {
                        return Err(error);
                    }
                    // An ignore file that cannot be read does not apply, as in a search.
                    Err(_) => {}
                }
            }
            above = directory.parent();
        }
        Ok(false)
    }
}

/// Names of ignore files.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// Returns the error of changing a mount point or an ancestor of one.
pub(crate) fn mount_point_error(path: &VfsPath) -> Error {
    let message = "a backend is mounted at or below this path, so it cannot be changed; name something below the mount";
    Error::invalid_argument(message).with_path(path)
}

impl fmt::Display for CompositeBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("composite(")?;
        for (index, mount) in self.mounts().iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{}={}", mount.path, mount.backend)?;
        }
        f.write_str(")")
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for CompositeBackend {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.table.load().route(at).capabilities(at)
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        let table = self.table();
        if table.is_mount(&req.path) {
            cx.check()?;
            return Ok(FileInfo::directory(req.path));
        }
        let is_fixed_directory = table.is_mount_or_ancestor(&req.path);
        let path = req.path.clone();
        table.real_path(cx, &path, FinalLink::Follow).await?;
        match table.route(&path).send(cx, req).await {
            // The path is an ancestor of a mount, and so a directory, whatever the backend has there.
            Ok(info) if is_fixed_directory && !info.is_dir => Ok(FileInfo::directory(path)),
            Err(error) if is_fixed_directory && error.is_absence() => Ok(FileInfo::directory(path)),
            response => response,
        }
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        let table = self.table();
        if table.is_mount_or_ancestor(&req.path) {
            cx.check()?;
            return Ok(ResolveResult::at(req.path));
        }
        let path = req.path.clone();
        let resolved = table.route(&path).send(cx, req).await?;
        table.refuse_shadowed(table.route(&path), &resolved.path).map_err(|error| error.with_path(&path))?;
        Ok(resolved)
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        if let Some(mount) = self.single_mount(cx, &req.path, IgnoreMode::Disregard).await? {
            return mount.send(cx, req).await;
        }
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::List), &SearchScope::of_ls(&req)).await?;
        let listed = vfs_search::ls_on(self.pool(), tree, cx.clone(), req).await;
        listed.map_err(|error| error.or_path(&path))
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        let path = req.path.clone();
        self.send_to_file(cx, &path, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        let path = req.path.clone();
        self.send_to_file(cx, &path, req).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        let path = req.path.clone();
        self.send_to_file(cx, &path, req).await
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        edit::check(&req)?;
        let path = req.path.clone();
        self.send_to_file(cx, &path, req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        let table = self.table();
        self.refuse_mounted(cx, &table, &req.path).await?;
        table.route(&req.path).send(cx, req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        let table = self.table();
        if !table.is_mount_or_ancestor(&req.from)
            && !table.is_mount_or_ancestor(&req.to)
            && is_same_mount(&table, &req.from, &req.to)
        {
            self.refuse_mounted(cx, &table, &req.from).await?;
            self.refuse_mounted(cx, &table, &req.to).await?;
            return table.route(&req.from).send(cx, req).await;
        }
        self.rename_across(cx, table, req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        let table = self.table();
        if !table.is_mount_or_ancestor(&req.from)
            && !table.is_mount_or_ancestor(&req.to)
            && is_same_mount(&table, &req.from, &req.to)
        {
            if table.is_mount_or_ancestor(&table.real_path(cx, &req.from, FinalLink::Follow).await?) {
                return Err(mount_point_error(&req.from));
            }
            // A copy follows a link at the target.
            table.real_path(cx, &req.to, FinalLink::Follow).await?;
            self.refuse_mounted(cx, &table, &req.to).await?;
            return table.route(&req.from).send(cx, req).await;
        }
        self.copy_across(cx, table, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        if let Some(mount) = self.single_mount(cx, &req.path, req.ignore).await? {
            return mount.send(cx, req).await;
        }
        let path = req.path.clone();
        let tree =
            self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::Glob), &SearchScope::of_glob(&req)?).await?;
        let found = vfs_search::glob_on(self.pool(), tree, cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        if let Some(mount) = self.single_mount(cx, &req.path, req.ignore).await? {
            return mount.send(cx, req).await;
        }
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::for_grep(&req), &SearchScope::of_grep(&req)?).await?;
        let found = vfs_search::grep_on(self.pool(), tree, cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let composite = self.clone();
        deferred_stream(async move {
            let mount = composite.single_mount(&cx, &req.path, req.ignore).await;
            Ok(match mount.map_err(|error| error.or_path(&req.path))? {
                Some(mount) => mount.grep_stream(cx, req),
                None => composite.grep_stream_in_union(cx, req),
            })
        })
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        self.upload_grouped(cx, files).await
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        self.download_grouped(cx, paths).await
    }

    fn as_shell(&self) -> Option<&dyn Shell> {
        self.table.load().executor()?.backend.as_shell().map(|_| self as &dyn Shell)
    }

    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        self.table.load().executor()?.backend.as_streaming_shell().map(|_| self as &dyn StreamingShell)
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        Some(self)
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        Some(self)
    }

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        None
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        Some(self)
    }
}

impl CompositeBackend {
    fn grep_stream_in_union(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let (composite, request, tree_cx) = (self.clone(), req.clone(), cx.clone());
        let tree = async move {
            let tree =
                composite.tree(&tree_cx, OpenTreeRequest::for_grep(&request), &SearchScope::of_grep(&request)?).await;
            tree.map_err(|error| error.or_path(&request.path))
        };
        vfs_search::grep_stream_in_tree(self.pool().clone(), tree, cx, req)
    }

    /// Returns the tree for a composite or a layer around this backend.
    pub(crate) async fn full_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        let everything = SearchScope::of_ls(&LsRequest::new(req.path.clone()).recursive());
        self.tree(cx, req, &everything).await
    }
}

/// Returns whether both paths belong to one mount.
pub(crate) fn is_same_mount(table: &MountTable, from: &VfsPath, to: &VfsPath) -> bool {
    Arc::ptr_eq(table.route(from), table.route(to))
}

/// Returns whether an existing target may be replaced.
pub(crate) fn is_overwrite(mode: TransferTargetMode) -> bool {
    mode == TransferTargetMode::Overwrite
}
