//! The text editor of Claude, `text_editor_20250728`.
//!
//! Names, parameters and texts of results are those of Anthropic's reference (MIT licence); the descriptions are not. It differs on
//! purpose: tabs and line endings stay what they are, `create` makes the directories above a file, and a listing is sorted.

mod action;

use vfs_core::VfsPath;

use self::action::{EditorAction, EditorCommand};
use super::claude_common::{
    self, FILE_TEXT, INSERT_LINE, INSERT_TEXT, NEW_STR, OLD_STR, PATH, VIEW_RANGE, needed_path, needed_text,
};
use crate::action::Action;
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::Arguments;
use crate::parameter::{Parameter, ParameterKind};
use crate::tool_definition::{Needs, ToolDefinition};

/// The tool.
pub(crate) const TOOLS: &[ToolDefinition] = &[ToolDefinition {
    name: "str_replace_based_edit_tool",
    parameters: &[
        Parameter::required(
            "command",
            ParameterKind::Choice(&["view", "create", "str_replace", "insert"]),
            "What to do.",
        ),
        PATH,
        VIEW_RANGE,
        FILE_TEXT,
        OLD_STR,
        NEW_STR,
        INSERT_LINE,
        INSERT_TEXT,
    ],
    annotations: Annotations::destructive("View and edit files"),
    needs: Needs::Files,
    anthropic_type: Some("text_editor_20250728"),
    description: |offered| {
        let view = "Views and edits files. `view` shows a file with line numbers, or a directory two levels deep.";
        if !offered.changes {
            return format!("{view} The files are read-only, so that the other commands fail.");
        }
        format!(
            "{view} `create` writes a new file; it does not replace one. `str_replace` replaces `old_str`, which has to be in the file \
             exactly once, by `new_str`. `insert` adds `insert_text` after the line `insert_line`."
        )
    },
    action,
}];

fn action(arguments: &Arguments) -> Result<Box<dyn Action>, ArgumentError> {
    let path: VfsPath = needed_path(arguments, "path")?;
    let command = match claude_common::command(arguments) {
        "create" => EditorCommand::Create { text: needed_text(arguments, "file_text")? },
        "str_replace" => EditorCommand::Replace(claude_common::replacement(arguments, path.clone())?),
        "insert" => {
            let (line, text) = claude_common::inserted(arguments)?;
            EditorCommand::Insert { line, text }
        }
        _ => EditorCommand::View { range: claude_common::view_range(arguments) },
    };
    Ok(Box::new(EditorAction { path, command }))
}
