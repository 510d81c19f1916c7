//! The backend: each operation to the mount it belongs to, searches over all.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use futures::future::join_all;
use futures::stream::BoxStream;
use vfs_core::tree::SharedTree;
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUpload, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MapPaths, MultiModalReader, OpContext, OpenTreeRequest,
    OpenWriterRequest, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, Resolved, Result, Shell,
    Snapshots, StatRequest, StreamingShell, TransferMode, TreeProvider, TreeUse, UnaryRequest, VfsPath, Watch,
    WriteRequest, WriteResult, deferred_stream, edit,
};
use vfs_search::{Pool, SearchScope};

use crate::identity::MountIdentity;
use crate::journal::{Journal, JournalLock};
use crate::mount::{Mount, MountInfo};
use crate::shadow::{LinkAtEnd, without_shadowed};
use crate::table::MountTable;
use crate::union::{Union, UnionTree};

/// One namespace over many backends.
///
/// # Behaviour
///
/// * A path belongs to the mount at the longest of its beginnings, by whole segments: `/memories/projects` goes before
///   `/memories`, and `/memoriesx` belongs to neither. What no mount has belongs to the default backend.
/// * Mount points, and the directories on the way to them, are there and are listed, whatever the backends hold; they
///   cannot be deleted, moved or written over. A mount shadows what lies beneath it.
/// * `ls`, `glob` and `grep` see one tree: one order, one budget, the ignore rules of directories above a mount, no entry
///   twice. Mounts that the request cannot reach are not asked; one that fails is in `problems`.
/// * Every path in every result, error, problem, diff and update is in this namespace.
/// * A rename or copy within a mount is the backend's own. Across mounts files are copied, and for a rename compared and
///   then deleted on the version that was copied; links become what they lead to. What fails is undone. With a
///   [journal](Self::with_journal) a rename that a crash cut short is completed by [`recover`](Self::recover).
/// * Mounts may be added and removed while operations run; each works with the mounts it began with.
/// * Commands run in the mount that is named as [executor](Self::with_executor).
/// * A backend that lends no tree is searched by itself where the search lies in its mount, and asked for listings and
///   files where it goes over several.
/// * A link leads where it leads in its own backend. One that leads to a place of another mount, which shadows what the
///   backend has there, is refused with `path_escape`, as one that leads out of a backend is, and is a problem of a listing or
///   search that follows it; a directory that is reached through a link shows nothing that a mount shadows. For that, the
///   backend resolves the path before the operation; a link that is made in between is followed.
///
/// A clone is a handle on the same table.
#[derive(Debug, Clone)]
pub struct CompositeBackend {
    table: Arc<ArcSwap<MountTable>>,
    pub(crate) journal: Option<Arc<Journal>>,
    pool: Option<Pool>,
}

impl CompositeBackend {
    /// A namespace of `default` alone.
    pub fn new(default: Arc<dyn Backend>) -> Self {
        Self { table: Arc::new(ArcSwap::from_pointee(MountTable::new(default))), journal: None, pool: None }
    }

    /// The same with `backend` mounted at `at`, as [`mount`](Self::mount) does.
    ///
    /// # Errors
    ///
    /// As [`mount`](Self::mount), and those of [`VfsPath::parse`].
    pub fn with_mount(self, at: &str, backend: Arc<dyn Backend>) -> Result<Self> {
        self.mount(VfsPath::parse(at)?, backend)?;
        Ok(self)
    }

