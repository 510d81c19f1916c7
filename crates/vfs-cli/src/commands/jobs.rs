//! `vfs jobs`.

use std::io::{self, Write};

use chrono::SecondsFormat;

use crate::args::{JobsArgs, JobsCommand};
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::jobs::{self, Jobs, Kept, State};
use crate::output::Output;

pub(super) async fn run(out: &mut Output, args: JobsArgs) -> Result<Exit, Failure> {
    let jobs = Jobs::open().await?;
    if args.command.is_none() && jobs.is_none() {
        return Ok(Exit::Success);
    }
    let jobs = jobs.ok_or_else(jobs::unknown)?;
    match args.command {
        None => {
            for kept in jobs.list().await? {
                if args.json { out.json(&kept)? } else { print(out, &kept)? }
            }
        }
        Some(JobsCommand::Output { from, follow, id }) => jobs.output(out, &id, from, follow).await?,
        Some(JobsCommand::Stop { id }) => {
            let kept = jobs.stop(&id).await?;
            if args.json { out.json(&kept)? } else { print(out, &kept)? }
        }
        Some(JobsCommand::Forget { id }) => jobs.forget(&id).await?,
    }
    Ok(Exit::Success)
}

fn print(out: &mut Output, kept: &Kept) -> io::Result<()> {
    let Kept { job, state } = kept;
    let started = job.started.to_rfc3339_opts(SecondsFormat::Secs, true);
    let state = match state {
        State::Running => "running".to_owned(),
        State::Lost => "lost".to_owned(),
        State::Ended => match job.exit.unwrap_or_default() {
            exit if exit.timed_out => "timed out".to_owned(),
            exit => match (exit.exit_code, exit.signal) {
                (Some(code), _) => format!("exited {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "stopped".to_owned(),
            },
        },
    };
    writeln!(out, "{}  {started}  {state:<10}  {}", escaped(job.id.as_str()), escaped(&job.command))
}
