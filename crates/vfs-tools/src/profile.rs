//! Profiles: the names, parameters and words of a set of tools.

use vfs_core::VfsPath;

use crate::large_text::LargeText;
use crate::profiles::deepagents::Release;
use crate::profiles::eino::Language;
use crate::profiles::{claude_memory, claude_text_editor, deepagents, eino, native};
use crate::tool_definition::ToolDefinition;
use crate::tool_set_state::LongTextFormat;

/// The names, parameters and words of a set of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Our own tools: `list`, `search`, `read`, `edit`, `write`, `manage`, `run` and `job`. Results are short plain text; one that would
    /// be long is summarised, and says how to see all of it. An edit of a file that has changed since the model saw it is refused.
    Native,
    /// `ls`, `read_file`, `write_file`, `edit_file`, `glob`, `grep` and `execute` as in LangChain deepagents 0.4: lists are shown as
    /// Python shows them, a file is written only if there is none, and a search is for literal text.
    DeepagentsClassic,
    /// The tools of LangChain deepagents 0.7: as before, with `delete`; a file is replaced by `write_file`, and a window has a header in
    /// place of line numbers.
    Deepagents,
    /// The tools of the filesystem middleware of CloudWeGo eino: lines are numbered from 1, a search is for a regular expression, and
    /// its results come in pages.
    Eino,
    /// The tools of eino, described in Chinese.
    EinoZh,
    /// The tools of the package `deepagents` 1.14 for JavaScript: as those of 0.7 for Python, but lists have a line for each entry,
    /// `grep` shows lines unless it is called for files, and the texts of results differ.
    DeepagentsJs,
    /// `str_replace_based_edit_tool`, the text editor that Anthropic's API defines as `text_editor_20250728`: one tool with the commands
    /// `view`, `create`, `str_replace` and `insert`.
    ClaudeTextEditor,
    /// `memory`, which Anthropic's API defines as `memory_20250818`: one tool with the commands of the text editor, `delete` and
    /// `rename`, for the files below `/memories` and no others.
    ClaudeMemory,
}

impl Profile {
    /// Every profile.
    pub const ALL: &'static [Self] = &[
        Self::Native,
        Self::DeepagentsClassic,
        Self::Deepagents,
        Self::DeepagentsJs,
        Self::Eino,
        Self::EinoZh,
        Self::ClaudeTextEditor,
        Self::ClaudeMemory,
    ];

    /// Returns the name, such as `deepagents_classic`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::DeepagentsClassic => "deepagents_classic",
            Self::Deepagents => "deepagents",
            Self::Eino => "eino",
            Self::EinoZh => "eino_zh",
            Self::DeepagentsJs => "deepagents_js",
            Self::ClaudeTextEditor => "claude_text_editor",
            Self::ClaudeMemory => "claude_memory",
        }
    }

    /// Returns the profile with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|profile| profile.name() == name)
    }

    pub(crate) fn definitions(self) -> &'static [ToolDefinition] {
        match self {
            Self::Native => native::TOOLS,
            Self::DeepagentsClassic => deepagents::CLASSIC,
            Self::Deepagents => deepagents::CURRENT,
            Self::Eino => eino::ENGLISH,
            Self::EinoZh => eino::CHINESE,
            Self::DeepagentsJs => deepagents::JS,
            Self::ClaudeTextEditor => claude_text_editor::TOOLS,
            Self::ClaudeMemory => claude_memory::TOOLS,
        }
    }

    /// Returns the directory in which the tools show [stored results](crate::ResultStore): `/large_tool_results`, or that of eino,
    /// `/large_tool_result`.
    pub fn stored_results_directory(self) -> VfsPath {
        let name = match self {
            Self::Eino | Self::EinoZh => "large_tool_result",
            _ => "large_tool_results",
        };
        // The name is valid.
        VfsPath::root().child(name).unwrap_or_default()
    }

    /// Returns the form in which a text is shown that is too long.
    pub(crate) fn long_text_format(self) -> LongTextFormat {
        let placeholder: fn(&LargeText<'_>) -> String = match self {
            Self::Native => |large| native::placeholder(large, "read or search it"),
            Self::ClaudeTextEditor | Self::ClaudeMemory => |large| native::placeholder(large, "view it"),
            Self::DeepagentsClassic => |large| deepagents::placeholder(Release::Classic, large),
            Self::Deepagents => |large| deepagents::placeholder(Release::Current, large),
            Self::DeepagentsJs => |large| deepagents::placeholder(Release::Js, large),
            Self::Eino => |large| eino::placeholder(Language::English, large),
            Self::EinoZh => |large| eino::placeholder(Language::Chinese, large),
        };
        let extension = if self == Self::DeepagentsJs { ".txt" } else { "" };
        let max_characters = if self == Self::Native { 40_000 } else { 80_000 };
        LongTextFormat { max_characters, directory: self.stored_results_directory(), extension, placeholder }
    }

    /// Returns the maximum number of characters of a result, unless another one is set. The tools of other systems cut their results
    /// themselves.
    pub(crate) fn max_characters(self) -> usize {
        if self == Self::Native { self.long_text_format().max_characters } else { usize::MAX }
    }

    /// Returns the directory whose files the tools use.
    pub(crate) fn directory(self) -> VfsPath {
        match self {
            Self::ClaudeMemory => claude_memory::root(),
            _ => VfsPath::root(),
        }
    }
}