    /// The same with commands running in the mount at `at`; `/` is the default backend.
    ///
    /// # Errors
    ///
    /// `not_found` where nothing is mounted there, `unsupported` where that has no shell.
    pub fn with_executor(self, at: &str) -> Result<Self> {
        let at = VfsPath::parse(at)?;
        self.change(|table| Ok((table.executing_at(at.clone())?, ())))?;
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

    /// Returns this backend with renames across mounts recorded in the directory `directory` of `backend`, so that one which a
    /// crash interrupts can be [recovered](Self::recover).
    ///
    /// # Behaviour
    ///
    /// The directory is made with the first rename. The backend must outlive the process, and its callers must not be able to
    /// write to it: recovery does what the records say. A rename that cannot be recorded fails, and moves nothing. One from or to
    /// files in memory, by the [identity](Self::with_identity) of their mount, is not recorded.
    #[must_use]
    pub fn with_journal(mut self, backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        self.journal = Some(Arc::new(Journal::new(backend, directory, None)));
        self
    }

    /// Returns this backend with a [journal](Self::with_journal) that several processes share: `lock` separates
    /// recoveries from renames that are under way, and from each other. A file `lock` in the directory is left to it.
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

    /// The same with searches on the workers of `pool`. Default [`Pool::global`].
    #[must_use]
    pub fn with_search_pool(mut self, pool: Pool) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Mounts `backend` at `at`, which need not exist.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for the root, `already_exists` where a backend is mounted there.
    pub fn mount(&self, at: VfsPath, backend: Arc<dyn Backend>) -> Result<()> {
        self.change(|table| Ok((table.with(at.clone(), Arc::clone(&backend))?, ())))
    }

    /// Takes away the mount at `at`, and gives back what was mounted there. Mounts below it stay.
    ///
    /// # Errors
    ///
    /// `not_found` where nothing is mounted there.
    pub fn unmount(&self, at: &VfsPath) -> Result<Arc<dyn Backend>> {
        let mount = self.change(|table| table.without(at))?;
        Ok(Arc::clone(&mount.backend))
    }

    /// The mounts, the default backend first, then by the bytes of their paths.
    pub fn mounts(&self) -> Vec<MountInfo> {
        self.table.load().infos()
    }

    fn change<R>(&self, change: impl Fn(&MountTable) -> Result<(MountTable, R)>) -> Result<R> {
        loop {
            let seen = self.table.load_full();
            let (next, result) = change(&seen)?;
            let before = self.table.compare_and_swap(&seen, Arc::new(next));
            if Arc::ptr_eq(&before, &seen) {
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

    /// Performs `request` on the mount that `path`, where a file is meant, belongs to.
    async fn on_file<Q>(&self, cx: &OpContext, path: &VfsPath, request: Q) -> Result<Q::Output>
    where
        Q: UnaryRequest,
        Q::Output: MapPaths,
    {
        let table = self.table.load_full();
        if table.holds(path) {
            cx.check()?;
            return Err(Error::at(ErrorKind::IsADirectory, path));
        }
        if table.holds(&table.real_path(cx, path, LinkAtEnd::Followed).await?) {
            return Err(Error::at(ErrorKind::IsADirectory, path));
        }
        table.route(path).send(cx, request).await
    }

    /// Refuses to change the entry at `path` where a mount is at it or below it, also where links lead there.
    async fn refuse_mounted(&self, cx: &OpContext, table: &MountTable, path: &VfsPath) -> Result<()> {
        cx.check()?;
        if table.holds(&table.real_path(cx, path, LinkAtEnd::Kept).await?) { Err(mounted(path)) } else { Ok(()) }
    }

    /// The tree of all mounts that `scope` reaches.
    async fn tree(&self, cx: &OpContext, req: OpenTreeRequest, scope: &SearchScope) -> Result<SharedTree> {
        cx.check()?;
        let start = &req.path;
        let table = self.table();
        let reached = table.below(start).filter(|mount| scope.reaches(mount.at()));
        let mounts: Vec<_> = table.above(start).chain(reached).cloned().collect();
        let lent = join_all(mounts.iter().map(|mount| mount.open_tree(cx, req.clone()))).await;
        let lent = mounts.iter().zip(lent).map(|(mount, tree)| tree.map(|tree| without_shadowed(tree, mount, &table)));
        let trees: BTreeMap<_, _> = mounts.iter().map(|mount| mount.at().clone()).zip(lent).collect();
        // The caller gave up; that is no mount's problem.
        cx.check()?;
        Ok(SharedTree::new(UnionTree(Arc::new(Union { table, trees }))))
    }

    /// The mount that can search by itself all that is at and below `start`, and lends no tree.
    async fn searches_alone(&self, cx: &OpContext, start: &VfsPath, ignore: Ignore) -> Result<Option<Arc<Mount>>> {
        let table = self.table();
        let mount = table.route(start);
        if mount.backend.as_tree_provider().is_some() || table.holds_below(start) || table.has_shadows(mount, start) {
            return Ok(None);
        }
        // Ignore files above a mount hold in it, which the backend in it cannot know of.
        if ignore == Ignore::Counts && self.has_rules_above(cx, mount.at()).await? {
            return Ok(None);
        }
        Ok(Some(Arc::clone(mount)))
    }

    /// Whether there is an ignore file in a directory above `path`.
    async fn has_rules_above(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        let mut above = path.parent();
        while let Some(directory) = above {
            for name in IGNORE_FILES {
                match self.stat(cx, StatRequest::new(directory.join(name)?)).await {
                    Ok(_) => return Ok(true),
                    Err(error) if matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Timeout) => {
                        return Err(error);
                    }
                    // What cannot be looked at does not count, as in a search.
                    Err(_) => {}
                }
            }
            above = directory.parent();
        }
        Ok(false)
    }
}

/// The files that say what a search leaves out.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// Whether ignore files count in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ignore {
    Counts,
    CountsNot,
}

impl Ignore {
    fn of(no_ignore: bool) -> Self {
        if no_ignore { Self::CountsNot } else { Self::Counts }
    }
}

/// Refuses to change a directory that is there because of a mount.
pub(crate) fn mounted(path: &VfsPath) -> Error {
    let message = "a backend is mounted here or below, so it stays where it is; name something below it";
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
        let is_held = table.holds(&req.path);
        let path = req.path.clone();
        table.real_path(cx, &path, LinkAtEnd::Followed).await?;
        match table.route(&path).send(cx, req).await {
            // Whatever the backend has there, it is on the way to a mount.
            Ok(info) if is_held && !info.is_dir => Ok(FileInfo::directory(path)),
            Err(error) if is_held && error.is_absence() => Ok(FileInfo::directory(path)),
            answer => answer,
        }
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<Resolved> {
        let table = self.table();
        if table.holds(&req.path) {
            cx.check()?;
            return Ok(Resolved::at(req.path));
        }
        let path = req.path.clone();
        let resolved = table.route(&path).send(cx, req).await?;
        table.refuse_shadowed(table.route(&path), &resolved.path).map_err(|error| error.with_path(&path))?;
        Ok(resolved)
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        if let Some(mount) = self.searches_alone(cx, &req.path, Ignore::CountsNot).await? {
            return mount.send(cx, req).await;
        }
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::List), &SearchScope::of_ls(&req)).await?;
        let listed = vfs_search::ls_on(self.pool(), Arc::new(tree), cx.clone(), req).await;
        listed.map_err(|error| error.or_path(&path))
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        let path = req.path.clone();
        self.on_file(cx, &path, req).await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        let path = req.path.clone();
        self.on_file(cx, &path, req).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        let path = req.path.clone();
        self.on_file(cx, &path, req).await
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        edit::check(&req)?;
        let path = req.path.clone();
        self.on_file(cx, &path, req).await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        let table = self.table();
        self.refuse_mounted(cx, &table, &req.path).await?;
        table.route(&req.path).send(cx, req).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        let table = self.table();
        if !table.holds(&req.from) && !table.holds(&req.to) && same_mount(&table, &req.from, &req.to) {
            self.refuse_mounted(cx, &table, &req.from).await?;
            self.refuse_mounted(cx, &table, &req.to).await?;
            return table.route(&req.from).send(cx, req).await;
        }
        self.rename_across(cx, table, req).await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        let table = self.table();
        if !table.holds(&req.from) && !table.holds(&req.to) && same_mount(&table, &req.from, &req.to) {
            if table.holds(&table.real_path(cx, &req.from, LinkAtEnd::Followed).await?) {
                return Err(mounted(&req.from));
            }
            // A link at the target is written through.
            table.real_path(cx, &req.to, LinkAtEnd::Followed).await?;
            self.refuse_mounted(cx, &table, &req.to).await?;
            return table.route(&req.from).send(cx, req).await;
        }
        self.copy_across(cx, table, req).await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        if let Some(mount) = self.searches_alone(cx, &req.path, Ignore::of(req.no_ignore)).await? {
            return mount.send(cx, req).await;
        }
        let path = req.path.clone();
        let tree =
            self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::Glob), &SearchScope::of_glob(&req)?).await?;
        let found = vfs_search::glob_on(self.pool(), Arc::new(tree), cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        if let Some(mount) = self.searches_alone(cx, &req.path, Ignore::of(req.no_ignore)).await? {
            return mount.send(cx, req).await;
        }
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::for_grep(&req), &SearchScope::of_grep(&req)?).await?;
        let found = vfs_search::grep_on(self.pool(), Arc::new(tree), cx.clone(), req).await;
        found.map_err(|error| error.or_path(&path))
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let this = self.clone();
        deferred_stream(async move {
            let alone = this.searches_alone(&cx, &req.path, Ignore::of(req.no_ignore)).await;
            Ok(match alone.map_err(|error| error.or_path(&req.path))? {
                Some(mount) => mount.grep_stream(cx, req),
                None => this.grep_stream_over_all(cx, req),
            })
        })
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
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
    fn grep_stream_over_all(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let (this, asked, within) = (self.clone(), req.clone(), cx.clone());
        let tree = async move {
            let tree = this.tree(&within, OpenTreeRequest::for_grep(&asked), &SearchScope::of_grep(&asked)?).await;
            tree.map_err(|error| error.or_path(&asked.path))
        };
        vfs_search::grep_stream_in_tree(self.pool().clone(), tree, cx, req)
    }

    /// The tree for a composite, or a layer, around this one.
    pub(crate) async fn whole_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<SharedTree> {
        let everything = SearchScope::of_ls(&LsRequest::new(req.path.clone()).recursive());
        self.tree(cx, req, &everything).await
    }
}

/// Whether both paths belong to one mount.
pub(crate) fn same_mount(table: &MountTable, from: &VfsPath, to: &VfsPath) -> bool {
    Arc::ptr_eq(table.route(from), table.route(to))
}

/// Whether a target that is there may be replaced.
pub(crate) fn replaces(mode: TransferMode) -> bool {
    mode == TransferMode::Overwrite
}
