//! Command-line arguments and help texts.

mod batch;
mod execution;
mod integer_parser;
mod namespace;
mod store;
mod tool;

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand};
use clap_complete::Shell;
use vfs_core::search::{HiddenNames, IgnoreMode};
use vfs_core::suggest::similar;
use vfs_core::{Version, WriteMode};

pub(crate) use self::batch::BatchArgs;
pub(crate) use self::execution::{ExecArgs, JobsArgs, JobsCommand, SandboxArgs, SandboxCommand, ShellBackendArgs};
use self::integer_parser::integer_in;
pub(crate) use self::namespace::{
    CheckpointArgs, CheckpointsArgs, ConfigCommand, DiffArgs, DiscardArgs, ExplainArgs, HistoryArgs, LogArgs,
    MountsArgs, OverlayArgs, PolicyCommand, RestoreArgs, UndoArgs, WatchArgs,
};
pub(crate) use self::store::{StoreArgs, StoreBackupArgs, StoreCommand, StoreCopyArgs};
pub(crate) use self::tool::{ToolArgs, ToolCommand};
use crate::version::VERSION;

// Paragraphs are one line each: clap breaks them where the terminal ends.
const EXAMPLES: &str = "\
Examples:
  echo 'a colour' | vfs write /notes/a.txt   a new file; parent directories are created
  vfs read -n /notes/a.txt                   a file with line numbers, as an agent sees it
  vfs --root notes read -n /a.txt            the same file, below another root
  vfs grep 'a col' /notes                    lines that contain this text, below /notes
  vfs edit --old colour --new color --all --dry-run /notes/a.txt
  echo '{\"id\":1,\"op\":\"ls\",\"path\":\"/\"}' | vfs batch

Paths start at the root: '/src/main.rs' and 'src/main.rs' are the same file. File operations reach \
nothing outside the root unless --host is given; the root does not confine the commands of 'vfs exec', which 'vfs exec --help' \
describes. With --config, a vfs.toml describes the files: several backends in one namespace, with policies, overlays, audit logs and \
checkpoints around them; see 'vfs config --help'. With --store, the files are in a database, server or bucket; see \
'vfs store --help'.

'vfs help topics' lists pages about paths, patterns, versions and policies.

Exit status: 0 for success or a match, 1 for no match, 2 for an error. Entries that a listing or search could not open \
are warnings on standard error.";

const GREP_EXAMPLES: &str = "\
Examples:
  vfs grep 'fn main('                      lines that contain this text
  vfs grep -E 'fn \\w+_all\\(' -t rust -C 2  a regular expression, in Rust files, with context
  vfs grep -l unsafe -g '*.rs' -g '!tests/**' /crates
  vfs grep -- -Wall /Makefile              a pattern that begins with '-'
  vfs grep -e error -e warning /src        lines with one of these texts

Lines are printed as '/path:line:text', context as '/path-line-text'. Hidden files, ignored files and files with NUL bytes \
are left out.

Exit status: 0 for a match, 1 for none, 2 for an error, also if nothing was found and a file or directory could not be read. \
Each of these is a warning on standard error. Links that lead nowhere or outside the root, and special files, are warnings too, \
but leave the exit status at 1: the search does not include what they lead to.";

/// An agent's view of a directory: list, read, write, edit and search the files below a root
#[derive(Debug, Parser)]
#[command(name = "vfs", version = VERSION.as_str(), arg_required_else_help = false, args_override_self = true, disable_help_subcommand = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) backend: BackendArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that select the backend.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Global options")]
pub(crate) struct BackendArgs {
    /// The directory that is shown as '/'; file operations reach nothing outside. It does not confine the commands of
    /// 'vfs exec' [default: .]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Access the whole host: paths are host paths, and relative ones start at the root directory
    #[arg(long, global = true)]
    pub(crate) host: bool,
    /// Open the namespace of the configuration FILE, with its mounts and layers, in place of --root and --host
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Open the durable store at URL, in place of --root; '-' for the URL in the environment variable VFS_STORE
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The namespace of the files in the store, such as acme/ann [default: the one without a name]
    #[arg(long, global = true, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The actor, for policies, quotas and audit logs
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) actor: Option<String>,
    /// Run as the monitor process of this job
    #[arg(long, global = true, hide = true, value_name = "ID")]
    pub(crate) keep_job: Option<String>,
}

