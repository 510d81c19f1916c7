//! What a call of the memory tool does.

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream;
use vfs_core::operation::{OperationClass, UnaryRequest as _};
use vfs_core::{
    DeleteRequest, EditRequest, Error, ErrorKind, FileInfo, GlobResult, Problem, RenameRequest, ResolveRequest, Result,
    StatRequest, VfsPath, WriteRequest,
};

use super::root;
use super::wording::{insert_after, listing_header, listing_line};
use crate::action::{Action, CallScope, Effect};
use crate::line_window::{LineWindowError, NumberedLines, numbered_snippet, read_lines};
use crate::outcome::{ChangedFile, FailureKind, ToolOutcome};
use crate::profiles::claude_common::{does_not_exist, edit_failure, note_similar_line, short_path};
use crate::request_action::ResultText;
use crate::result_metadata::outcome_of;
use crate::text_file_edit::{InsertError, insert, lines_of, replace};
use crate::two_level_listing::{list_two_levels, listing_outcome};

/// Number of lines that are shown around a change.
const SNIPPET_LINES: u64 = 2;

/// Number of entries of a listing whose links are resolved at the same time.
const PARALLEL_RESOLVES: usize = 16;

/// A call of the memory tool.
pub(super) struct MemoryAction {
    pub(super) command: MemoryCommand,
}

/// A command with its arguments.
pub(super) enum MemoryCommand {
    View { path: VfsPath, range: Vec<i64> },
    Create { path: VfsPath, text: String },
    Replace(EditRequest),
    Insert { path: VfsPath, line: i64, text: String },
    Delete { path: VfsPath },
    Rename { from: VfsPath, to: VfsPath },
}

#[async_trait]
impl Action for MemoryAction {
    fn effect(&self) -> Effect {
        let class = match self.command {
            MemoryCommand::View { .. } => OperationClass::Read,
            _ => OperationClass::Write,
        };
        Effect::new(class, self.paths().into_iter().cloned().collect())
    }

    fn changes(&self) -> Vec<VfsPath> {
        match &self.command {
            MemoryCommand::Replace(_) | MemoryCommand::Insert { .. } | MemoryCommand::Delete { .. } => {
                self.paths().into_iter().cloned().collect()
            }
            _ => Vec::new(),
        }
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        for path in self.paths() {
            match is_memory(scope, path).await {
                Ok(true) => {}
                Ok(false) => return would_escape(path, ErrorKind::PathEscape),
                Err(error) if error.kind() == ErrorKind::PathEscape => return would_escape(path, error.kind()),
                Err(error) => return failed(error.or_path(path)),
            }
        }
        match &self.command {
            MemoryCommand::View { path, range } => view(scope, path, range).await,
            MemoryCommand::Create { path, text } => create(scope, path, text).await,
            MemoryCommand::Replace(edit) => replace_text(scope, edit).await,
            MemoryCommand::Insert { path, line, text } => insert_text(scope, path, *line, text).await,
            MemoryCommand::Delete { path } => delete(scope, path).await,
            MemoryCommand::Rename { from, to } => rename(scope, from, to).await,
        }
    }
}

impl MemoryAction {
    fn paths(&self) -> Vec<&VfsPath> {
        match &self.command {
            MemoryCommand::View { path, .. }
            | MemoryCommand::Create { path, .. }
            | MemoryCommand::Insert { path, .. }
            | MemoryCommand::Delete { path } => vec![path],
            MemoryCommand::Replace(edit) => vec![&edit.path],
            MemoryCommand::Rename { from, to } => vec![from, to],
        }
    }
}

/// Returns whether `path` leads to a file of the memory, and not through a link to another one.
async fn is_memory(scope: &CallScope<'_>, path: &VfsPath) -> Result<bool> {
    if !scope.backend.capabilities(path).links {
        return Ok(true);
    }
    let resolve = async |path: VfsPath| ResolveRequest::new(path).send(scope.backend, scope.cx).await;
    Ok(resolve(path.clone()).await?.path.starts_with(&resolve(root()).await?.path))
}

