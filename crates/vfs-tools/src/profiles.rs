//! Profiles as data.

mod claude_common;
pub(crate) mod claude_memory;
pub(crate) mod claude_text_editor;
pub(crate) mod deepagents;
pub(crate) mod eino;
pub(crate) mod native;
