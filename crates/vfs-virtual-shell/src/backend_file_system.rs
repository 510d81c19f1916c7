//! File system of the interpreter over the files of a backend.

use std::collections::hash_map::RandomState;
use std::future::pending;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bashkit::{DirEntry, FileSystem, FileSystemExt, FileType, FsLimits, Metadata};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use vfs_core::backend::AccessMode;
use vfs_core::{
    Backend, CopyRequest, DeleteRequest, Error, ErrorKind, FileInfo, LsRequest, OpContext, RenameRequest, StatRequest,
    VfsPath, WriteMode, WriteRequest,
};

use crate::config::VirtualShellConfig;
use crate::error_conversion::{shell_error, unsupported_error};
use crate::script_only_dirs::ScriptOnlyDirs;
use crate::stop_signal::{ScriptStopSignal, StopReason};

/// Files of one script.
#[derive(Debug)]
pub(crate) struct BackendFileSystem {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) cx: OpContext,
    pub(crate) config: VirtualShellConfig,
    pub(crate) stop: Arc<ScriptStopSignal>,
    pub(crate) empty_dirs: ScriptOnlyDirs,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) cleanup: Arc<UninterruptibleTasks>,
}

/// Tasks that run to their end also if the script is dropped.
#[derive(Debug, Default)]
pub(crate) struct UninterruptibleTasks(Mutex<JoinSet<()>>);

impl UninterruptibleTasks {
    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the runtime of the script and waits for it.
    async fn run(&self, work: impl Future<Output = Result<(), Error>> + Send + 'static) -> Result<(), Error> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut tasks = self.lock();
            while tasks.try_join_next().is_some() {}
            // The receiver is gone if the script was dropped.
            tasks.spawn(async move { drop(sender.send(work.await)) });
        }
        receiver.await.unwrap_or_else(|_| Err(Error::of(ErrorKind::Internal)))
    }

    /// Waits for all tasks.
    pub(crate) async fn join_all(&self) {
        let tasks = std::mem::take(&mut *self.lock());
        tasks.join_all().await;
    }
}

/// Result of an operation of the interpreter's file system.
type FsResult<T> = Result<T, bashkit::Error>;

/// Device that is empty when read and discards writes.
const NULL_DEVICE: &str = "/dev/null";

/// Largest distance to the current time that `touch` may set.
const TOUCH_TOLERANCE: Duration = Duration::from_secs(5);

impl BackendFileSystem {
    /// Converts a path of the interpreter to one of the backend. If the script is stopped, this never returns, so that no
    /// file is touched any more; the waiter drops the future. An error would only make a recursive search continue
    /// elsewhere.
    async fn resolve(&self, path: &Path) -> FsResult<VfsPath> {
        if self.stop.reason().is_some() {
            pending::<()>().await;
        }
        let text =
            path.to_str().ok_or_else(|| shell_error(&Error::new(ErrorKind::InvalidPath, "the name is not UTF-8")))?;
        // A tilde that is left after expansion is a character of a name.
        VfsPath::parse(&format!("/{text}")).map_err(|error| shell_error(&error))
    }

    async fn stat_path(&self, path: &VfsPath) -> Result<FileInfo, Error> {
        match self.backend.stat(&self.cx, StatRequest::new(path.clone())).await {
            Err(error) if error.kind() == ErrorKind::NotFound && self.empty_dirs.contains(path) => {
                Ok(FileInfo::directory(path.clone()))
            }
            other => other,
        }
    }

    /// Returns the entry at `path`, or `None` if there is none.
    async fn stat_path_or_none(&self, path: &VfsPath) -> FsResult<Option<FileInfo>> {
        match self.stat_path(path).await {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(shell_error(&error)),
        }
    }

