//! Exit codes, failures and messages on standard error.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use clap::error::{ContextKind, ContextValue, ErrorKind as UsageKind};
use vfs_config::ConfigError;
use vfs_core::error::ErrorDetail;
use vfs_core::{Error, Problem, TruncationReason};

use crate::escape::escape;

/// The result of a command that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded, or the search had a match: 0.
    Success,
    /// The search had no match: 1.
    NoMatch,
    /// The operation was refused, or a check found a problem; the output says why: 1.
    Refused,
    /// The search had no match, and files could not be read: 2.
    Incomplete,
    /// The exit code of the command that was run.
    Command(u8),
}

impl Exit {
    /// Returns the exit of a search.
    pub(crate) fn from_match(has_match: bool) -> Self {
        if has_match { Exit::Success } else { Exit::NoMatch }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An operation failed.
    Operation(Error),
    /// An operation failed; the hints are printed on further lines.
    Hinted(Error, Vec<String>),
    /// The root directory cannot be opened.
    Root(PathBuf, Error),
    /// The configuration file is invalid, or its namespace cannot be opened.
    Config(ConfigError),
    /// This build lacks the feature.
    #[cfg(not(all(feature = "sandbox", feature = "virtual-shell")))]
    MissingFeature(&'static str),
    /// The arguments are invalid.
    Usage(&'static str),
    /// There is no help of the name.
    UnknownHelp(String),
    /// Standard input cannot be read.
    Input(io::Error),
    /// Standard output cannot be written.
    Output(io::Error),
    /// A path of the process environment is unknown.
    #[cfg(feature = "sandbox")]
    Environment(&'static str, io::Error),
    /// The runtime or a thread cannot be started.
    Runtime(io::Error),
    /// The directory for jobs cannot be created.
    JobRoot(PathBuf, io::Error),
    /// An operation on the directory or process of a job failed.
    Job(&'static str, io::Error),
    /// The monitor process of a job failed, with this text on standard error and this exit status.
    Monitor(String, ExitStatus),
}

impl Failure {
    /// Returns the exit code: that of a failed monitor process, or 2.
    fn code(&self) -> u8 {
        match self {
            Failure::Monitor(_, status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2),
            _ => 2,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Operation(error)
    }
}

/// Converts errors of standard output; other `io::Error`s are converted explicitly.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Operation(error) | Failure::Hinted(error, _) if lacks_feature(error) => {
                write!(f, "{error}; {INSTALL}")
            }
            Failure::Operation(error) | Failure::Hinted(error, _) => error.fmt(f),
            Failure::Root(root, error) => f.write_str(&vfs_config::describe_open_failure("root", root, error)),
            Failure::Config(error) if error.cause.as_ref().is_some_and(lacks_feature) => {
                write!(f, "{error}; {INSTALL}")
            }
            Failure::Config(error) => error.fmt(f),
            #[cfg(not(all(feature = "sandbox", feature = "virtual-shell")))]
            Failure::MissingFeature(feature) => {
                write!(f, "this vfs was built without the feature '{feature}'; {INSTALL}")
            }
            Failure::Usage(message) => f.write_str(message),
            Failure::UnknownHelp(message) => write!(f, "{message}; see 'vfs help' and 'vfs help topics'"),
            Failure::Input(error) => write!(f, "standard input cannot be read: {error}"),
            Failure::Output(error) => write!(f, "standard output cannot be written: {error}"),
            #[cfg(feature = "sandbox")]
            Failure::Environment(what, error) => write!(f, "the {what} cannot be found: {error}"),
            Failure::Runtime(error) => {
                write!(f, "the runtime cannot be started: {error}; allow more descriptors (ulimit -n) and threads")
            }
            Failure::JobRoot(path, error) => write!(f, "the directory for jobs, {path:?}, cannot be created: {error}"),
            Failure::Job(what, error) => write!(f, "{what}: {error}"),
            Failure::Monitor(message, status) if message.is_empty() => {
                write!(f, "the monitor process of the job exited without a message: {status}")
            }
            // The monitor has the message format of this process.
            Failure::Monitor(message, _) => f.write_str(message.trim().trim_start_matches("vfs: ")),
        }
    }
}

/// How to get a build with all features.
const INSTALL: &str = "install vfs with 'cargo install --locked vfs-cli --features full', or use a released binary from \
                       https://github.com/agent-vfs/agent-vfs/releases";

/// Returns whether this build lacks the feature of a store.
fn lacks_feature(error: &Error) -> bool {
    matches!(error.detail(), Some(ErrorDetail::MissingFeature { .. }))
}

/// Returns the exit code of a command, and prints its failure.
pub(crate) fn exit_code(outcome: Result<Exit, Failure>) -> ExitCode {
    match outcome {
        Ok(Exit::Success) => ExitCode::SUCCESS,
        Ok(Exit::NoMatch | Exit::Refused) => ExitCode::from(1),
        Ok(Exit::Incomplete) => ExitCode::from(2),
        Ok(Exit::Command(code)) => ExitCode::from(code),
        // The reader has closed the pipe, as `head` does.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            let code = failure.code();
            print_message(&failure);
            if let Failure::Hinted(_, hints) = &failure {
                hints.iter().for_each(print_message);
            }
            ExitCode::from(code)
        }
    }
}

/// Reports arguments that do not parse, and returns the exit code. For clap, help and version are such errors, too.
pub(crate) fn report_usage_error(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), UsageKind::DisplayHelp | UsageKind::DisplayVersion) {
        return exit_code(error.print().map(|()| Exit::Success).map_err(Failure::Output));
    }
    if error.kind() == UsageKind::MissingSubcommand
        && let Some(ContextValue::Strings(names)) = error.get(ContextKind::ValidSubcommand)
    {
        let names = names.iter().filter(|name| *name != "help").take(6).map(String::as_str).collect::<Vec<_>>();
        print_message(format_args!("a command is missing, such as {}; see 'vfs --help'", names.join(", ")));
        return ExitCode::from(2);
    }
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    match suggestion(error) {
        Some(name) => print_message(format_args!("{first}; did you mean '{name}'? see 'vfs --help'")),
        None => print_message(format_args!("{first}; see 'vfs --help'")),
    }
    ExitCode::from(2)
}

