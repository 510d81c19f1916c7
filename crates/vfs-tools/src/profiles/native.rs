//! Our own tools: short plain text within a budget; what exceeds it is summarised.

mod changed_lines;
mod definitions;
mod edit;
mod edit_plan;
mod enclosing_lines;
mod errors;
mod list;
mod manage;
mod numbered;
mod outline;
mod page;
mod read;
mod run;
mod search;
mod summary;
mod write;

use crate::tool_definition::ToolDefinition;

/// The tools.
pub(crate) const TOOLS: &[ToolDefinition] =
    &[list::LIST, search::SEARCH, read::READ, edit::EDIT, write::WRITE, manage::MANAGE, run::RUN];

/// Maximum size of a result in bytes, except for the content of a file.
const MAX_RESULT_BYTES: usize = 8_000;

/// Maximum size in bytes of the content of a file in a result.
const MAX_CONTENT_BYTES: usize = 16_000;