    async fn write(&self, path: &Path, content: &[u8], mode: WriteMode) -> FsResult<()> {
        let path = self.resolve(path).await?;
        if path.as_str() == NULL_DEVICE {
            return Ok(());
        }
        if content.len() as u64 > self.config.max_file_bytes {
            return Err(shell_error(&Error::of(ErrorKind::TooLarge)));
        }
        if self.empty_dirs.contains(&path) && self.stat_path_or_none(&path).await?.is_some_and(|info| info.is_dir) {
            return Err(shell_error(&Error::at(ErrorKind::IsADirectory, &path)));
        }
        let request = WriteRequest::new(path, content.to_vec()).mode(mode);
        self.backend.write(&self.cx, request).await.map(drop).map_err(|error| shell_error(&error))
    }

    /// Creates the directory `path`, whose parent exists.
    async fn make_dir(&self, path: &VfsPath) -> FsResult<()> {
        let capabilities = self.backend.capabilities(path);
        if capabilities.access == AccessMode::ReadOnly {
            return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "Read-only file system").into());
        }
        if !capabilities.empty_directories {
            // The backend creates the directory with the first file in it.
            let has_room = self.empty_dirs.add(path.clone());
            return if has_room { Ok(()) } else { Err(shell_error(&Error::of(ErrorKind::StorageFull))) };
        }
        // The backend creates a directory with a file, and keeps it when the file is deleted.
        let mark = RandomState::new().build_hasher().finish();
        let file = path.child(&format!(".new-directory-{mark:016x}")).map_err(|error| shell_error(&error))?;
        let (backend, cx) = (Arc::clone(&self.backend), self.cx.clone());
        let done = self.cleanup.run(async move {
            let written = backend.write(&cx, WriteRequest::new(file.clone(), "")).await;
            // A write that was cancelled may have taken effect.
            if let Err(error) = &written
                && !matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Timeout)
            {
                return written.map(drop);
            }
            let deleted = backend.delete(&cx.for_cleanup(), DeleteRequest::new(file)).await;
            written.and(deleted.map(drop))
        });
        done.await.map_err(|error| shell_error(&error))
    }

    /// Keeps the directories above a removed entry for this script, if it may have been their last.
    fn keep_parents(&self, path: &VfsPath) {
        if !self.backend.capabilities(path).empty_directories {
            self.empty_dirs.add_parents(path);
        }
    }

    async fn remove_directory(&self, path: &VfsPath, recursive: bool) -> FsResult<()> {
        let is_virtual = self.empty_dirs.contains(path);
        if !recursive && self.empty_dirs.has_descendant(path) {
            return Err(shell_error(&Error::of(ErrorKind::NotEmpty)));
        }
        let request = DeleteRequest::new(path.clone());
        let request = if recursive { request.recursive() } else { request.only_empty() };
        match self.backend.delete(&self.cx, request).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound && is_virtual => {}
            Err(error) => return Err(shell_error(&error)),
        }
        self.empty_dirs.remove(path);
        self.keep_parents(path);
        Ok(())
    }
}

/// Returns whether the interpreter gives `name` to the temporary file of an edit in place: `.bashkit-NAME-0123456789abcdef.tmp`.
fn is_scratch_name(name: &str) -> bool {
    let inner = name.strip_prefix(".bashkit-").and_then(|rest| rest.strip_suffix(".tmp"));
    let digits = inner.and_then(|inner| inner.rsplit_once('-')).map(|(_, digits)| digits);
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

fn metadata(info: &FileInfo) -> Metadata {
    let modified = info.modified_at.map_or(SystemTime::UNIX_EPOCH, SystemTime::from);
    Metadata {
        file_type: if info.is_dir { FileType::Directory } else { FileType::File },
        size: info.size,
        // Files have no modes, so all are executable.
        mode: 0o755,
        modified,
        created: info.created_at.map_or(modified, SystemTime::from),
    }
}

fn null() -> Metadata {
    let epoch = SystemTime::UNIX_EPOCH;
    Metadata { file_type: FileType::File, size: 0, mode: 0o666, modified: epoch, created: epoch }
}

impl FileSystemExt for BackendFileSystem {
    fn limits(&self) -> FsLimits {
        FsLimits::unlimited()
            .max_file_size(self.config.max_file_bytes)
            .max_path_length(VfsPath::MAX_LEN)
            .max_filename_length(VfsPath::MAX_COMPONENT)
    }

    fn backend_kind(&self) -> &'static str {
        "vfs"
    }
}

