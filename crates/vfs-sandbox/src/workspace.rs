//! Workspace: a host directory with a copy of a backend's files, for commands.

mod file_comparison;
mod private_directory;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::error::ErrorDetail;
use vfs_core::snapshots::SnapshotDiffResult;
use vfs_core::{
    Backend, DeleteRequest, Error, ErrorKind, FileInfo, FileUploadRequest, LsRequest, OpContext, Problem, Result,
    StatRequest, Version, VfsPath, WriteMode, WriteRequest,
};
use vfs_local::{Durability, LocalBackend, LocalConfig};

use self::file_comparison::ChangeCandidate;
use self::private_directory::PrivateDirectory;
use crate::config::{ProtectedName, ProtectedPath, SandboxConfig};

/// A copy of the files below a path of a backend, in a private directory of the host that is removed with this value.
///
/// # Behaviour
///
/// * [`checkout`](Self::checkout) copies the files. Commands run on [`directory`](Self::directory), as a
///   [`Mount`](crate::Mount) of a sandbox. [`changes`](Self::changes) returns their changes, and [`collect`](Self::collect) writes
///   them to the backend. [`discard`](Self::discard) removes the directory, and so does dropping the workspace, which reports no
///   error.
/// * Backends have no modes, so the modes of files are guessed: scripts that begin with `#!`, and programs, are
///   executable. A link becomes a copy of its target. Empty directories are left out.
/// * A change is made only if the backend still has the version that was checked out. Otherwise it is a conflict, and the other
///   changes are still made.
/// * A file that cannot be examined counts as unchanged and is reported as a problem, as is a change that the backend refuses. The
///   other files are still collected.
/// * Paths and names that a sandbox [protects](SandboxConfig::protected) are not collected, since a command can create them if they
///   were missing. The default is those of [`SandboxConfig::new`]; [`protecting`](Self::protecting) and
///   [`protecting_names`](Self::protecting_names) set others.
///
/// ```no_run
/// # async fn example(overlay: std::sync::Arc<dyn vfs_core::Backend>) -> vfs_core::Result<()> {
/// use vfs_core::{Backend, ExecuteRequest, OpContext, VfsPath};
/// use vfs_sandbox::{OsSandbox, SandboxConfig, Workspace};
///
/// let cx = OpContext::new();
/// let mut workspace = Workspace::checkout(&cx, overlay, VfsPath::root(), std::env::temp_dir()).await?;
/// let sandbox = OsSandbox::open(SandboxConfig::new(workspace.directory())).await?.into_backend()?;
/// let shell = sandbox.as_shell().expect("a sandbox has a shell");
/// shell.execute(&cx, ExecuteRequest::new("make").cwd(VfsPath::parse("/workspace")?)).await?;
/// println!("{}", workspace.changes(&cx).await?.changes.unified());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Workspace {
    backend: Arc<dyn Backend>,
    from: VfsPath,
    files: LocalBackend,
    baselines: BTreeMap<VfsPath, CheckedOutFile>,
    protected: Vec<ProtectedPath>,
    protected_names: Vec<ProtectedName>,
    directory: PrivateDirectory,
}

/// Versions of a file as it was checked out.
#[derive(Debug, Clone)]
struct CheckedOutFile {
    /// Version of the file in the backend.
    backend: Version,
    /// Version of the file in the directory.
    local: Version,
}

/// Result of collecting the changes of commands in a workspace, in paths of the backend.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CollectResult {
    /// The changes without conflict.
    pub changes: SnapshotDiffResult,
    /// The changes to files that were changed in the backend, too.
    pub conflicts: Vec<CollectConflict>,
    /// Files that were not collected: because no backend can store them, such as a socket or a link that leads outside, because
    /// they cannot be read, because the backend refused them, or because they are protected.
    pub problems: Vec<Problem>,
}

/// A file that the backend no longer has in the version that was checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CollectConflict {
    /// The file.
    pub path: VfsPath,
    /// The version that was checked out; `None` if there was no such file.
    pub expected: Option<Version>,
    /// The current version in the backend.
    pub actual: Option<Version>,
}

