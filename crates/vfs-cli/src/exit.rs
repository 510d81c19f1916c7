//! How the command ends: its exit code, and the one line that says why.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use clap::error::{ContextKind, ContextValue, ErrorKind as UsageKind};
use vfs_config::ConfigError;
use vfs_core::{Error, Problem, Truncation};

use crate::escape::escaped;

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked to, or found something: 0.
    Success,
    /// It found nothing: 1.
    NoMatch,
    /// It was refused, or found something wrong, and has said so: 1.
    Refused,
    /// It found nothing, and could not read everything: 2.
    Unread,
    /// It ran a command, which ended with this.
    Command(u8),
}

impl Exit {
    /// The exit of a search that found something, or not.
    pub(crate) fn found(any: bool) -> Self {
        if any { Exit::Success } else { Exit::NoMatch }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The backend refused.
    Operation(Error),
    /// The backend refused; and lines that may help, which are printed below.
    Hinted(Error, Vec<String>),
    /// The root could not be opened.
    Root(PathBuf, Error),
    /// The description of the namespace is faulty, or cannot be opened.
    Config(ConfigError),
    /// The arguments do not fit together.
    Usage(&'static str),
    /// Standard input could not be read.
    Input(io::Error),
    /// Standard output could not be written.
    Output(io::Error),
    /// A path that a command needs could not be found.
    Place(&'static str, io::Error),
    /// The machine could not give what every command needs.
    Runtime(io::Error),
    /// The directory for jobs could not be made.
    Jobs(PathBuf, io::Error),
    /// The machine could not give what a job needs.
    Job(&'static str, io::Error),
    /// The process that was to keep a job failed; what it said, and how it ended.
    Keeper(String, ExitStatus),
}

impl Failure {
    /// The exit code: 2, or that of the process which failed in this one's place.
    fn code(&self) -> u8 {
        match self {
            Failure::Keeper(_, status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2),
            _ => 2,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Operation(error)
    }
}

/// Every `io::Error` that a command meets without saying more is one of its output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Operation(error) | Failure::Hinted(error, _) => error.fmt(f),
            Failure::Root(root, error) => f.write_str(&vfs_config::unopened_directory("root", root, error)),
            Failure::Config(error) => error.fmt(f),
            Failure::Usage(message) => f.write_str(message),
            Failure::Input(error) => write!(f, "standard input cannot be read: {error}"),
            Failure::Output(error) => write!(f, "standard output cannot be written: {error}"),
            Failure::Place(what, error) => write!(f, "the {what} cannot be found: {error}"),
            Failure::Runtime(error) => {
                write!(f, "the runtime cannot be started: {error}; allow more descriptors (ulimit -n) and threads")
            }
            Failure::Jobs(path, error) => write!(f, "the directory for jobs, {path:?}, cannot be made: {error}"),
            Failure::Job(what, error) => write!(f, "{what}: {error}"),
            Failure::Keeper(said, status) if said.is_empty() => {
                write!(f, "the process that was to keep the job said nothing and ended with {status}")
            }
            // It speaks as this process does.
            Failure::Keeper(said, _) => f.write_str(said.trim().trim_start_matches("vfs: ")),
        }
    }
}

/// The exit code of a command, after its failure is told.
pub(crate) fn code(outcome: Result<Exit, Failure>) -> ExitCode {
    match outcome {
        Ok(Exit::Success) => ExitCode::SUCCESS,
        Ok(Exit::NoMatch | Exit::Refused) => ExitCode::from(1),
        Ok(Exit::Unread) => ExitCode::from(2),
        Ok(Exit::Command(code)) => ExitCode::from(code),
        // Whoever reads the output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            let code = failure.code();
            tell(&failure);
            if let Failure::Hinted(_, hints) = &failure {
                hints.iter().for_each(tell);
            }
            ExitCode::from(code)
        }
    }
}

/// The exit code of arguments that do not parse, which help and version are too.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), UsageKind::DisplayHelp | UsageKind::DisplayVersion) {
        return code(error.print().map(|()| Exit::Success).map_err(Failure::Output));
    }
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    match suggestion(error) {
        Some(name) => tell(format_args!("{first}; did you mean '{name}'? see 'vfs --help'")),
        None => tell(format_args!("{first}; see 'vfs --help'")),
    }
    ExitCode::from(2)
}

/// The name most like the one that arguments misspell.
fn suggestion(error: &clap::Error) -> Option<&str> {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(name) => Some(name.as_str()),
        // clap lists the most similar one last.
        ContextValue::Strings(names) => names.last().map(String::as_str),
        _ => None,
    })
}

/// Says one line on standard error.
pub(crate) fn tell(message: impl fmt::Display) {
    let message = message.to_string();
    let line = escaped(&message);
    // Where standard error is closed too, nobody is left to be told.
    let _ = writeln!(io::stderr().lock(), "vfs: {line}");
}

/// Says why a listing or search that was asked for everything has not everything.
pub(crate) fn warn_truncated(truncated: Option<Truncation>) {
    match truncated {
        None => {}
        Some(Truncation::MaxEntries) => {
            tell("there are more entries than one search looks at; search the directories below one by one");
        }
        Some(Truncation::Memory) => {
            tell("there is no memory for a longer result; search the directories below one by one")
        }
        Some(_) => tell("the tree goes deeper than a path can name; what lies below was left out"),
    }
}

/// Says what a listing or search could not show; it does not fail for that.
pub(crate) fn warn(problems: &[Problem]) {
    for problem in problems {
        tell(warning(problem));
    }
}

/// One line that says what is wrong, and with which path.
pub(crate) fn warning(Problem { path, message, .. }: &Problem) -> String {
    let message = message.strip_prefix("Error: ").unwrap_or(message);
    if message.contains(path.as_str()) { message.to_owned() } else { format!("{path}: {message}") }
}
