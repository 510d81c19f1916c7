//! Parameters and texts that the tools of Claude share.

use vfs_core::error::ErrorDetail;
use vfs_core::{EditRequest, Error, ErrorKind, VfsPath};

use crate::argument_error::ArgumentError;
use crate::arguments::{Argument, Arguments};
use crate::large_text::shortened;
use crate::outcome::ToolOutcome;
use crate::parameter::{Parameter, ParameterKind};

/// Maximum number of characters of a path in the text of a failure.
const MAX_PATH_CHARACTERS: usize = 300;

/// Maximum number of characters of a text to replace in the text of a failure.
const MAX_OLD_CHARACTERS: usize = 1_000;

const NUMBER: ParameterKind = ParameterKind::Integer { min: i64::MIN, max: i64::MAX };

pub(super) const PATH: Parameter =
    Parameter::optional("path", ParameterKind::Path, "Absolute path of the file or directory.")
        .aliases(&["file_path", "file"]);
pub(super) const VIEW_RANGE: Parameter = Parameter::optional(
    "view_range",
    ParameterKind::List(&NUMBER),
    "For `view` of a file: the first and the last line, from 1; -1 for the end. Default: all lines.",
)
.aliases(&["range"]);
pub(super) const FILE_TEXT: Parameter =
    Parameter::optional("file_text", ParameterKind::Text, "For `create`: the content of the file.")
        .aliases(&["content", "contents", "text"]);
pub(super) const OLD_STR: Parameter = Parameter::optional(
    "old_str",
    ParameterKind::Text,
    "For `str_replace`: the text to replace, exactly as it is in the file.",
)
.aliases(&["old_string", "oldText", "old"]);
pub(super) const NEW_STR: Parameter =
    Parameter::optional("new_str", ParameterKind::Text, "For `str_replace`: the text in its place.").aliases(&[
        "new_string",
        "newText",
        "new",
    ]);
pub(super) const INSERT_LINE: Parameter = Parameter::optional(
    "insert_line",
    NUMBER,
    "For `insert`: the line after which the text is inserted; 0 for the beginning of the file.",
)
.aliases(&["line"]);
pub(super) const INSERT_TEXT: Parameter =
    Parameter::optional("insert_text", ParameterKind::Text, "For `insert`: the text to insert.");

/// Returns the command of a call.
pub(super) fn command(arguments: &Arguments) -> &str {
    arguments.text("command").unwrap_or_default()
}

/// Returns the path of the parameter `name`, which `command` needs.
pub(super) fn needed_path(arguments: &Arguments, name: &str) -> Result<VfsPath, ArgumentError> {
    arguments.path(name).cloned().ok_or_else(|| missing(arguments, name))
}

/// Returns the text of the parameter `name`, which the command needs.
pub(super) fn needed_text(arguments: &Arguments, name: &str) -> Result<String, ArgumentError> {
    arguments.text(name).map(str::to_owned).ok_or_else(|| missing(arguments, name))
}

/// Returns the line and the text to insert. Examples of the API also have the text as `new_str`.
pub(super) fn inserted(arguments: &Arguments) -> Result<(i64, String), ArgumentError> {
    let line = arguments.integer("insert_line").ok_or_else(|| missing(arguments, "insert_line"))?;
    let text =
        needed_text(arguments, "insert_text").or_else(|error| needed_text(arguments, "new_str").map_err(|_| error))?;
    Ok((line, text))
}

/// Returns the numbers of `view_range`.
pub(super) fn view_range(arguments: &Arguments) -> Vec<i64> {
    let number = |argument: &Argument| match argument {
        Argument::Integer(number) => Some(*number),
        _ => None,
    };
    arguments.list("view_range").iter().filter_map(number).collect()
}

/// Returns an edit that replaces one occurrence. A call without `new_str` removes the text.
pub(super) fn replacement(arguments: &Arguments, path: VfsPath) -> Result<EditRequest, ArgumentError> {
    let new = arguments.text("new_str").unwrap_or_default();
    Ok(EditRequest::new(path, needed_text(arguments, "old_str")?, new))
}

fn missing(arguments: &Arguments, name: &str) -> ArgumentError {
    ArgumentError::worded(format!("Parameter `{name}` is required for command: {}", command(arguments)))
}

pub(super) fn does_not_exist(path: &VfsPath) -> String {
    format!("The path {} does not exist. Please provide a valid path.", short_path(path))
}

/// Returns the text of a failed edit, or `None` if the protocol has none. `lines_of` shows the numbers of the lines in which the text
/// begins: `occurrences`, or those of the error.
pub(super) fn edit_failure(
    edit: &EditRequest,
    error: &Error,
    occurrences: Option<&[u64]>,
    lines_of: fn(&[u64]) -> String,
) -> Option<String> {
    let replacement = edit.replacements.first()?;
    let old = shortened(&replacement.old, MAX_OLD_CHARACTERS, "…");
    match (error.kind(), error.detail()) {
        (ErrorKind::NoMatch, _) => {
            let path = short_path(&edit.path);
            Some(format!("No replacement was performed, old_str `{old}` did not appear verbatim in {path}."))
        }
        (ErrorKind::NotUnique, Some(ErrorDetail::NotUnique { lines, .. })) => Some(format!(
            "No replacement was performed. Multiple occurrences of old_str `{old}` in lines{} Please ensure it is unique",
            lines_of(occurrences.unwrap_or(lines))
        )),
        (ErrorKind::InvalidArgument, _) if replacement.old.is_empty() => {
            Some("No replacement was performed: old_str is empty. Provide the exact text to replace.".to_owned())
        }
        (ErrorKind::InvalidArgument, _) if replacement.old == replacement.new => {
            Some("No replacement was performed: old_str and new_str are equal.".to_owned())
        }
        _ => None,
    }
}

/// Appends the line of the file that is most similar to a text that was not found.
pub(super) fn note_similar_line(outcome: &mut ToolOutcome, error: &Error) {
    if let Some(ErrorDetail::NoMatch { nearest, .. }) = error.detail()
        && let Some(similar) = nearest.first()
    {
        outcome.push_note(&format!("most similar: line {}: {}", similar.line, similar.text));
    }
}

/// Returns `path` for the text of a failure.
pub(super) fn short_path(path: &VfsPath) -> String {
    shortened(path.as_str(), MAX_PATH_CHARACTERS, "…")
}
