//! One file a command.

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
mod history;
mod jobs;
mod log;
mod ls;
mod mounts;
mod policy;
mod read;
mod restore;
mod rm;
mod sandbox;
mod stat;
mod store;
mod transfer;
mod undo;
mod watch;
mod write;

use std::io::Write;

pub(crate) use self::exec::streaming;

use crate::args::{Args, Command, ConfigCommand, Place, PolicyCommand, SandboxCommand};
use crate::exit::{Exit, Failure};
use crate::near;
use crate::output::Output;
use crate::session::{Missing, Session};

/// Carries out what the arguments ask for.
pub(crate) async fn run(args: Args) -> Result<Exit, Failure> {
    let mut out = Output::stdout();
    let outcome = dispatch(args, &mut out).await;
    // What was found before a failure is shown, too; and output that is lost is a failure.
    let flushed = out.flush();
    let exit = outcome?;
    flushed?;
    Ok(exit)
}

async fn dispatch(args: Args, out: &mut Output) -> Result<Exit, Failure> {
    let Args { place, command } = args;
    let command = match command {
        Command::Completions { shell } => return completions::run(out, shell),
        Command::Config(ConfigCommand::Schema) => return config::schema(out),
        Command::Store(command) => return store::run(out, command, place.store.as_deref()).await,
        Command::Jobs(args) => return jobs::run(out, args).await,
        Command::Log(args) => return log::run(&place, out, args).await,
        Command::Sandbox(SandboxCommand::Check { sandbox, json }) => {
            return sandbox::check(out, place.root.as_deref(), sandbox, json).await;
        }
        command => command,
    };
    let missing =
        if matches!(command, Command::Write(_) | Command::Batch(_)) { Missing::Make } else { Missing::Refuse };
    let session = Session::open(&place, missing).await?;
    let is_about_files_that_are_there = matches!(
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
    let outcome = match on_session(&session, out, command, &place).await {
        Err(failure) if is_about_files_that_are_there => Err(near::hinted(&session, failure).await),
        outcome => outcome,
    };
    // What was cut short is recorded, too; why it failed goes before why that did.
    let closed = session.close().await;
    let exit = outcome?;
    closed?;
    Ok(exit)
}

async fn on_session(session: &Session, out: &mut Output, command: Command, place: &Place) -> Result<Exit, Failure> {
    match command {
        Command::Ls(args) => ls::run(session, out, args).await,
        Command::Stat(args) => stat::run(session, out, args).await,
        Command::Read(args) => read::run(session, out, args).await,
        Command::Write(args) => write::run(session, out, args).await,
        Command::Edit(args) => edit::run(session, out, args).await,
        Command::Rm(args) => rm::run(session, out, args).await,
        Command::Mv(args) => transfer::rename(session, out, args).await,
        Command::Cp(args) => transfer::copy(session, out, args).await,
        Command::Glob(args) => glob::run(session, out, args).await,
        Command::Grep(args) => grep::run(session, out, args).await,
        Command::Batch(args) => batch::run(session, out, args).await,
        Command::Exec(args) => exec::run(session, out, args, place.keep_job.clone()).await,
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
        Command::Log(args) => log::run(place, out, args).await,
        Command::Store(command) => store::run(out, command, place.store.as_deref()).await,
        Command::Sandbox(SandboxCommand::Check { sandbox, json }) => {
            sandbox::check(out, session.root.as_deref(), sandbox, json).await
        }
        Command::Policy(PolicyCommand::Explain(args)) => policy::explain(session, out, args).await,
        Command::Config(ConfigCommand::Check) => config::check(session, out),
        Command::Config(ConfigCommand::Schema) => config::schema(out),
        Command::Completions { shell } => completions::run(out, shell),
    }
}
