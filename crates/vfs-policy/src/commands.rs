//! Conservative parser of shell command lines, for command rules.

mod pattern;
mod programs;
mod reader;

#[cfg(test)]
mod tests;

use serde::Serialize;
use vfs_core::{Error, Result};

pub(crate) use self::pattern::{CommandPattern, RequestedCommand};
use self::reader::Reader;

/// A command line that is understood: the simple commands that it runs, and no others.
///
/// # Behaviour
///
/// Understood are lists (`|`, `&&`, `||`, `;`, `&`, and lines) of simple commands with:
///
/// * literal words, however they are quoted;
/// * globs behind a literal directory, such as `src/*.rs`, which can be neither options nor other words;
/// * redirections to literal files and descriptors, and here-documents without expansions;
/// * comments.
///
/// Everything else is not understood, whatever it would do: expansions and substitutions, assignments, groups, functions and
/// all words of the shell's grammar; builtins that run text or change what later commands mean; shells and programs that
/// run the command in their words (`env`, `xargs`, `sudo`, `timeout`, `find -exec`); programs outside of `/bin`, `/sbin`,
/// `/usr/bin`, `/usr/sbin`, `/usr/local/bin` and `/usr/local/sbin`, where they are named by a path; and what `bash`,
/// `dash` and `busybox sh` read differently.
///
/// What an understood program does is not looked at: an editor, `make`, `git` or an interpreter of another language run
/// what they like. To hold a command takes a sandbox; this is for telling apart what an agent does openly.
///
/// # Errors
///
/// `invalid_argument`, with the reason, for a line that is not understood or longer than [`MAX_BYTES`](Self::MAX_BYTES).
///
/// ```
/// use vfs_policy::CommandLine;
///
/// let line = CommandLine::parse(r#"cd /src && git commit -m "first draft" | tee log"#)?;
/// let names: Vec<_> = line.commands().iter().map(|command| command.name()).collect();
/// assert_eq!(names, ["cd", "git", "tee"]);
///
/// let error = CommandLine::parse("echo $(git status)").unwrap_err();
/// assert!(error.message().contains("an expansion"));
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommandLine {
    commands: Vec<SimpleCommand>,
}

/// A command without others in it: a program or builtin with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SimpleCommand {
    name: String,
    arguments: Vec<CommandWord>,
    /// Whether it may run another command that stands in its arguments.
    #[serde(skip)]
    runs_others: bool,
}

/// An argument of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CommandWord {
    /// Exactly this text, without the quotes that it was written with.
    Literal(String),
    /// Any number of words that begin with this text, which has a `/`: the literal part of a glob.
    Glob(String),
}

impl CommandWord {
    /// The text, where it is one word that is written out.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Glob(_) => None,
        }
    }
}

impl SimpleCommand {
    /// The program or builtin, as it was written: a name, or a path in a directory of the system.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The words after the name.
    pub fn arguments(&self) -> &[CommandWord] {
        &self.arguments
    }
}

impl CommandLine {
    /// The longest line that is understood: 128 KiB.
    pub const MAX_BYTES: usize = 128 << 10;

    /// Reads `line`.
    ///
    /// # Errors
    ///
    /// `invalid_argument`, with the reason, where it is not understood.
    pub fn parse(line: &str) -> Result<Self> {
        let (line, not_understood) = Self::read(line);
        match not_understood {
            None => Ok(line),
            Some(reason) => Err(Error::invalid_argument(format!("the command line is not understood: {reason}"))),
        }
    }

    /// Reads `line` up to where it is no longer understood, and says why it is not. Commands that run others are there.
    fn read(line: &str) -> (Self, Option<&'static str>) {
        if line.len() > Self::MAX_BYTES {
            return (Self { commands: Vec::new() }, Some("it is longer than 128 KiB"));
        }
        let (commands, not_understood) = Reader::new(line).read();
        let not_understood = not_understood.or(commands.is_empty().then_some("it has no command"));
        (Self { commands }, not_understood)
    }

    /// The simple commands, in the order in which they are written.
    pub fn commands(&self) -> &[SimpleCommand] {
        &self.commands
    }
}

/// What was read, or the reason why it is not understood.
type Understood<T> = Result<T, &'static str>;
