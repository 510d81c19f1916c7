//! Files of any backend in a directory where commands can work on them, and their changes back.

mod differences;
mod directory;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::{
    Backend, ChangeSet, DeleteRequest, Error, ErrorDetail, ErrorKind, FileInfo, FileUpload, LsRequest, OpContext,
    Problem, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest,
};
use vfs_local::{Durability, LocalBackend, LocalConfig};

use self::differences::Different;
use self::directory::PrivateDirectory;
use crate::config::{Protected, ProtectedName, SandboxConfig};

/// The files below a path of a backend, in a private directory of the host that goes with this value.
///
/// # Behaviour
///
/// * [`checkout`](Self::checkout) brings the files there. Commands are run on [`directory`](Self::directory), as a
///   [`Mount`](crate::Mount) of a sandbox. [`changes`](Self::changes) tells what they changed, and
///   [`collect`](Self::collect) brings that into the backend. [`discard`](Self::discard) ends the workspace, and so does
///   dropping it, which tells nobody where something cannot be removed.
/// * Content is all that a backend tells of a file, so modes are guessed: what begins with `#!`, and what is a program,
///   can be run. A link becomes what it leads to. An empty directory is left out.
/// * A change is made only where the backend still has the version that was checked out; else it is a conflict, and the
///   others are made all the same.
/// * What cannot be looked at counts as unchanged, and is told as a problem; so is what cannot be brought into the backend.
///   Neither keeps the other files from being brought.
/// * What a sandbox [protects](SandboxConfig::protected) is not brought into the backend either, since a command can make
///   what was not there to be protected. Without a word of [`protecting`](Self::protecting) and
///   [`protecting_names`](Self::protecting_names) that is what [`SandboxConfig::new`] protects.
///
/// ```no_run
/// # async fn example(overlay: std::sync::Arc<dyn vfs_core::Backend>) -> vfs_core::Result<()> {
/// use vfs_core::{Backend, ExecuteRequest, OpContext, VfsPath};
/// use vfs_sandbox::os::{OsSandbox, SandboxConfig, Workspace};
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
    known: BTreeMap<VfsPath, Known>,
    protected: Vec<Protected>,
    protected_names: Vec<ProtectedName>,
    directory: PrivateDirectory,
}

/// A file as it was checked out.
#[derive(Debug, Clone)]
struct Known {
    /// Its version in the backend.
    there: Version,
    /// Its version in the directory.
    here: Version,
}

/// What commands changed in a workspace, in paths of the backend.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Collected {
    /// What they changed, without the conflicts.
    pub changes: ChangeSet,
    /// What they changed that somebody else changed, too.
    pub conflicts: Vec<CollectConflict>,
    /// What they left that was not brought: because no backend can hold it, such as a socket or a link that leads outside,
    /// because it cannot be read or is refused, or because it is protected.
    pub problems: Vec<Problem>,
}

/// A file of the backend that is not what it was when it was checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CollectConflict {
    /// The file.
    pub path: VfsPath,
    /// The version that was checked out; `None` where there was no such file.
    pub expected: Option<Version>,
    /// The version that is there now.
    pub actual: Option<Version>,
}

/// Most bytes that are held in memory at a time, but for a single file that is larger.
const BATCH_BYTES: u64 = 16 << 20;
const BATCH_FILES: usize = 256;

impl Workspace {
    /// Brings the files at and below `from` into a new directory, which is made in `parent`.
    ///
    /// # Errors
    ///
    /// Those of reading the files, the first of them; `too_large` where a listing does not hold all of them; `unavailable` where the directory cannot be made or written to.
    pub async fn checkout(
        cx: &OpContext,
        backend: Arc<dyn Backend>,
        from: VfsPath,
        parent: impl AsRef<Path>,
    ) -> Result<Self> {
        let directory = PrivateDirectory::make(parent.as_ref())?;
        let files = LocalConfig::new(directory.path()).durability(Durability::Atomic).open()?;
        let SandboxConfig { protected, protected_names, .. } = SandboxConfig::new(directory.path());
        let known = BTreeMap::new();
        let mut workspace = Self { backend, from, files, known, protected, protected_names, directory };
        let listing = workspace.backend.ls(cx, LsRequest::new(workspace.from.clone()).recursive()).await?;
        if let Some(problem) = listing.problems.first() {
            return Err(Error::new(problem.code, problem.message.clone()).with_path_text(&problem.path));
        }
        if listing.truncated.is_some() {
            let message =
                "there are more files than one listing holds, or deeper ones; check out a part of the directory";
            return Err(Error::new(ErrorKind::TooLarge, message).with_path(&workspace.from));
        }
        for batch in batches(listing.entries.into_iter().filter(|entry| !entry.is_dir)) {
            workspace.bring(cx, batch).await?;
        }
        Ok(workspace)
    }

