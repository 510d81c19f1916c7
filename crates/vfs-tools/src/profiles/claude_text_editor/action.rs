//! What a call of the text editor does.

use async_trait::async_trait;
use vfs_core::operation::{OperationClass, UnaryRequest as _};
use vfs_core::{EditRequest, Error, ErrorKind, VfsPath, WriteRequest};

use crate::action::{Action, CallScope, Effect};
use crate::line_window::{LineWindowError, NumberedLines, numbered_snippet, read_lines};
use crate::outcome::{FailureKind, ToolOutcome};
use crate::profiles::claude_common::{does_not_exist, edit_failure, note_similar_line, short_path};
use crate::request_action::ResultText;
use crate::result_metadata::outcome_of;
use crate::text_file_edit::{InsertError, insert, line_start, replace};
use crate::two_level_listing::{list_two_levels, listing_outcome};

/// Number of lines that are shown around a change.
const SNIPPET_LINES: u64 = 4;

/// A call of the text editor.
pub(super) struct EditorAction {
    pub(super) path: VfsPath,
    pub(super) command: EditorCommand,
}

/// A command with its arguments.
pub(super) enum EditorCommand {
    View { range: Vec<i64> },
    Create { text: String },
    Replace(EditRequest),
    Insert { line: i64, text: String },
}

#[async_trait]
impl Action for EditorAction {
    fn effect(&self) -> Effect {
        let class = match self.command {
            EditorCommand::View { .. } => OperationClass::Read,
            _ => OperationClass::Write,
        };
        Effect::new(class, vec![self.path.clone()])
    }

    fn changes(&self) -> Vec<VfsPath> {
        match self.command {
            EditorCommand::Replace(_) | EditorCommand::Insert { .. } => vec![self.path.clone()],
            EditorCommand::View { .. } | EditorCommand::Create { .. } => Vec::new(),
        }
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        match &self.command {
            EditorCommand::View { range } => self.view(scope, range).await,
            EditorCommand::Create { text } => self.create(scope, text).await,
            EditorCommand::Replace(edit) => self.replace(scope, edit).await,
            EditorCommand::Insert { line, text } => self.insert(scope, *line, text).await,
        }
    }
}

impl EditorAction {
    async fn view(&self, scope: &CallScope<'_>, range: &[i64]) -> ToolOutcome {
        let (first, last) = match range {
            [] => (1, -1),
            [first, last] => (*first, *last),
            _ => return invalid("Invalid `view_range`. It should be a list of two integers."),
        };
        // The number of lines, which the texts of the protocol have, is not known before the read.
        let from = u64::try_from(first).unwrap_or_default().max(1);
        let to = u64::try_from(last).ok().map(|last| last.max(from));
        let window = match read_lines(scope, &self.path, from, to).await {
            Ok(window) => window,
            Err(LineWindowError::Backend(error)) if error.kind() == ErrorKind::IsADirectory => {
                return self.view_directory(scope, range).await;
            }
            Err(LineWindowError::Backend(error)) => return self.failed(error),
            Err(LineWindowError::PastEnd { total }) => return invalid(&first_out_of_range(range, first, Some(total))),
        };
        if first < 1 {
            let total = match window.total {
                Some(total) => Some(total),
                None => read_lines(scope, &self.path, 1, None).await.ok().and_then(|window| window.total),
            };
            return invalid(&first_out_of_range(range, first, total));
        }
        if let Some(total) = window.total.and_then(|total| i64::try_from(total).ok()).filter(|total| last > *total) {
            return invalid(&format!(
                "Invalid `view_range`: {range:?}. Its second element `{last}` should be smaller than the number of lines in the file: \
                 `{total}`"
            ));
        }
        if last != -1 && last < first {
            return invalid(&format!(
                "Invalid `view_range`: {range:?}. Its second element `{last}` should be larger or equal than its first `{first}`"
            ));
        }
        with_note(ToolOutcome::default(), "", self.path.as_str(), window.numbered(without_cr), "")
    }

    async fn view_directory(&self, scope: &CallScope<'_>, range: &[i64]) -> ToolOutcome {
        if !range.is_empty() {
            return invalid("The `view_range` parameter is not allowed when `path` points to a directory.");
        }
        let path = &self.path;
        match list_two_levels(scope, path).await {
            Ok(listing) => {
                let header = format!(
                    "Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:\n{path}"
                );
                listing_outcome(header, &listing, |entry| entry.path.to_string(), "\n\n")
            }
            Err(error) => self.failed(error),
        }
    }

