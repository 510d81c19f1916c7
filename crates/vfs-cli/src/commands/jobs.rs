//! Command `vfs jobs`: lists, follows, stops and removes background jobs.

use std::io::{self, Write};

use chrono::SecondsFormat;

use crate::args::{JobsArgs, JobsCommand};
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::jobs::{self, JobEntry, JobState, JobsDirectory};
use crate::standard_output::StandardOutput;

pub(super) async fn run(out: &mut StandardOutput, args: JobsArgs) -> Result<Exit, Failure> {
    let jobs = JobsDirectory::open().await?;
    if args.command.is_none() && jobs.is_none() {
        return Ok(Exit::Success);
    }
    let jobs = jobs.ok_or_else(jobs::unknown_job)?;
    match args.command {
        None => {
            for entry in jobs.list().await? {
                if args.json { out.json(&entry)? } else { print_entry(out, &entry)? }
            }
        }
        Some(JobsCommand::Output { from, follow, id }) => jobs.output(out, &id, from, follow).await?,
        Some(JobsCommand::Stop { id }) => {
            let entry = jobs.stop(&id).await?;
            if args.json { out.json(&entry)? } else { print_entry(out, &entry)? }
        }
        Some(JobsCommand::Forget { id }) => jobs.forget(&id).await?,
    }
    Ok(Exit::Success)
}

fn print_entry(out: &mut StandardOutput, entry: &JobEntry) -> io::Result<()> {
    let JobEntry { job, state } = entry;
    let started = job.started.to_rfc3339_opts(SecondsFormat::Secs, true);
    let state = match state {
        JobState::Running => "running".to_owned(),
        JobState::Lost => "lost".to_owned(),
        JobState::Ended => match job.exit.unwrap_or_default() {
            exit if exit.timed_out => "timed out".to_owned(),
            exit => match (exit.exit_code, exit.signal) {
                (Some(code), _) => format!("exited {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "stopped".to_owned(),
            },
        },
    };
    writeln!(out, "{}  {started}  {state:<10}  {}", escape(job.id.as_str()), escape(&job.command))
}
