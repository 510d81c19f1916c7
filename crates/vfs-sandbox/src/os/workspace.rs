//! Files of any backend in a directory where commands can work on them, and their changes back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::{
    Backend, ChangeKind, ChangeSet, DeleteRequest, Error, ErrorDetail, ErrorKind, FileChange, FileInfo, FileUpload,
    LsRequest, OpContext, Problem, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest,
};
use vfs_local::{Durability, LocalBackend, LocalConfig};

/// The files below a path of a backend, in a private directory of the host that goes with this value.
///
/// # Behaviour
///
/// * [`checkout`](Self::checkout) brings the files there. Commands are run on [`directory`](Self::directory), as a
///   [`Mount`](super::Mount) of a sandbox. [`changes`](Self::changes) tells what they changed, and
///   [`collect`](Self::collect) brings that into the backend. Dropping the workspace discards it.
/// * Content is all that a backend tells of a file, so modes are guessed: what begins with `#!`, and what is a program,
///   can be run. A link becomes what it leads to. An empty directory is left out.
/// * A change is made only where the backend still has the version that was checked out; else it is a conflict, and the
///   others are made all the same.
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
    directory: tempfile::TempDir,
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
    /// What they left that no backend can hold, such as a socket or a link that leads outside.
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
    /// Those of reading the files, the first of them; `unavailable` where the directory cannot be made or written to.
    pub async fn checkout(
        cx: &OpContext,
        backend: Arc<dyn Backend>,
        from: VfsPath,
        parent: impl AsRef<Path>,
    ) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("vfs-workspace-").tempdir_in(parent).map_err(|source| {
            Error::new(ErrorKind::Unavailable, "no directory for a workspace can be made").with_source(source)
        })?;
        let files = LocalConfig::new(directory.path()).durability(Durability::Atomic).open()?;
        let mut workspace = Self { backend, from, files, known: BTreeMap::new(), directory };
        let listing = workspace.backend.ls(cx, LsRequest::new(workspace.from.clone()).recursive()).await?;
        if let Some(problem) = listing.problems.first() {
            return Err(Error::new(problem.code, problem.message.clone()).with_path_text(&problem.path));
        }
        for batch in batches(listing.entries.into_iter().filter(|entry| !entry.is_dir)) {
            workspace.bring(cx, batch).await?;
        }
        Ok(workspace)
    }

    /// The directory on the host.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Tells what differs from what was checked out, and changes nothing.
    ///
    /// # Errors
    ///
    /// Those of reading the files.
    pub async fn changes(&self, cx: &OpContext) -> Result<Collected> {
        let mut collected = Collected::default();
        for found in self.look(cx, &mut collected.problems).await? {
            let actual = self.version_there(cx, &found.path).await?;
            if actual == found.expected {
                if let Some(change) = self.told(cx, &found).await? {
                    collected.changes.changes.push(change);
                }
            } else {
                collected.conflicts.push(CollectConflict { path: found.path, expected: found.expected, actual });
            }
        }
        Ok(collected)
    }

    /// Brings what differs into the backend, which is what was checked out from then on.
    ///
    /// # Errors
    ///
    /// Those of reading and writing the files; what was brought until then stays.
    pub async fn collect(&mut self, cx: &OpContext) -> Result<Collected> {
        let mut collected = Collected::default();
        let mut found = self.look(cx, &mut collected.problems).await?;
        // What goes makes room for what comes, where a file became a directory.
        found.sort_by_key(|one| one.here.is_some());
        for one in found {
            let Some(change) = self.told(cx, &one).await? else { continue };
            match self.put(cx, &one).await {
                Ok(()) => collected.changes.changes.push(change),
                Err(error) if is_conflict(&error) => {
                    let actual = match error.detail() {
                        Some(ErrorDetail::Conflict { actual }) => actual.clone(),
                        _ => self.version_there(cx, &one.path).await?,
                    };
                    collected.conflicts.push(CollectConflict { path: one.path, expected: one.expected, actual });
                }
                Err(error) => return Err(error),
            }
        }
        collected.changes.changes.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(collected)
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

    /// The files that differ, by what their versions in the directory say.
    async fn look(&self, cx: &OpContext, problems: &mut Vec<Problem>) -> Result<Vec<Different>> {
        let listing = self.files.ls(cx, LsRequest::new(VfsPath::root()).recursive()).await?;
        for mut problem in listing.problems {
            problem.path =
                format!("{}/{}", self.from.as_str().trim_end_matches('/'), problem.path.trim_start_matches('/'));
            problems.push(problem);
        }
        let mut here = BTreeMap::new();
        for entry in listing.entries.into_iter().filter(|entry| !entry.is_dir) {
            here.insert(self.from.join(entry.path.relative())?, entry.version);
        }
        let mut different = Vec::new();
        for (path, known) in &self.known {
            let here = here.remove(path).flatten();
            if here.as_ref() != Some(&known.here) {
                different.push(Different { path: path.clone(), expected: Some(known.there.clone()), here });
            }
        }
        let added = here.into_iter().map(|(path, here)| Different { path, expected: None, here });
        different.extend(added);
        different.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(different)
    }

    /// What became of a file; `None` where its content is what it was.
    async fn told(&self, cx: &OpContext, different: &Different) -> Result<Option<FileChange>> {
        let before = match &different.expected {
            Some(version) => downloaded(&self.backend, cx, &different.path).await?.filter(|(_, now)| now == version),
            None => None,
        };
        let after = match different.here {
            Some(_) => downloaded(&self.files, cx, &self.here(&different.path)?).await?,
            None => None,
        };
        if different.expected.is_some() && before.is_none() {
            let kind = if after.is_some() { ChangeKind::Changed } else { ChangeKind::Removed };
            return Ok(Some(FileChange::new(different.path.clone(), kind).versions(different.expected.clone(), None)));
        }
        let side = |side: &'_ Option<(Bytes, Version)>| side.clone();
        let (before, after) = (side(&before), side(&after));
        let borrowed = |side: &Option<(Bytes, Version)>| side.as_ref().map(|(_, version)| version.clone());
        let (old, new) = (borrowed(&before), borrowed(&after));
        Ok(FileChange::between(
            &different.path,
            before.as_ref().zip(old).map(|((content, _), version)| (&content[..], version)),
            after.as_ref().zip(new).map(|((content, _), version)| (&content[..], version)),
        ))
    }

    async fn put(&mut self, cx: &OpContext, different: &Different) -> Result<()> {
        let after = match different.here {
            Some(_) => downloaded(&self.files, cx, &self.here(&different.path)?).await?,
            None => None,
        };
        match after {
            Some((content, here)) => {
                let mode = different.expected.clone().map_or(WriteMode::CreateNew, WriteMode::IfVersion);
                let request = WriteRequest::new(different.path.clone(), content).mode(mode);
                let there = self.backend.write(cx, request).await?.version;
                self.known.insert(different.path.clone(), Known { there, here });
            }
            None => {
                let mut request = DeleteRequest::new(different.path.clone());
                request.expected_version.clone_from(&different.expected);
                self.backend.delete(cx, request).await?;
                self.known.remove(&different.path);
            }
        }
        Ok(())
    }

    async fn version_there(&self, cx: &OpContext, path: &VfsPath) -> Result<Option<Version>> {
        match self.backend.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) => Ok(info.version),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where a file of the backend is in the directory.
    fn here(&self, path: &VfsPath) -> Result<VfsPath> {
        VfsPath::root().join(path.strip_prefix(&self.from).unwrap_or(path.relative()))
    }
}

/// A file whose version in the directory is not the one that was checked out.
#[derive(Debug)]
struct Different {
    /// Its path in the backend.
    path: VfsPath,
    /// The version that was checked out.
    expected: Option<Version>,
    /// Its version in the directory, where it is there.
    here: Option<Version>,
}

/// A file's content, and the version that it is; `None` where there is no such file.
async fn downloaded(files: &impl Backend, cx: &OpContext, path: &VfsPath) -> Result<Option<(Bytes, Version)>> {
    let Some(file) = files.download_files(cx, vec![path.clone()]).await.pop() else { return Ok(None) };
    match (file.content, file.version, file.cause) {
        (Some(content), Some(version), _) => Ok(Some((content, version))),
        (.., Some(cause)) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        (.., cause) => Err(cause.unwrap_or_else(|| Error::at(ErrorKind::Unavailable, path))),
    }
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
