//! Command lines, taken apart.

mod expansion;
mod list;
mod options;
mod pattern;
mod programs;
mod quoting;
mod simple;
mod source;
mod variables;

#[cfg(test)]
mod tests;

use serde::Serialize;
use vfs_core::{Error, Result};

pub(super) use self::pattern::{Asked, CommandPattern};
use self::source::Found;

/// A command line, taken apart into all the simple commands that it would run.
///
/// # Behaviour
///
/// * Commands are found wherever they stand: in pipelines, lists, groups, subshells, functions, loops, conditions, `case`,
///   command and process substitutions, and substitutions inside double quotes, here-documents, assignments, arithmetic and
///   targets of redirections; also where they are given as words to a program that runs another (`env`, `nohup`, `nice`,
///   `timeout`, `xargs`, `sudo`, `doas`, `command`, `builtin`, `exec`, `time`, `setsid`, `stdbuf`, `busybox`,
///   `find -exec`), as text (`sh -c`, `eval`, `trap`), or as a here-document to a shell.
/// * A command that a shell runs under another name than is written, or that comes out of what is known only when it runs,
///   is there with a [name that is not known](CommandWord::Dynamic).
/// * Shells read the same line differently. It is read as bash does; where `dash` would run something in it that bash takes
///   for something else, that is there too.
///
/// * A variable that a shell sets itself, such as that of a loop, of `read` or of `{name}>`, is there as an assignment whose
///   value is not known: among the [possible commands](Self::possible_commands) where no program looks at its name, which
///   is one without capitals that is no proxy.
///
/// Nothing here says what a program does: an editor, an interpreter, `make` or `git` run what they like, and so do options
/// and variables such as `git -c core.pager`, `tar --checkpoint-action`, `awk 'BEGIN { system(...) }'` or `GIT_SSH_COMMAND`.
/// To hold a command takes a sandbox; this is for telling apart what an agent does openly.
///
/// # Errors
///
/// `invalid_argument` where the line cannot be taken apart with certainty: it has mistakes, nests deeper than
/// [`MAX_DEPTH`](Self::MAX_DEPTH), is longer than [`MAX_BYTES`](Self::MAX_BYTES), or uses what shells do not agree about.
///
/// ```
/// use vfs_layers::CommandLine;
///
/// let line = CommandLine::parse(r#"cd /src && echo "$(git status)" | sudo -u root tee log"#)?;
/// let mut names: Vec<_> = line.commands().iter().filter_map(|command| command.name()).collect();
/// names.sort_unstable();
/// assert_eq!(names, ["cd", "echo", "git", "sudo", "tee"]);
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommandLine {
    commands: Vec<SimpleCommand>,
    possible: Vec<SimpleCommand>,
    doubts: Vec<&'static str>,
}

/// A command without others in it: a program or builtin with its words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SimpleCommand {
    /// The variables that are set for it, or, where it has no words, for what follows.
    pub assignments: Vec<CommandAssignment>,
    /// Its name and its arguments.
    pub words: Vec<CommandWord>,
    /// Where its descriptors lead.
    pub redirects: Vec<CommandRedirect>,
}

/// A variable that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommandAssignment {
    /// The variable.
    pub name: String,
    /// What it is set to.
    pub value: CommandWord,
}

/// Where a descriptor leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommandRedirect {
    /// How it is written, such as `>` or `<<`.
    pub operator: &'static str,
    /// The file, the descriptor, or the text.
    pub target: CommandWord,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CommandWord {
    /// Exactly this, whatever it was quoted with.
    Literal(String),
    /// What it becomes, or how many words, is known only when it runs; this is how it is written.
    Dynamic(String),
}

impl CommandWord {
    /// What it is, where that is known.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Dynamic(_) => None,
        }
    }
}

impl SimpleCommand {
    /// The first word, where there is one and it is known.
    pub fn name(&self) -> Option<&str> {
        self.words.first().and_then(CommandWord::literal)
    }

    /// A command of which nothing is known but how it is written.
    fn unknown(written: impl Into<String>) -> Self {
        Self { words: vec![CommandWord::Dynamic(written.into())], ..Self::default() }
    }
}

impl CommandLine {
    /// The longest line that is taken apart: 128 KiB.
    pub const MAX_BYTES: usize = 128 << 10;

    /// How deep constructs and texts with commands may be in one another: 48.
    pub const MAX_DEPTH: usize = 48;

    /// Takes `line` apart.
    ///
    /// # Errors
    ///
    /// `invalid_argument` where that cannot be done with certainty.
    pub fn parse(line: &str) -> Result<Self> {
        let mut found = Found::default();
        if line.len() > Self::MAX_BYTES {
            return Err(unclear("it is longer than 128 KiB"));
        }
        found.script(line, 0).map_err(unclear)?;
        let Found { commands, possible, doubts, .. } = found;
        Ok(Self { commands, possible, doubts })
    }

    /// The simple commands, in no order that means anything.
    pub fn commands(&self) -> &[SimpleCommand] {
        &self.commands
    }

    /// Commands that it may run beside these, where a word is given to a program of which it is not known how it takes it:
    /// the rest of a line after `ssh`, `watch` or `strace`. Not all of them need be commands. Where a program takes words so,
    /// there is a [doubt](Self::doubts).
    pub fn possible_commands(&self) -> &[SimpleCommand] {
        &self.possible
    }

    /// Why there may be more commands than can be seen; empty where that is all.
    pub fn doubts(&self) -> &[&'static str] {
        &self.doubts
    }
}

fn unclear(reason: &'static str) -> Error {
    Error::invalid_argument(format!("the command line cannot be taken apart: {reason}"))
}
