//! Arguments and help texts of `vfs exec`, `vfs jobs` and `vfs sandbox`.

use std::env::VarError;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::integer_parser::integer_in;

pub(super) const EXEC_EXAMPLES: &str = "\
Without --sandbox and --virtual, COMMAND runs on this machine as your user and is not confined by --root: it can read and \
write whatever you can. --root only sets the directory it starts in.

Examples:
  vfs exec --inherit-env -- cargo test     on this machine, as your user, with your PATH, starting in the root
  vfs exec --sandbox -- 'make && ./a.out'  with the root writable, and no network
  vfs exec --sandbox --timeout 10 -- 'curl example.org; echo $?'
  vfs --store sqlite:agents.db exec --virtual -- 'grep -r deadline /notes | wc -l'
  vfs exec --background -- 'make watch'    prints the id of a job; 'vfs jobs' prints its state

The words of COMMAND are joined by spaces and read by a shell, as ssh does it: quote what the shell is to see. The \
environment is clean, PATH too, so that programs below your home directory are not found: --env sets variables, and \
--inherit-env passes on variables that do not look like secrets.

Commands start in the root, where relative paths lead to the same files as in other commands of vfs. An absolute path such as \
/src/a.rs is that in --virtual; in --sandbox, where the root stands beside the directories of the system, it is \
/workspace/src/a.rs (with --landlock as without --sandbox, the path on this machine).

In a sandbox, '.git' is read-only and '.env' hidden at any depth. What a command leaves under such a name, or in the shape \
of a git repository, is a warning on standard error: look at it before git is run there, and let git refuse repositories \
that it merely finds with 'git config --global safe.bareRepository explicit'.

Exit status: that of the command; 128 and the number of the signal that ended it; 124 if it was \
stopped at its timeout, which standard error says, or 'timed_out' with --json; 2 if it was not run, with the reason on standard \
error.";

pub(super) const JOBS_EXAMPLES: &str = "\
Examples:
  vfs jobs                                 all jobs
  vfs jobs output 3f9a04c1 --follow
  vfs jobs stop 3f9a04c1
  vfs jobs forget 3f9a04c1                 a job that has ended

A job is 'running', has 'exited' with a code, was ended by a 'signal', 'timed out' or was 'stopped'; it is 'lost' if its \
monitor process was killed, together with the command. Until 'vfs jobs forget', its record is in vfs/jobs below XDG_STATE_HOME \
or ~/.local/state, with at most 1 GiB of output.";

pub(super) const SANDBOX_EXAMPLES: &str = "\
'vfs sandbox check' starts a process in a sandbox and tries forbidden operations.

Its options are those of 'vfs exec --sandbox'.

Exit status: 0 if every required guarantee is enforced, 1 if one is not, 2 for an error.";

/// Options of the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct SandboxArgs {
    /// Use only Landlock and a system call filter, where namespaces are forbidden, as in most containers: the command sees the
    /// root at its host path, '.git' and '.env' are not protected, and /tmp cannot be written
    #[arg(long, conflicts_with_all = ["allow_visible_processes", "allow_unprotected_names"])]
    pub(crate) landlock: bool,
    /// Allow access to the network of the host
    #[arg(long)]
    pub(crate) network: bool,
    /// Allow new unix sockets; those that exist below the root at the start stay out of reach
    #[arg(long)]
    pub(crate) unix_sockets: bool,
    /// Run even if processes outside, their arguments and the host name cannot be hidden
    #[arg(long)]
    pub(crate) allow_visible_processes: bool,
    /// Run even if '.git' and '.env' can be protected in the root only, and not below
    #[arg(long)]
    pub(crate) allow_unprotected_names: bool,
    /// Maximum number of entries to search for protected names before a command starts [default: 1000000]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = integer_in(0..=u64::MAX))]
    pub(crate) max_scanned_entries: Option<u64>,
    /// Run the self-test of the sandbox also if an equal one has passed it since the system was started; 'vfs sandbox check'
    /// always does
    #[arg(long)]
    pub(crate) self_test: bool,
}

/// The shell that runs commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct ShellBackendArgs {
    /// Run in a sandbox: only the root is writable, and there is no network
    #[arg(long, conflicts_with = "virtual_shell")]
    pub(crate) sandbox: bool,
    /// Run in a virtual shell: an interpreter without a process, which sees these files only
    #[arg(long = "virtual")]
    pub(crate) virtual_shell: bool,
    #[command(flatten)]
    pub(crate) sandbox_args: SandboxArgs,
}

/// Arguments of `vfs exec`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub(crate) shell: ShellBackendArgs,
    /// Stop the command after SECONDS [default: 120; none with --background]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Start a background job and print its id
    #[arg(long, conflicts_with = "json")]
    pub(crate) background: bool,
    /// The working directory [default: the root]
    #[arg(long, value_name = "PATH")]
    pub(crate) cwd: Option<String>,
    /// Set a variable; NAME alone passes on its value from this environment, so that the value is not in the list of processes;
    /// repeatable
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Pass on all variables of this environment that do not look like secrets
    #[arg(long)]
    pub(crate) inherit_env: bool,
    /// Pass standard input to the command, after reading all of it
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Print one line of JSON at the end: 'output', with both outputs in order of arrival, and the exit status
    #[arg(long)]
    pub(crate) json: bool,
    /// With --json: print 'stdout' and 'stderr' in place of 'output'
    #[arg(long, requires = "json")]
    pub(crate) separate: bool,
    /// With --json: maximum number of bytes of each output, from its start and its end [default: 100000]
    #[arg(long, value_name = "BYTES", requires = "json", allow_negative_numbers = true, value_parser = integer_in(1..=u64::MAX))]
    pub(crate) max_output: Option<u64>,
    /// The command
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Arguments of `vfs jobs`.
#[derive(Debug, ClapArgs)]
pub(crate) struct JobsArgs {
    /// Print one line of JSON per job
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<JobsCommand>,
}

/// Subcommands of `vfs jobs`.
#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// Print the output of a job
    Output {
        /// Number of bytes to skip
        #[arg(long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true, value_parser = integer_in(0..=u64::MAX))]
        from: u64,
        /// Continue until the job ends
        #[arg(long, short)]
        follow: bool,
        /// The id of the job
        id: String,
    },
    /// Stop all processes of a job
    Stop {
        /// The id of the job
        id: String,
    },
    /// Remove the record and output of a job that has ended
    Forget {
        /// The id of the job
        id: String,
    },
}

/// Subcommands of `vfs sandbox`.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Report what a sandbox on this host enforces
    Check {
        #[command(flatten)]
        sandbox: SandboxArgs,
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
    },
}

fn seconds(text: &str) -> Result<Duration, String> {
    let span = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    span.filter(|span| !span.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0, such as 30 or 0.5".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    if name.is_empty() {
        return Err("a variable has the form NAME=VALUE or NAME".to_owned());
    }
    let value = match value {
        Some(value) => value.to_owned(),
        None => std::env::var(name).map_err(|error| match error {
            VarError::NotPresent => format!("{name} is not set in this environment; write {name}=VALUE"),
            VarError::NotUnicode(_) => format!("the value of {name} in this environment is not UTF-8"),
        })?,
    };
    Ok((name.to_owned(), value))
}