/// Maximum number of bytes in memory at a time, except for a single larger file.
const BATCH_BYTES: u64 = 16 << 20;
const BATCH_FILES: usize = 256;

impl Workspace {
    /// Copies the files at and below `from` into a new directory in `parent`.
    ///
    /// # Errors
    ///
    /// The first error of reading the files; `too_large` if a listing cannot hold all of them; `unavailable` if the directory cannot
    /// be created or written to.
    pub async fn checkout(
        cx: &OpContext,
        backend: Arc<dyn Backend>,
        from: VfsPath,
        parent: impl AsRef<Path>,
    ) -> Result<Self> {
        let directory = PrivateDirectory::create(parent.as_ref())?;
        let files = LocalConfig::new(directory.path()).durability(Durability::Atomic).open()?;
        let SandboxConfig { protected, protected_names, .. } = SandboxConfig::new(directory.path());
        let baselines = BTreeMap::new();
        let mut workspace = Self { backend, from, files, baselines, protected, protected_names, directory };
        let listing = workspace.backend.ls(cx, LsRequest::new(workspace.from.clone()).recursive()).await?;
        if let Some(problem) = listing.problems.first() {
            return Err(Error::new(problem.code, problem.message.clone()).with_path_text(&problem.path));
        }
        if listing.truncated.is_some() {
            let message = "there are more or deeper files than one listing returns; check out a part of the directory";
            return Err(Error::new(ErrorKind::TooLarge, message).with_path(&workspace.from));
        }
        for batch in batches(listing.entries.into_iter().filter(|entry| !entry.is_dir)) {
            workspace.copy_batch(cx, batch).await?;
        }
        Ok(workspace)
    }

    /// Sets the protected paths, relative to the directory, that are not collected, in place of those of [`SandboxConfig::new`]. Pass
    /// those of the sandbox in which commands run.
    #[must_use]
    pub fn protecting(mut self, protected: impl IntoIterator<Item = ProtectedPath>) -> Self {
        self.protected = protected.into_iter().collect();
        self
    }

    /// Sets the protected names that are not collected at any depth, in place of those of [`SandboxConfig::new`].
    #[must_use]
    pub fn protecting_names(mut self, names: impl IntoIterator<Item = ProtectedName>) -> Self {
        self.protected_names = names.into_iter().collect();
        self
    }

    /// Returns the directory on the host.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the changes since the checkout without writing any.
    ///
    /// # Errors
    ///
    /// Errors of reading the directory, and errors of the backend that are not about one file, such as `unavailable`.
    pub async fn changes(&self, cx: &OpContext) -> Result<CollectResult> {
        let mut collected = CollectResult::default();
        for one in self.find_changed(cx, &mut collected.problems).await? {
            let reported = self.report_change(cx, &one, &mut collected).await;
            reported.or_else(|error| record_problem(error, &one.path, &mut collected.problems))?;
        }
        Ok(collected)
    }