/// Returns the name that is most similar to a misspelt one.
fn suggestion(error: &clap::Error) -> Option<&str> {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(name) => Some(name.as_str()),
        // clap lists the most similar one last.
        ContextValue::Strings(names) => names.last().map(String::as_str),
        _ => None,
    })
}

/// Prints one line to standard error, with control characters escaped.
pub(crate) fn print_message(message: impl fmt::Display) {
    let message = message.to_string();
    let line = escape(&message);
    // If standard error is closed, the message cannot be reported anywhere.
    let _ = writeln!(io::stderr().lock(), "vfs: {line}");
}

/// Prints why a listing or search without a limit is incomplete.
pub(crate) fn print_truncation(truncated: Option<TruncationReason>) {
    match truncated {
        None => {}
        Some(TruncationReason::MaxEntries) => {
            print_message("there are more entries than one search visits; search the directories below one by one");
        }
        Some(TruncationReason::Memory) => {
            print_message("there is no memory for a longer result; search the directories below one by one")
        }
        Some(_) => print_message("the tree is deeper than the longest path; deeper entries were left out"),
    }
}

/// Prints the problems of a listing or search, which do not make it fail.
pub(crate) fn print_problems(problems: &[Problem]) {
    for problem in problems {
        print_message(problem_line(problem));
    }
}

/// Returns a problem as one line that includes its path.
pub(crate) fn problem_line(Problem { path, message, .. }: &Problem) -> String {
    let message = message.strip_prefix("Error: ").unwrap_or(message);
    if message.contains(path.as_str()) { message.to_owned() } else { format!("{path}: {message}") }
}
