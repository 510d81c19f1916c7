//! The commands that run commands.

use std::env::VarError;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::number::whole;

pub(super) const EXEC_EXAMPLES: &str = "\
Without --sandbox and --virtual, COMMAND runs on this machine as your user and is not confined by --root: it can read and \
write whatever you can. --root only sets the directory it starts in.

Examples:
  vfs exec --inherit-env -- cargo test     on this machine, as your user, with your PATH, starting in the root
  vfs exec --sandbox -- 'make && ./a.out'  where nothing outside the root can be written, without a network
  vfs exec --sandbox --timeout 10 -- 'curl example.org; echo $?'
  vfs --store sqlite:agents.db exec --virtual -- 'grep -r deadline /notes | wc -l'
  vfs exec --background -- 'make watch'    prints the id of a job; 'vfs jobs' says how it goes

The words of COMMAND are joined by spaces and read by a shell, as ssh does it: quote what the shell is to see. The \
environment is clean, PATH too, so that programs below your home directory are not found: --env sets variables, and \
--inherit-env passes on those of this one that do not look like secrets.

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
  vfs jobs                                 those that run and those that ended
  vfs jobs output 3f9a04c1 --follow
  vfs jobs stop 3f9a04c1
  vfs jobs forget 3f9a04c1                 one that has ended

A job is 'running', has 'exited' with a code, was ended by a 'signal', 'timed out' or was 'stopped'; it is 'lost' where the \
process that kept it was killed, and its command with it. Until it is forgotten it is in vfs/jobs below XDG_STATE_HOME or \
~/.local/state, with at most 1 GiB of what it printed.";

pub(super) const SANDBOX_EXAMPLES: &str = "\
'vfs sandbox check' starts a process in a sandbox and tries what it must not be able to do.

With the options of 'vfs exec --sandbox' it says what a sandbox with these enforces.

Exit status: 0 where all that is required is enforced, 1 where something is not, 2 for an error.";

/// What a sandbox is to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct SandboxArgs {
    /// Hold the command by Landlock and a filter of system calls alone, where namespaces are forbidden, as in most containers:
    /// it sees the root at its path on this machine, '.git' and '.env' are not protected, and /tmp cannot be written
    #[arg(long, conflicts_with_all = ["allow_visible_processes", "allow_unprotected_names"])]
    pub(crate) landlock: bool,
    /// Let the sandbox reach the network of this machine
    #[arg(long)]
    pub(crate) network: bool,
    /// Let the sandbox make unix sockets; those that are below the root when it starts stay out of reach
    #[arg(long)]
    pub(crate) unix_sockets: bool,
    /// Run where the processes outside cannot be hidden, with their arguments, nor the name of this machine
    #[arg(long)]
    pub(crate) allow_visible_processes: bool,
    /// Run where '.git' and '.env' can be protected in the root only, and not in the directories below it
    #[arg(long)]
    pub(crate) allow_unprotected_names: bool,
    /// Search so many entries for what is protected before a command starts [default: 1000000]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = whole(0..=u64::MAX))]
    pub(crate) max_scanned_entries: Option<u64>,
    /// Run the self-test of the sandbox also if an equal one has passed it since the system was started; 'vfs sandbox check'
    /// always does
    #[arg(long)]
    pub(crate) self_test: bool,
}

/// The shell that runs commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct ShellArgs {
    /// In a sandbox: only the root can be written, and there is no network
    #[arg(long, conflicts_with = "virtual_shell")]
    pub(crate) sandbox: bool,
    /// Without a process: by an interpreter that sees these files and nothing else
    #[arg(long = "virtual")]
    pub(crate) virtual_shell: bool,
    #[command(flatten)]
    pub(crate) sandbox_args: SandboxArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub(crate) shell: ShellArgs,
    /// End it after so many seconds [default: 120; none with --background]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Print the id of a job and do not wait for it
    #[arg(long, conflicts_with = "json")]
    pub(crate) background: bool,
    /// The directory it runs in [default: the root]
    #[arg(long, value_name = "PATH")]
    pub(crate) cwd: Option<String>,
    /// Set a variable; NAME alone passes its value on from this environment, so that no list of processes shows it; may be
    /// given more than once
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Pass on the variables of this environment that do not look like secrets
    #[arg(long)]
    pub(crate) inherit_env: bool,
    /// Let it read standard input, all of which is read first
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Print one line of JSON at the end: 'output', which has what was printed to both outputs in the order of arrival, and
    /// how the command ended
    #[arg(long)]
    pub(crate) json: bool,
    /// With --json: print 'stdout' and 'stderr' in place of 'output'
    #[arg(long, requires = "json")]
    pub(crate) separate: bool,
    /// With --json: keep at most so many bytes of each output, from its beginning and its end [default: 100000]
    #[arg(long, value_name = "BYTES", requires = "json", allow_negative_numbers = true, value_parser = whole(1..=u64::MAX))]
    pub(crate) max_output: Option<u64>,
    /// The command
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Looks after commands in the background.
#[derive(Debug, ClapArgs)]
pub(crate) struct JobsArgs {
    /// Print one line of JSON for each
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<JobsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// Print what a job has printed
    Output {
        /// Begin after so many bytes
        #[arg(long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true, value_parser = whole(0..=u64::MAX))]
        from: u64,
        /// Go on until it ends
        #[arg(long, short)]
        follow: bool,
        /// The job
        id: String,
    },
    /// End all processes of a job
    Stop {
        /// The job
        id: String,
    },
    /// Remove what is kept of a job that has ended
    Forget {
        /// The job
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Say what this machine can enforce, and why not
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
