//! One file a command.

mod batch;
mod completions;
mod edit;
mod glob;
mod grep;
mod ls;
mod read;
mod rm;
mod stat;
mod transfer;
mod write;

use std::io::Write;

use crate::args::{Args, Command};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

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
    let open = || Session::open(&args.place);
    match args.command {
        Command::Ls(args) => ls::run(&open()?, out, args).await,
        Command::Stat(args) => stat::run(&open()?, out, args).await,
        Command::Read(args) => read::run(&open()?, out, args).await,
        Command::Write(args) => write::run(&open()?, out, args).await,
        Command::Edit(args) => edit::run(&open()?, out, args).await,
        Command::Rm(args) => rm::run(&open()?, out, args).await,
        Command::Mv(args) => transfer::rename(&open()?, out, args).await,
        Command::Cp(args) => transfer::copy(&open()?, out, args).await,
        Command::Glob(args) => glob::run(&open()?, out, args).await,
        Command::Grep(args) => grep::run(&open()?, out, args).await,
        Command::Batch(args) => batch::run(&open()?, out, args).await,
        Command::Completions { shell } => completions::run(out, shell),
    }
}
