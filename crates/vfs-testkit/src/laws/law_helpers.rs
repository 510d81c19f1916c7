//! Helper functions of the laws.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use vfs_core::search::LineKind;
use vfs_core::{
    Backend, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error, ErrorKind, FileInfo,
    GlobRequest, GlobResult, GrepMatch, GrepRequest, GrepResult, LsRequest, LsResult, OpContext, ReadRequest,
    ReadResult, RenameRequest, RenameResult, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest,
    WriteResult,
};

use crate::target::Target;

/// Time after which a law counts as hung. It is no expectation of speed: a law of bounded work uses an input on which
/// unbounded work takes far longer, or more memory than the machine has.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a context with default settings.
pub(crate) fn cx() -> OpContext {
    OpContext::new()
}

/// Runs `work` to its end, and fails the law if it hangs.
pub(crate) async fn ends<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(HANG_TIMEOUT, work).await {
        Ok(value) => value,
        Err(_) => panic!("{what} has not ended after {HANG_TIMEOUT:?}"),
    }
}

impl Target {
    /// Returns a handle that a task can own.
    pub(crate) fn shared(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    /// Writes a file, replacing an existing one.
    pub(crate) async fn put(&self, path: &str, content: impl Into<Bytes>) -> Result<Version> {
        let request = WriteRequest::new(self.path(path), content).mode(WriteMode::Overwrite);
        Ok(self.write(request).await?.version)
    }

    /// Writes small files, each with its own path and a line end as content.
    pub(crate) async fn put_each(&self, paths: &[&str]) -> Result<()> {
        for path in paths {
            self.put(path, format!("{path}\n")).await?;
        }
        Ok(())
    }

    /// Returns all bytes of a file.
    pub(crate) async fn bytes(&self, path: &str) -> Result<Bytes> {
        let mut answers = self.backend.download_files(&cx(), vec![self.path(path)]).await;
        let answer = answers.pop().expect("an answer for each path");
        match (answer.content, answer.cause) {
            (Some(content), None) => Ok(content),
            (None, Some(cause)) => Err(cause),
            other => panic!("a download is either content or a cause: {other:?}"),
        }
    }

    /// Returns all text of a file.
    pub(crate) async fn text(&self, path: &str) -> Result<String> {
        let result = self.read(ReadRequest::new(self.path(path))).await?;
        Ok(result.content.as_text().expect("the content is text").to_owned())
    }

    /// Returns whether something is at `path`.
    pub(crate) async fn has(&self, path: &str) -> Result<bool> {
        match self.stat(path).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_absence() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the paths of all entries, at every level.
    pub(crate) async fn tree(&self) -> Result<Vec<String>> {
        Ok(self.names(&self.ls(LsRequest::new(self.base.clone()).recursive()).await?.entries))
    }

    pub(crate) async fn stat(&self, path: &str) -> Result<FileInfo> {
        self.backend.stat(&cx(), StatRequest::new(self.path(path))).await
    }

    pub(crate) async fn ls(&self, request: LsRequest) -> Result<LsResult> {
        self.backend.ls(&cx(), request).await
    }

    pub(crate) async fn read(&self, request: ReadRequest) -> Result<ReadResult> {
        self.backend.read(&cx(), request).await
    }

    pub(crate) async fn write(&self, request: WriteRequest) -> Result<WriteResult> {
        self.backend.write(&cx(), request).await
    }

    pub(crate) async fn edit(&self, request: EditRequest) -> Result<EditResult> {
        self.backend.edit(&cx(), request).await
    }

    pub(crate) async fn delete(&self, request: DeleteRequest) -> Result<DeleteResult> {
        self.backend.delete(&cx(), request).await
    }

    pub(crate) async fn rename(&self, request: RenameRequest) -> Result<RenameResult> {
        self.backend.rename(&cx(), request).await
    }

    pub(crate) async fn copy(&self, request: CopyRequest) -> Result<CopyResult> {
        self.backend.copy(&cx(), request).await
    }

    /// Globs below the target's base, unless the request names a path.
    pub(crate) async fn glob(&self, request: GlobRequest) -> Result<GlobResult> {
        let path = self.search_path(&request.path);
        self.backend.glob(&cx(), request.path(path)).await
    }

    /// Returns the paths that match `pattern` below the base.
    pub(crate) async fn found(&self, pattern: &str) -> Result<Vec<String>> {
        Ok(self.names(&self.glob(GlobRequest::new(pattern)).await?.entries))
    }

    /// Searches below the target's base, unless the request names a path.
    pub(crate) async fn grep(&self, request: GrepRequest) -> Result<GrepResult> {
        let path = self.search_path(&request.path);
        self.backend.grep(&cx(), request.path(path)).await
    }

    /// Returns the lines of a search as a terminal shows them: `/path:1:match` and `/path-2-context`.
    pub(crate) async fn hits(&self, request: GrepRequest) -> Result<Vec<String>> {
        Ok(self.lines(&self.grep(request).await?.matches))
    }

    fn search_path(&self, requested: &VfsPath) -> VfsPath {
        if requested.is_root() { self.base.clone() } else { requested.clone() }
    }

    /// Returns `path` as the law wrote it.
    pub(crate) fn name(&self, path: &VfsPath) -> String {
        let relative = path.strip_prefix(&self.base).expect("results are at or below the base");
        format!("/{relative}")
    }

    pub(crate) fn names(&self, entries: &[FileInfo]) -> Vec<String> {
        entries.iter().map(|entry| self.name(&entry.path)).collect()
    }

    pub(crate) fn lines(&self, matches: &[GrepMatch]) -> Vec<String> {
        matches
            .iter()
            .map(|line| {
                let mark = if line.kind == LineKind::Match { ':' } else { '-' };
                format!("{}{mark}{}{mark}{}", self.name(&line.path), line.line, line.text)
            })
            .collect()
    }

    /// Asserts that `result` is an error of `kind` that is fit to be shown.
    #[track_caller]
    pub(crate) fn refused<T: Debug>(&self, result: Result<T>, kind: ErrorKind) -> Error {
        self.refused_as(result, &[kind])
    }

    /// Asserts that `result` is an error of one of `kinds` that is fit to be shown.
    #[track_caller]
    pub(crate) fn refused_as<T: Debug>(&self, result: Result<T>, kinds: &[ErrorKind]) -> Error {
        let error = match result {
            Ok(value) => panic!("expected {kinds:?}, but it was accepted: {value:?}"),
            Err(error) => error,
        };
        assert!(kinds.contains(&error.kind()), "expected {kinds:?}, but got {error:?}");
        self.assert_fit_to_be_shown(&error);
        error
    }

    /// Asserts the properties of every error: short for a model, one line for an operator, without paths of the host.
    #[track_caller]
    pub(crate) fn assert_fit_to_be_shown(&self, error: &Error) {
        let words = error.for_model();
        assert!(!words.is_empty() && words.len() <= 2048, "{} bytes for the model: {error:?}", words.len());
        let line = error.to_string();
        assert!(!line.contains('\n') && line.len() <= 4096, "not one short line: {line:?}");
        let json = serde_json::to_string(error).expect("errors have a form in JSON");
        if let Some(marker) = &self.host_marker {
            assert!(!words.contains(marker.as_str()), "a host path in {words:?}");
            assert!(!json.contains(marker.as_str()), "a host path in {json}");
        }
    }
}
