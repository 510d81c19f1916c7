//! What the command line may say.

mod batch;
mod exec;
mod namespace;
mod number;
mod store;

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand};
use clap_complete::Shell;
use vfs_config::suggest::similar;
use vfs_core::{HiddenNames, Version, WriteMode};

pub(crate) use self::batch::BatchArgs;
pub(crate) use self::exec::{ExecArgs, JobsArgs, JobsCommand, SandboxArgs, SandboxCommand, ShellArgs};
pub(crate) use self::namespace::{
    ChangesArgs, CheckpointArgs, CheckpointsArgs, ConfigCommand, DiffArgs, DiscardArgs, ExplainArgs, HistoryArgs,
    JsonArgs, LogArgs, PolicyCommand, RestoreArgs, UndoArgs, WatchArgs,
};
use self::number::whole;
pub(crate) use self::store::{StoreArgs, StoreBackupArgs, StoreCommand, StoreCopyArgs};

// Paragraphs are one line each: clap breaks them where the terminal ends.
const EXAMPLES: &str = "\
Examples:
  echo 'a colour' | vfs write /notes/a.txt   a new file; directories above it are made
  vfs read -n /notes/a.txt                   a file with line numbers, as an agent sees it
  vfs --root notes read -n /a.txt            the same file, below another root
  vfs grep 'a col' /notes                    lines that hold this text, below /notes
  vfs edit --old colour --new color --all --dry-run /notes/a.txt
  echo '{\"id\":1,\"op\":\"ls\",\"path\":\"/\"}' | vfs batch

Paths start at the root: '/src/main.rs' and 'src/main.rs' are the same file. File operations reach \
nothing outside the root unless --host is given; the root does not confine the commands of 'vfs exec', which 'vfs exec --help' \
describes. With --config the files are those that a vfs.toml describes: several backends in one namespace, \
with policies, overlays, audit logs and checkpoints around them; 'vfs config --help' says more. With --store they are \
those of a database, server or bucket; 'vfs store --help' says more.

Exit status: 0 for success or a match, 1 for no match, 2 for an error. Entries that a listing or search could not open \
are warnings on standard error.";

const GREP_EXAMPLES: &str = "\
Examples:
  vfs grep 'fn main('                      this text, wherever it stands
  vfs grep -E 'fn \\w+_all\\(' -t rust -C 2  a regular expression, in Rust files, with context
  vfs grep -l unsafe -g '*.rs' -g '!tests/**' /crates
  vfs grep -- -Wall /Makefile              a pattern that begins with '-'
  vfs grep -e error -e warning /src        lines with one of these texts

Lines are printed as '/path:line:text', context as '/path-line-text'. Hidden files, what ignore files exclude, and \
files with NUL bytes are left out.

Exit status: 0 for a match, 1 for none, 2 for an error, also if nothing was found and a file or directory could not be read. \
Each of these is a warning on standard error. Links that lead nowhere or outside the root, and special files, are warnings too, \
but leave the exit status at 1: the search does not include what they lead to.";

