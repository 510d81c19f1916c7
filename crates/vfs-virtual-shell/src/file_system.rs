//! The backend as the filesystem of an interpreter.

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
use vfs_core::{
    Access, Backend, CopyRequest, DeleteRequest, Error, ErrorKind, FileInfo, LsRequest, OpContext, RenameRequest,
    StatRequest, VfsPath, WriteMode, WriteRequest,
};

use crate::config::VirtualShellConfig;
use crate::directories::Directories;
use crate::faults::{told, unsupported};
use crate::stop::{Reason, Stop};

/// The files of one command line.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) cx: OpContext,
    pub(crate) config: VirtualShellConfig,
    pub(crate) stop: Arc<Stop>,
    pub(crate) made: Directories,
    pub(crate) read: AtomicU64,
    pub(crate) unfinished: Arc<Unfinished>,
}

/// What is brought to its end even where the command is dropped.
#[derive(Debug, Default)]
pub(crate) struct Unfinished(Mutex<JoinSet<()>>);

impl Unfinished {
    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work` on the runtime of the command.
    async fn run(&self, work: impl Future<Output = Result<(), Error>> + Send + 'static) -> Result<(), Error> {
        let (tell, done) = oneshot::channel();
        {
            let mut tasks = self.lock();
            while tasks.try_join_next().is_some() {}
            // Nobody waits for the answer where the command was dropped.
            tasks.spawn(async move { drop(tell.send(work.await)) });
        }
        done.await.unwrap_or_else(|_| Err(Error::of(ErrorKind::Internal)))
    }

    /// Waits for all of it.
    pub(crate) async fn finished(&self) {
        let tasks = std::mem::take(&mut *self.lock());
        tasks.join_all().await;
    }
}

type Answer<T> = Result<T, bashkit::Error>;

/// Where nothing is, and everything can be written to.
const NULL: &str = "/dev/null";

/// How far a time may be from now to be taken for now.
const NOW: Duration = Duration::from_secs(5);

impl Files {
    /// The path of the backend. Where the command is to stop, no file is touched any more: it waits here, and is dropped by
    /// who waits for it. An error instead would only make a search through many directories go on without them.
    async fn path(&self, path: &Path) -> Answer<VfsPath> {
        if self.stop.reason().is_some() {
            pending::<()>().await;
        }
        let text = path.to_str().ok_or_else(|| told(&Error::new(ErrorKind::InvalidPath, "the name is not UTF-8")))?;
        // A tilde that is still there after expansion is a character of a name.
        VfsPath::parse(&format!("/{text}")).map_err(|error| told(&error))
    }

    async fn info(&self, path: &VfsPath) -> Result<FileInfo, Error> {
        match self.backend.stat(&self.cx, StatRequest::new(path.clone())).await {
            Err(error) if error.kind() == ErrorKind::NotFound && self.made.contains(path) => {
                Ok(FileInfo::directory(path.clone()))
            }
            other => other,
        }
    }

    /// What is at `path`, where anything is.
    async fn info_or_none(&self, path: &VfsPath) -> Answer<Option<FileInfo>> {
        match self.info(path).await {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(told(&error)),
        }
    }

    async fn put(&self, path: &Path, content: &[u8], mode: WriteMode) -> Answer<()> {
        let path = self.path(path).await?;
        if path.as_str() == NULL {
            return Ok(());
        }
        if content.len() as u64 > self.config.max_file_bytes {
            return Err(told(&Error::of(ErrorKind::TooLarge)));
        }
        if self.made.contains(&path) && self.info_or_none(&path).await?.is_some_and(|info| info.is_dir) {
            return Err(told(&Error::at(ErrorKind::IsADirectory, &path)));
        }
        let request = WriteRequest::new(path, content.to_vec()).mode(mode);
        self.backend.write(&self.cx, request).await.map(drop).map_err(|error| told(&error))
    }

    /// Makes the one directory `path`, above which there is one.
    async fn make(&self, path: &VfsPath) -> Answer<()> {
        let capabilities = self.backend.capabilities(path);
        if capabilities.access == Access::ReadOnly {
            return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "Read-only file system").into());
        }
        if !capabilities.empty_directories {
            // It comes into being with the first file in it.
            let is_known = self.made.add(path.clone());
            return if is_known { Ok(()) } else { Err(told(&Error::of(ErrorKind::StorageFull))) };
        }
        // A directory comes with a file, and stays without it.
        let mark = RandomState::new().build_hasher().finish();
        let file = path.child(&format!(".new-directory-{mark:016x}")).map_err(|error| told(&error))?;
        let (backend, cx) = (Arc::clone(&self.backend), self.cx.clone());
        let made = self.unfinished.run(async move {
            let written = backend.write(&cx, WriteRequest::new(file.clone(), "")).await;
            // One that was cancelled may be there all the same.
            if let Err(error) = &written
                && !matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Timeout)
            {
                return written.map(drop);
            }
            let deleted = backend.delete(&cx.for_cleanup(), DeleteRequest::new(file)).await;
            written.and(deleted.map(drop))
        });
        made.await.map_err(|error| told(&error))
    }

    /// What was in a directory went: where that was the last, the directory stays for this command.
    fn keep_above(&self, path: &VfsPath) {
        if !self.backend.capabilities(path).empty_directories {
            self.made.add_above(path);
        }
    }

    async fn remove_directory(&self, path: &VfsPath, recursive: bool) -> Answer<()> {
        let was_made = self.made.contains(path);
        if !recursive && self.made.has_below(path) {
            return Err(told(&Error::of(ErrorKind::NotEmpty)));
        }
        let request = DeleteRequest::new(path.clone());
        let request = if recursive { request.recursive() } else { request.only_empty() };
        match self.backend.delete(&self.cx, request).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound && was_made => {}
            Err(error) => return Err(told(&error)),
        }
        self.made.remove(path);
        self.keep_above(path);
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
        // Nothing here has a mode, so everything may be run.
        mode: 0o755,
        modified,
        created: info.created_at.map_or(modified, SystemTime::from),
    }
}

fn null() -> Metadata {
    let epoch = SystemTime::UNIX_EPOCH;
    Metadata { file_type: FileType::File, size: 0, mode: 0o666, modified: epoch, created: epoch }
}

impl FileSystemExt for Files {
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
impl FileSystem for Files {
    async fn read_file(&self, path: &Path) -> Answer<Vec<u8>> {
        let path = self.path(path).await?;
        if path.as_str() == NULL {
            return Ok(Vec::new());
        }
        let info = self.info(&path).await.map_err(|error| told(&error))?;
        let refused = |kind| Err(told(&Error::at(kind, &path)));
        if info.is_dir {
            return refused(ErrorKind::IsADirectory);
        }
        if info.size > self.config.max_file_bytes {
            return refused(ErrorKind::TooLarge);
        }
        if self.read.fetch_add(info.size, Ordering::Relaxed).saturating_add(info.size) > self.config.max_read_bytes {
            self.stop.now(Reason::Limit("more bytes of files are read than may be"));
            pending::<()>().await;
        }
        let answers = self.backend.download_files(&self.cx, vec![path.clone()]).await;
        let answer = answers.into_iter().next();
        match answer.map(|answer| (answer.content, answer.cause)) {
            Some((Some(content), None)) => Ok(content.to_vec()),
            Some((_, Some(error))) => Err(told(&error)),
            _ => refused(ErrorKind::Internal),
        }
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Answer<()> {
        self.put(path, content, WriteMode::Overwrite).await
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Answer<()> {
        self.put(path, content, WriteMode::Append).await
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Answer<()> {
        let path = self.path(path).await?;
        let mut missing = Vec::new();
        let mut at = Some(path.clone());
        while let Some(directory) = at {
            match self.info_or_none(&directory).await? {
                Some(info) if !info.is_dir => {
                    let kind = if directory == path { ErrorKind::AlreadyExists } else { ErrorKind::NotADirectory };
                    return Err(told(&Error::at(kind, &directory)));
                }
                Some(_) => break,
                None => {}
            }
            at = directory.parent();
            missing.push(directory);
        }
        if !recursive && missing.len() != 1 {
            let kind = if missing.is_empty() { ErrorKind::AlreadyExists } else { ErrorKind::NotFound };
            return Err(told(&Error::at(kind, &path)));
        }
        for directory in missing.iter().rev() {
            self.make(directory).await?;
        }
        Ok(())
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Answer<()> {
        let path = self.path(path).await?;
        let plain = self.backend.delete(&self.cx, DeleteRequest::new(path.clone())).await;
        match plain.map_err(|error| (error.kind(), error)) {
            Ok(_) => {
                self.keep_above(&path);
                Ok(())
            }
            Err((ErrorKind::IsADirectory | ErrorKind::NotEmpty, _)) => self.remove_directory(&path, recursive).await,
            Err((ErrorKind::NotFound, _)) if self.made.contains(&path) => self.remove_directory(&path, recursive).await,
            Err((_, error)) => Err(told(&error)),
        }
    }

    async fn stat(&self, path: &Path) -> Answer<Metadata> {
        let path = self.path(path).await?;
        if path.as_str() == NULL {
            return Ok(null());
        }
        self.info(&path).await.map(|info| metadata(&info)).map_err(|error| told(&error))
    }

    async fn read_dir(&self, path: &Path) -> Answer<Vec<DirEntry>> {
        let path = self.path(path).await?;
        let request = LsRequest::new(path.clone()).limit(self.config.max_directory_entries);
        let listed = match self.backend.ls(&self.cx, request).await {
            Ok(listed) => listed,
            Err(error) if error.kind() == ErrorKind::NotFound && self.made.contains(&path) => Default::default(),
            Err(error) => return Err(told(&error)),
        };
        if listed.truncated.is_some() {
            return Err(io::Error::other("too many entries in the directory").into());
        }
        let mut made = self.made.names_in(&path);
        let mut entries = Vec::with_capacity(listed.entries.len() + made.len());
        for info in &listed.entries {
            let Some(name) = info.path.name() else { continue };
            made.remove(name);
            entries.push(DirEntry { name: name.to_owned(), metadata: metadata(info) });
        }
        let directory = metadata(&FileInfo::directory(path));
        entries.extend(made.into_iter().map(|name| DirEntry { name, metadata: directory.clone() }));
        Ok(entries)
    }

    async fn exists(&self, path: &Path) -> Answer<bool> {
        let path = self.path(path).await?;
        // A tool that edits in place looks for a free name beside the file, to write there and rename. If it may not look, it
        // writes to the file itself, which for a backend is one atomic change.
        if path.name().is_some_and(is_scratch_name) {
            return Err(unsupported());
        }
        Ok(path.as_str() == NULL || self.info_or_none(&path).await?.is_some())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Answer<()> {
        let (from, to) = (self.path(from).await?, self.path(to).await?);
        if to.as_str() == NULL || from.as_str() == NULL {
            return Err(unsupported());
        }
        let was_made = self.made.contains(&from);
        let request = RenameRequest::new(from.clone(), to.clone()).overwrite();
        match self.backend.rename(&self.cx, request).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound && was_made => {
                if self.info_or_none(&to).await?.is_some() {
                    return Err(told(&Error::already_exists(&to)));
                }
            }
            Err(error) => return Err(told(&error)),
        }
        self.made.rename(&from, &to);
        self.keep_above(&from);
        Ok(())
    }

    async fn copy(&self, from: &Path, to: &Path) -> Answer<()> {
        let (from, target) = (self.path(from).await?, self.path(to).await?);
        if target.as_str() == NULL || from.as_str() == NULL {
            let content = self.read_file(Path::new(from.as_str())).await?;
            return self.write_file(to, &content).await;
        }
        let info = self.info(&from).await.map_err(|error| told(&error))?;
        if info.is_dir {
            return Err(told(&Error::at(ErrorKind::IsADirectory, &from)));
        }
        let request = CopyRequest::new(from, target).overwrite();
        self.backend.copy(&self.cx, request).await.map(drop).map_err(|error| told(&error))
    }

    async fn symlink(&self, _target: &Path, _link: &Path) -> Answer<()> {
        Err(unsupported())
    }

    async fn read_link(&self, path: &Path) -> Answer<PathBuf> {
        let path = self.path(path).await?;
        self.info(&path).await.map_err(|error| told(&error))?;
        // What a link is here, it is for the backend: to a command it is what it leads to.
        Err(io::Error::new(io::ErrorKind::InvalidInput, "Invalid argument").into())
    }

    async fn chmod(&self, path: &Path, _mode: u32) -> Answer<()> {
        self.stat(path).await.map(drop)
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Answer<()> {
        let now = SystemTime::now();
        let distance = now.duration_since(time).unwrap_or_else(|later| later.duration());
        if distance > NOW {
            return Err(unsupported());
        }
        let at = self.path(path).await?;
        match self.info(&at).await.map_err(|error| told(&error))?.is_dir {
            true => Ok(()),
            false => self.append_file(path, b"").await,
        }
    }
}