/// The command to run.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List a directory, one path per line, directories with a trailing '/'
    Ls(LsArgs),
    /// Print the metadata of a file or directory
    Stat(StatArgs),
    /// Print a file, byte for byte, or a range of its lines
    Read(ReadArgs),
    /// Write standard input to a file; missing parent directories are created
    Write(WriteArgs),
    /// Replace literal text in a file
    Edit(EditArgs),
    /// Remove a file or link, or with -r a directory
    Rm(RmArgs),
    /// Move a file or directory
    #[command(after_help = namespace::MOVE_NOTES)]
    Mv(MoveCopyArgs),
    /// Copy a file or directory
    Cp(MoveCopyArgs),
    /// Find files by name
    #[command(after_help = "Exit status: 0 if a file matches, 1 if none does, 2 for an error.")]
    Glob(GlobArgs),
    /// Find text in files
    #[command(args_override_self = true, after_help = GREP_EXAMPLES)]
    Grep(GrepArgs),
    /// Answer JSON requests from standard input, one per line
    #[command(after_help = batch::BATCH_EXAMPLES)]
    Batch(BatchArgs),
    /// List the tools that a model is given, and call them
    #[command(after_help = tool::TOOL_EXAMPLES)]
    Tool(ToolArgs),
    /// Run a command: on the host, in a sandbox, or in a virtual shell
    #[command(after_help = execution::EXEC_EXAMPLES)]
    Exec(ExecArgs),
    /// List, follow and stop background jobs
    #[command(after_help = execution::JOBS_EXAMPLES)]
    Jobs(JobsArgs),
    /// Check what the sandbox enforces on this host
    #[command(subcommand, after_help = execution::SANDBOX_EXAMPLES)]
    Sandbox(SandboxCommand),
    /// Print changes of files as they happen, one per line, until interrupted
    #[command(after_help = namespace::WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// List the mounts
    Mounts(MountsArgs),
    /// Show the changes of the overlays as a unified diff
    #[command(after_help = namespace::OVERLAY_EXAMPLES)]
    Diff(DiffArgs),
    /// Apply the changes of the overlays to the files below
    #[command(after_help = namespace::COMMIT_STATUS)]
    Commit(OverlayArgs),
    /// Discard the changes of the overlays, or of some paths
    #[command(after_help = namespace::DISCARD_EXAMPLES)]
    Discard(DiscardArgs),
    /// Undo the last changes
    #[command(after_help = namespace::UNDO_STATUS)]
    Undo(UndoArgs),
    /// List the changes that can be undone, newest first
    History(HistoryArgs),
    /// Take a snapshot of all files
    #[command(after_help = namespace::CHECKPOINT_EXAMPLES)]
    Checkpoint(CheckpointArgs),
    /// List the snapshots, oldest first
    Checkpoints(CheckpointsArgs),
    /// Restore a snapshot
    Restore(RestoreArgs),
    /// Print or verify the audit log, oldest record first
    #[command(after_help = namespace::LOG_STATUS)]
    Log(LogArgs),
    /// Explain decisions of policies
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Check, count, copy or back up a durable store
    #[command(subcommand, after_help = store::STORE_EXAMPLES)]
    Store(StoreCommand),
    /// Check a configuration file, or print its schema or an example
    #[command(subcommand, after_help = namespace::CONFIG_EXAMPLES)]
    Config(ConfigCommand),
    /// Print the help of a command, or a topic such as 'paths'; 'topics' lists them
    #[command(after_help = "Examples:\n  vfs help topics\n  vfs help patterns\n  vfs help store check")]
    Help {
        /// A command with its subcommands, or a topic [default: the whole command]
        #[arg(value_name = "NAME")]
        words: Vec<String>,
    },
    /// Print a manual page
    #[command(after_help = "Examples:\n  vfs man | man -l -\n  vfs man grep > vfs-grep.1")]
    Man {
        /// A command with its subcommands [default: the whole command]
        #[arg(value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// Print a completion script
    #[command(after_help = "Example: vfs completions bash > ~/.local/share/bash-completion/completions/vfs")]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Arguments of `vfs ls`.
#[derive(Debug, ClapArgs)]
pub(crate) struct LsArgs {
    /// Print the size in bytes and the modification time before each path
    #[arg(short)]
    pub(crate) long: bool,
    /// List all entries below, too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// The directory [default: the root]
    pub(crate) path: Option<String>,
}

/// Arguments of `vfs stat`.
#[derive(Debug, ClapArgs)]
pub(crate) struct StatArgs {
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The file or directory
    pub(crate) path: String,
}

/// Arguments of `vfs read`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReadArgs {
    /// Print line numbers, as an agent sees them, for at most 16 MiB
    #[arg(short, long)]
    pub(crate) numbered: bool,
    /// Number of lines to skip
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = integer_in(0..=u64::MAX))]
    pub(crate) offset: u64,
    /// Maximum number of lines [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = integer_in(0..=u64::MAX))]
    pub(crate) limit: Option<u64>,
    /// The file
    pub(crate) path: String,
}

