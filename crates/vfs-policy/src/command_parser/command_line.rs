//! Parsed command line.

use serde::Serialize;
use vfs_core::{Error, Result};

use super::command_line_parser::CommandLineParser;
use super::simple_command::SimpleCommand;

/// A parsed command line: the simple commands that it runs, and no others.
///
/// # Behaviour
///
/// The parser understands lists (`|`, `&&`, `||`, `;`, `&`, and lines) of simple commands with:
///
/// * literal words, however they are quoted;
/// * globs behind a literal directory, such as `src/*.rs`, which can be neither options nor other words;
/// * redirections to literal files and descriptors, and here-documents without expansions;
/// * comments.
///
/// Everything else is not understood, whatever its effect: expansions and substitutions, assignments, groups, functions and
/// all reserved words; builtins that run text or change the meaning of later commands; shells and programs that run the command
/// in their arguments (`env`, `xargs`, `sudo`, `timeout`, `find -exec`); programs named by a path outside of `/bin`, `/sbin`,
/// `/usr/bin`, `/usr/sbin`, `/usr/local/bin` and `/usr/local/sbin`; and text that `bash`, `dash` and `busybox sh` read
/// differently.
///
/// The effects of a program are not checked: an editor, `make`, `git` or an interpreter of another language can run anything.
/// A parsed line shows what an agent does openly; confinement takes a sandbox.
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
    pub(super) commands: Vec<SimpleCommand>,
}

impl CommandLine {
    /// Length of the longest line that is understood, in bytes: 128 KiB.
    pub const MAX_BYTES: usize = 128 << 10;

    /// Parses `line`.
    ///
    /// # Errors
    ///
    /// `invalid_argument`, with the reason, if the line is not understood.
    pub fn parse(line: &str) -> Result<Self> {
        let (line, not_understood) = Self::read(line);
        match not_understood {
            None => Ok(line),
            Some(reason) => Err(Error::invalid_argument(format!("the command line is not understood: {reason}"))),
        }
    }

    /// Parses `line` up to the first part that is not understood, and returns the reason. The result includes commands that run
    /// others.
    pub(super) fn read(line: &str) -> (Self, Option<&'static str>) {
        if line.len() > Self::MAX_BYTES {
            return (Self { commands: Vec::new() }, Some("it is longer than 128 KiB"));
        }
        let (commands, not_understood) = CommandLineParser::new(line).read();
        let not_understood = not_understood.or(commands.is_empty().then_some("it has no command"));
        (Self { commands }, not_understood)
    }

    /// Returns the simple commands, in the order in which they are written.
    pub fn commands(&self) -> &[SimpleCommand] {
        &self.commands
    }
}