    /// Keeps these paths, relative to the directory, out of the backend, in place of what [`SandboxConfig::new`] protects:
    /// those of the settings that commands run with, where they are others.
    #[must_use]
    pub fn protecting(mut self, protected: impl IntoIterator<Item = Protected>) -> Self {
        self.protected = protected.into_iter().collect();
        self
    }

    /// Keeps what has these names, at any depth, out of the backend, in place of the names that [`SandboxConfig::new`]
    /// protects.
    #[must_use]
    pub fn protecting_names(mut self, names: impl IntoIterator<Item = ProtectedName>) -> Self {
        self.protected_names = names.into_iter().collect();
        self
    }

    /// The directory on the host.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Tells what differs from what was checked out, and changes nothing.
    ///
    /// # Errors
    ///
    /// Those of looking at the directory; of the backend those that are not about one file, such as `unavailable`.
    pub async fn changes(&self, cx: &OpContext) -> Result<Collected> {
        let mut collected = Collected::default();
        for one in self.look(cx, &mut collected.problems).await? {
            let told = self.tell(cx, &one, &mut collected).await;
            told.or_else(|error| put_aside(error, &one.path, &mut collected.problems))?;
        }
        Ok(collected)
    }

    /// Brings what differs into the backend, which is what was checked out from then on.
    ///
    /// # Behaviour
    ///
    /// * What is written is what was compared, and told in the changes, whatever is still at work in the directory.
    /// * Files are written before others are deleted, so that one that was moved is there at any moment. Only what finds
    ///   something in its way is tried once more after that.
    ///
    /// # Errors
    ///
    /// Those of looking at the directory; of the backend those that are not about one file, such as `unavailable` and
    /// `storage_full`. What was brought until then stays.
    pub async fn collect(&mut self, cx: &OpContext) -> Result<Collected> {
        let mut collected = Collected::default();
        let found = self.look(cx, &mut collected.problems).await?;
        let (comes, goes): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.is_here);
        let mut in_conflict = Vec::new();
        for one in comes {
            if self.carry(cx, &one, &mut collected).await?.is_some() {
                in_conflict.push(one);
            }
        }
        for one in &goes {
            let conflict = self.carry(cx, one, &mut collected).await?;
            collected.conflicts.extend(conflict);
        }
        // A file may have become a directory, or a directory a file: what went was in the way.
        for one in in_conflict {
            if goes.iter().any(|gone| gone.path.starts_with(&one.path)) {
                self.make_room(cx, &one.path).await;
            }
            let conflict = self.carry(cx, &one, &mut collected).await?;
            collected.conflicts.extend(conflict);
        }
        collected.changes.changes.sort_by(|one, other| one.path.cmp(&other.path));
        collected.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(collected)
    }

    /// Removes the directory with all that is in it, whatever permissions commands left there.
    ///
    /// # Behaviour
    ///
    /// * Commands that work in it are to be ended before.
    /// * It is done on the runtime's pool for what blocks; if that has no thread, or the future is dropped before a thread has
    ///   begun, on the thread that awaits or drops it. Where the future is dropped later, the removal goes on.
    ///
    /// # Errors
    ///
    /// `permission_denied`, `busy` or `unavailable` where something of it stays; all else is gone then.
    pub async fn discard(self) -> Result<()> {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.directory.remove() };
        // Where the runtime has no thread for the work, it drops the work, but not the directory with it.
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

    async fn bring(&mut self, cx: &OpContext, batch: Vec<VfsPath>) -> Result<()> {
        let mut uploads = Vec::with_capacity(batch.len());
        let mut versions = Vec::with_capacity(batch.len());
        let mut programs = Vec::new();
        for file in self.backend.download_files(cx, batch).await {
            let (Some(content), Some(version)) = (file.content, file.version) else {
                return Err(file.cause.unwrap_or_else(|| Error::at(ErrorKind::Unavailable, &file.path)));
            };
            let here = self.here(&file.path)?;
            if content.starts_with(b"#!") || content.starts_with(b"\x7fELF") {
                programs.push(here.clone());
            }
            uploads.push(FileUpload::new(here, content));
            versions.push((file.path, version));
        }
        for ((path, there), written) in versions.into_iter().zip(self.files.upload_files(cx, uploads).await) {
            let here = written.version.ok_or_else(|| {
                let cause = written.cause.unwrap_or_else(|| Error::of(ErrorKind::Unavailable));
                Error::new(cause.kind(), cause.message().to_owned()).with_path(&path)
            })?;
            self.known.insert(path, Known { there, here });
        }
        for program in programs {
            let place = self.directory.path().join(program.relative());
            rustix::fs::chmod(place, rustix::fs::Mode::from_raw_mode(0o755)).map_err(|errno| {
                Error::new(ErrorKind::Unavailable, "a file of the workspace cannot be made to run").with_source(errno)
            })?;
        }
        Ok(())
    }

    /// Adds what became of a file to `collected`.
    async fn tell(&self, cx: &OpContext, one: &Different, collected: &mut Collected) -> Result<()> {
        let actual = self.version_there(cx, &one.path).await?;
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

    /// Brings one file into the backend, or tells with what it is in conflict there.
    async fn carry(
        &mut self,
        cx: &OpContext,
        one: &Different,
        collected: &mut Collected,
    ) -> Result<Option<CollectConflict>> {
        let carried = self.try_to_carry(cx, one, collected).await;
        carried.or_else(|error| put_aside(error, &one.path, &mut collected.problems).map(|()| None))
    }

    async fn try_to_carry(
        &mut self,
        cx: &OpContext,
        one: &Different,
        collected: &mut Collected,
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
                    _ => self.version_there(cx, &one.path).await?,
                };
                Ok(Some(CollectConflict { path: one.path.clone(), expected: one.expected.clone(), actual }))
            }
            Err(error) => Err(error),
        }
    }

    async fn put(&mut self, cx: &OpContext, one: &Different, after: Option<(Bytes, Version)>) -> Result<()> {
        match after {
            Some((content, here)) => {
                let mode = one.expected.clone().map_or(WriteMode::CreateNew, WriteMode::IfVersion);
                let request = WriteRequest::new(one.path.clone(), content).mode(mode);
                let there = self.backend.write(cx, request).await?.version;
                self.known.insert(one.path.clone(), Known { there, here });
            }
            None => {
                let mut request = DeleteRequest::new(one.path.clone());
                request.expected_version.clone_from(&one.expected);
                self.backend.delete(cx, request).await?;
                self.known.remove(&one.path);
            }
        }
        Ok(())
    }

    /// Removes the directories that what went left empty where a file is to be. Where that fails, the file is in conflict.
    async fn make_room(&self, cx: &OpContext, path: &VfsPath) {
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

    async fn version_there(&self, cx: &OpContext, path: &VfsPath) -> Result<Option<Version>> {
        match self.backend.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) => Ok(info.version),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where a file of the backend is in the directory.
    fn here(&self, path: &VfsPath) -> Result<VfsPath> {
        VfsPath::root().join(path.strip_prefix(&self.from).unwrap_or(path.relative()))
    }

    /// Where a file of the directory is in the backend.
    fn there(&self, path: &VfsPath) -> Result<VfsPath> {
        self.from.join(path.relative())
    }
}

/// Makes a problem of what befell one file and need not stop the others; all else is the error still.
fn put_aside(error: Error, path: &VfsPath, problems: &mut Vec<Problem>) -> Result<()> {
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
