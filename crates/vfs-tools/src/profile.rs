//! Profiles: the names, parameters and words of a set of tools.

use crate::profiles::deepagents;
use crate::tool_definition::ToolDefinition;

/// The names, parameters and words of a set of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// `ls`, `read_file`, `write_file`, `edit_file`, `glob`, `grep` and `execute` as in LangChain deepagents 0.4: lists are shown as
    /// Python shows them, a file is written only if there is none, and a search is for literal text.
    DeepagentsClassic,
    /// The tools of LangChain deepagents 0.7: as before, with `delete`; a file is replaced by `write_file`, and a window has a header in
    /// place of line numbers.
    Deepagents,
}

impl Profile {
    /// Every profile.
    pub const ALL: &'static [Self] = &[Self::DeepagentsClassic, Self::Deepagents];

    /// Returns the name, such as `deepagents_classic`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeepagentsClassic => "deepagents_classic",
            Self::Deepagents => "deepagents",
        }
    }

    /// Returns the profile with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|profile| profile.name() == name)
    }

    pub(crate) fn definitions(self) -> &'static [ToolDefinition] {
        match self {
            Self::DeepagentsClassic => deepagents::CLASSIC,
            Self::Deepagents => deepagents::CURRENT,
        }
    }
}