    /// Writes the changes to the backend. The result counts as checked out from then on.
    ///
    /// # Behaviour
    ///
    /// * The content that was compared is the one that is written and reported, even if a command still changes the directory.
    /// * Files are written before others are deleted, so that a moved file exists at any moment. A write that is in conflict is
    ///   retried once after the deletions.
    ///
    /// # Errors
    ///
    /// Errors of reading the directory, and errors of the backend that are not about one file, such as `unavailable` and
    /// `storage_full`. Changes that were made before the error stay.
    pub async fn collect(&mut self, cx: &OpContext) -> Result<CollectResult> {
        // Each file is a change of its own, and collecting twice collects both times.
        let cx = &cx.without_operation_id();
        let mut collected = CollectResult::default();
        let found = self.find_changed(cx, &mut collected.problems).await?;
        let (written, deleted): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.is_here);
        let mut in_conflict = Vec::new();
        for one in written {
            if self.collect_file(cx, &one, &mut collected).await?.is_some() {
                in_conflict.push(one);
            }
        }
        for one in &deleted {
            let conflict = self.collect_file(cx, one, &mut collected).await?;
            collected.conflicts.extend(conflict);
        }
        // A file may have become a directory, or a directory a file.
        for one in in_conflict {
            if deleted.iter().any(|other| other.path.starts_with(&one.path)) {
                self.remove_empty_directories(cx, &one.path).await;
            }
            let conflict = self.collect_file(cx, &one, &mut collected).await?;
            collected.conflicts.extend(conflict);
        }
        collected.changes.changes.sort_by(|one, other| one.path.cmp(&other.path));
        collected.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(collected)
    }

    /// Removes the directory with its contents, whatever their permissions.
    ///
    /// # Behaviour
    ///
    /// * Commands that still run in the directory have to be stopped before.
    /// * The removal runs on the runtime's pool of blocking threads. If the pool has no thread, or the future is dropped before a
    ///   thread has begun, it runs on the thread that awaits or drops the future. If the future is dropped later, the removal goes
    ///   on.
    ///
    /// # Errors
    ///
    /// `permission_denied`, `busy` or `unavailable` if a part could not be removed; the rest is removed.
    pub async fn discard(self) -> Result<()> {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.directory.remove() };
        // If the runtime has no thread for the work, it drops the closure, and the directory is removed on this thread.
        let directory = Arc::new(Mutex::new(Some(self.directory)));
        let take = |directory: &Mutex<Option<_>>| directory.lock().unwrap_or_else(PoisonError::into_inner).take();
        let taken = Arc::clone(&directory);
        let removed = vfs_search::run_blocking(&runtime, move || take(&taken).map(PrivateDirectory::remove)).await;
        match (removed, take(&directory)) {
            (_, Some(directory)) => directory.remove(),
            (Ok(removed), None) => removed.unwrap_or(Ok(())),
            (Err(failure), None) => Err(failure),
        }
    }

    /// Copies files of the backend to the directory, and makes programs executable.
    async fn copy_batch(&mut self, cx: &OpContext, batch: Vec<VfsPath>) -> Result<()> {
        let mut uploads = Vec::with_capacity(batch.len());
        let mut versions = Vec::with_capacity(batch.len());
        let mut programs = Vec::new();
        for file in self.backend.download_files(cx, batch).await {
            let (Some(content), Some(version)) = (file.content, file.version) else {
                return Err(file.cause.unwrap_or_else(|| Error::at(ErrorKind::Unavailable, &file.path)));
            };
            let here = self.local_path(&file.path)?;
            if content.starts_with(b"#!") || content.starts_with(b"\x7fELF") {
                programs.push(here.clone());
            }
            uploads.push(FileUploadRequest::new(here, content));
            versions.push((file.path, version));
        }
        for ((path, there), written) in versions.into_iter().zip(self.files.upload_files(cx, uploads).await) {
            let here = written.version.ok_or_else(|| {
                let cause = written.cause.unwrap_or_else(|| Error::of(ErrorKind::Unavailable));
                Error::new(cause.kind(), cause.message().to_owned()).with_path(&path)
            })?;
            self.baselines.insert(path, CheckedOutFile { backend: there, local: here });
        }
        for program in programs {
            let host_path = self.directory.path().join(program.relative());
            rustix::fs::chmod(host_path, rustix::fs::Mode::from_raw_mode(0o755)).map_err(|errno| {
                Error::new(ErrorKind::Unavailable, "a file of the workspace cannot be made executable")
                    .with_source(errno)
            })?;
        }
        Ok(())
    }

    /// Adds the change of a file, or its conflict, to `collected`.
    async fn report_change(&self, cx: &OpContext, one: &ChangeCandidate, collected: &mut CollectResult) -> Result<()> {
        let actual = self.backend_version(cx, &one.path).await?;
        if actual == one.expected {
            collected.changes.changes.extend(self.read(cx, one).await?.change(one));
        } else {
            collected.conflicts.push(CollectConflict {
                path: one.path.clone(),
                expected: one.expected.clone(),
                actual,
            });
        }
        Ok(())
    }

    /// Writes one file to the backend, or returns its conflict.
    async fn collect_file(
        &mut self,
        cx: &OpContext,
        one: &ChangeCandidate,
        collected: &mut CollectResult,
    ) -> Result<Option<CollectConflict>> {
        let result = self.try_collect_file(cx, one, collected).await;
        result.or_else(|error| record_problem(error, &one.path, &mut collected.problems).map(|()| None))
    }

    async fn try_collect_file(
        &mut self,
        cx: &OpContext,
        one: &ChangeCandidate,
        collected: &mut CollectResult,
    ) -> Result<Option<CollectConflict>> {
        let sides = self.read(cx, one).await?;
        let Some(change) = sides.change(one) else { return Ok(None) };
        match self.put(cx, one, sides.after).await {
            Ok(()) => {
                collected.changes.changes.push(change);
                Ok(None)
            }
            Err(error) if is_conflict(&error) => {
                let actual = match error.detail() {
                    Some(ErrorDetail::Conflict { actual }) => actual.clone(),
                    _ => self.backend_version(cx, &one.path).await?,
                };
                Ok(Some(CollectConflict { path: one.path.clone(), expected: one.expected.clone(), actual }))
            }
            Err(error) => Err(error),
        }
    }

    async fn put(&mut self, cx: &OpContext, one: &ChangeCandidate, after: Option<(Bytes, Version)>) -> Result<()> {
        match after {
            Some((content, here)) => {
                let mode = one.expected.clone().map_or(WriteMode::CreateNew, WriteMode::IfVersion);
                let request = WriteRequest::new(one.path.clone(), content).mode(mode);
                let there = self.backend.write(cx, request).await?.version;
                self.baselines.insert(one.path.clone(), CheckedOutFile { backend: there, local: here });
            }
            None => {
                let mut request = DeleteRequest::new(one.path.clone());
                request.expected_version.clone_from(&one.expected);
                self.backend.delete(cx, request).await?;
                self.baselines.remove(&one.path);
            }
        }
        Ok(())
    }

    /// Removes empty directories at the path of a file. If that fails, the file is in conflict.
    async fn remove_empty_directories(&self, cx: &OpContext, path: &VfsPath) {
        let Ok(listing) = self.backend.ls(cx, LsRequest::new(path.clone()).recursive()).await else { return };
        if listing.entries.iter().any(|entry| !entry.is_dir) {
            return;
        }
        let mut empty: Vec<_> = listing.entries.into_iter().map(|entry| entry.path).collect();
        empty.push(path.clone());
        empty.sort_by(|one, other| other.cmp(one));
        for directory in empty {
            if self.backend.delete(cx, DeleteRequest::new(directory).only_empty()).await.is_err() {
                return;
            }
        }
    }

    async fn backend_version(&self, cx: &OpContext, path: &VfsPath) -> Result<Option<Version>> {
        match self.backend.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) => Ok(info.version),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the path in the directory of a file of the backend.
    fn local_path(&self, path: &VfsPath) -> Result<VfsPath> {
        VfsPath::root().join(path.strip_prefix(&self.from).unwrap_or(path.relative()))
    }

    /// Returns the path in the backend of a file of the directory.
    fn backend_path(&self, path: &VfsPath) -> Result<VfsPath> {
        self.from.join(path.relative())
    }
}

/// Records an error about one file as a problem. Returns any other error.
fn record_problem(error: Error, path: &VfsPath, problems: &mut Vec<Problem>) -> Result<()> {
    use ErrorKind::{Cancelled, Internal, QuotaExceeded, StorageFull, Timeout, Unavailable};
    if matches!(error.kind(), Cancelled | Timeout | Unavailable | StorageFull | QuotaExceeded | Internal) {
        return Err(error);
    }
    problems.push(error.with_path(path).into());
    Ok(())
}

fn is_conflict(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Conflict
            | ErrorKind::AlreadyExists
            | ErrorKind::NotFound
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
    )
}

fn batches(entries: impl Iterator<Item = FileInfo>) -> Vec<Vec<VfsPath>> {
    let mut batches: Vec<Vec<VfsPath>> = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        bytes += entry.size;
        match batches.last_mut().filter(|batch| bytes <= BATCH_BYTES && batch.len() < BATCH_FILES) {
            Some(batch) => batch.push(entry.path),
            None => {
                bytes = entry.size;
                batches.push(vec![entry.path]);
            }
        }
    }
    batches
}