#[async_trait]
impl FileSystem for BackendFileSystem {
    async fn read_file(&self, path: &Path) -> FsResult<Vec<u8>> {
        let path = self.resolve(path).await?;
        if path.as_str() == NULL_DEVICE {
            return Ok(Vec::new());
        }
        let info = self.stat_path(&path).await.map_err(|error| shell_error(&error))?;
        let fail = |kind| Err(shell_error(&Error::at(kind, &path)));
        if info.is_dir {
            return fail(ErrorKind::IsADirectory);
        }
        if info.size > self.config.max_file_bytes {
            return fail(ErrorKind::TooLarge);
        }
        if self.bytes_read.fetch_add(info.size, Ordering::Relaxed).saturating_add(info.size)
            > self.config.max_read_bytes
        {
            self.stop.trigger(StopReason::Limit("the bytes read from files exceed their limit"));
            pending::<()>().await;
        }
        let answers = self.backend.download_files(&self.cx, vec![path.clone()]).await;
        let answer = answers.into_iter().next();
        match answer.map(|answer| (answer.content, answer.cause)) {
            Some((Some(content), None)) => Ok(content.to_vec()),
            Some((_, Some(error))) => Err(shell_error(&error)),
            _ => fail(ErrorKind::Internal),
        }
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> FsResult<()> {
        self.write(path, content, WriteMode::Overwrite).await
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> FsResult<()> {
        self.write(path, content, WriteMode::Append).await
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> FsResult<()> {
        let path = self.resolve(path).await?;
        let mut missing = Vec::new();
        let mut at = Some(path.clone());
        while let Some(directory) = at {
            match self.stat_path_or_none(&directory).await? {
                Some(info) if !info.is_dir => {
                    let kind = if directory == path { ErrorKind::AlreadyExists } else { ErrorKind::NotADirectory };
                    return Err(shell_error(&Error::at(kind, &directory)));
                }
                Some(_) => break,
                None => {}
            }
            at = directory.parent();
            missing.push(directory);
        }
        if !recursive && missing.len() != 1 {
            let kind = if missing.is_empty() { ErrorKind::AlreadyExists } else { ErrorKind::NotFound };
            return Err(shell_error(&Error::at(kind, &path)));
        }
        for directory in missing.iter().rev() {
            self.make_dir(directory).await?;
        }
        Ok(())
    }

    async fn remove(&self, path: &Path, recursive: bool) -> FsResult<()> {
        let path = self.resolve(path).await?;
        let plain = self.backend.delete(&self.cx, DeleteRequest::new(path.clone())).await;
        match plain.map_err(|error| (error.kind(), error)) {
            Ok(_) => {
                self.keep_parents(&path);
                Ok(())
            }
            Err((ErrorKind::IsADirectory | ErrorKind::NotEmpty, _)) => self.remove_directory(&path, recursive).await,
            Err((ErrorKind::NotFound, _)) if self.empty_dirs.contains(&path) => {
                self.remove_directory(&path, recursive).await
            }
            Err((_, error)) => Err(shell_error(&error)),
        }
    }

    async fn stat(&self, path: &Path) -> FsResult<Metadata> {
        let path = self.resolve(path).await?;
        if path.as_str() == NULL_DEVICE {
            return Ok(null());
        }
        self.stat_path(&path).await.map(|info| metadata(&info)).map_err(|error| shell_error(&error))
    }

    async fn read_dir(&self, path: &Path) -> FsResult<Vec<DirEntry>> {
        let path = self.resolve(path).await?;
        let request = LsRequest::new(path.clone()).limit(self.config.max_directory_entries);
        let listing = match self.backend.ls(&self.cx, request).await {
            Ok(listing) => listing,
            Err(error) if error.kind() == ErrorKind::NotFound && self.empty_dirs.contains(&path) => Default::default(),
            Err(error) => return Err(shell_error(&error)),
        };
        if listing.truncated.is_some() {
            return Err(io::Error::other("too many entries in the directory").into());
        }
        let mut virtual_names = self.empty_dirs.child_names(&path);
        let mut entries = Vec::with_capacity(listing.entries.len() + virtual_names.len());
        for info in &listing.entries {
            let Some(name) = info.path.name() else { continue };
            virtual_names.remove(name);
            entries.push(DirEntry { name: name.to_owned(), metadata: metadata(info) });
        }
        let directory = metadata(&FileInfo::directory(path));
        entries.extend(virtual_names.into_iter().map(|name| DirEntry { name, metadata: directory.clone() }));
        Ok(entries)
    }

    async fn exists(&self, path: &Path) -> FsResult<bool> {
        let path = self.resolve(path).await?;
        // A tool that edits in place looks for a free name beside the file, writes there and renames. If the lookup fails,
        // the tool writes to the file itself, which for a backend is one atomic change.
        if path.name().is_some_and(is_scratch_name) {
            return Err(unsupported_error());
        }
        Ok(path.as_str() == NULL_DEVICE || self.stat_path_or_none(&path).await?.is_some())
    }

    async fn rename(&self, from: &Path, to: &Path) -> FsResult<()> {
        let (from, to) = (self.resolve(from).await?, self.resolve(to).await?);
        if to.as_str() == NULL_DEVICE || from.as_str() == NULL_DEVICE {
            return Err(unsupported_error());
        }
        let is_virtual = self.empty_dirs.contains(&from);
        let request = RenameRequest::new(from.clone(), to.clone()).overwrite();
        match self.backend.rename(&self.cx, request).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound && is_virtual => {
                if self.stat_path_or_none(&to).await?.is_some() {
                    return Err(shell_error(&Error::already_exists(&to)));
                }
            }
            Err(error) => return Err(shell_error(&error)),
        }
        self.empty_dirs.rename(&from, &to);
        self.keep_parents(&from);
        Ok(())
    }

    async fn copy(&self, from: &Path, to: &Path) -> FsResult<()> {
        let (from, target) = (self.resolve(from).await?, self.resolve(to).await?);
        if target.as_str() == NULL_DEVICE || from.as_str() == NULL_DEVICE {
            let content = self.read_file(Path::new(from.as_str())).await?;
            return self.write_file(to, &content).await;
        }
        let info = self.stat_path(&from).await.map_err(|error| shell_error(&error))?;
        if info.is_dir {
            return Err(shell_error(&Error::at(ErrorKind::IsADirectory, &from)));
        }
        let request = CopyRequest::new(from, target).overwrite();
        self.backend.copy(&self.cx, request).await.map(drop).map_err(|error| shell_error(&error))
    }

    async fn symlink(&self, _target: &Path, _link: &Path) -> FsResult<()> {
        Err(unsupported_error())
    }

    async fn read_link(&self, path: &Path) -> FsResult<PathBuf> {
        let path = self.resolve(path).await?;
        self.stat_path(&path).await.map_err(|error| shell_error(&error))?;
        // The backend resolves links, so a script sees no link.
        Err(io::Error::new(io::ErrorKind::InvalidInput, "Invalid argument").into())
    }

    async fn chmod(&self, path: &Path, _mode: u32) -> FsResult<()> {
        self.stat(path).await.map(drop)
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> FsResult<()> {
        let now = SystemTime::now();
        let distance = now.duration_since(time).unwrap_or_else(|later| later.duration());
        if distance > TOUCH_TOLERANCE {
            return Err(unsupported_error());
        }
        let at = self.resolve(path).await?;
        match self.stat_path(&at).await.map_err(|error| shell_error(&error))?.is_dir {
            true => Ok(()),
            false => self.append_file(path, b"").await,
        }
    }
}
