//! Commands, one file each, and their dispatch.

mod batch;
mod checkpoint;
mod checkpoints;
mod commit;
mod completions;
mod config;
mod diff;
mod discard;
mod edit;
mod exec;
mod glob;
mod grep;
mod help;
mod history;
mod jobs;
mod log;
mod ls;
mod man;
mod mounts;
mod move_copy;
mod policy;
mod read;
mod restore;
mod rm;
mod sandbox;
mod stat;
mod store;
mod tool;
mod undo;
mod watch;
mod write;

use std::io::Write;

use crate::args::{Args, BackendArgs, Command, ConfigCommand, PolicyCommand, SandboxCommand};
use crate::backend_session::BackendSession;
use crate::exit::{Exit, Failure};
use crate::path_suggestions;
use crate::standard_output::StandardOutput;
use crate::store_argument::MissingStore;

/// Runs the command that the arguments select.
pub(crate) async fn run(args: Args) -> Result<Exit, Failure> {
    let mut out = StandardOutput::stdout();
    let outcome = dispatch(args, &mut out).await;
    // Results before a failure are printed, too. A write error of the output is a failure.
    let flushed = out.flush();
    let exit = outcome?;
    flushed?;
    Ok(exit)
}

async fn dispatch(args: Args, out: &mut StandardOutput) -> Result<Exit, Failure> {
    let Args { backend, command } = args;
    let command = match command {
        Command::Help { words } => return help::run(out, &words),
        Command::Man { words } => return man::run(out, &words),
        Command::Completions { shell } => return completions::run(out, shell),
        Command::Config(ConfigCommand::Schema) => return config::schema(out),
        Command::Config(ConfigCommand::Example) => return config::example(out),
        Command::Store(command) => return store::run(out, command, backend.store.as_deref()).await,
        Command::Jobs(args) => return jobs::run(out, args).await,
        Command::Log(args) => return log::run(&backend, out, args).await,
        Command::Sandbox(SandboxCommand::Check { sandbox, json }) => {
            return sandbox::check(out, backend.root.as_deref(), sandbox, json).await;
        }
        command => command,
    };
    let missing = if matches!(command, Command::Write(_) | Command::Batch(_)) {
        MissingStore::Create
    } else {
        MissingStore::Refuse
    };
    let session = BackendSession::open(&backend, missing).await?;
    let expects_existing_path = matches!(
        command,
        Command::Ls(_)
            | Command::Stat(_)
            | Command::Read(_)
            | Command::Edit(_)
            | Command::Rm(_)
            | Command::Mv(_)
            | Command::Cp(_)
            | Command::Glob(_)
            | Command::Grep(_)
    );
    let outcome = match run_on_session(&session, out, command, &backend).await {
        Err(failure) if expects_existing_path => Err(path_suggestions::add_suggestions(&session, failure).await),
        outcome => outcome,
    };
    // Audit records of a failed command are flushed, too. The error of the command takes precedence.
    let closed = session.close().await;
    let exit = outcome?;
    closed?;
    Ok(exit)
}

async fn run_on_session(
    session: &BackendSession,
    out: &mut StandardOutput,
    command: Command,
    backend: &BackendArgs,
) -> Result<Exit, Failure> {
    match command {
        Command::Ls(args) => ls::run(session, out, args).await,
        Command::Stat(args) => stat::run(session, out, args).await,
        Command::Read(args) => read::run(session, out, args).await,
        Command::Write(args) => write::run(session, out, args).await,
        Command::Edit(args) => edit::run(session, out, args).await,
        Command::Rm(args) => rm::run(session, out, args).await,
        Command::Mv(args) => move_copy::rename(session, out, args).await,
        Command::Cp(args) => move_copy::copy(session, out, args).await,
        Command::Glob(args) => glob::run(session, out, args).await,
        Command::Grep(args) => grep::run(session, out, args).await,
        Command::Batch(args) => batch::run(session, out, args).await,
        Command::Tool(args) => tool::run(session, out, args).await,
        Command::Exec(args) => exec::run(session, out, args, backend.keep_job.clone()).await,
        Command::Jobs(args) => jobs::run(out, args).await,
        Command::Watch(args) => watch::run(session, out, args).await,
        Command::Mounts(args) => mounts::run(session, out, args),
        Command::Diff(args) => diff::run(session, out, args).await,
        Command::Commit(args) => commit::run(session, out, args).await,
        Command::Discard(args) => discard::run(session, out, args).await,
        Command::Undo(args) => undo::run(session, out, args).await,
        Command::History(args) => history::run(session, out, args).await,
        Command::Checkpoint(args) => checkpoint::run(session, out, args).await,
        Command::Checkpoints(args) => checkpoints::run(session, out, args).await,
        Command::Restore(args) => restore::run(session, out, args).await,
        Command::Log(args) => log::run(backend, out, args).await,
        Command::Store(command) => store::run(out, command, backend.store.as_deref()).await,
        Command::Sandbox(SandboxCommand::Check { sandbox, json }) => {
            sandbox::check(out, session.root.as_deref(), sandbox, json).await
        }
        Command::Policy(PolicyCommand::Explain(args)) => policy::explain(session, out, args).await,
        Command::Config(ConfigCommand::Check) => config::check(session, out),
        Command::Config(ConfigCommand::Schema) => config::schema(out),
        Command::Config(ConfigCommand::Example) => config::example(out),
        Command::Help { words } => help::run(out, &words),
        Command::Man { words } => man::run(out, &words),
        Command::Completions { shell } => completions::run(out, shell),
    }
}
