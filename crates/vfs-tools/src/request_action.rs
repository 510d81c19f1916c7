//! An action of one request, whose result or error is shown in the words of a profile.

use async_trait::async_trait;
use vfs_core::multi_modal::{FilePart, MultiModalReadRequest, MultiModalReadResult, read_multi_modal};
use vfs_core::operation::{RequestRef, UnaryRequest};
use vfs_core::{Error, ErrorKind, ReadRequest, ReadResult, StatRequest, VfsPath, WriteMode};

use crate::action::{Action, CallScope, Effect};
use crate::outcome::{Part, ToolOutcome};
use crate::result_metadata::{ResultMetadata, outcome_of};

/// Maximum size of an image or document that is shown: 10 MiB.
const MAX_FILE_BYTES: usize = 10 << 20;

/// Maximum number of reads for a window that is not too long.
const MAX_ATTEMPTS: u32 = 8;

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

/// One request, shown in the words `W`.
pub(crate) struct RequestAction<R: UnaryRequest, W> {
    request: R,
    words: W,
    show: fn(&W, &R, &R::Output, usize) -> ResultText,
    explain: fn(&W, &R, &Error) -> String,
    /// Returns the request if a long result is stored.
    if_stored: fn(R) -> R,
}

impl<R, W> RequestAction<R, W>
where
    R: UnaryRequest<Output: ResultMetadata>,
    W: Send + Sync + 'static,
{
    /// Creates an action that shows results by `show` within a number of characters, and errors by their own text. A result that says how
    /// to go on keeps to that number; the end of any other is cut.
    pub(crate) fn new(request: R, words: W, show: fn(&W, &R, &R::Output, usize) -> ResultText) -> Self {
        Self { request, words, show, explain: |_, _, error| error.for_model(), if_stored: |request| request }
    }

    /// Sets that errors are shown by `explain`.
    pub(crate) fn explain(mut self, explain: fn(&W, &R, &Error) -> String) -> Self {
        self.explain = explain;
        self
    }

    /// Sets the request that is sent if a long result is stored.
    pub(crate) fn if_stored(mut self, if_stored: fn(R) -> R) -> Self {
        self.if_stored = if_stored;
        self
    }

    pub(crate) fn boxed(self) -> Box<dyn Action> {
        Box::new(self)
    }
}

#[async_trait]
impl<R, W> Action for RequestAction<R, W>
where
    R: UnaryRequest<Output: ResultMetadata>,
    W: Send + Sync + 'static,
{
    fn effect(&self) -> Effect {
        let request = self.request.as_request_ref();
        Effect::new(request.class(), request.paths().cloned().collect())
    }

    fn changes(&self) -> Vec<VfsPath> {
        match self.request.as_request_ref() {
            RequestRef::Edit(edit) => vec![edit.path.clone()],
            RequestRef::Delete(delete) => vec![delete.path.clone()],
            RequestRef::Write(write) if write.mode != WriteMode::CreateNew => vec![write.path.clone()],
            _ => Vec::new(),
        }
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        let request = self.request.clone();
        let request = if scope.setup.stores_results() { (self.if_stored)(request) } else { request };
        match request.send(scope.backend, scope.cx).await {
            Ok(result) => outcome_of((self.show)(&self.words, &self.request, &result, scope.max_characters), result),
            Err(error) => {
                let error = error.or_path(&self.request.as_request_ref().primary_path());
                ToolOutcome::of_error(&error, (self.explain)(&self.words, &self.request, &error))
            }
        }
    }
}

/// A read that shows an image or document as it is.
pub(crate) struct MultiModalReadAction<W> {
    pub(crate) request: ReadRequest,
    pub(crate) words: W,
    pub(crate) show: fn(&W, &ReadRequest, &ReadResult) -> ResultText,
}

#[async_trait]
impl<W: Send + Sync + 'static> Action for MultiModalReadAction<W> {
    fn effect(&self) -> Effect {
        RequestAction::new(self.request.clone(), (), |(), _, _, _| ResultText::default()).effect()
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        let request = MultiModalReadRequest::new(self.request.clone());
        let outcome = read_and_show(scope, request, |result| (self.show)(&self.words, &self.request, result)).await;
        outcome.unwrap_or_else(|error| {
            let error = error.or_path(&self.request.path);
            ToolOutcome::of_error(&error, error.for_model())
        })
    }
}

/// Reads a file, of which text is shown by `show`, and an image or document as it is.
///
/// # Errors
///
/// Those of the backend, and `too_large` for an image or document over [`MAX_FILE_BYTES`].
pub(crate) async fn read_and_show(
    scope: &CallScope<'_>,
    mut request: MultiModalReadRequest,
    show: impl Fn(&ReadResult) -> ResultText,
) -> Result<ToolOutcome, Error> {
    let path = request.read.path.clone();
    for attempt in 1.. {
        let read = match scope.backend.as_multi_modal() {
            Some(reader) => reader.multi_modal_read(scope.cx, request.clone()).await?,
            None => read_multi_modal(scope.backend, scope.cx, request.clone()).await?,
        };
        match read {
            MultiModalReadResult::Content(result) => {
                let shown = show(&result);
                let (length, max) = (shown.text.chars().count(), scope.max_characters);
                // A shorter window says itself how to continue; a cut would leave out what it says is there.
                if length > max && attempt < MAX_ATTEMPTS {
                    let bytes = result.content.as_bytes().len().min(length).max(1);
                    let fitting = bytes as u64 * max as u64 / length as u64 * 9 / 10;
                    request.read.max_bytes = Some(fitting.max(1));
                    continue;
                }
                scope.session.show(&result.path, &result.version, None);
                return Ok(outcome_of(shown, result));
            }
            MultiModalReadResult::Parts(files) => return parts_outcome(scope, &path, files).await,
            _ => break,
        }
    }
    Err(Error::new(ErrorKind::Unsupported, "this kind of file cannot be shown"))
}

/// Returns an outcome with images or documents.
async fn parts_outcome(scope: &CallScope<'_>, path: &VfsPath, files: Vec<FilePart>) -> Result<ToolOutcome, Error> {
    if files.iter().any(|file| file.data.len() > MAX_FILE_BYTES) {
        let message = format!("the image or document has over {MAX_FILE_BYTES} bytes, too many to show");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    // The parts have no version.
    if scope.setup.reads_before_edits
        && let Some(version) = StatRequest::new(path.clone()).send(scope.backend, scope.cx).await?.version
    {
        scope.session.show(path, &version, None);
    }
    Ok(ToolOutcome { parts: files.into_iter().map(Part::File).collect(), ..ToolOutcome::default() })
}