async fn view(scope: &CallScope<'_>, path: &VfsPath, range: &[i64]) -> ToolOutcome {
    let (first, last) = match range {
        [first, last] => (u64::try_from(*first).unwrap_or_default().max(1), u64::try_from(*last).ok()),
        _ => (1, None),
    };
    let read_last = last.map(|last| last.max(first));
    let (mut lines, note) = match read_lines(scope, path, first, read_last).await {
        Ok(window) => {
            let NumberedLines { text, note } = window.numbered(|line| line);
            (text, note)
        }
        Err(LineWindowError::PastEnd { total }) => (String::new(), Some(format!("the file has {total} lines"))),
        Err(LineWindowError::Backend(error)) if error.kind() == ErrorKind::IsADirectory => {
            return view_directory(scope, path).await;
        }
        // The memory is there before its first file is.
        Err(LineWindowError::Backend(error)) if error.is_absence() && *path == root() => {
            return ToolOutcome::text(listing_header(path));
        }
        Err(LineWindowError::Backend(error)) if error.is_absence() => return missing(path, &error),
        Err(LineWindowError::Backend(error)) => return failed(error.or_path(path)),
    };
    // A range that ends before it begins has no lines, and is no failure.
    if last.is_some_and(|last| last < first) {
        lines.clear();
    }
    with_note(ToolOutcome::default(), &format!("Here's the content of {path} with line numbers:"), lines, note)
}

async fn view_directory(scope: &CallScope<'_>, path: &VfsPath) -> ToolOutcome {
    match list_two_levels(scope, path).await {
        Ok(listing) => {
            let listing = without_foreign_entries(scope, listing).await;
            listing_outcome(listing_header(path), &listing, listing_line, "")
        }
        Err(error) => failed(error.or_path(path)),
    }
}

/// Removes links that lead to other files than those of the memory, and what is known of links that lead out of the backend. An entry
/// that cannot be resolved is a problem.
async fn without_foreign_entries(scope: &CallScope<'_>, mut listing: GlobResult) -> GlobResult {
    let checked = stream::iter(listing.entries).map(async |entry: FileInfo| {
        let is_memory = is_memory(scope, &entry.path).await;
        (entry, is_memory)
    });
    let checked: Vec<_> = checked.buffered(PARALLEL_RESOLVES).collect().await;
    listing.problems.retain(|problem| problem.code != ErrorKind::PathEscape);
    listing.entries = Vec::with_capacity(checked.len());
    for (entry, is_memory) in checked {
        match is_memory {
            Ok(true) => listing.entries.push(entry),
            Ok(false) => {}
            Err(error) if error.kind() == ErrorKind::PathEscape => {}
            Err(error) => listing.problems.push(Problem::from(error.or_path(&entry.path))),
        }
    }
    listing
}

async fn create(scope: &CallScope<'_>, path: &VfsPath, text: &str) -> ToolOutcome {
    match WriteRequest::new(path.clone(), text.to_owned()).send(scope.backend, scope.cx).await {
        Ok(result) => outcome_of(ResultText::whole(format!("File created successfully at: {path}")), result),
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::IsADirectory) => {
            ToolOutcome::of_error(&error, format!("File {} already exists", short_path(path)))
        }
        Err(error) => failed(error.or_path(path)),
    }
}

async fn replace_text(scope: &CallScope<'_>, edit: &EditRequest) -> ToolOutcome {
    let replaced = match replace(scope, edit).await {
        Ok(replaced) => replaced,
        Err(error) => {
            let numbers = |lines: &[u64]| {
                let lines: Vec<_> = lines.iter().map(u64::to_string).collect();
                format!(": {}.", lines.join(", "))
            };
            let occurrences = match (error.kind(), edit.replacements.first()) {
                (ErrorKind::NotUnique, Some(replacement)) => lines_of(scope, &edit.path, &replacement.old).await,
                _ => None,
            };
            let Some(text) = edit_failure(edit, &error, occurrences.as_deref(), numbers) else {
                return edit_failed(&edit.path, error);
            };
            let mut outcome = ToolOutcome::of_error(&error, text);
            note_similar_line(&mut outcome, &error);
            return outcome;
        }
    };
    let edited = "The memory file has been edited.";
    match replaced.content {
        Some((content, line)) => {
            let lines = (line.saturating_sub(SNIPPET_LINES) + 1, line + SNIPPET_LINES + 1);
            let NumberedLines { text, note } = numbered_snippet(scope, &edit.path, &content, lines, |line| line);
            let header = format!("{edited} Here is the snippet showing the change (with line numbers):");
            with_note(outcome_of(ResultText::default(), replaced.result), &header, text, note)
        }
        None => outcome_of(ResultText::whole(edited), replaced.result),
    }
}

