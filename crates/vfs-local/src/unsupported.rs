//! The API of this crate on systems other than Linux, where no backend can be opened.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest,
    GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, OpContext, OpenWriterRequest, ReadRequest,
    ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result, StatRequest, VfsPath, WriteRequest,
    WriteResult,
};

use crate::config::LocalConfig;
use crate::config::policies::FileLockMode;

/// A backend over files on a local disk. It needs Linux: on this system it cannot be opened.
#[derive(Debug, Clone)]
pub struct LocalBackend {
    never: Infallible,
}

impl LocalBackend {
    /// Fails on this system.
    ///
    /// # Errors
    ///
    /// `unsupported`.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        LocalConfig::new(root).open()
    }

    /// Fails on this system.
    ///
    /// # Errors
    ///
    /// `unsupported`.
    pub fn host(base: impl AsRef<Path>) -> Result<Self> {
        LocalConfig::host(base).open()
    }

    /// Returns the settings that this backend was opened with.
    pub fn config(&self) -> &LocalConfig {
        match self.never {}
    }

    /// Parses a path as a person writes it at a terminal.
    ///
    /// # Errors
    ///
    /// As [`VfsPath::parse`].
    pub fn resolve(&self, _text: &str) -> Result<VfsPath> {
        match self.never {}
    }

    /// Locks the file at a path.
    ///
    /// # Errors
    ///
    /// `busy` if the file is still locked.
    pub async fn lock_file(&self, _cx: &OpContext, _path: &VfsPath, _mode: FileLockMode) -> Result<FileLock> {
        match self.never {}
    }

    /// Locks the file at a path without waiting.
    ///
    /// # Errors
    ///
    /// As [`lock_file`](Self::lock_file), except for `busy`.
    pub async fn try_lock_file(
        &self,
        _cx: &OpContext,
        _path: &VfsPath,
        _mode: FileLockMode,
    ) -> Result<Option<FileLock>> {
        match self.never {}
    }

    /// Returns whether this process can create files in the directory at a path.
    ///
    /// # Errors
    ///
    /// The errors of opening the directory.
    pub async fn can_create_in(&self, _cx: &OpContext, _path: &VfsPath) -> Result<bool> {
        match self.never {}
    }
}

impl LocalConfig {
    /// Fails on this system.
    ///
    /// # Errors
    ///
    /// `unsupported`.
    pub fn open(self) -> Result<LocalBackend> {
        Err(Error::new(
            ErrorKind::Unsupported,
            "files on a local disk need Linux, whose kernel confines them to a directory; run this program on Linux, or \
             use a memory, store or remote backend",
        ))
    }
}

impl fmt::Display for LocalBackend {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}

#[async_trait]
impl Backend for LocalBackend {
    fn capabilities(&self, _: &VfsPath) -> Capabilities {
        match self.never {}
    }

    async fn stat(&self, _: &OpContext, _: StatRequest) -> Result<FileInfo> {
        match self.never {}
    }

    async fn resolve(&self, _: &OpContext, _: ResolveRequest) -> Result<ResolveResult> {
        match self.never {}
    }

    async fn ls(&self, _: &OpContext, _: LsRequest) -> Result<LsResult> {
        match self.never {}
    }

    async fn read(&self, _: &OpContext, _: ReadRequest) -> Result<ReadResult> {
        match self.never {}
    }

    async fn write(&self, _: &OpContext, _: WriteRequest) -> Result<WriteResult> {
        match self.never {}
    }

    async fn open_writer(&self, _: &OpContext, _: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        match self.never {}
    }

    async fn edit(&self, _: &OpContext, _: EditRequest) -> Result<EditResult> {
        match self.never {}
    }

    async fn delete(&self, _: &OpContext, _: DeleteRequest) -> Result<DeleteResult> {
        match self.never {}
    }

    async fn rename(&self, _: &OpContext, _: RenameRequest) -> Result<RenameResult> {
        match self.never {}
    }

    async fn copy(&self, _: &OpContext, _: CopyRequest) -> Result<CopyResult> {
        match self.never {}
    }

    async fn glob(&self, _: &OpContext, _: GlobRequest) -> Result<GlobResult> {
        match self.never {}
    }

    async fn grep(&self, _: &OpContext, _: GrepRequest) -> Result<GrepResult> {
        match self.never {}
    }

    fn grep_stream(&self, _: OpContext, _: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        match self.never {}
    }

    async fn upload_files(&self, _: &OpContext, _: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        match self.never {}
    }

    async fn download_files(&self, _: &OpContext, _: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        match self.never {}
    }
}

/// A lock of a file, released when it is dropped or the process ends.
#[derive(Debug)]
pub struct FileLock {
    _never: Infallible,
}

/// A cache of searches, which stays empty on this system.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SearchCache;

impl SearchCache {
    /// Size limit of [`SearchCache::global`], in bytes.
    pub const DEFAULT_MAX_BYTES: usize = 48 << 20;

    /// Creates a separate cache.
    pub fn new(_max_bytes: usize) -> Self {
        Self
    }

    /// Creates a separate cache of files that have been unchanged for at least `settled`.
    pub fn of_unchanged(_max_bytes: usize, _settled: Duration) -> Self {
        Self
    }

    /// Returns the cache that all backends of the process share unless they are given another one.
    pub fn global() -> &'static Self {
        &Self
    }

    /// Returns the number of files whose content is cached.
    pub fn files(&self) -> usize {
        0
    }

    /// Returns the approximate size in bytes.
    pub fn bytes(&self) -> usize {
        0
    }
}

/// Returns how this host weakens the guarantees for changes by several processes. On this system there are none.
pub fn weakness_between_processes() -> Option<String> {
    None
}
