//! Our own tools: short plain text within a budget; what exceeds it is summarised.

mod changed_lines;
mod counts_by_directory;
mod edit;
mod edit_plan;
mod enclosing_lines;
mod errors;
mod job;
mod large_text;
mod list;
mod manage;
mod numbered;
mod outline;
mod page;
mod read;
mod run;
mod search;
mod search_page;
mod symbol_definitions;
mod write;

pub(crate) use self::large_text::placeholder;
use crate::action::CallScope;
use crate::tool_definition::ToolDefinition;

/// The tools.
pub(crate) const TOOLS: &[ToolDefinition] =
    &[list::LIST, search::SEARCH, read::READ, edit::EDIT, write::WRITE, manage::MANAGE, run::RUN, job::JOB];

/// Maximum size of a result in bytes, except for the content of a file.
const MAX_RESULT_BYTES: usize = 8_000;

/// Maximum size in bytes of the content of a file in a result.
const MAX_CONTENT_BYTES: usize = 16_000;

/// Room in characters for what is around the lines of a result: its header, and notes.
const ROOM_AROUND: usize = 1_100;

/// Returns the maximum size of a result in bytes, except for the content of a file.
fn max_result_bytes(scope: &CallScope<'_>) -> usize {
    MAX_RESULT_BYTES.min(scope.max_characters.saturating_sub(ROOM_AROUND))
}

/// Returns the maximum size in bytes of the content of a file in a result. The numbers of its lines take a quarter as much.
fn max_content_bytes(scope: &CallScope<'_>) -> usize {
    MAX_CONTENT_BYTES.min(scope.max_characters.saturating_sub(ROOM_AROUND) / 5 * 4)
}
