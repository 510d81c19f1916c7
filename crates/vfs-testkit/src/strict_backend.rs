//! Strict double: a wrapper that yields around every call and panics at malformed results.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use tokio::task::yield_now;
use vfs_core::{
    Backend, Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult, Error,
    ErrorKind, FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest,
    GlobResult, GrepEvent, GrepRequest, GrepResult, LsRequest, LsResult, MultiModalReader, OpContext,
    OpenWriterRequest, Problem, ReadRequest, ReadResult, RenameRequest, RenameResult, ResolveRequest, ResolveResult,
    Result, Shell, Snapshots, StatRequest, StreamingShell, TreeProvider, VfsPath, Watch, WriteRequest, WriteResult,
};

/// Wrapper of a backend that checks every result.
///
/// # Behaviour
///
/// * The double yields before and after every call and before every item of a stream, so that concurrent calls
///   interleave.
/// * The double panics at a result that is not well formed: an entry outside the requested path or out of order, more
///   entries than the limit, a missing response, an error that should name a path and does not, a problem without a
///   message, a command that ended in two ways or in none.
///
/// The double stands between a caller under test and a backend, or between the laws and a backend under test.
#[derive(Debug, Clone)]
pub struct StrictBackend {
    pub(crate) inner: Arc<dyn Backend>,
}

impl StrictBackend {
    /// Checks the results of `inner`.
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self { inner }
    }
}

impl fmt::Display for StrictBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "strict({})", self.inner)
    }
}

/// Returns whether an error of `kind` may be about no path: about a pattern or another argument, or about the call as a whole.
fn may_lack_a_path(kind: ErrorKind) -> bool {
    use ErrorKind::{Cancelled, InvalidArgument, InvalidPattern, Timeout};
    matches!(kind, Cancelled | InvalidArgument | InvalidPattern | Timeout)
}

fn check_error(error: &Error) {
    assert!(error.path().is_some() || may_lack_a_path(error.kind()), "an error names the path: {error:?}");
    assert!(!error.message().is_empty() && error.for_model().len() <= 2048, "an error has short words: {error:?}");
}

fn check_at(requested: &VfsPath, path: &VfsPath) {
    assert_eq!(requested, path, "a result is about the requested path");
}

fn check_info(info: &FileInfo) {
    assert_eq!(info.is_dir, info.version.is_none(), "files have versions, directories have none: {info:?}");
    assert!(!info.is_dir || info.size == 0, "a directory has no size: {info:?}");
}

fn check_entries(below: &VfsPath, limit: Option<u64>, entries: &[FileInfo]) {
    assert!(entries.is_sorted_by(|a, b| a.path < b.path), "entries are sorted and there once: {entries:?}");
    assert!(limit.is_none_or(|limit| entries.len() as u64 <= limit), "no more entries than the limit");
    for entry in entries {
        assert!(entry.path != *below && entry.path.starts_with(below), "{} is not below {below}", entry.path);
        check_info(entry);
    }
}

fn check_problems(problems: &[Problem]) {
    for problem in problems {
        assert!(
            problem.path.starts_with('/') && !problem.message.is_empty(),
            "a problem has a path and a message: {problem:?}"
        );
    }
}

fn check_grep(request: &GrepRequest, result: &GrepResult) {
    let places: Vec<_> = result.matches.iter().map(|line| (&line.path, line.line)).collect();
    assert!(places.is_sorted(), "matches are sorted by path, then line: {places:?}");
    for line in &result.matches {
        assert!(line.path.starts_with(&request.path), "{} is not at or below {}", line.path, request.path);
        assert!(line.line > 0, "lines are counted from 1: {line:?}");
        let text = line.text.as_str();
        assert!(line.submatches.iter().all(|place| text.get(place.start..place.end).is_some()), "{line:?}");
    }
    assert!(result.files.is_sorted_by(|a, b| a.path < b.path), "files are sorted and there once");
    check_problems(&result.problems);
}

/// Yields around a call and checks the error or, with `check`, the result.
async fn observed<T>(call: impl Future<Output = Result<T>>, check: impl FnOnce(&T)) -> Result<T> {
    yield_now().await;
    let result = call.await;
    match &result {
        Ok(value) => check(value),
        Err(error) => check_error(error),
    }
    yield_now().await;
    result
}