/// Arguments of `vfs write`.
#[derive(Debug, ClapArgs)]
pub(crate) struct WriteArgs {
    /// How to treat an existing file: create (refuse), overwrite, append, if-version=V (replace only version V)
    #[arg(long, default_value = "create", value_parser = write_mode)]
    pub(crate) mode: WriteMode,
    /// Set the modification time, for imports: an RFC 3339 time such as 2024-05-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) modified_at: Option<DateTime<Utc>>,
    /// The file
    pub(crate) path: String,
}

/// Arguments of `vfs edit`.
#[derive(Debug, ClapArgs)]
pub(crate) struct EditArgs {
    /// Replace all occurrences
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the diff without changing the file
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the line endings of the new text as given, instead of those of the file
    #[arg(long)]
    pub(crate) exact_line_endings: bool,
    /// The text to replace
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) old: String,
    /// The text to insert instead
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) new: String,
    /// The file
    pub(crate) path: String,
}

/// Arguments of `vfs rm`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RmArgs {
    /// Remove a directory with everything below it
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// The file, link or directory
    pub(crate) path: String,
}

/// Arguments of `vfs mv` and `vfs cp`.
#[derive(Debug, ClapArgs)]
pub(crate) struct MoveCopyArgs {
    /// Replace an existing target
    #[arg(short, long)]
    pub(crate) force: bool,
    /// The file or directory
    pub(crate) from: String,
    /// The whole new path
    pub(crate) to: String,
}

/// Options that include files that a search skips by default.
#[derive(Debug, ClapArgs)]
pub(crate) struct SearchVisibility {
    /// Include dotfiles: all, or with =spelled those whose dot is part of the pattern, also in hidden directories if the pattern
    /// has no '/'
    #[arg(
        long,
        value_name = "WHICH",
        num_args = 0..=1,
        require_equals = true,
        default_value = "skip",
        default_missing_value = "all",
        hide_default_value = true,
        value_parser = hidden_names
    )]
    pub(crate) hidden: HiddenNames,
    /// Include files that ignore files exclude
    #[arg(long)]
    no_ignore: bool,
}

impl SearchVisibility {
    pub(crate) fn ignore(&self) -> IgnoreMode {
        if self.no_ignore { IgnoreMode::Disregard } else { IgnoreMode::Apply }
    }
}

/// Arguments of `vfs glob`.
#[derive(Debug, ClapArgs)]
pub(crate) struct GlobArgs {
    #[command(flatten)]
    pub(crate) visibility: SearchVisibility,
    /// The pattern: without '/' it matches names, with '/' paths below PATH
    pub(crate) pattern: String,
    /// The directory to search [default: the root]
    pub(crate) path: Option<String>,
    /// Further arguments, if the shell has expanded the pattern
    #[arg(hide = true)]
    pub(crate) rest: Vec<String>,
}