    async fn create(&self, scope: &CallScope<'_>, text: &str) -> ToolOutcome {
        let path = &self.path;
        match WriteRequest::new(path.clone(), text.to_owned()).send(scope.backend, scope.cx).await {
            Ok(result) => outcome_of(ResultText::whole(format!("File created successfully at: {path}")), result),
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::IsADirectory) => {
                let path = short_path(path);
                let text = format!("File already exists at: {path}. Cannot overwrite files using command `create`.");
                ToolOutcome::of_error(&error, text)
            }
            Err(error) => {
                let error = error.or_path(path);
                ToolOutcome::of_error(&error, error.for_model())
            }
        }
    }

    async fn replace(&self, scope: &CallScope<'_>, edit: &EditRequest) -> ToolOutcome {
        let path = &self.path;
        let replaced = match replace(scope, edit).await {
            Ok(replaced) => replaced,
            Err(error) => {
                let failure = edit_failure(edit, &error, None, |lines| format!(" {lines:?}."));
                let Some(text) = failure else { return self.failed(error) };
                let mut outcome = ToolOutcome::of_error(&error, text);
                note_similar_line(&mut outcome, &error);
                return outcome;
            }
        };
        let edited = format!("The file {path} has been edited. ");
        let review = "Review the changes and make sure they are as expected. Edit the file again if necessary.";
        match replaced.content {
            Some((content, line)) => {
                let added = edit.replacements.first().map_or(0, |replacement| replacement.new.matches('\n').count());
                let lines = (line.saturating_sub(SNIPPET_LINES) + 1, line + SNIPPET_LINES + added as u64 + 1);
                let snippet = numbered_snippet(scope, path, &content, lines, without_cr);
                let outcome = outcome_of(ResultText::default(), replaced.result);
                with_note(outcome, &edited, &format!("a snippet of {path}"), snippet, review)
            }
            None => outcome_of(ResultText::whole(format!("{edited}{review}")), replaced.result),
        }
    }

    async fn insert(&self, scope: &CallScope<'_>, line: i64, text: &str) -> ToolOutcome {
        let inserted = insert(scope, &self.path, |content, line_break| insert_before(content, line_break, line, text));
        match inserted.await {
            Ok((result, content)) => {
                let line = u64::try_from(line).unwrap_or_default();
                let added = text.matches('\n').count() as u64 + 1;
                let lines = (line.saturating_sub(SNIPPET_LINES) + 1, line + added + SNIPPET_LINES);
                let snippet = numbered_snippet(scope, &self.path, &content, lines, without_cr);
                with_note(
                    outcome_of(ResultText::default(), result),
                    &format!("The file {} has been edited. ", self.path),
                    "a snippet of the edited file",
                    snippet,
                    "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the \
                     file again if necessary.",
                )
            }
            Err(InsertError::NoSuchLine { last }) => invalid(&format!(
                "Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {last}]"
            )),
            Err(InsertError::Backend(error)) => self.failed(error),
        }
    }

    /// Returns the outcome of a failure of any command but `create`.
    fn failed(&self, error: Error) -> ToolOutcome {
        let error = error.or_path(&self.path);
        let text = match error.kind() {
            kind if kind.is_absence() => does_not_exist(&self.path),
            ErrorKind::IsADirectory => {
                let path = short_path(&self.path);
                format!("The path {path} is a directory and only the `view` command can be used on directories")
            }
            _ => error.for_model(),
        };
        ToolOutcome::of_error(&error, text)
    }
}

/// Inserts the lines of `text` before the line with the index `line`, where a line break at the end of a file is followed by an empty
/// last line.
fn insert_before(content: &str, line_break: &str, line: i64, text: &str) -> Result<String, InsertError> {
    let lines = content.matches('\n').count() as u64 + 1;
    let index = u64::try_from(line).ok().filter(|index| *index <= lines);
    let index = index.ok_or(InsertError::NoSuchLine { last: lines })?;
    let text = if line_break == "\r\n" { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text.to_owned() };
    Ok(match line_start(content, index) {
        Some(at) => format!("{}{text}{line_break}{}", &content[..at], &content[at..]),
        None => format!("{content}{line_break}{text}"),
    })
}

fn first_out_of_range(range: &[i64], first: i64, total: Option<u64>) -> String {
    let within = match total {
        Some(total) => format!("within the range of lines of the file: [1, {total}]"),
        // The end of a long file is not read for this text.
        None => "at least 1".to_owned(),
    };
    format!("Invalid `view_range`: {range:?}. Its first element `{first}` should be {within}")
}

fn invalid(text: &str) -> ToolOutcome {
    ToolOutcome::failed(FailureKind::InvalidArguments, text)
}

/// Returns `outcome` with numbered lines of `what` between `before` and `after`.
fn with_note(outcome: ToolOutcome, before: &str, what: &str, lines: NumberedLines, after: &str) -> ToolOutcome {
    let NumberedLines { text, note } = lines;
    let text = format!("{before}Here's the result of running `cat -n` on {what}:\n{text}\n{after}");
    let mut outcome = ToolOutcome { parts: ToolOutcome::text(text).parts, is_truncated: note.is_some(), ..outcome };
    if let Some(note) = note {
        outcome.push_note(&note);
    }
    outcome
}

/// Returns `line` without the first half of a line break `\r\n`.
fn without_cr(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}
