//! What a call does: one request, and its result as the text of a profile.

use vfs_core::multi_modal::{MultiModalReadRequest, MultiModalReadResult, read_multi_modal};
use vfs_core::operation::{OperationClass, RequestRef, UnaryRequest};
use vfs_core::{
    Backend, DeleteRequest, DeleteResult, EditRequest, EditResult, Error, ErrorKind, ExecuteRequest, ExecuteResponse,
    GlobRequest, GlobResult, GrepRequest, GrepResult, LsRequest, LsResult, OpContext, Problem, ReadRequest, ReadResult,
    VfsPath, WriteRequest, WriteResult,
};

use crate::outcome::{ChangedFile, FailureKind, Part, ToolOutcome};

/// What a call does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    List(LsRequest),
    Read(ReadRequest),
    Write(WriteRequest),
    Edit(EditRequest),
    Delete(DeleteRequest),
    Glob(GlobRequest),
    Search(GrepRequest),
    Execute(ExecuteRequest),
}

/// What a call will do, known before it does anything: for an approval, or for ordering parallel calls.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect {
    /// Whether the call only reads, changes files, or runs a command, which may change any file.
    pub class: OperationClass,
    /// The paths of its request.
    pub paths: Vec<VfsPath>,
}

/// Text of a result, and whether it leaves out something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResultText {
    pub(crate) text: String,
    pub(crate) is_truncated: bool,
}

impl ResultText {
    pub(crate) fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_truncated: false }
    }
}

/// The words in which a profile renders results and errors.
pub(crate) trait Wording: Send + Sync {
    fn listing(&self, request: &LsRequest, result: &LsResult) -> ResultText;
    fn window(&self, request: &ReadRequest, result: &ReadResult) -> ResultText;
    fn written(&self, result: &WriteResult) -> String;
    fn edited(&self, result: &EditResult) -> String;
    fn deleted(&self, result: &DeleteResult) -> String;
    fn found(&self, request: &GlobRequest, result: &GlobResult) -> ResultText;
    fn matches(&self, request: &GrepRequest, result: &GrepResult) -> ResultText;
    fn output(&self, response: &ExecuteResponse) -> ResultText;

    /// Returns the text of an error of `request`.
    fn error(&self, _request: RequestRef<'_>, error: &Error) -> String {
        error.for_model()
    }
}

impl Action {
    pub(crate) fn effect(&self) -> Effect {
        let request = self.as_request_ref();
        Effect { class: request.class(), paths: request.paths().cloned().collect() }
    }

    fn as_request_ref(&self) -> RequestRef<'_> {
        match self {
            Self::List(request) => RequestRef::Ls(request),
            Self::Read(request) => RequestRef::Read(request),
            Self::Write(request) => RequestRef::Write(request),
            Self::Edit(request) => RequestRef::Edit(request),
            Self::Delete(request) => RequestRef::Delete(request),
            Self::Glob(request) => RequestRef::Glob(request),
            Self::Search(request) => RequestRef::Grep(request),
            Self::Execute(request) => RequestRef::Execute(request),
        }
    }

    pub(crate) async fn perform(&self, backend: &dyn Backend, cx: &OpContext, wording: &dyn Wording) -> ToolOutcome {
        let outcome = self.try_perform(backend, cx, wording).await;
        outcome.unwrap_or_else(|error| {
            let request = self.as_request_ref();
            let error = error.or_path(&request.primary_path());
            ToolOutcome::of_error(&error, wording.error(request, &error))
        })
    }

    async fn try_perform(
        &self,
        backend: &dyn Backend,
        cx: &OpContext,
        wording: &dyn Wording,
    ) -> Result<ToolOutcome, Error> {
        Ok(match self {
            Self::List(request) => {
                let listed = request.clone().send(backend, cx).await?;
                shown(wording.listing(request, &listed), &listed.problems)
            }
            Self::Read(request) => match read(request.clone(), backend, cx).await? {
                MultiModalReadResult::Content(result) => shown(wording.window(request, &result), &[]),
                MultiModalReadResult::Parts(files) => {
                    if files.iter().any(|file| file.data.len() > MAX_FILE_BYTES) {
                        let message =
                            format!("the image or document has over {MAX_FILE_BYTES} bytes, too many to show");
                        return Err(Error::new(ErrorKind::TooLarge, message));
                    }
                    ToolOutcome { parts: files.into_iter().map(Part::File).collect(), ..ToolOutcome::default() }
                }
                _ => return Err(Error::new(ErrorKind::Unsupported, "this kind of file cannot be shown")),
            },
            Self::Glob(request) => {
                let found = request.clone().send(backend, cx).await?;
                shown(wording.found(request, &found), &found.problems)
            }
            Self::Search(request) => {
                let found = request.clone().send(backend, cx).await?;
                shown(wording.matches(request, &found), &found.problems)
            }
            Self::Write(request) => {
                let written = request.clone().send(backend, cx).await?;
                let changed = vec![ChangedFile::new(written.path.clone(), Some(written.version.clone()))];
                let outcome = ToolOutcome::text(wording.written(&written));
                ToolOutcome { changed, files_update: written.files_update, ..outcome }
            }
            Self::Edit(request) => {
                let edited = request.clone().send(backend, cx).await?;
                let changed = vec![ChangedFile::new(edited.path.clone(), Some(edited.version.clone()))];
                let outcome = ToolOutcome::text(wording.edited(&edited));
                ToolOutcome { changed, files_update: edited.files_update, ..outcome }
            }
            Self::Delete(request) => {
                let deleted = request.clone().send(backend, cx).await?;
                let changed = vec![ChangedFile::new(deleted.path.clone(), None)];
                let outcome = ToolOutcome::text(wording.deleted(&deleted));
                ToolOutcome { changed, files_update: deleted.files_update, ..outcome }
            }
            Self::Execute(request) => {
                let response = request.clone().send(backend, cx).await?;
                let failure = (response.exit_code != Some(0)).then_some(FailureKind::Command);
                ToolOutcome { failure, ..shown(wording.output(&response), &response.problems) }
            }
        })
    }
}

/// Maximum size of an image or document that is shown: 10 MiB.
const MAX_FILE_BYTES: usize = 10 << 20;

/// Maximum number of problems that are shown.
const MAX_PROBLEMS: usize = 3;

async fn read(request: ReadRequest, backend: &dyn Backend, cx: &OpContext) -> Result<MultiModalReadResult, Error> {
    let request = MultiModalReadRequest::new(request);
    match backend.as_multi_modal() {
        Some(reader) => reader.multi_modal_read(cx, request).await,
        None => read_multi_modal(backend, cx, request).await,
    }
}

/// Returns the outcome with this text, and a note for entries that could not be read.
fn shown(text: ResultText, problems: &[Problem]) -> ToolOutcome {
    let mut outcome = ToolOutcome { is_truncated: text.is_truncated, ..ToolOutcome::text(text.text) };
    if !problems.is_empty() {
        let described = problems.iter().take(MAX_PROBLEMS).map(|problem| {
            let message: String = problem.message.chars().take(200).collect();
            format!("'{}': {message}", problem.path.escape_debug())
        });
        let described: Vec<_> = described.collect();
        outcome.push_note(&format!("{} entries with problems, such as {}", problems.len(), described.join("; ")));
        outcome.is_truncated = true;
    }
    outcome
}