/// A writer whose calls yield, and whose results are checked.
#[derive(Debug)]
struct StrictWriter {
    path: VfsPath,
    writer: Box<dyn FileWriter>,
}

#[async_trait]
impl FileWriter for StrictWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<()> {
        observed(self.writer.write(chunk), |()| ()).await
    }

    async fn commit(&mut self) -> Result<WriteResult> {
        observed(self.writer.commit(), |result| check_at(&self.path, &result.path)).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for StrictBackend {
    fn capabilities(&self, at: &VfsPath) -> Capabilities {
        self.inner.capabilities(at)
    }

    async fn stat(&self, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
        let path = req.path.clone();
        observed(self.inner.stat(cx, req), |info| {
            check_at(&path, &info.path);
            check_info(info);
        })
        .await
    }

    async fn resolve(&self, cx: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
        observed(self.inner.resolve(cx, req), |_| ()).await
    }

    async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        let (path, limit) = (req.path.clone(), req.limit);
        observed(self.inner.ls(cx, req), |result| {
            check_entries(&path, limit, &result.entries);
            check_problems(&result.problems);
        })
        .await
    }

    async fn read(&self, cx: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        let path = req.path.clone();
        observed(self.inner.read(cx, req), |result| {
            check_at(&path, &result.path);
            let more = result.next_offset.is_some() || result.next_byte.is_some();
            assert!(more || result.truncated.is_none(), "a window that was cut has a next position: {result:?}");
        })
        .await
    }

    async fn write(&self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        let path = req.path.clone();
        observed(self.inner.write(cx, req), |result| check_at(&path, &result.path)).await
    }

    async fn open_writer(&self, cx: &OpContext, req: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        let path = req.path.clone();
        let writer = observed(self.inner.open_writer(cx, req), |_| ()).await?;
        Ok(Box::new(StrictWriter { path, writer }))
    }

    async fn edit(&self, cx: &OpContext, req: EditRequest) -> Result<EditResult> {
        let (path, diff) = (req.path.clone(), req.wants_diff());
        observed(self.inner.edit(cx, req), |result| {
            check_at(&path, &result.path);
            assert_eq!(result.diff.is_some(), diff, "a diff is there if it was requested");
            assert!(result.occurrences > 0, "an edit that replaced nothing is an error");
        })
        .await
    }

    async fn delete(&self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        let path = req.path.clone();
        observed(self.inner.delete(cx, req), |result| check_at(&path, &result.path)).await
    }

    async fn rename(&self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        let (from, to) = (req.from.clone(), req.to.clone());
        observed(self.inner.rename(cx, req), |result| {
            check_at(&from, &result.from);
            check_at(&to, &result.to);
        })
        .await
    }

    async fn copy(&self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        let (from, to) = (req.from.clone(), req.to.clone());
        observed(self.inner.copy(cx, req), |result| {
            check_at(&from, &result.from);
            check_at(&to, &result.to);
        })
        .await
    }

    async fn glob(&self, cx: &OpContext, req: GlobRequest) -> Result<GlobResult> {
        let (path, limit, kinds) = (req.path.clone(), req.limit, req.kinds);
        observed(self.inner.glob(cx, req), |result| {
            check_entries(&path, limit, &result.entries);
            check_problems(&result.problems);
            let requested = |entry: &FileInfo| if entry.is_dir { kinds.directories() } else { kinds.files() };
            assert!(result.entries.iter().all(requested), "only {kinds:?} were requested");
        })
        .await
    }

    async fn grep(&self, cx: &OpContext, req: GrepRequest) -> Result<GrepResult> {
        let request = req.clone();
        observed(self.inner.grep(cx, req), |result| check_grep(&request, result)).await
    }

    fn grep_stream(&self, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        let mut ended = false;
        self.inner
            .grep_stream(cx, req)
            .then(move |event| {
                assert!(!ended, "nothing comes after the end or an error: {event:?}");
                ended = matches!(event, Ok(GrepEvent::End(_)) | Err(_));
                if let Err(error) = &event {
                    check_error(error);
                }
                async {
                    yield_now().await;
                    event
                }
            })
            .boxed()
    }

    async fn upload_files(&self, cx: &OpContext, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        yield_now().await;
        let answers = self.inner.upload_files(cx, files).await;
        assert!(answers.iter().map(|answer| &answer.path).eq(&paths), "an answer for each file, in order");
        for answer in &answers {
            assert_eq!(answer.error.is_some(), answer.cause.is_some(), "word and cause come together: {answer:?}");
            assert_eq!(answer.error.is_none(), answer.version.is_some(), "either written or not: {answer:?}");
            answer.cause.iter().for_each(check_error);
        }
        answers
    }

    async fn download_files(&self, cx: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        let requested = paths.clone();
        yield_now().await;
        let answers = self.inner.download_files(cx, paths).await;
        assert!(answers.iter().map(|answer| &answer.path).eq(&requested), "an answer for each path, in order");
        for answer in &answers {
            assert_eq!(answer.error.is_some(), answer.cause.is_some(), "word and cause come together: {answer:?}");
            assert_eq!(answer.error.is_none(), answer.content.is_some(), "either read or not: {answer:?}");
            answer.cause.iter().for_each(check_error);
        }
        answers
    }

    fn as_shell(&self) -> Option<&dyn Shell> {
        self.inner.as_shell().map(|_| self as &dyn Shell)
    }

    fn as_streaming_shell(&self) -> Option<&dyn StreamingShell> {
        self.inner.as_streaming_shell().map(|_| self as &dyn StreamingShell)
    }

    fn as_multi_modal(&self) -> Option<&dyn MultiModalReader> {
        self.inner.as_multi_modal()
    }

    fn as_tree_provider(&self) -> Option<&dyn TreeProvider> {
        self.inner.as_tree_provider()
    }

    fn as_snapshots(&self) -> Option<&dyn Snapshots> {
        self.inner.as_snapshots()
    }

    fn as_watch(&self) -> Option<&dyn Watch> {
        self.inner.as_watch()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use vfs_core::GrepMatch;
    use vfs_core::search::Submatch;

    use super::*;

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("the path is valid")
    }

    fn file(at: &str) -> FileInfo {
        FileInfo::file(path(at), 1, "v1".into())
    }

    fn passes(check: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(check)).is_ok()
    }

    #[test]
    fn entries_are_below_sorted_once_and_within_the_limit() {
        for (entries, limit, expected) in [
            (vec![file("/d/a"), file("/d/b")], None, true),
            (vec![file("/d/a"), file("/d/b")], Some(2), true),
            (vec![file("/d/a"), file("/d/b")], Some(1), false),
            (vec![file("/d/b"), file("/d/a")], None, false),
            (vec![file("/d/a"), file("/d/a")], None, false),
            (vec![file("/d")], None, false),
            (vec![file("/dx/a")], None, false),
        ] {
            assert_eq!(passes(|| check_entries(&path("/d"), limit, &entries)), expected, "{entries:?} {limit:?}");
        }
    }

    #[test]
    fn an_error_names_its_path_unless_it_is_about_an_argument_or_the_call() {
        let missing = Error::not_found(&path("/a"));
        let nowhere = Error::new(ErrorKind::NotFound, "it does not exist");
        let pattern = Error::new(ErrorKind::InvalidPattern, "unclosed group");
        for (error, expected) in [(missing, true), (nowhere, false), (pattern, true)] {
            assert_eq!(passes(|| check_error(&error)), expected, "{error:?}");
        }
    }

    #[test]
    fn ranges_of_a_match_lie_in_its_text() {
        let mut hit = GrepMatch::new(path("/a"), 1, "é");
        for (start, end, expected) in [(0, 2, true), (0, 1, false), (0, 3, false)] {
            hit.submatches = [Submatch { start, end }].into();
            let mut result = GrepResult::default();
            result.matches.push(hit.clone());
            assert_eq!(passes(|| check_grep(&GrepRequest::literal("x"), &result)), expected, "{start}..{end}");
        }
    }
}
