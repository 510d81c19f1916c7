//! What an outcome has of a result beside its text.

use vfs_core::state::FilesUpdate;
use vfs_core::{
    DeleteResult, EditResult, ExecuteResponse, GlobResult, GrepResult, LsResult, Problem, ReadResult, WriteResult,
};

use crate::outcome::{ChangedFile, FailureKind, ToolOutcome};
use crate::request_action::ResultText;

/// Maximum number of problems that are shown.
const MAX_PROBLEMS: usize = 3;

/// What an outcome has of a result beside its text.
pub(crate) trait ResultMetadata {
    /// Takes the files that the request changed.
    fn take_changes(&mut self) -> ResultChanges {
        ResultChanges::default()
    }

    /// Returns the entries that could not be read.
    fn problems(&self) -> &[Problem] {
        &[]
    }

    /// Returns why the result is a failure, if it is one.
    fn failure(&self) -> Option<FailureKind> {
        None
    }
}

/// The changes of a result.
#[derive(Debug, Default)]
pub(crate) struct ResultChanges {
    pub(crate) files: Vec<ChangedFile>,
    pub(crate) files_update: Option<FilesUpdate>,
}

/// Returns the outcome of `result`, which is shown as `shown`, with a note for entries that could not be read.
pub(crate) fn outcome_of(shown: ResultText, mut result: impl ResultMetadata) -> ToolOutcome {
    let ResultChanges { files, files_update } = result.take_changes();
    let mut outcome = ToolOutcome {
        is_truncated: shown.is_truncated,
        failure: result.failure(),
        changed: files,
        files_update,
        ..ToolOutcome::text(shown.text)
    };
    note_problems(&mut outcome, result.problems());
    outcome
}

/// Appends a note for entries that could not be read.
pub(crate) fn note_problems(outcome: &mut ToolOutcome, problems: &[Problem]) {
    if problems.is_empty() {
        return;
    }
    let described = problems.iter().take(MAX_PROBLEMS).map(|problem| {
        let path: String = problem.path.escape_debug().take(200).collect();
        format!("'{path}': {}", problem.message.chars().take(200).collect::<String>())
    });
    let described: Vec<_> = described.collect();
    let entries = if problems.len() == 1 { "entry" } else { "entries" };
    outcome.push_note(&format!("{} {entries} with problems, such as {}", problems.len(), described.join("; ")));
    outcome.is_truncated = true;
}

impl ResultMetadata for ReadResult {}

impl ResultMetadata for LsResult {
    fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl ResultMetadata for GlobResult {
    fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl ResultMetadata for GrepResult {
    fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl ResultMetadata for WriteResult {
    fn take_changes(&mut self) -> ResultChanges {
        let file = ChangedFile::new(self.path.clone(), Some(self.version.clone()));
        ResultChanges { files: vec![file], files_update: self.files_update.take() }
    }
}

impl ResultMetadata for EditResult {
    fn take_changes(&mut self) -> ResultChanges {
        let file = ChangedFile::new(self.path.clone(), Some(self.version.clone()));
        ResultChanges { files: vec![file], files_update: self.files_update.take() }
    }
}

impl ResultMetadata for DeleteResult {
    fn take_changes(&mut self) -> ResultChanges {
        ResultChanges { files: vec![ChangedFile::new(self.path.clone(), None)], files_update: self.files_update.take() }
    }
}

impl ResultMetadata for ExecuteResponse {
    fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn failure(&self) -> Option<FailureKind> {
        (self.exit_code != Some(0)).then_some(FailureKind::Command)
    }
}