/// Arguments of `vfs grep`.
#[derive(Debug, ClapArgs)]
pub(crate) struct GrepArgs {
    /// Treat the pattern as a regular expression
    #[arg(short = 'E', long)]
    pub(crate) extended: bool,
    /// Ignore case
    #[arg(short, long, overrides_with = "smart_case")]
    pub(crate) ignore_case: bool,
    /// Ignore case unless the pattern has an upper-case letter
    #[arg(short = 'S', long, overrides_with = "ignore_case")]
    pub(crate) smart_case: bool,
    /// Match whole words only
    #[arg(short, long)]
    pub(crate) word: bool,
    /// Print lines that do not match
    #[arg(short = 'v', long)]
    pub(crate) invert: bool,
    /// Let matches span lines
    #[arg(short = 'U', long)]
    pub(crate) multiline: bool,
    /// Print N lines of context after each match
    #[arg(short = 'A', long, value_name = "N", allow_negative_numbers = true, value_parser = integer_in(0..=u32::MAX))]
    pub(crate) after: Option<u32>,
    /// Print N lines of context before each match
    #[arg(short = 'B', long, value_name = "N", allow_negative_numbers = true, value_parser = integer_in(0..=u32::MAX))]
    pub(crate) before: Option<u32>,
    /// Print N lines of context before and after each match
    #[arg(
        short = 'C',
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        allow_negative_numbers = true,
        value_parser = integer_in(0..=u32::MAX)
    )]
    pub(crate) context: u32,
    /// Search only files that match GLOB, or with a leading '!' all others; repeatable
    #[arg(short, long, value_name = "GLOB", allow_hyphen_values = true, action = ArgAction::Append)]
    pub(crate) glob: Vec<String>,
    /// Search only files of this ripgrep file type; repeatable
    #[arg(short = 't', long = "type", value_name = "TYPE", action = ArgAction::Append)]
    pub(crate) file_types: Vec<String>,
    /// Print only the paths of files with a match
    #[arg(short = 'l', long, overrides_with = "count")]
    pub(crate) files: bool,
    /// Print the number of matches in each file
    #[arg(short, long, overrides_with = "files")]
    pub(crate) count: bool,
    /// Maximum number of matches in one file
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = integer_in(0..=u64::MAX))]
    pub(crate) max_count: Option<u64>,
    #[command(flatten)]
    pub(crate) visibility: SearchVisibility,
    /// Print one JSON event per line
    #[arg(long)]
    pub(crate) json: bool,
    /// A pattern, which may start with '-'; repeatable, for lines that match any of them
    #[arg(short = 'e', value_name = "PATTERN", allow_hyphen_values = true, action = ArgAction::Append)]
    pub(crate) expressions: Vec<String>,
    /// Search binary files (with NUL bytes) as text
    #[arg(short = 'a', long)]
    pub(crate) text: bool,
    /// The text to find, unless -e gives it
    #[arg(required_unless_present = "expressions")]
    pub(crate) pattern: Option<String>,
    /// The directory or file to search [default: the root]
    pub(crate) path: Option<String>,
}

fn hidden_names(text: &str) -> Result<HiddenNames, &'static str> {
    match text {
        "all" => Ok(HiddenNames::Include),
        "skip" => Ok(HiddenNames::Skip),
        "spelled" => Ok(HiddenNames::Spelled),
        _ => Err("write --hidden, --hidden=spelled or --hidden=skip"),
    }
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    text.parse().map_err(|_| "expected an RFC 3339 time, such as 2024-05-01T12:00:00Z".to_owned())
}

fn write_mode(text: &str) -> Result<WriteMode, String> {
    Ok(match text {
        "create" => WriteMode::CreateNew,
        "overwrite" => WriteMode::Overwrite,
        "append" => WriteMode::Append,
        _ => match text.strip_prefix("if-version=") {
            Some(version) if !version.is_empty() => WriteMode::IfVersion(Version::from(version)),
            _ => {
                let names = ["create", "overwrite", "append", "if-version=V"];
                let near = similar(text, names, 1).first().map(|name| format!("; did you mean '{name}'?"));
                return Err(format!("expected create, overwrite, append or if-version=V{}", near.unwrap_or_default()));
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn clap_accepts_the_definition_of_the_arguments() {
        Args::command().debug_assert();
    }
}
