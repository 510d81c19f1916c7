//! Simple command: a program with its words.

use serde::Serialize;

/// A simple command: a program or builtin with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SimpleCommand {
    pub(super) name: String,
    pub(super) arguments: Vec<CommandArgument>,
    /// Whether the command may run another one that is written in its arguments.
    #[serde(skip)]
    pub(super) runs_others: bool,
}

/// An argument of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CommandArgument {
    /// Exactly this text, without the quotes that it was written with.
    Literal(String),
    /// Any number of words that begin with this text, which has a `/`: the literal part of a glob.
    Glob(String),
}

impl CommandArgument {
    /// Returns the text of a literal word, or `None` for a glob.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Glob(_) => None,
        }
    }
}

impl SimpleCommand {
    /// Returns the program or builtin as written: a name, or a path in a system directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the words after the name.
    pub fn arguments(&self) -> &[CommandArgument] {
        &self.arguments
    }
}

/// Result of parsing: a value, or the reason why the line is not understood.
pub(super) type ParseResult<T> = Result<T, &'static str>;