async fn insert_text(scope: &CallScope<'_>, path: &VfsPath, line: i64, text: &str) -> ToolOutcome {
    match insert(scope, path, |content, line_break| insert_after(content, line_break, line, text)).await {
        Ok((result, _)) => outcome_of(ResultText::whole(format!("The file {path} has been edited.")), result),
        Err(InsertError::NoSuchLine { last }) => {
            let text = format!("Invalid `insert_line` parameter: {line}. It should be within the range [0, {last}].");
            ToolOutcome::failed(FailureKind::InvalidArguments, text)
        }
        Err(InsertError::Backend(error)) => edit_failed(path, error),
    }
}

async fn delete(scope: &CallScope<'_>, path: &VfsPath) -> ToolOutcome {
    match DeleteRequest::new(path.clone()).recursive().send(scope.backend, scope.cx).await {
        Ok(result) => outcome_of(ResultText::whole(format!("Successfully deleted {path}")), result),
        Err(error) if error.is_absence() => {
            ToolOutcome::of_error(&error, format!("The path {} does not exist", short_path(path)))
        }
        Err(error) => failed(error.or_path(path)),
    }
}

async fn rename(scope: &CallScope<'_>, from: &VfsPath, to: &VfsPath) -> ToolOutcome {
    match RenameRequest::new(from.clone(), to.clone()).send(scope.backend, scope.cx).await {
        Ok(result) => {
            let mut changed = vec![ChangedFile::new(from.clone(), None)];
            // A directory has no version, and its files are too many to be named.
            if let Ok(FileInfo { version: Some(version), .. }) =
                StatRequest::new(to.clone()).send(scope.backend, scope.cx).await
            {
                changed.push(ChangedFile::new(to.clone(), Some(version)));
            }
            let text = format!("Successfully renamed {from} to {to}");
            ToolOutcome { changed, files_update: result.files_update, ..ToolOutcome::text(text) }
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            ToolOutcome::of_error(&error, format!("The destination {} already exists", short_path(to)))
        }
        // A target below a file is absent, too.
        Err(error)
            if error.kind() == ErrorKind::NotFound || error.path() == Some(from.as_str()) && error.is_absence() =>
        {
            ToolOutcome::of_error(&error, format!("The path {} does not exist", short_path(from)))
        }
        Err(error) => failed(error.or_path(from)),
    }
}

fn edit_failed(path: &VfsPath, error: Error) -> ToolOutcome {
    match error.kind() {
        kind if kind.is_absence() => missing(path, &error),
        ErrorKind::IsADirectory => {
            ToolOutcome::of_error(&error, format!("The path {} is not a file.", short_path(path)))
        }
        _ => failed(error.or_path(path)),
    }
}

fn missing(path: &VfsPath, error: &Error) -> ToolOutcome {
    ToolOutcome::of_error(error, does_not_exist(path))
}

fn would_escape(path: &VfsPath, kind: ErrorKind) -> ToolOutcome {
    let text = format!("Path {} would escape /memories directory", short_path(path));
    ToolOutcome::failed(FailureKind::Backend(kind), text)
}

fn failed(error: Error) -> ToolOutcome {
    ToolOutcome::of_error(&error, error.for_model())
}

/// Returns `outcome` with `lines` below `header`.
fn with_note(outcome: ToolOutcome, header: &str, lines: String, note: Option<String>) -> ToolOutcome {
    let text = ToolOutcome::text(format!("{header}\n{lines}"));
    let is_truncated = note.as_ref().is_some_and(|note| note.starts_with("truncated"));
    let mut outcome = ToolOutcome { parts: text.parts, is_truncated, ..outcome };
    if let Some(note) = note {
        outcome.push_note(&note);
    }
    outcome
}
