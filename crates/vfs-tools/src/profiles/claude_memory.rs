//! The memory of Claude, `memory_20250818`.
//!
//! Names, parameters and texts of results are those of `BetaLocalFilesystemMemoryTool` of the package `anthropic` (MIT licence); the
//! descriptions are not. It differs on purpose: nothing beside `/memories` is reached, such as `/memoriesX`, inserted lines end like
//! those of the file, and a directory has no size.

mod action;
mod wording;

use vfs_core::VfsPath;

use self::action::{MemoryAction, MemoryCommand};
use super::claude_common::{
    self, FILE_TEXT, INSERT_LINE, INSERT_TEXT, NEW_STR, OLD_STR, PATH, VIEW_RANGE, needed_path, needed_text, short_path,
};
use crate::action::Action;
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::Arguments;
use crate::parameter::{Parameter, ParameterKind};
use crate::tool_definition::{Needs, ToolDefinition};

/// The tool.
pub(crate) const TOOLS: &[ToolDefinition] = &[ToolDefinition {
    name: "memory",
    parameters: &[
        Parameter::required(
            "command",
            ParameterKind::Choice(&["view", "create", "str_replace", "insert", "delete", "rename"]),
            "What to do.",
        ),
        PATH,
        VIEW_RANGE,
        FILE_TEXT,
        OLD_STR,
        NEW_STR,
        INSERT_LINE,
        INSERT_TEXT,
        Parameter::optional("old_path", ParameterKind::Path, "For `rename`: the present path.")
            .aliases(&["from", "source"]),
        Parameter::optional("new_path", ParameterKind::Path, "For `rename`: the new path.")
            .aliases(&["to", "destination"]),
    ],
    annotations: Annotations::destructive("Remember"),
    needs: Needs::Files,
    anthropic_type: Some("memory_20250818"),
    description: |offered| {
        let view = "Keeps notes in files below /memories, which outlast this conversation. `view` shows a file with line numbers, or a \
                    directory two levels deep: begin with /memories.";
        if !offered.changes {
            return format!("{view} The files are read-only, so that the other commands fail.");
        }
        format!(
            "{view} `create` writes a new file; it does not replace one. `str_replace` replaces `old_str`, which has to be in the file \
             exactly once, by `new_str`. `insert` adds `insert_text` after the line `insert_line`. `delete` and `rename` also take \
             directories."
        )
    },
    action,
}];

/// The name of the directory of all memories.
const DIRECTORY: &str = "memories";

/// Returns the directory of all memories.
pub(crate) fn root() -> VfsPath {
    // The name is valid.
    VfsPath::root().child(DIRECTORY).unwrap_or_default()
}

fn action(arguments: &Arguments) -> Result<Box<dyn Action>, ArgumentError> {
    let path = |name| memory_path(needed_path(arguments, name)?);
    let command = match claude_common::command(arguments) {
        "create" => MemoryCommand::Create { path: path("path")?, text: needed_text(arguments, "file_text")? },
        "str_replace" => MemoryCommand::Replace(claude_common::replacement(arguments, path("path")?)?),
        "insert" => {
            let (line, text) = claude_common::inserted(arguments)?;
            MemoryCommand::Insert { path: path("path")?, line, text }
        }
        "delete" => MemoryCommand::Delete { path: path("path")? },
        "rename" => MemoryCommand::Rename { from: path("old_path")?, to: path("new_path")? },
        _ => MemoryCommand::View { path: path("path")?, range: claude_common::view_range(arguments) },
    };
    let root = root();
    let refused = match &command {
        MemoryCommand::Delete { path } if *path == root => "Cannot delete the /memories directory itself",
        MemoryCommand::Rename { from, .. } if *from == root => "Cannot rename the /memories directory itself",
        MemoryCommand::Rename { to, .. } if *to == root => "The destination /memories already exists",
        MemoryCommand::Create { path, .. } if *path == root => "File /memories already exists",
        _ => return Ok(Box::new(MemoryAction { command })),
    };
    Err(ArgumentError::worded(refused.to_owned()))
}

fn memory_path(path: VfsPath) -> Result<VfsPath, ArgumentError> {
    if path.components().next() == Some(DIRECTORY) {
        return Ok(path);
    }
    Err(ArgumentError::worded(format!("Path must start with /memories, got: {}", short_path(&path))))
}
