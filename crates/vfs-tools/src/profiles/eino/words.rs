//! Texts of results and errors.

use vfs_core::error::ErrorDetail;
use vfs_core::{
    EditRequest, EditResult, Error, ErrorKind, ExecuteRequest, ExecuteResponse, GlobRequest, GlobResult, LsRequest,
    LsResult, WriteRequest, WriteResult,
};

use super::language::Language;
use super::{MAX_CHARACTERS, NOTE_CHARACTERS};
use crate::request_action::ResultText;

pub(super) const NO_FILES: &str = "No files found";

/// Number of characters that are left for notes within a budget, those on unknown arguments included.
const BUDGET_NOTE_CHARACTERS: usize = 1_000;

/// Maximum number of characters of a text that an error shows.
const MAX_SHOWN_CHARACTERS: usize = 1_000;

/// Returns the names of the entries, one in a line, as every backend of eino does.
pub(super) fn listing(
    language: &Language,
    _request: &LsRequest,
    result: &LsResult,
    max_characters: usize,
) -> ResultText {
    let names: Vec<_> = result.entries.iter().map(|entry| entry.path.name().unwrap_or("/")).collect();
    let how = language.choose("find the others by glob", "其余的请用 glob 查找");
    entries(*language, &names, max_characters, result.truncated.is_some(), how)
}

/// Returns paths below the directory of the request, which for an absolute pattern are absolute.
pub(super) fn found(view: &GlobView, request: &GlobRequest, result: &GlobResult, max_characters: usize) -> ResultText {
    let paths = result.entries.iter().map(|entry| match entry.path.strip_prefix(&request.path) {
        Some(below) if view.is_relative => below,
        _ => entry.path.as_str(),
    });
    let how = view.language.choose("narrow `pattern` or `path`", "请缩小 `pattern` 或 `path` 的范围");
    entries(view.language, &paths.collect::<Vec<_>>(), max_characters, result.truncated.is_some(), how)
}

/// How the result of a glob is shown.
#[derive(Debug)]
pub(super) struct GlobView {
    pub(super) language: Language,
    /// Whether paths are shown below the directory of the request.
    pub(super) is_relative: bool,
}

pub(super) fn written(_: &(), _request: &WriteRequest, result: &WriteResult, _max_characters: usize) -> ResultText {
    ResultText::whole(format!("Updated file {}", result.path))
}

pub(super) fn edited(_: &(), _request: &EditRequest, result: &EditResult, _max_characters: usize) -> ResultText {
    ResultText::whole(format!("Successfully replaced the string in '{}'", result.path))
}

pub(super) fn output(
    _: &(),
    _request: &ExecuteRequest,
    response: &ExecuteResponse,
    _max_characters: usize,
) -> ResultText {
    let mut parts = vec![response.output.clone()];
    match response.exit_code {
        Some(0) => {}
        Some(code) => parts.push(format!("[Command failed with exit code {code}]")),
        // eino has no text for these, and takes them for a success.
        None if response.timed_out => parts.push("[Command was stopped by its timeout]".to_owned()),
        None => parts.push("[Command was ended by a signal]".to_owned()),
    }
    if response.truncated {
        parts.push("[Output was truncated due to size limits]".to_owned());
    }
    let text = match parts.join("\n") {
        text if text.is_empty() => "[Command executed successfully with no output]".to_owned(),
        text => text,
    };
    ResultText { text, is_truncated: response.truncated }
}

/// Returns the text of an error of any tool.
pub(super) fn error_text(error: &Error) -> String {
    let text = error.for_model();
    match text.strip_prefix("Error: File '").and_then(|rest| rest.strip_suffix("' not found")) {
        Some(path) => format!("file not found: {path}"),
        None => text,
    }
}

pub(super) fn edit_error(_: &(), edit: &EditRequest, error: &Error) -> String {
    let text = error_text(error);
    let Some(replacement) = edit.replacements.first() else { return text };
    match (error.kind(), error.detail()) {
        (ErrorKind::InvalidArgument, _) if replacement.old.is_empty() => "old string is required".to_owned(),
        (ErrorKind::InvalidArgument, _) if replacement.old == replacement.new => {
            "new string must be different from old string".to_owned()
        }
        (_, Some(ErrorDetail::NotUnique { .. })) => {
            let old: String = replacement.old.chars().take(MAX_SHOWN_CHARACTERS).collect();
            format!("string '{old}' appears multiple times. Use replace_all=True to replace all occurrences")
        }
        // The lines below it, which name similar lines of the file, are ours.
        _ => match text.strip_prefix("Error: String not found in file: ") {
            Some(rest) => format!("string not found in file: {rest}"),
            None => text,
        },
    }
}

pub(super) fn execute_error(_: &(), request: &ExecuteRequest, error: &Error) -> String {
    if error.kind() == ErrorKind::InvalidArgument && request.command.trim().is_empty() {
        return "command is required".to_owned();
    }
    error_text(error)
}

/// Returns `entries` in lines, cut to the maximum number of characters. If some are left out, a note says `how` to go on.
fn entries(language: Language, entries: &[&str], max_characters: usize, is_stopped: bool, how: &str) -> ResultText {
    if entries.is_empty() && !is_stopped {
        return ResultText::whole(NO_FILES);
    }
    let kept = fitting(entries.iter().copied(), max_characters);
    let is_truncated = is_stopped || kept < entries.len();
    let mut text = entries[..kept].join("\n");
    if is_truncated {
        text.push_str(&match language {
            Language::English => format!("\n[truncated: these are the first {kept}; {how}]"),
            Language::Chinese => format!("\n[已截断：以上为前 {kept} 项；{how}]"),
        });
    }
    ResultText { text, is_truncated }
}

/// Returns the number of characters of the lines of a result of `max_characters`, which leave room for its notes.
pub(super) fn line_room(max_characters: usize) -> usize {
    max_characters.saturating_sub(BUDGET_NOTE_CHARACTERS).min(MAX_CHARACTERS - NOTE_CHARACTERS)
}

/// Returns how many of `lines` fit into a result of `max_characters` with its notes.
pub(super) fn fitting<'a>(lines: impl IntoIterator<Item = &'a str>, max_characters: usize) -> usize {
    let mut room = line_room(max_characters);
    let fits = |line: &&str| {
        let left = room.checked_sub(line.chars().count() + 1);
        room = left.unwrap_or(0);
        left.is_some()
    };
    lines.into_iter().take_while(fits).count()
}
