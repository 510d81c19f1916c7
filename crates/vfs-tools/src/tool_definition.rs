//! Tools as data of a profile.

use crate::action::Action;
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::Arguments;
use crate::parameter::Parameter;

/// A tool of a profile.
#[derive(Debug)]
pub(crate) struct ToolDefinition {
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) annotations: Annotations,
    pub(crate) needs: Needs,
    /// The type by which Anthropic's API declares the tool, in place of description and schema.
    pub(crate) anthropic_type: Option<&'static str>,
    /// Returns the description, which names only tools that are offered.
    pub(crate) description: fn(OfferedCapabilities) -> String,
    /// Returns what a call with these arguments does.
    pub(crate) action: fn(&Arguments) -> Result<Box<dyn Action>, ArgumentError>,
}

/// What a tool needs of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Files that can be read, which every backend has.
    Files,
    /// Files that can be changed.
    WritableFiles,
    /// A shell.
    Shell,
}

/// What is offered to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfferedCapabilities {
    pub(crate) changes: bool,
    pub(crate) shell: bool,
}

impl OfferedCapabilities {
    pub(crate) fn has(self, needs: Needs) -> bool {
        match needs {
            Needs::Files => true,
            Needs::WritableFiles => self.changes,
            Needs::Shell => self.shell,
        }
    }
}