/// An agent's view of a directory: list, read, write, edit and search the files below a root
#[derive(Debug, Parser)]
#[command(name = "vfs", version, arg_required_else_help = false, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where the files are.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Place {
    /// The directory that is shown as '/'; file operations reach nothing outside it. It does not confine the commands of
    /// 'vfs exec' [default: .]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Reach the whole host: paths are the host's own, and relative ones start at the root directory
    #[arg(long, global = true)]
    pub(crate) host: bool,
    /// The namespace that FILE describes, with all its mounts and layers, in place of --root and --host
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The files of this durable store, in place of --root; '-' for the one in the variable VFS_STORE
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Whose files of the store, such as acme/ann [default: those without a namespace]
    #[arg(long, global = true, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Who asks, for policies, quotas and audit logs
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) actor: Option<String>,
    /// The job that this process is the keeper of
    #[arg(long, global = true, hide = true, value_name = "ID")]
    pub(crate) keep_job: Option<String>,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List a directory, one path a line, directories with a '/' at the end
    Ls(LsArgs),
    /// Say what is known of a file or directory
    Stat(StatArgs),
    /// Print a file, byte for byte, or a window of its lines
    Read(ReadArgs),
    /// Write standard input to a file; directories above it are made
    Write(WriteArgs),
    /// Replace text in a file, literally
    Edit(EditArgs),
    /// Remove a file or link, or with -r a directory
    Rm(RmArgs),
    /// Move a file or directory
    #[command(after_help = namespace::MOVE_NOTES)]
    Mv(TransferArgs),
    /// Copy a file or directory
    Cp(TransferArgs),
    /// Find files by name
    #[command(after_help = "Exit status: 0 where a file matches, 1 where none does, 2 for an error.")]
    Glob(GlobArgs),
    /// Find text in files
    #[command(args_override_self = true, after_help = GREP_EXAMPLES)]
    Grep(GrepArgs),
    /// Answer JSON requests from standard input, one a line
    #[command(after_help = batch::BATCH_EXAMPLES)]
    Batch(BatchArgs),
    /// Run a command: on this machine, in a sandbox, or without a process
    #[command(after_help = exec::EXEC_EXAMPLES)]
    Exec(ExecArgs),
    /// List and end commands in the background
    #[command(after_help = exec::JOBS_EXAMPLES)]
    Jobs(JobsArgs),
    /// Ask what the sandbox holds back here
    #[command(subcommand, after_help = exec::SANDBOX_EXAMPLES)]
    Sandbox(SandboxCommand),
    /// Tell of changes as they happen, one a line, until it is interrupted
    #[command(after_help = namespace::WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// List what is mounted where
    Mounts(JsonArgs),
    /// Show what was changed in the overlays, as a unified diff
    #[command(after_help = namespace::OVERLAY_EXAMPLES)]
    Diff(DiffArgs),
    /// Bring the changes of the overlays to the files beneath
    #[command(after_help = namespace::COMMIT_STATUS)]
    Commit(ChangesArgs),
    /// Forget the changes of the overlays, or those of some paths
    #[command(after_help = namespace::DISCARD_EXAMPLES)]
    Discard(DiscardArgs),
    /// Take back the last changes
    #[command(after_help = namespace::UNDO_STATUS)]
    Undo(UndoArgs),
    /// List the changes that can be taken back, the newest first
    History(HistoryArgs),
    /// Remember the state of all files
    #[command(after_help = namespace::CHECKPOINT_EXAMPLES)]
    Checkpoint(CheckpointArgs),
    /// List the states that are remembered, the oldest first
    Checkpoints(CheckpointsArgs),
    /// Go back to a state that is remembered
    Restore(RestoreArgs),
    /// Print the audit log, the oldest record first
    #[command(after_help = namespace::LOG_STATUS)]
    Log(LogArgs),
    /// Ask the rules
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Verify, count, copy or back up a durable store
    #[command(subcommand, after_help = store::STORE_EXAMPLES)]
    Store(StoreCommand),
    /// Look at the description of a namespace
    #[command(subcommand, after_help = namespace::CONFIG_EXAMPLES)]
    Config(ConfigCommand),
    /// Print a completion script
    #[command(after_help = "Example: vfs completions bash > ~/.local/share/bash-completion/completions/vfs")]
    Completions {
        /// The shell it is for
        shell: Shell,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LsArgs {
    /// Print size in bytes and time of change before each path
    #[arg(short)]
    pub(crate) long: bool,
    /// List everything below, too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// The directory [default: the root]
    pub(crate) path: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatArgs {
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The file or directory
    pub(crate) path: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReadArgs {
    /// Print line numbers, in the form that an agent sees, of one window of at most 16 MiB
    #[arg(short, long)]
    pub(crate) numbered: bool,
    /// Lines to skip
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = whole(0..=u64::MAX))]
    pub(crate) offset: u64,
    /// Most lines [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(0..=u64::MAX))]
    pub(crate) limit: Option<u64>,
    /// The file
    pub(crate) path: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WriteArgs {
    /// What happens to a file that is there: create (refuse), overwrite, append, if-version=V (replace that version)
    #[arg(long, default_value = "create", value_parser = write_mode)]
    pub(crate) mode: WriteMode,
    /// When the file was changed last, for imports: an RFC 3339 time, such as 2024-05-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) modified_at: Option<DateTime<Utc>>,
    /// The file
    pub(crate) path: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct EditArgs {
    /// Replace every occurrence, not the only one
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the diff and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the line endings of the new text as given, not as those of the file
    #[arg(long)]
    pub(crate) exact_line_endings: bool,
    /// The text to replace
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) old: String,
    /// What stands there afterwards
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) new: String,
    /// The file
    pub(crate) path: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RmArgs {
    /// Remove a directory with everything below it
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// The file, link or directory
    pub(crate) path: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TransferArgs {
    /// Replace what is at the target
    #[arg(short, long)]
    pub(crate) force: bool,
    /// The file or directory
    pub(crate) from: String,
    /// Where it goes: its whole new path
    pub(crate) to: String,
}

/// What a search passes over unless it is asked to look.
#[derive(Debug, ClapArgs)]
pub(crate) struct Visibility {
    /// Include names that start with a dot: all, or with =spelled those whose dot the pattern spells, in hidden directories
    /// too if it has no '/'
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
    /// Include what ignore files exclude
    #[arg(long)]
    pub(crate) no_ignore: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GlobArgs {
    #[command(flatten)]
    pub(crate) visibility: Visibility,
    /// The pattern: without '/' it is matched against names, with '/' against paths below PATH
    pub(crate) pattern: String,
    /// The directory to search [default: the root]
    pub(crate) path: Option<String>,
    /// Further arguments, as after a shell expanded the pattern
    #[arg(hide = true)]
    pub(crate) rest: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GrepArgs {
    /// The pattern is a regular expression, not a text
    #[arg(short = 'E', long)]
    pub(crate) extended: bool,
    /// Letters of another case match
    #[arg(short, long, overrides_with = "smart_case")]
    pub(crate) ignore_case: bool,
    /// Letters of another case match unless the pattern has an upper-case letter
    #[arg(short = 'S', long, overrides_with = "ignore_case")]
    pub(crate) smart_case: bool,
    /// Only whole words
    #[arg(short, long)]
    pub(crate) word: bool,
    /// The lines that do not match
    #[arg(short = 'v', long)]
    pub(crate) invert: bool,
    /// Matches may span lines
    #[arg(short = 'U', long)]
    pub(crate) multiline: bool,
    /// Lines of context after each match
    #[arg(short = 'A', long, value_name = "N", allow_negative_numbers = true, value_parser = whole(0..=u32::MAX))]
    pub(crate) after: Option<u32>,
    /// Lines of context before each match
    #[arg(short = 'B', long, value_name = "N", allow_negative_numbers = true, value_parser = whole(0..=u32::MAX))]
    pub(crate) before: Option<u32>,
    /// Lines of context on both sides
    #[arg(
        short = 'C',
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        allow_negative_numbers = true,
        value_parser = whole(0..=u32::MAX)
    )]
    pub(crate) context: u32,
    /// Only files that match GLOB, or with '!' before it all others; may be given more than once
    #[arg(short, long, value_name = "GLOB", allow_hyphen_values = true, action = ArgAction::Append)]
    pub(crate) glob: Vec<String>,
    /// Only files of this type, by ripgrep's names; may be given more than once
    #[arg(short = 't', long = "type", value_name = "TYPE", action = ArgAction::Append)]
    pub(crate) file_types: Vec<String>,
    /// Print only the paths of files that have a match
    #[arg(short = 'l', long, overrides_with = "count")]
    pub(crate) files: bool,
    /// Print the number of matches in each file
    #[arg(short, long, overrides_with = "files")]
    pub(crate) count: bool,
    /// Most matches in one file
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = whole(0..=u64::MAX))]
    pub(crate) max_count: Option<u64>,
    #[command(flatten)]
    pub(crate) visibility: Visibility,
    /// Print one JSON event a line
    #[arg(long)]
    pub(crate) json: bool,
    /// A pattern, which may begin with '-'; may be given more than once, for lines that match one of them
    #[arg(short = 'e', value_name = "PATTERN", allow_hyphen_values = true, action = ArgAction::Append)]
    pub(crate) expressions: Vec<String>,
    /// Search binary files, those with NUL bytes, as if they were text
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
    text.parse().map_err(|_| "write it as in RFC 3339: 2024-05-01T12:00:00Z".to_owned())
}

fn write_mode(text: &str) -> Result<WriteMode, String> {
    Ok(match text {
        "create" => WriteMode::CreateNew,
        "overwrite" => WriteMode::Overwrite,
        "append" => WriteMode::Append,
        _ => match text.strip_prefix("if-version=") {
            Some(version) if !version.is_empty() => WriteMode::IfVersion(Version::from(version)),
            _ => {
                let known = ["create", "overwrite", "append", "if-version=V"];
                let near = similar(text, known, 1).first().map(|name| format!("; did you mean '{name}'?"));
                return Err(format!("it is create, overwrite, append or if-version=V{}", near.unwrap_or_default()));
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }
}
